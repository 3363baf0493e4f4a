//! Repairs a call's arguments where the fault is the server's rather than the model's. Pure.

use serde_json::value::RawValue;

/// Ways to write empty arguments.
const NONE: [&str; 4] = ["", "null", "[]", "None"];

/// True for complete JSON.
pub(super) fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<&RawValue>(arguments).is_ok()
}

/// Removes a server's additions from arguments: a second layer of quotes, an empty object in front, or a repetition of the whole. Other
/// arguments stay byte for byte.
pub(super) fn repair_arguments(arguments: String) -> String {
    let quoted = serde_json::from_str::<String>(&arguments).ok();
    let arguments = quoted.unwrap_or(arguments);
    if NONE.contains(&arguments.trim()) {
        return String::new();
    }
    if is_whole(&arguments) {
        return arguments;
    }
    let objects =
        serde_json::Deserializer::from_str(&arguments).into_iter::<&RawValue>().collect::<Result<Vec<_>, _>>();
    let Ok(objects) = objects else { return arguments };
    let mut full = objects.iter().map(|object| object.get()).filter(|object| *object != "{}");
    match full.next() {
        None => String::new(),
        Some(first) if first.starts_with('{') && full.all(|other| other == first) => first.to_owned(),
        Some(_) => arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_additions_to_arguments_are_removed() {
        for (name, arguments, wanted) in [
            ("whole", r#"{"n": 1.50}"#, r#"{"n": 1.50}"#),
            ("an empty object before them", r#"{}{"a":1}"#, r#"{"a":1}"#),
            ("all of them twice", r#"{"a":1}{"a":1}"#, r#"{"a":1}"#),
            ("all of them thrice, with blanks", "{\"a\":1} {\"a\":1}\n{\"a\":1}", r#"{"a":1}"#),
            ("quoted once more", r#""{\"a\":1}""#, r#"{"a":1}"#),
            ("null", "null", ""),
            ("an empty list", "[]", ""),
            ("nothing", " ", ""),
            ("empty objects", "{}{}", ""),
            ("two calls in one", r#"{"a":1}{"a":2}"#, r#"{"a":1}{"a":2}"#),
            ("cut off", r#"{"a":"#, r#"{"a":"#),
            ("a list", "[1]", "[1]"),
        ] {
            assert_eq!(repair_arguments(arguments.to_owned()), wanted, "{name}");
        }
    }
}
