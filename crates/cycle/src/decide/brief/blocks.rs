//! The blocks that a user message is made of, as JSON. Pure.

use serde_json::{Value, json};

use reveille_tools::CACHED_FOR;

/// A user message of these texts, raw JSON.
pub(super) fn user_blocks(texts: &[String]) -> String {
    let blocks: Vec<_> = texts.iter().map(|text| text_block(text)).collect();
    json!({"role": "user", "content": blocks}).to_string()
}

/// A raw user message with more blocks behind its own; `None` where it can't be read.
pub(super) fn with_blocks(raw: &str, blocks: Vec<Value>) -> Option<String> {
    let mut message: Value = serde_json::from_str(raw).ok()?;
    message.get_mut("content")?.as_array_mut()?.extend(blocks);
    Some(message.to_string())
}

/// A block that ends what the next wakes' prompts begin with, too.
pub(super) fn kept_block(text: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": CACHED_FOR}})
}

/// A block of text.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
