//! Ids of calls. Some servers send none, some repeat the same ids in each turn, and some accept exactly nine characters. Servers don't
//! check ids against those they sent, so every call gets an id of ours.

use ring::digest::{SHA256, digest};

use reveille_base::random::format_hex;

use crate::Conversation;

/// Length of an id: the one that the strictest server accepts.
const CHARS: usize = 9;

/// Generates ids that are unique within a conversation. The same answer to the same conversation gets the same ids.
pub(crate) struct CallIds {
    seed: Vec<u8>,
    nth: u64,
}

impl CallIds {
    /// Starts the ids of the turn after this conversation.
    pub(crate) fn for_conversation(conversation: &Conversation) -> Self {
        let seed = digest(&SHA256, conversation.messages.join("\n").as_bytes());
        Self { seed: seed.as_ref().to_vec(), nth: 0 }
    }

    /// Returns the id of the next call.
    pub(crate) fn next(&mut self) -> String {
        self.nth += 1;
        let seeded = [self.seed.as_slice(), &self.nth.to_be_bytes()].concat();
        format_hex(digest(&SHA256, &seeded).as_ref()).chars().take(CHARS).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_used_once_and_comes_again_for_the_same_answer() {
        let turn = r#"{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"n","input":{}}]}"#;
        let of = |turns: usize| {
            let messages = vec![turn.to_owned(); turns];
            let mut ids = CallIds::for_conversation(&Conversation { messages, ..Conversation::default() });
            [ids.next(), ids.next()]
        };
        assert_eq!(of(1), of(1));
        let all: Vec<String> = [of(0), of(1), of(2)].concat();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 6, "{all:?}");
        assert!(all.iter().all(|id| id.len() == CHARS), "{all:?}");
    }
}
