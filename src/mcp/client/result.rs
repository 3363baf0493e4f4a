//! What a server answers to a call, as the model is told it: texts, pictures that it can be shown, and words for the rest.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::pin::clean;
use crate::media::content::{self, Content};

/// The largest picture that is kept, in bytes.
const MAX_IMAGE_BYTES: usize = 3_500_000;
/// Parts of one result that are looked at.
const MAX_PARTS: usize = 100;

/// A result, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReadResult {
    /// Text.
    pub(super) text: String,
    /// The first picture that can be shown: a raw JSON image block.
    pub(super) image: Option<String>,
    /// Whether the server says that the call failed.
    pub(super) is_failure: bool,
}

/// Reads a result. Total: what isn't understood is said to be there.
pub(super) fn read(result: &Value) -> ReadResult {
    let mut told =
        ReadResult { is_failure: result.get("isError") == Some(&Value::Bool(true)), ..ReadResult::default() };
    let parts = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    for part in parts.iter().take(MAX_PARTS) {
        let field = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        match field("type") {
            "text" => texts.push(field("text").to_owned()),
            "image" => match image(field("data")) {
                Some(block) if told.image.is_none() => {
                    told.image = Some(block);
                    texts.push("(The picture is shown.)".to_owned());
                }
                Some(_) => texts.push("(One more picture, not shown.)".to_owned()),
                None => texts.push("(A picture that can't be shown.)".to_owned()),
            },
            "resource" => texts.push(resource(part)),
            "resource_link" => texts.push(format!("(A resource at {})", clean(field("uri"), 500))),
            other => texts.push(format!("(Something of the kind {:?}, not shown.)", clean(other, 40))),
        }
    }
    if parts.len() > MAX_PARTS {
        texts.push(format!("({} more parts, not shown.)", parts.len() - MAX_PARTS));
    }
    if texts.is_empty() {
        let structured = result.get("structuredContent").map(Value::to_string);
        texts.push(structured.unwrap_or_else(|| "(It answered with nothing.)".to_owned()));
    }
    told.text = texts.join("\n");
    told
}

fn resource(part: &Value) -> String {
    let field = |name: &str| part.pointer(&format!("/resource/{name}")).and_then(Value::as_str);
    let uri = clean(field("uri").unwrap_or("?"), 500);
    match field("text") {
        Some(text) => format!("{uri}:\n{text}"),
        None => format!("(A resource at {uri}, not text.)"),
    }
}

/// What it is is told by its bytes: what the server says of it is a claim.
fn image(data: &str) -> Option<String> {
    if data.len() / 4 * 3 > MAX_IMAGE_BYTES {
        return None;
    }
    let bytes = STANDARD.decode(data).ok()?;
    let Content::Image { mime, size } = content::sniff(bytes.get(..content::HEAD_BYTES).unwrap_or(&bytes)) else {
        return None;
    };
    let is_small = size.0.max(size.1) <= content::MAX_SIDE_PX;
    let source = json!({"type": "base64", "media_type": mime, "data": data});
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
        let told = read(&json!({"content": [{"type": "text", "text": "one"}, image(PNG), image(PNG), image("AAAA"),
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}}, {"type": "audio", "data": ""}]}));
        assert_eq!(
            told.text,
            "one\n(The picture is shown.)\n(One more picture, not shown.)\n(A picture that can't be shown.)\na://b:\ntwo\n(Something of \
             the kind \"audio\", not shown.)"
        );
        assert!(told.image.unwrap().contains("\"media_type\":\"image/png\""));
        assert!(!told.is_failure);
    }

    #[test]
    fn whatever_comes_is_read_and_none_of_it_is_taken_for_success() {
        assert_eq!(
            read(&json!({"isError": true, "content": [{"type": "text", "text": "no"}]})),
            ReadResult { text: "no".to_owned(), image: None, is_failure: true }
        );
        assert_eq!(read(&json!({"structuredContent": {"a": 1}})).text, r#"{"a":1}"#);
        for strange in [json!(null), json!([]), json!({"content": "x"}), json!({"content": []})] {
            assert_eq!(read(&strange).text, "(It answered with nothing.)");
        }
        let many = vec![json!({"type": "text", "text": "x"}); 150];
        assert!(read(&json!({"content": many})).text.ends_with("(50 more parts, not shown.)"));
    }
}
