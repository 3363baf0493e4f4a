//! The parts of prompts: standing orders, tools, memory, conversation. Does no I/O.
//!
//! A journal has each byte of a prompt, but the model's answer states only the total number of tokens. So the tokens are attributed to the
//! parts in proportion to their length. This is an estimate, since the bytes per token and the cached share of a part are unknown.

use reveille_base::types::Usage;
use reveille_model::{anthropic::price::message_bytes, conversation::SpokenMessage};
use reveille_store::Entry;

use super::units::count_prompt_tokens;

/// The beginnings of memory blocks in an opening: documents, recalled facts, similar past work, reflection.
const MEMORY: [&str; 4] = ["<memory>", "<recalled", "<similar_work", "<reflection>"];

/// The estimated tokens of prompts by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct PromptParts {
    /// Ground rules, standing orders, and the list of skills.
    pub system: u64,
    /// Tool definitions.
    pub tools: u64,
    /// Memory in the opening of a conversation.
    pub memory: u64,
    /// Messages, earlier turns, and results of calls.
    pub conversation: u64,
    /// The number of prompts counted.
    pub requests: u64,
}

impl std::ops::AddAssign for PromptParts {
    fn add_assign(&mut self, other: Self) {
        self.system += other.system;
        self.tools += other.tools;
        self.memory += other.memory;
        self.conversation += other.conversation;
        self.requests += other.requests;
    }
}

impl PromptParts {
    /// The total of all parts.
    pub fn tokens(&self) -> u64 {
        self.system + self.tools + self.memory + self.conversation
    }
}

/// Estimates the parts of all prompts of a cycle from its fixed parts and its journal.
pub fn estimate_parts<'a>(system: &str, tools: &str, journal: impl IntoIterator<Item = &'a Entry>) -> PromptParts {
    let mut parts = PromptParts::default();
    let (mut memory, mut conversation) = (0, 0);
    let mut fixed = [system.len(), tools.len()];
    for entry in journal {
        match entry {
            Entry::Said { raw, .. } => {
                let in_memory = memory_bytes(raw);
                memory += in_memory;
                conversation += message_bytes(raw).saturating_sub(in_memory);
            }
            // Both begin a new conversation.
            Entry::Folded { raw, .. } | Entry::Handed { raw, .. } => {
                if let Entry::Handed { system, tools, .. } = entry {
                    fixed = [system.len(), tools.len()];
                }
                memory = memory_bytes(raw);
                conversation = message_bytes(raw).saturating_sub(memory);
            }
            Entry::Turn { content, usage, .. } => {
                let [system, tools] = fixed;
                parts += split_tokens(usage, [system, tools, memory, conversation]);
                conversation += content.len();
            }
            _ => {}
        }
    }
    parts
}

/// Splits the tokens of a prompt in proportion to the lengths.
fn split_tokens(usage: &Usage, bytes: [usize; 4]) -> PromptParts {
    let tokens = u128::from(count_prompt_tokens(usage));
    let all: u128 = bytes.iter().map(|bytes| *bytes as u128).sum();
    if tokens == 0 || all == 0 {
        return PromptParts::default();
    }
    let [system, tools, memory, conversation] =
        bytes.map(|bytes| u64::try_from(tokens * bytes as u128 / all).unwrap_or(u64::MAX));
    PromptParts { system, tools, memory, conversation, requests: 1 }
}

/// The bytes of memory blocks in a raw user message.
fn memory_bytes(raw: &str) -> usize {
    let begins = |text: &str| MEMORY.iter().any(|start| text.starts_with(start));
    // Most messages have no such block and need no parsing.
    let message = MEMORY.iter().any(|start| raw.contains(start)).then(|| SpokenMessage::parse(raw)).flatten();
    message.iter().flat_map(SpokenMessage::texts).filter(|text| begins(text)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::types::Stop;

    fn said(texts: &[&str]) -> Entry {
        let blocks: Vec<_> = texts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
        let raw = serde_json::json!({"role": "user", "content": blocks}).to_string();
        Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None }
    }

    fn turn(tokens: u64) -> Entry {
        let usage = Usage { input: tokens / 2, cache_read: tokens - tokens / 2, output: 7, cache_write: 0 };
        Entry::Turn { content: "x".repeat(1_000), stop: Stop::EndTurn, usage }
    }

    #[test]
    fn a_prompts_tokens_are_split_by_the_length_of_its_parts() {
        let memory = format!("<memory>{}", "m".repeat(1_992));
        let parts = estimate_parts(&"s".repeat(1_000), &"t".repeat(3_000), &[said(&[&memory, "hello"]), turn(6_000)]);
        assert_eq!((parts.requests, parts.memory / 10), (1, 197));
        assert!(parts.tools > parts.memory && parts.memory > parts.system, "{parts:?}");
        assert!(parts.tokens() <= 6_000 && parts.tokens() >= 5_996, "{parts:?}");
        let later = estimate_parts("s", "t", &[said(&[&memory]), turn(100), said(&["and"]), turn(200)]);
        assert!(later.conversation > 50 && later.requests == 2, "a turn is part of the next prompt: {later:?}");
        assert_eq!(
            estimate_parts("s", "t", &[said(&["x"]), turn(0)]),
            PromptParts::default(),
            "a turn without tokens isn't counted"
        );
    }
}
