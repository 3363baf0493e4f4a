//! The common form of a conversation: journalled, extended by the cycle, encoded and decoded by each provider.
//!
//! A message is a JSON object `{"role":…,"content":[…]}`. Every provider understands four kinds of blocks: `text`, `image`, `tool_use` and
//! `tool_result`. They have the form of the Messages API, so that Claude's turns and old journals keep their exact bytes. Every other block
//! is opaque: bytes for the provider that wrote them. A conversation stays with its provider, so other providers never meet them.

mod block;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::block::{
    ContentBlock, ResultBlock, SpokenMessage, build_opaque_block, image_source, parse_blocks, text_block,
};

/// The complete input of a model. Every string is raw JSON, sent unchanged or encoded for the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// A JSON array of system blocks.
    pub system: String,
    /// A JSON array of tool definitions (`name`, `description`, `input_schema`).
    pub tools: String,
    /// Messages, oldest first: a JSON object `{"role":…,"content":[…]}` each.
    pub messages: Vec<String>,
    /// True if untrusted text was added to the conversation. The model's text is then never parsed as a call, since it may quote one.
    pub is_tainted: bool,
}

/// A tool as offered to a model.
#[derive(Debug, Clone, Deserialize)]
pub struct ToolDefinition {
    /// The tool's name.
    pub name: String,
    /// The tool's purpose.
    #[serde(default)]
    pub description: String,
    /// JSON schema of the arguments, byte for byte.
    #[serde(rename = "input_schema")]
    pub schema: Box<RawValue>,
}

impl Conversation {
    /// Returns the standing orders as plain text.
    pub fn system_text(&self) -> String {
        let blocks = parse_blocks(&self.system);
        blocks.iter().filter_map(ContentBlock::text).collect::<Vec<_>>().join("\n\n")
    }

    /// Parses the tools, except those that a provider knows by name alone.
    pub fn tool_definitions(&self) -> Vec<ToolDefinition> {
        let tools: Vec<&RawValue> = serde_json::from_str(&self.tools).unwrap_or_default();
        tools.into_iter().filter_map(|tool| serde_json::from_str(tool.get()).ok()).collect()
    }

    /// Parses the messages and skips unreadable ones.
    pub fn parse_messages(&self) -> impl Iterator<Item = SpokenMessage<'_>> {
        self.messages.iter().filter_map(|raw| SpokenMessage::parse(raw))
    }
}
