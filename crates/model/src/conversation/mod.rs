//! The one form of a conversation: what the journal keeps, what the cycle adds to, and what each provider encodes and decodes.
//!
//! A message is a JSON object `{"role":…,"content":[…]}`. Four kinds of blocks are ours, and every provider understands them: `text`,
//! `image`, `tool_use` and `tool_result`. Their form is that of the Messages API, so that Claude's turns and old journals stay byte for
//! byte what they are. Every other block is opaque: bytes that only the provider that wrote them reads. A conversation stays with its
//! provider, so no other one meets them.

mod block;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::block::{ContentBlock, ResultBlock, SpokenMessage, blocks, image_source, opaque, text_block};

/// All that a model is told. Every string is raw JSON that is sent as it stands, or encoded for who serves the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// A JSON array of system blocks.
    pub system: String,
    /// A JSON array of tool definitions (`name`, `description`, `input_schema`).
    pub tools: String,
    /// One JSON object a message, `{"role":…,"content":[…]}`, oldest first.
    pub messages: Vec<String>,
    /// Whether others than its person have had a hand in it. Then no text of the model may be taken for a call: it may quote one.
    pub is_tainted: bool,
}

/// A tool as a model is offered it.
#[derive(Debug, Clone, Deserialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments, byte for byte.
    #[serde(rename = "input_schema")]
    pub schema: Box<RawValue>,
}

impl Conversation {
    /// The standing orders as plain text.
    pub fn system_text(&self) -> String {
        let blocks = blocks(&self.system);
        blocks.iter().filter_map(ContentBlock::text).collect::<Vec<_>>().join("\n\n")
    }

    /// The tools, without those that a provider knows by their name alone.
    pub fn tool_definitions(&self) -> Vec<ToolDefinition> {
        let tools: Vec<&RawValue> = serde_json::from_str(&self.tools).unwrap_or_default();
        tools.into_iter().filter_map(|tool| serde_json::from_str(tool.get()).ok()).collect()
    }

    /// Its messages, read. One that can't be read is left out.
    pub fn read(&self) -> impl Iterator<Item = SpokenMessage<'_>> {
        self.messages.iter().filter_map(|raw| SpokenMessage::read(raw))
    }
}
