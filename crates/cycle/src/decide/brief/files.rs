//! Files of messages as the model is told of them: an element inside the message, and a picture as an image block behind the
//! messages. Pure; what a file is was found out before (`cycle/run/attached`).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::text::attribute;

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its number, by which a tool reads it.
    pub id: i64,
    /// The row of its message.
    pub message_id: i64,
    /// As the Bot API names the field.
    pub kind: String,
    /// As its sender named it.
    pub name: Option<String>,
    /// Its media type: by its bytes where they tell, else as its sender says.
    pub mime: Option<String>,
    /// Its length in bytes.
    pub bytes: Option<i64>,
    /// How it is shown.
    pub view: FileView,
}

/// How a file is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    /// As a picture.
    Image {
        /// Its media type by its bytes.
        mime: &'static str,
        /// The file.
        data: Vec<u8>,
    },
    /// As a PDF, of which the model sees the pages.
    Document {
        /// The file.
        data: Vec<u8>,
    },
    /// Described only, with a note on why, or on what can be done with it.
    Described(String),
}

/// The element that stands in its message.
pub(crate) fn element(file: &File) -> String {
    let mut text = format!("<attachment id=\"{}\" kind=\"{}\"", file.id, attribute(&file.kind));
    let bytes = file.bytes.map(|bytes| bytes.to_string());
    for (name, value) in [("name", &file.name), ("type", &file.mime), ("bytes", &bytes)] {
        if let Some(value) = value {
            text.push_str(&format!(" {name}=\"{}\"", attribute(value)));
        }
    }
    let note = match &file.view {
        FileView::Image { .. } | FileView::Document { .. } => "shown behind the messages",
        FileView::Described(note) => note,
    };
    text.push_str(&format!(" note=\"{}\"/>", attribute(note)));
    text
}

/// A user message (raw JSON) with the pictures and PDFs among these files behind its other blocks, each under a line that says which it
/// is. Without any it comes back byte for byte.
pub fn with_images(raw: String, files: &[File]) -> String {
    let mut blocks = Vec::new();
    for file in files {
        let (kind, mime, data) = match &file.view {
            FileView::Image { mime, data } => ("image", *mime, data),
            FileView::Document { data } => ("document", "application/pdf", data),
            FileView::Described(_) => continue,
        };
        let label = format!("Attachment {} of message {}:", file.id, file.message_id);
        blocks.push(json!({"type": "text", "text": label}));
        let source = json!({"type": "base64", "media_type": mime, "data": STANDARD.encode(data)});
        blocks.push(json!({"type": kind, "source": source}));
    }
    if blocks.is_empty() {
        return raw;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&raw) else { return raw };
    if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
        content.append(&mut blocks);
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(id: i64) -> File {
        File {
            id,
            message_id: 12,
            kind: "photo".to_owned(),
            name: Some("a\"b\n<c>.png".to_owned()),
            mime: Some("image/png".to_owned()),
            bytes: Some(3),
            view: FileView::Image { mime: "image/png", data: b"abc".to_vec() },
        }
    }

    #[test]
    fn pictures_stand_behind_the_words_each_under_its_number() {
        let raw = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}).to_string();
        let described = File { view: FileView::Described("kept".to_owned()), ..picture(4) };
        let shown: Value = serde_json::from_str(&with_images(raw.clone(), &[picture(3), described.clone()])).unwrap();
        assert_eq!(
            shown["content"],
            json!([{"type": "text", "text": "hi"}, {"type": "text", "text": "Attachment 3 of message 12:"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "YWJj"}}])
        );
        assert_eq!(with_images(raw.clone(), &[described]), raw);
    }

    #[test]
    fn what_its_sender_wrote_can_not_leave_its_place() {
        assert_eq!(
            element(&picture(3)),
            "<attachment id=\"3\" kind=\"photo\" name=\"a&quot;b &lt;c>.png\" type=\"image/png\" bytes=\"3\" note=\"shown behind the messages\"/>"
        );
    }
}
