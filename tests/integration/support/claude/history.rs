//! Checks that a conversation stays the same from one request to the next: everything before a signed thinking block.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    ClaudeRequest,
    reply::{Block, Delivered},
};

/// The conversations so far, by their first message.
#[derive(Clone, Default)]
pub(crate) struct Histories(HashMap<String, History>);

#[derive(Clone, Default)]
struct History {
    system: String,
    tools: String,
    messages: Vec<String>,
    /// The assistant's turns that were sent, by the index of their message.
    turns: HashMap<usize, Delivered>,
}

impl Histories {
    /// Finds earlier parts that the request changed, and assistant turns that were never sent.
    pub(super) fn check(&self, request: &ClaudeRequest) -> Vec<String> {
        match self.known(request) {
            Some(history) => history.check(request),
            None => History::default().check_turns(request),
        }
    }

    /// Remembers an answered request and the turn sent as its answer.
    pub(super) fn record(&mut self, request: ClaudeRequest, delivered: Option<Delivered>) {
        let Some(first) = request.messages.first().cloned() else {
            return;
        };
        let is_new = self.known(&request).is_none();
        let history = self.0.entry(first).or_default();
        if is_new {
            *history = History::default();
        }
        if let Some(delivered) = delivered {
            history.turns.insert(request.messages.len(), delivered);
        }
        (history.system, history.tools, history.messages) = (request.system, request.tools, request.messages);
    }

    /// Finds the history that the request continues. A request with only a first message that was answered before starts a new conversation
    /// with the same words.
    fn known(&self, request: &ClaudeRequest) -> Option<&History> {
        let history = self.0.get(request.messages.first()?)?;
        let is_fresh_start = request.messages.len() == 1 && !history.turns.is_empty();
        (!is_fresh_start).then_some(history)
    }
}

impl History {
    fn check(&self, request: &ClaudeRequest) -> Vec<String> {
        let mut faults = Vec::new();
        if self.system != request.system {
            faults.push("system: changed within a conversation".to_owned());
        }
        if self.tools != request.tools {
            faults.push("tools: changed within a conversation".to_owned());
        }
        for (at, earlier) in self.messages.iter().enumerate() {
            match request.messages.get(at) {
                Some(message) if message == earlier => {}
                Some(_) => faults.push(format!("messages.{at}: changed within a conversation")),
                None => faults.push(format!("messages.{at}: missing, though it was sent before")),
            }
        }
        faults.extend(self.check_turns(request));
        faults
    }

    fn check_turns(&self, request: &ClaudeRequest) -> Vec<String> {
        let mut faults = Vec::new();
        for (at, message) in request.messages.iter().enumerate() {
            let is_assistant = role(message) == "assistant";
            match (self.turns.get(&at), is_assistant) {
                (Some(turn), true) => faults.extend(differences(at, &turn.blocks, message)),
                (None, true) => faults.push(format!("messages.{at}: an assistant turn that was never sent")),
                // A turn without content can't be sent back: the real API refuses an empty message.
                (Some(turn), false) if turn.blocks.is_empty() => {}
                (Some(_), false) => {
                    faults.push(format!("messages.{at}: the assistant turn that belongs here is missing"));
                }
                (None, false) => {}
            }
        }
        let is_paused = |at: usize| self.turns.get(&at).is_some_and(|turn| turn.is_paused);
        let last = request.messages.len().saturating_sub(1);
        if request.messages.last().is_some_and(|message| role(message) == "assistant") && !is_paused(last) {
            faults
                .push(format!("messages.{last}: the last message is an assistant turn (prefill), which isn't paused"));
        }
        for at in 1..request.messages.len() {
            let same_role = role(&request.messages[at - 1]) == role(&request.messages[at]);
            let is_after_nothing = self.turns.get(&at).is_some_and(|turn| turn.blocks.is_empty());
            if same_role && !is_paused(at - 1) && !is_after_nothing {
                faults.push(format!("messages.{at}: the same role twice in a row"));
            }
        }
        faults
    }
}

fn role(message: &str) -> String {
    serde_json::from_str::<Value>(message).ok().and_then(|m| m["role"].as_str().map(str::to_owned)).unwrap_or_default()
}

/// Finds the blocks of an assistant turn that differ, byte for byte, from those that were sent.
fn differences(at: usize, sent: &[Block], message: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        content: Vec<&'a RawValue>,
    }
    let Ok(message) = serde_json::from_str::<Message<'_>>(message) else {
        return vec![format!("messages.{at}: the assistant's content is no array of blocks")];
    };
    let mut faults = Vec::new();
    for index in 0..sent.len().max(message.content.len()) {
        let fault = match (sent.get(index), message.content.get(index)) {
            (Some(sent), Some(got)) => is_changed(sent, got.get()).then_some("changed"),
            // A call that was cut off may be left out: nothing after it was signed.
            (Some(Block::CutToolUse { .. }), None) => None,
            (Some(_), None) => Some("missing"),
            (None, Some(_)) => Some("never sent"),
            (None, None) => None,
        };
        faults.extend(fault.map(|fault| format!("messages.{at}.content.{index}: {fault}")));
    }
    faults
}

fn is_changed(sent: &Block, got: &str) -> bool {
    match sent {
        Block::CutToolUse { id, name, .. } => {
            let got: Value = serde_json::from_str(got).unwrap_or_default();
            got["type"] != "tool_use"
                || got["id"] != id.as_str()
                || got["name"] != name.as_str()
                || !got["input"].is_object()
        }
        whole => whole.expected() != got,
    }
}
