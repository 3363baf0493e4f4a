//! A server's answer to a call, converted for the model: texts, pictures, and descriptions of the rest.
//!
//! Nothing is dropped: data that no text repeats follows the texts, and parts of unknown kinds are shown unchanged.

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use serde_json::{Map, Value, json};

use reveille_base::words::truncate_text;
use reveille_media::content::{self, Content};

use super::pin::clean_text;

/// Maximum size of a kept picture, in bytes.
const MAX_IMAGE_BYTES: usize = 3_500_000;
/// Maximum number of processed parts of a result.
const MAX_PARTS: usize = 100;
/// Maximum length of a value that isn't plain text, such as a file in a field; longer ones are shortened.
const MAX_BLOB_CHARS: usize = 2_000;
/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A converted result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReadResult {
    /// The text.
    pub(super) text: String,
    /// The first displayable picture: a raw JSON image block.
    pub(super) image: Option<String>,
    /// True if the server reports a failure.
    pub(super) is_failure: bool,
}

/// Converts a result of any form. Unknown parts are mentioned.
pub(super) fn read_result(result: &Value) -> ReadResult {
    // The protocol's first draft used this field.
    let result = result.get("toolResult").filter(|_| result.get("content").is_none()).unwrap_or(result);
    let mut told = ReadResult { is_failure: is_failure(result), ..ReadResult::default() };
    let mut texts = Vec::new();
    let parts = list_parts(result);
    for part in parts.iter().take(MAX_PARTS) {
        told.is_failure |= part.get("type") == Some(&json!("error"));
        texts.push(told.take_part(part));
    }
    if parts.len() > MAX_PARTS {
        texts.push(format!("({} more parts, not shown.)", parts.len() - MAX_PARTS));
    }
    texts.retain(|text| !text.trim().is_empty());
    let structured = ["structuredContent", "structured_content"].iter().find_map(|key| result.get(*key));
    if let Some(structured) = structured.filter(|data| !data.is_null()).filter(|data| !is_in_texts(data, &texts)) {
        texts.push(structured.to_string());
    }
    if texts.is_empty()
        && let Some(rest) = render_other_fields(result)
    {
        texts.push(rest);
    }
    if texts.is_empty() {
        let nothing = match told.is_failure {
            true => "(The server says that this failed, and not why.)",
            false => "(It answered with nothing.)",
        };
        texts.push(nothing.to_owned());
    }
    told.text = texts.join("\n");
    told
}

fn is_failure(result: &Value) -> bool {
    match result.get("isError").or_else(|| result.get("is_error")) {
        Some(Value::Bool(is_error)) => *is_error,
        Some(Value::String(word)) => word.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// Returns the parts of a result; a single part need not be in a list.
fn list_parts(result: &Value) -> Vec<&Value> {
    match result.get("content") {
        Some(Value::Array(parts)) => parts.iter().collect(),
        None | Some(Value::Null) => Vec::new(),
        Some(only) => vec![only],
    }
}

/// Returns true if a text already contains this data: its JSON, or the only value of an object.
fn is_in_texts(data: &Value, texts: &[String]) -> bool {
    let object = data.as_object();
    if object.is_some_and(Map::is_empty) {
        return true;
    }
    let only = object.filter(|object| object.len() == 1).and_then(|object| object.values().next());
    let is_it = |text: &str, value: &Value| {
        value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
    };
    let is_in = |text: &str| is_it(text, data) || only.is_some_and(|only| is_it(text, only));
    // Each part may contain one item of a list.
    let items = data.as_array().or_else(|| only.and_then(Value::as_array)).filter(|items| !items.is_empty());
    let are_items = items.is_some_and(|items| {
        items.len() == texts.len() && items.iter().zip(texts).all(|(item, text)| is_it(text.trim(), item))
    });
    are_items || texts.iter().any(|text| is_in(text.trim())) || is_in(texts.join("\n").trim())
}

/// Returns the other fields of a result without content; `None` if there are none.
fn render_other_fields(result: &Value) -> Option<String> {
    let known = ["content", "structuredContent", "structured_content", "isError", "is_error", "_meta", "resultType"];
    match result {
        Value::Object(object) => {
            let rest: Map<String, Value> = object
                .iter()
                .filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null())
                .map(|(key, value)| (key.clone(), shorten_blobs(value)))
                .collect();
            (!rest.is_empty()).then(|| Value::Object(rest).to_string())
        }
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(list) if list.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// Shortens each long text in a value, such as a file in a field.
fn shorten_blobs(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), shorten_blobs(value))).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(shorten_blobs).collect()),
        Value::String(text) if is_blob(text) => Value::String(truncate_text(text, MAX_BLOB_CHARS)),
        other => other.clone(),
    }
}

fn is_blob(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
}

impl ReadResult {
    /// Returns the text for a part.
    fn take_part(&mut self, part: &Value) -> String {
        let field = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        match field("type") {
            "image" => self.take_image(field("data")),
            "audio" => format!("(A recording{}, not played.)", kind_and_size(field("mimeType"), field("data"))),
            "resource" => self.take_resource(part.get("resource").unwrap_or(part)),
            "resource_link" => format_link(part),
            // Any other kind with a text.
            _ if part.get("text").is_some_and(Value::is_string) => field("text").to_owned(),
            _ => match part {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => shorten_blobs(other).to_string(),
            },
        }
    }

    fn take_image(&mut self, data: &str) -> String {
        match build_image(data) {
            Some(block) if self.image.is_none() => {
                self.image = Some(block);
                "(The picture is shown.)".to_owned()
            }
            Some(_) => "(One more picture, not shown.)".to_owned(),
            None => "(A picture that can't be shown.)".to_owned(),
        }
    }

    fn take_resource(&mut self, resource: &Value) -> String {
        let field = |name: &str| resource.get(name).and_then(Value::as_str);
        let (uri, mime) = (clean_text(field("uri").unwrap_or("?"), 500), field("mimeType").unwrap_or_default());
        let Some(blob) = field("blob") else {
            return match field("text") {
                Some(text) => format!("{uri}:\n{text}"),
                None => format!("(A resource at {uri}, without its content.)"),
            };
        };
        if mime.starts_with("image/") {
            return format!("{uri}: {}", self.take_image(blob));
        }
        let is_text = mime.starts_with("text/") || mime.ends_with("json") || mime.ends_with("xml");
        match decode_base64(blob).and_then(|bytes| String::from_utf8(bytes).ok()).filter(|_| is_text) {
            Some(text) => format!("{uri}:\n{text}"),
            None => format!("(A resource at {uri}{}, not shown.)", kind_and_size(mime, blob)),
        }
    }
}

fn format_link(part: &Value) -> String {
    let field = |name: &str| part.get(name).and_then(Value::as_str).map(|text| clean_text(text, 500));
    let words = ["title", "name"].iter().find_map(|key| field(key)).map(|name| format!(" ({name})"));
    let about = field("description").map(|about| format!(": {about}"));
    let [words, about] = [words, about].map(Option::unwrap_or_default);
    format!("(A resource at {}{words}{about})", field("uri").unwrap_or_default())
}

fn kind_and_size(mime: &str, data: &str) -> String {
    let kind = if mime.is_empty() { String::new() } else { format!(" of the kind {}", clean_text(mime, 40)) };
    let size = u64::try_from(data.len() / 4 * 3).unwrap_or_default();
    if data.is_empty() { kind } else { format!("{kind}, about {}", reveille_base::words::format_size(size)) }
}

/// Decodes Base64, including `data:` addresses, line breaks and the URL-safe alphabet.
fn decode_base64(data: &str) -> Option<Vec<u8>> {
    let data = data.split_once("base64,").filter(|(head, _)| head.starts_with("data:")).map_or(data, |(_, data)| data);
    let plain = |c: char| match c {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).map(plain).collect();
    LENIENT.decode(data).ok()
}

/// Builds an image block, with the type determined by the bytes rather than the server's claim.
fn build_image(data: &str) -> Option<String> {
    if data.len() / 4 * 3 > MAX_IMAGE_BYTES {
        return None;
    }
    let bytes = decode_base64(data)?;
    let Content::Image { mime, size } = content::sniff(bytes.get(..content::HEAD_BYTES).unwrap_or(&bytes)) else {
        return None;
    };
    let is_small = size.0.max(size.1) <= content::MAX_SIDE_PX;
    let source = json!({"type": "base64", "media_type": mime, "data": STANDARD.encode(&bytes)});
    is_small.then(|| json!({"type": "image", "source": source}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One red pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

    #[test]
    fn texts_are_joined_and_the_first_picture_is_shown() {
        let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "text/html"});
        let told =
            read_result(&json!({"content": [{"type": "text", "text": "one"}, image(PNG), image(PNG), image("AAAA"),
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}}, {"type": "audio", "data": ""}]}));
        assert_eq!(
            told.text,
            "one\n(The picture is shown.)\n(One more picture, not shown.)\n(A picture that can't be shown.)\na://b:\ntwo\n(A recording, \
             not played.)"
        );
        assert!(told.image.unwrap().contains("\"media_type\":\"image/png\""));
        assert!(!told.is_failure);
    }

    /// A new report is one line: its name, the result as the server sends it, the text for the model, and whether it counts as a
    /// failure.
    #[test]
    fn whatever_a_result_holds_is_told() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let rows = json!({"rows": [{"id": 1}, {"id": 2}, {"id": 3}]});
        let rows_text = r#"{"rows":[{"id":1},{"id":2},{"id":3}]}"#;
        let both = format!("Found 3 rows\n{rows_text}");
        let cases: Vec<(&str, Value, &str, bool)> = vec![
            ("a failure's words", json!({"isError": true, "content": [text("no")]}), "no", true),
            (
                "a failure without words",
                json!({"isError": true, "content": []}),
                "(The server says that this failed, and not why.)",
                true,
            ),
            ("a failure in a word", json!({"isError": "true", "content": [text("no")]}), "no", true),
            (
                "a part that is an error",
                json!({"content": [{"type": "error", "text": "no such file"}]}),
                "no such file",
                true,
            ),
            ("null for no failure", json!({"isError": null, "content": [text("yes")]}), "yes", false),
            (
                "data beside a summary",
                json!({"content": [text("Found 3 rows")], "structuredContent": rows}),
                &both,
                false,
            ),
            (
                "data that the text has, too",
                json!({"content": [text(" {\n \"rows\": [{\"id\": 1}, {\"id\": 2}, {\"id\": 3}]} ")], "structuredContent": rows}),
                "{\n \"rows\": [{\"id\": 1}, {\"id\": 2}, {\"id\": 3}]}",
                false,
            ),
            (
                "a value in a field of its own",
                json!({"content": [text("42")], "structuredContent": {"result": 42}}),
                "42",
                false,
            ),
            (
                "a text in a field of its own",
                json!({"content": [text("hello")], "structuredContent": {"result": "hello"}}),
                "hello",
                false,
            ),
            (
                "a list as one part an item",
                json!({"content": [text("a"), text("b")], "structuredContent": {"result": ["a", "b"]}}),
                "a\nb",
                false,
            ),
            (
                "another text in its field",
                json!({"content": [text("done")], "structuredContent": {"result": "hello"}}),
                "done\n{\"result\":\"hello\"}",
                false,
            ),
            ("data alone", json!({"structuredContent": {"a": 1}}), r#"{"a":1}"#, false),
            ("data beside no parts", json!({"content": [], "structuredContent": {"a": 1}}), r#"{"a":1}"#, false),
            (
                "data beside an empty text",
                json!({"content": [text("")], "structuredContent": {"a": 1}}),
                r#"{"a":1}"#,
                false,
            ),
            (
                "data of a failure",
                json!({"isError": true, "content": [], "structuredContent": {"code": "E1"}}),
                r#"{"code":"E1"}"#,
                true,
            ),
            (
                "data that is a list",
                json!({"content": [text("2 found")], "structuredContent": [1, 2]}),
                "2 found\n[1,2]",
                false,
            ),
            ("no data", json!({"content": [text("x")], "structuredContent": null}), "x", false),
            ("empty data", json!({"content": [text("x")], "structuredContent": {}}), "x", false),
            ("content that is a text", json!({"content": "x"}), "x", false),
            ("content that is one part", json!({"content": text("x")}), "x", false),
            ("content of bare texts", json!({"content": ["x", "y"]}), "x\ny", false),
            ("content null", json!({"content": null}), "(It answered with nothing.)", false),
            ("content null and data", json!({"content": null, "structuredContent": {"a": 1}}), r#"{"a":1}"#, false),
            ("no content", json!({}), "(It answered with nothing.)", false),
            ("null", json!(null), "(It answered with nothing.)", false),
            ("an empty list", json!([]), "(It answered with nothing.)", false),
            ("a part null", json!({"content": [null, text("x")]}), "x", false),
            (
                "a text null",
                json!({"content": [{"type": "text", "text": null}]}),
                r#"{"type":"text","text":null}"#,
                false,
            ),
            (
                "a text that is a number",
                json!({"content": [{"type": "text", "text": 42}]}),
                r#"{"type":"text","text":42}"#,
                false,
            ),
            ("a text without its kind", json!({"content": [{"text": "x"}]}), "x", false),
            (
                "fields of its own in the place of content",
                json!({"rows": [1, 2], "_meta": {"a": 1}}),
                r#"{"rows":[1,2]}"#,
                false,
            ),
            ("a bare text", json!("x"), "x", false),
            ("the first draft's field", json!({"toolResult": {"content": [text("x")], "isError": true}}), "x", true),
            ("the first draft's field, bare", json!({"toolResult": "x"}), "x", false),
            (
                "a kind of its own",
                json!({"content": [{"type": "json", "json": {"a": 1}}]}),
                r#"{"type":"json","json":{"a":1}}"#,
                false,
            ),
            (
                "a recording",
                json!({"content": [{"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"}]}),
                "(A recording of the kind audio/wav, about 6 B, not played.)",
                false,
            ),
            (
                "a link",
                json!({"content": [{"type": "resource_link", "uri": "a://b", "name": "B", "description": "the b"}]}),
                "(A resource at a://b (B): the b)",
                false,
            ),
            (
                "a text as bytes",
                json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/csv", "blob": "YSxi"}}]}),
                "a://b:\na,b",
                false,
            ),
            (
                "bytes",
                json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "application/pdf", "blob": "JVBERi0x"}}]}),
                "(A resource at a://b of the kind application/pdf, about 6 B, not shown.)",
                false,
            ),
            (
                "a picture as bytes",
                json!({"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": PNG}}]}),
                "a://b: (The picture is shown.)",
                false,
            ),
            (
                "a resource without its content",
                json!({"content": [{"type": "resource", "resource": {"uri": "a://b"}}]}),
                "(A resource at a://b, without its content.)",
                false,
            ),
            (
                "base64 that is none",
                json!({"content": [{"type": "image", "data": "!!!"}]}),
                "(A picture that can't be shown.)",
                false,
            ),
            (
                "a picture's address",
                json!({"content": [{"type": "image", "data": format!("data:image/png;base64,{PNG}")}]}),
                "(The picture is shown.)",
                false,
            ),
            (
                "base64 in lines, without its end",
                json!({"content": [{"type": "image", "data": PNG.trim_end_matches('=').replace("AAA", "A\r\nAA")}]}),
                "(The picture is shown.)",
                false,
            ),
        ];
        for (name, result, text, is_failure) in cases {
            let told = read_result(&result);
            assert_eq!((told.text.trim(), told.is_failure), (text, is_failure), "{name}");
            assert_eq!(told.image.is_some(), text.contains("picture is shown"), "{name}");
        }
        let many = vec![text("x"); 150];
        assert!(read_result(&json!({"content": many})).text.ends_with("(50 more parts, not shown.)"));
        let file = json!({"content": [{"type": "video", "data": "A".repeat(100_000)}]});
        assert!(read_result(&file).text.len() < 3_000, "a file in a field isn't text");
    }
}
