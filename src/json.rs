//! JSON as it came: what a reader that keeps one value a key would not notice, and what two texts have in common.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Whether an object in this text, at whatever depth, has a key twice: then two readers may read it in two ways. Says
/// nothing of what is no JSON. Keys are compared as they are read, however they are spelled (`\u0061` is `a`).
pub fn has_key_twice(text: &str) -> bool {
    // What isn't JSON fails with its own error, which has a place in the text; ours is told by its category.
    serde_json::from_str::<Once>(text).is_err_and(|error| error.is_data())
}

/// The same JSON without blanks and with the keys of each object in order: two texts that mean the same become one. Nothing at all
/// is an empty object, and what isn't JSON stays as it is.
pub fn canonical(text: &str) -> String {
    match text.trim() {
        "" => "{}".to_owned(),
        text => serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value| in_order(value).to_string()),
    }
}

/// A value whose objects have their keys in order. The parser bounds its depth.
fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(key, value)| (key, in_order(value))).collect();
            fields.into_iter().collect()
        }
        Value::Array(values) => values.into_iter().map(in_order).collect(),
        other => other,
    }
}

/// Any JSON whose objects have each key once.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Once)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON whose objects have each key once")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"b":2,"\u0061":3}"#,
            r#"{"a":{"b":[1,{"c":1,"d":null,"c":2}]}}"#,
            r#"[{"":0,"":0}]"#,
        ] {
            assert!(has_key_twice(text), "{text}");
        }
        for text in [
            "",
            "{",
            "1",
            "null",
            r#"{"a":1,"b""#,
            r#"{"a":{"a":{"a":1}},"A":2,"á":3,"a\u0301":4}"#,
            r#"[{"a":1},{"a":-2},{"a":1.5e300},{"a":true},{"a":"a"}]"#,
        ] {
            assert!(!has_key_twice(text), "{text}");
        }
    }

    #[test]
    fn what_means_the_same_becomes_one_text() {
        for (text, one) in [
            (" ", "{}"),
            (r#"{ "b": [ {"d": 1, "c": null} ], "a": 1.50 }"#, r#"{"a":1.5,"b":[{"c":null,"d":1}]}"#),
            (r#"{"\u0061":"\u00e9"}"#, r#"{"a":"é"}"#),
            ("[2, 1]", "[2,1]"),
            ("{no json", "{no json"),
        ] {
            assert_eq!(canonical(text), one, "{text}");
            assert_eq!(canonical(one), one);
        }
    }
}
