//! The blocks of a user message, as JSON. Pure.

use serde_json::{Value, json};

use reveille_tools::CACHED_FOR;

/// Builds a user message from these texts, as raw JSON.
pub(super) fn build_user_blocks(texts: &[String]) -> String {
    let blocks: Vec<_> = texts.iter().map(|text| text_block(text)).collect();
    json!({"role": "user", "content": blocks}).to_string()
}

/// Appends blocks to a raw user message. `None` if the message can't be parsed.
pub(super) fn with_blocks(raw: &str, blocks: Vec<Value>) -> Option<String> {
    let mut message: Value = serde_json::from_str(raw).ok()?;
    message.get_mut("content")?.as_array_mut()?.extend(blocks);
    Some(message.to_string())
}

/// Builds a text block with a cache mark, because the next wakes' prompts begin the same way up to here.
pub(super) fn build_cached_block(text: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": CACHED_FOR}})
}

/// Builds a text block.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
