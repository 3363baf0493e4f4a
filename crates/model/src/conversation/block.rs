//! The parsed blocks of a message. They borrow from the raw JSON, since pictures are large.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{json, value::RawValue};

/// A parsed message.
#[derive(Debug, Clone)]
pub struct SpokenMessage<'a> {
    /// True for a message of the model. Other messages are ours, on behalf of the person and the tools.
    pub is_models: bool,
    /// The message's blocks, in order.
    pub blocks: Vec<ContentBlock<'a>>,
}

/// A block. Anything other than our four kinds is opaque and keeps its place.
#[derive(Debug, Clone)]
pub enum ContentBlock<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A picture, as raw JSON; see [`image_source`].
    Image(&'a RawValue),
    /// A call of a tool.
    Call {
        /// The id that the result names.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// The arguments, byte for byte. `None` if the model gave no arguments.
        input: Option<&'a RawValue>,
    },
    /// The result of a call.
    Result(ResultBlock<'a>),
    /// The provider's own bytes, such as signed thinking, meaningless to others.
    Opaque(&'a RawValue),
}

/// The result of a call.
#[derive(Debug, Clone)]
pub struct ResultBlock<'a> {
    /// The call's id.
    pub call: Cow<'a, str>,
    /// The texts, joined by line breaks.
    pub text: String,
    /// The pictures, as raw JSON.
    pub images: Vec<&'a RawValue>,
    /// True if the call failed.
    pub is_error: bool,
}

/// The parsed fields of a message.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(default, borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// The parsed fields of a block.
#[derive(Deserialize)]
struct RawBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
    #[serde(default, borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

impl<'a> SpokenMessage<'a> {
    /// Parses a message's raw JSON. `None` if it isn't a message.
    pub fn parse(raw: &'a str) -> Option<Self> {
        let message: RawMessage<'a> = serde_json::from_str(raw).ok()?;
        Some(Self { is_models: message.role == "assistant", blocks: parse_blocks(message.content.get()) })
    }

    /// Iterates over the text blocks.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(ContentBlock::text)
    }

    /// Iterates over the results of calls.
    pub fn results(&self) -> impl Iterator<Item = &ResultBlock<'a>> {
        self.blocks.iter().filter_map(|block| match block {
            ContentBlock::Result(result) => Some(result),
            _ => None,
        })
    }
}

impl<'a> ContentBlock<'a> {
    /// Returns the text of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn parse(raw: &'a RawValue) -> Self {
        let opaque = Self::Opaque(raw);
        let Ok(block) = serde_json::from_str::<RawBlock<'a>>(raw.get()) else { return opaque };
        match (&*block.kind, block.text, block.id, block.name, block.tool_use_id) {
            ("text", Some(text), ..) => Self::Text(text),
            ("image", ..) => Self::Image(raw),
            ("tool_use", _, Some(id), Some(name), _) => Self::Call { id, name, input: block.input },
            ("tool_result", _, _, _, Some(call)) => {
                Self::Result(parse_result(call, block.content, block.is_error == Some(true)))
            }
            _ => opaque,
        }
    }
}

fn parse_result<'a>(call: Cow<'a, str>, content: Option<&'a RawValue>, is_error: bool) -> ResultBlock<'a> {
    let blocks = content.map(|content| parse_blocks(content.get())).unwrap_or_default();
    let text = blocks.iter().filter_map(ContentBlock::text).collect::<Vec<_>>().join("\n");
    let images = blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(raw) => Some(*raw),
        _ => None,
    });
    ResultBlock { call, text, images: images.collect(), is_error }
}

/// Parses raw content: an array of blocks, or a string as a single text block.
pub fn parse_blocks(content: &str) -> Vec<ContentBlock<'_>> {
    if let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(content) {
        return blocks.into_iter().map(ContentBlock::parse).collect();
    }
    let text = serde_json::from_str::<String>(content).ok();
    text.into_iter().map(|text| ContentBlock::Text(text.into())).collect()
}

/// Returns a picture's media type, such as `image/png`, and its bytes in base64. `None` for any other form of picture.
pub fn image_source(raw: &RawValue) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    #[derive(Deserialize)]
    struct RawImage<'a> {
        #[serde(borrow)]
        source: RawSource<'a>,
    }
    #[derive(Deserialize)]
    struct RawSource<'a> {
        #[serde(borrow)]
        media_type: Cow<'a, str>,
        #[serde(borrow)]
        data: Cow<'a, str>,
    }
    let RawImage { source } = serde_json::from_str(raw.get()).ok()?;
    Some((source.media_type, source.data))
}

/// Builds a text block as raw JSON.
pub fn text_block(text: &str) -> String {
    json!({"type": "text", "text": text}).to_string()
}

/// Builds a provider's opaque block as raw JSON; `by` names the provider.
pub fn build_opaque_block(by: &str, fields: &serde_json::Value) -> String {
    json!({"type": "opaque", "by": by, "fields": fields}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(raw: &str) -> Vec<String> {
        let message = SpokenMessage::parse(raw).unwrap();
        let kind = |block: &ContentBlock<'_>| match block {
            ContentBlock::Text(text) => format!("text {text}"),
            ContentBlock::Image(raw) => format!("image {:?}", image_source(raw)),
            ContentBlock::Call { id, name, input } => format!("call {id} {name} {:?}", input.map(RawValue::get)),
            ContentBlock::Result(result) => {
                format!("result {} {} {} {}", result.call, result.text, result.images.len(), result.is_error)
            }
            ContentBlock::Opaque(raw) => format!("opaque {}", raw.get()),
        };
        message.blocks.iter().map(kind).collect()
    }

    #[test]
    fn four_kinds_are_ours_and_the_rest_keeps_its_bytes() {
        let raw = r#"{"role":"assistant","content":[{"type":"thinking", "thinking":"t","signature":"s"},{"type":"text","text":"a\n\"b"},
            {"type":"tool_use","id":"c","name":"n","input":{"x": 1.50}},{"type":"tool_use","name":"no id"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ=="}},{"type":"text"},7]}"#;
        assert_eq!(
            kinds(raw),
            [
                r#"opaque {"type":"thinking", "thinking":"t","signature":"s"}"#,
                "text a\n\"b",
                r#"call c n Some("{\"x\": 1.50}")"#,
                r#"opaque {"type":"tool_use","name":"no id"}"#,
                r#"image Some(("image/png", "YQ=="))"#,
                r#"opaque {"type":"text"}"#,
                "opaque 7",
            ]
        );
        assert!(SpokenMessage::parse(raw).unwrap().is_models);
    }

    #[test]
    fn a_result_is_text_and_pictures_however_it_is_written() {
        let raw = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},
            {"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"B"},{"type":"text","text":"C"},{"type":"image","source":{}}]},
            {"type":"tool_result","tool_use_id":"c"}]}"#;
        assert_eq!(kinds(raw), ["result a A 0 false", "result b B\nC 1 true", "result c  0 false"]);
    }

    #[test]
    fn a_message_that_is_plain_text_is_read_and_no_message_is_none() {
        assert_eq!(kinds(r#"{"role":"user","content":"hi"}"#), ["text hi"]);
        for raw in ["", "7", "{}", r#"{"role":"user"}"#] {
            assert!(SpokenMessage::parse(raw).is_none(), "{raw}");
        }
        assert_eq!(kinds(r#"{"role":"user","content":{}}"#), [""; 0]);
    }
}
