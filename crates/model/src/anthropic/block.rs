//! Assembles a content block of a streamed turn from raw JSON, with the order and format of its fields unchanged.
//!
//! Strings are joined in their escaped form: decoding and encoding again could change bytes, and an escape may be split between two deltas.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::content::build_input;

/// A block under construction.
#[derive(Debug)]
pub(super) struct Block {
    fields: Vec<(String, String)>,
    /// The original block, until a delta changes it.
    untouched: Option<String>,
    /// A tool call's partial arguments: the escaped form of a JSON string that contains JSON.
    partial_input: Option<String>,
}

impl Block {
    /// Starts a block from the raw JSON object of `content_block_start`.
    pub(super) fn start(raw: &str) -> serde_json::Result<Self> {
        Ok(Self { fields: object_fields(raw)?, untouched: Some(raw.to_owned()), partial_input: None })
    }

    /// Applies the raw JSON object of a `content_block_delta`. In an unknown kind of delta, strings are appended to the field of the same
    /// name and other values replace it.
    pub(super) fn apply(&mut self, delta: &str) -> serde_json::Result<()> {
        let fields = object_fields(delta)?;
        let kind = fields.iter().find(|(name, _)| name == "type").map_or("", |(_, raw)| raw.trim_matches('"'));
        let known = match kind {
            "text_delta" => Some("text"),
            "thinking_delta" => Some("thinking"),
            "signature_delta" => Some("signature"),
            "input_json_delta" => Some("partial_json"),
            "citations_delta" => Some("citation"),
            _ => None,
        };
        for (name, value) in &fields {
            match (known, name.as_str()) {
                (_, "type") => {}
                // Other fields beside the delta's own belong to the stream.
                (Some(about), name) if about != name => {}
                (Some(_), "partial_json") => append_string(self.partial_input.get_or_insert_with(empty_string), value),
                (Some(_), "citation") => append_item(self.field_mut("citations"), value),
                _ => append_string(self.field_mut(name), value),
            }
        }
        self.untouched = None;
        Ok(())
    }

    /// Returns slightly more than the bytes that the model has written for the block so far.
    pub(super) fn count_bytes(&self) -> usize {
        let partial = self.partial_input.as_ref().map_or(0, String::len);
        self.fields.iter().map(|(_, value)| value.len()).sum::<usize>() + partial
    }

    /// Returns the finished block as raw JSON.
    pub(super) fn finish(mut self) -> String {
        if let Some(raw) = self.untouched {
            return raw;
        }
        if let Some(partial) = self.partial_input.take() {
            let joined: String = serde_json::from_str(&partial).unwrap_or(partial);
            // Arguments from the block's start are kept if the deltas added nothing.
            if !joined.trim().is_empty() || !self.field_mut("input").starts_with('{') {
                *self.field_mut("input") = build_input(&joined);
            }
        }
        let fields = self.fields.iter().map(|(name, value)| format!("{}:{value}", quote_text(name)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }

    /// Returns the raw value of a field, appended as `null` if missing.
    fn field_mut(&mut self, name: &str) -> &mut String {
        let at = self.fields.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.fields.push((name.to_owned(), "null".to_owned()));
            self.fields.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the position was found or pushed just above")]
        &mut self.fields[at].1
    }
}

/// Appends the raw string `more` to the raw string `value`. Any other value is replaced.
fn append_string(value: &mut String, more: &str) {
    match (value.strip_suffix('"').map(str::len), more.strip_prefix('"')) {
        (Some(kept), Some(more)) if value.len() > 1 => {
            value.truncate(kept);
            value.push_str(more);
        }
        _ => more.clone_into(value),
    }
}

/// Appends the raw `item` to the raw array `list`, creating the array if needed.
fn append_item(list: &mut String, item: &str) {
    match list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::trim_end) {
        Some(items) if !items.trim().is_empty() => *list = format!("[{items},{item}]"),
        _ => *list = format!("[{item}]"),
    }
}

fn empty_string() -> String {
    "\"\"".to_owned()
}

fn quote_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Parses the fields of a raw JSON object in order, each value as raw JSON.
pub(crate) fn object_fields(raw: &str) -> serde_json::Result<Vec<(String, String)>> {
    serde_json::from_str::<Fields>(raw).map(|fields| fields.0)
}

struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((name, value.get().to_owned()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(start: &str, deltas: &[&str]) -> String {
        let mut block = Block::start(start).unwrap();
        for delta in deltas {
            block.apply(delta).unwrap();
        }
        block.finish()
    }

    #[test]
    fn a_block_without_deltas_keeps_every_byte() {
        let raw = r#"{ "z" : 1.0, "type":"redacted_thinking",  "data":"\u00e9" }"#;
        assert_eq!(assembled(raw, &[]), raw);
    }

    #[test]
    fn text_keeps_its_escapes_even_when_one_is_split() {
        let text = assembled(
            r#"{"type":"text","text":""}"#,
            &[r#"{"type":"text_delta","text":"a\u00e9\ud83d"}"#, r#"{"type":"text_delta","text":"\ude00\n\"é"}"#],
        );
        assert_eq!(text, r#"{"type":"text","text":"a\u00e9\ud83d\ude00\n\"é"}"#);
    }

    #[test]
    fn thinking_gets_its_text_and_signature_and_no_stray_fields() {
        let deltas = [
            r#"{"type":"thinking_delta","thinking":"so","estimated_tokens":9}"#,
            r#"{"type":"signature_delta","signature":"c2ln"}"#,
        ];
        assert_eq!(
            assembled(r#"{"type":"thinking","thinking":"","signature":""}"#, &deltas),
            r#"{"type":"thinking","thinking":"so","signature":"c2ln"}"#
        );
        assert_eq!(
            assembled(r#"{"type":"thinking","thinking":""}"#, &deltas[1..]),
            r#"{"type":"thinking","thinking":"","signature":"c2ln"}"#
        );
    }

    #[test]
    fn tool_arguments_are_joined_verbatim() {
        let start = r#"{"type":"tool_use","id":"t","name":"n","input":{},"caller":{"type":"direct"}}"#;
        let deltas = [
            r#"{"type":"input_json_delta","partial_json":""}"#,
            r#"{"type":"input_json_delta","partial_json":"{\"b\" : 1.0,"}"#,
            r#"{"type":"input_json_delta","partial_json":" \"a\":\"\\u00e9\"}"}"#,
        ];
        assert_eq!(
            assembled(start, &deltas),
            r#"{"type":"tool_use","id":"t","name":"n","input":{"b" : 1.0, "a":"\u00e9"},"caller":{"type":"direct"}}"#
        );
        assert_eq!(assembled(start, &deltas[..1]), start);
    }

    #[test]
    fn arguments_that_come_with_the_beginning_are_not_lost() {
        let start = r#"{"type":"tool_use","id":"t","name":"n","input":{"a":1}}"#;
        let nothing = r#"{"type":"input_json_delta","partial_json":""}"#;
        assert_eq!(assembled(start, &[nothing]), start);
        let object = r#"{"type":"input_json_delta","partial_json":{"a":1}}"#;
        assert_eq!(assembled(r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#, &[object]), start);
    }

    #[test]
    fn arguments_that_are_no_object_stay_storable_and_readable() {
        let start = r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#;
        for (partial, kept) in [(r#""{\"a\":\"b""#, r#""{\"a\":\"b""#), (r#""[1]""#, r#""[1]""#)] {
            let block = assembled(start, &[&format!(r#"{{"type":"input_json_delta","partial_json":{partial}}}"#)]);
            assert_eq!(
                block,
                format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{{"INVALID_JSON":{kept}}}}}"#)
            );
        }
    }

    #[test]
    fn citations_are_collected() {
        let deltas =
            [r#"{"type":"citations_delta","citation":{"n":1}}"#, r#"{"type":"citations_delta","citation":{"n":2}}"#];
        for start in [r#"{"type":"text","text":"","citations":null}"#, r#"{"type":"text","text":"","citations":[ ]}"#] {
            assert_eq!(assembled(start, &deltas), r#"{"type":"text","text":"","citations":[{"n":1},{"n":2}]}"#);
        }
    }

    #[test]
    fn an_unknown_delta_loses_nothing() {
        let deltas =
            [r#"{"type":"sound_delta","wave":"ab","rate":8}"#, r#"{"type":"sound_delta","wave":"cd","rate":9}"#];
        assert_eq!(assembled(r#"{"type":"sound"}"#, &deltas), r#"{"type":"sound","wave":"abcd","rate":9}"#);
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        assert!(Block::start("[1]").is_err());
        assert!(Block::start("{}").unwrap().apply("\"x\"").is_err());
    }
}
