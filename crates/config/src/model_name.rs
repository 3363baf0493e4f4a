//! Model names in `MODEL`, and their providers.

use super::{CLAUDE_CODE, OFFLINE_MODEL};

/// The provider of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Messages API, with its key.
    Anthropic,
    /// Claude on Amazon Bedrock: `bedrock:NAME`.
    Bedrock,
    /// Claude on Google Cloud: `vertex:NAME`.
    Vertex,
    /// The Claude Code command, with its own login or a key.
    ClaudeCode,
    /// An OpenAI-compatible server, with or without a key.
    OpenAi,
    /// The fallback grammar in this program: no network, no key, no cost.
    Offline,
}

impl Provider {
    /// Finds the provider of a model. A name without a known prefix belongs to the Messages API.
    pub fn from_model(name: &str) -> Self {
        match (name, name.split_once(':')) {
            (OFFLINE_MODEL, _) => Self::Offline,
            (CLAUDE_CODE, _) => Self::ClaudeCode,
            (_, Some(("bedrock", _))) => Self::Bedrock,
            (_, Some(("vertex", _))) => Self::Vertex,
            (_, Some(("openai", _))) => Self::OpenAi,
            _ => Self::Anthropic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_who_serves_it() {
        assert_eq!(Provider::from_model("offline"), Provider::Offline);
        assert_eq!(Provider::from_model("claude-code"), Provider::ClaudeCode);
        assert_eq!(Provider::from_model("claude-sonnet-5-5"), Provider::Anthropic);
        for name in ["openai:qwen3:8b", "openai:openai/gpt-oss-120b", "openai:claude-code"] {
            assert_eq!(Provider::from_model(name), Provider::OpenAi);
        }
        assert_eq!(Provider::from_model("bedrock:eu.anthropic.claude-sonnet-5-5-v1:0"), Provider::Bedrock);
        assert_eq!(Provider::from_model("vertex:claude-sonnet-5-5@20260901"), Provider::Vertex);
    }
}
