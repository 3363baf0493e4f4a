//! Files of messages in the model's input: an element inside the message, and a picture as an image block after the messages. Pure;
//! `cycle/run/begin/attached` has determined the file's type before.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::decide::brief::text::escape_attribute;

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The number by which a tool reads it.
    pub id: i64,
    /// The row of its message.
    pub message_id: i64,
    /// The Bot API's name of the field.
    pub kind: String,
    /// The sender's name for it.
    pub name: Option<String>,
    /// The media type: from the bytes if possible, otherwise from the sender.
    pub mime: Option<String>,
    /// The length in bytes.
    pub bytes: Option<i64>,
    /// The form in which the model sees it.
    pub view: FileView,
}

/// The form in which the model sees a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    /// A picture.
    Image {
        /// The media type, from the bytes.
        mime: &'static str,
        /// The content.
        data: Vec<u8>,
    },
    /// A PDF, shown as pages.
    Document {
        /// The content.
        data: Vec<u8>,
    },
    /// A description only, with a note on the reason or on possible next steps.
    Described(String),
}

/// Renders the element inside the message.
pub(crate) fn render_attachment(file: &File) -> String {
    let mut text = format!("<attachment id=\"{}\" kind=\"{}\"", file.id, escape_attribute(&file.kind));
    let bytes = file.bytes.map(|bytes| bytes.to_string());
    for (name, value) in [("name", &file.name), ("type", &file.mime), ("bytes", &bytes)] {
        if let Some(value) = value {
            text.push_str(&format!(" {name}=\"{}\"", escape_attribute(value)));
        }
    }
    let note = match &file.view {
        FileView::Image { .. } | FileView::Document { .. } => "shown behind the messages",
        FileView::Described(note) => note,
    };
    text.push_str(&format!(" note=\"{}\"/>", escape_attribute(note)));
    text
}

/// Appends the pictures and PDFs among these files to a raw user message, each under a line that identifies it. Without any the message
/// stays identical to the byte.
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
    fn a_senders_text_is_escaped() {
        assert_eq!(
            render_attachment(&picture(3)),
            "<attachment id=\"3\" kind=\"photo\" name=\"a&quot;b &lt;c>.png\" type=\"image/png\" bytes=\"3\" note=\"shown behind the messages\"/>"
        );
    }
}
