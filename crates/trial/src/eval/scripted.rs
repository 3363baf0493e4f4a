//! A model whose turns are written in advance, to try the rest of the program without an AI model.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use serde_json::{Value, json};

use reveille_base::types::{Stop, Usage};
use reveille_model::{Conversation, Model, ModelError, Progress, Turn, TurnFuture};

use super::case::{CaseTurn, encode_arguments};

/// The name of the scripted model.
pub(super) const SCRIPTED: &str = "scripted";

pub(super) struct ScriptedModel {
    turns: RefCell<VecDeque<CaseTurn>>,
    calls: Cell<u32>,
}

impl ScriptedModel {
    pub(super) fn new(turns: &[CaseTurn]) -> Self {
        Self { turns: RefCell::new(turns.iter().cloned().collect()), calls: Cell::new(0) }
    }

    fn next_turn(&self) -> Result<Turn, ModelError> {
        let refused = |why: String| ModelError::Rejected { status: 400, why };
        let turn = self.turns.borrow_mut().pop_front();
        // An invented final turn would hide that the script is too short.
        let turn = turn.ok_or_else(|| refused("the script has no further turn".to_owned()))?;
        let mut blocks: Vec<Value> = Vec::new();
        if !turn.text.is_empty() {
            blocks.push(json!({"type": "text", "text": turn.text}));
        }
        let stop = if turn.calls.is_empty() { Stop::EndTurn } else { Stop::ToolUse };
        for call in turn.calls {
            self.calls.set(self.calls.get().saturating_add(1));
            let input = encode_arguments(call.input.as_ref()).map_err(refused)?;
            let input: Value = serde_json::from_str(&input).unwrap_or_default();
            let id = format!("script_{}", self.calls.get());
            blocks.push(json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}));
        }
        let content = Value::Array(blocks).to_string();
        Ok(Turn { content, stop, usage: Usage::default(), cost_usd: None, request_id: None })
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        SCRIPTED
    }

    fn most_usd(&self, _: &Conversation) -> f64 {
        0.0
    }

    fn cost_usd(&self, _: &Usage) -> f64 {
        0.0
    }

    fn request_turn<'a>(&'a self, _: &'a Conversation, _: &'a Progress) -> TurnFuture<'a> {
        Box::pin(std::future::ready(self.next_turn()))
    }
}
