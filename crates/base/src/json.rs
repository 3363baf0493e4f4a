//! Checks and repairs of JSON as raw text: repeated keys, a canonical form, and invalid JSON of careless programs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Returns true if any object in the text repeats a key, so that two parsers may disagree about it. Keys are compared after
/// unescaping (`\u0061` is `a`). Returns false for invalid JSON.
pub fn has_repeated_key(text: &str) -> bool {
    // Invalid JSON fails with an error of another category.
    serde_json::from_str::<UniqueKeys>(text).is_err_and(|error| error.is_data())
}

/// Normalizes JSON: no blanks, and the keys of each object sorted. Texts of equal meaning become equal. An empty text becomes an
/// empty object, and invalid JSON is returned unchanged.
pub fn normalize_text(text: &str) -> String {
    match text.trim() {
        "" => "{}".to_owned(),
        text => serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value| sort_keys(value).to_string()),
    }
}

/// Repairs invalid JSON of careless programs. Lone surrogates become U+FFFD, control characters and unknown escapes in strings are
/// escaped, and numbers unknown to JSON become null. `None` if nothing changed.
pub fn mend(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let (mut rest, mut is_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        let (kept, taken) = if is_string { mend_in_string(rest, first) } else { mend_between(rest, first, &mended) };
        is_string ^= first == '"';
        mended.push_str(&kept);
        rest = rest.get(taken..).unwrap_or_default();
    }
    (mended != text).then_some(mended)
}

/// Repairs the next piece of a string. Also returns the number of bytes read.
fn mend_in_string(rest: &str, first: char) -> (Cow<'_, str>, usize) {
    let keep = |bytes: usize| (Cow::Borrowed(rest.get(..bytes).unwrap_or_default()), bytes);
    if first.is_ascii_control() {
        return (Cow::Owned(format!("\\u{:04x}", u32::from(first))), 1);
    }
    if first != '\\' {
        return keep(first.len_utf8());
    }
    // The UTF-16 unit of an escape such as `\ud83d`.
    let escaped_unit = |at: usize| {
        let digits = rest.get(at..).and_then(|escape| escape.strip_prefix("\\u"))?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    match (rest.get(1..2), escaped_unit(0), escaped_unit(6)) {
        (Some("u"), Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => keep(12),
        (Some("u"), Some(0xd800..=0xdfff), _) => (Cow::Borrowed("\u{fffd}"), 6),
        (Some("u"), Some(_), _) => keep(6),
        (Some("\"" | "\\" | "/" | "b" | "f" | "n" | "r" | "t"), ..) => keep(2),
        _ => (Cow::Borrowed("\\\\"), 1),
    }
}

/// Repairs the next piece between strings. Also returns the number of bytes read.
fn mend_between<'a>(rest: &'a str, first: char, before: &str) -> (Cow<'a, str>, usize) {
    let is_word_start = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let is_word = |word: &&&str| {
        let after = rest.strip_prefix(**word);
        after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    match ["NaN", "Infinity", "-Infinity", "undefined"].iter().find(is_word).filter(|_| is_word_start) {
        Some(word) => (Cow::Borrowed("null"), word.len()),
        None => (Cow::Borrowed(rest.get(..first.len_utf8()).unwrap_or_default()), first.len_utf8()),
    }
}

/// Sorts the keys of all objects. The parser bounds the depth.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(key, value)| (key, sort_keys(value))).collect();
            fields.into_iter().collect()
        }
        Value::Array(values) => values.into_iter().map(sort_keys).collect(),
        other => other,
    }
}

/// Any JSON without repeated keys.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeys)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated keys in its objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is repeated"));
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
    fn repeated_keys_are_found_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"b":2,"\u0061":3}"#,
            r#"{"a":{"b":[1,{"c":1,"d":null,"c":2}]}}"#,
            r#"[{"":0,"":0}]"#,
        ] {
            assert!(has_repeated_key(text), "{text}");
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
            assert!(!has_repeated_key(text), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_repaired_and_valid_json_stays_unchanged() {
        for (text, mended) in [
            (r#"{"a":"x\ud83d","b":"\ude02y"}"#, "{\"a\":\"x\u{fffd}\",\"b\":\"\u{fffd}y\"}"),
            (r#"["\ud83d\ud83d\ude02"]"#, "[\"\u{fffd}\\ud83d\\ude02\"]"),
            (r#"{"a":NaN,"b":[-Infinity,Infinity],"c":undefined}"#, r#"{"a":null,"b":[null,null],"c":null}"#),
            ("{\"a\":\"x\ty\"}", r#"{"a":"x\u0009y"}"#),
            (r#"{"a":"\d+\'"}"#, r#"{"a":"\\d+\\'"}"#),
        ] {
            let got = mend(text).unwrap();
            assert_eq!(got, mended);
            assert!(serde_json::from_str::<Value>(&got).is_ok(), "{got}");
        }
        for text in [r#"{"a":"NaN \ud83d\ude02 \" \\ é","b":[1,null,true]}"#, "", "{", "NaNs"] {
            assert_eq!(mend(text), None, "{text}");
        }
    }

    #[test]
    fn texts_of_equal_meaning_become_equal() {
        for (text, one) in [
            (" ", "{}"),
            (r#"{ "b": [ {"d": 1, "c": null} ], "a": 1.50 }"#, r#"{"a":1.5,"b":[{"c":null,"d":1}]}"#),
            (r#"{"\u0061":"\u00e9"}"#, r#"{"a":"é"}"#),
            ("[2, 1]", "[2,1]"),
            ("{no json", "{no json"),
        ] {
            assert_eq!(normalize_text(text), one, "{text}");
            assert_eq!(normalize_text(one), one);
        }
    }
}
