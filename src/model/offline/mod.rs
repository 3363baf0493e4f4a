//! The mind that needs no key and no network: a small command grammar, and quoting for questions.
//!
//! It sits behind the same seam as Claude and takes its turns with the same tools, so that the whole cycle runs, and is
//! tested, without a network. It knows only what stands in the conversation: which messages it was shown, and what its
//! calls have come to. What it can't answer it keeps, by a tool, for a mind that can.

pub mod grammar;
mod phrase;

pub(crate) use phrase::{HELP, time};

use std::collections::BTreeMap;

use chrono_tz::Tz;
use serde_json::{Value, json};

use self::{
    grammar::Parsed,
    phrase::{Part, parts_of},
};
use super::{Conversation, Model, Progress, Stop, Turn, TurnFuture, Usage};
use crate::{
    cycle::brief::{self, Shown},
    tool::MAX_STEPS,
};

/// The offline mind.
#[derive(Debug, Clone, Copy)]
pub struct Offline {
    tz: Tz,
}

/// What a message came to when it was read: what is to be done and said about it, or that it has to be kept.
struct Reading {
    id: i64,
    parts: Option<Vec<Part>>,
}

/// Outcomes of calls by their ids: what was told, and whether it failed.
type Outcomes = BTreeMap<String, (String, bool)>;

impl Offline {
    /// A mind that understands times in a zone.
    pub fn new(tz: Tz) -> Self {
        Self { tz }
    }

    /// The next turn, which follows from the conversation alone.
    fn answer(self, conversation: &Conversation) -> Turn {
        let Some((opening, messages)) = latest_messages(conversation) else {
            return ended();
        };
        let readings: Vec<Reading> = messages.iter().map(|message| self.read(message)).collect();
        let since = conversation.messages.get(opening..).unwrap_or_default();
        let outcomes = outcomes(since);
        let calls = if outcomes.is_empty() {
            first_calls(&readings)
        } else if !outcomes.keys().any(|id| id.starts_with("end-")) {
            Vec::new()
        } else {
            return ended();
        };
        let is_acting = calls.iter().any(|call| call.get("name") != Some(&json!("plan")));
        turn_of(if is_acting { calls } else { last_calls(&readings, &outcomes, calls) })
    }

    fn read(self, message: &Shown) -> Reading {
        let parts = match message.at {
            _ if message.is_correction => Some(vec![Part::Say(phrase::CORRECTION.to_owned())]),
            Some(at) if message.is_own_text && !message.is_reply => {
                let parsed = grammar::parse(without_mention(&message.text), at.with_timezone(&self.tz));
                parts_of(message.id, parsed)
            }
            // Somebody else's words, a reply to something, or no text: none of it is a command.
            _ => parts_of(message.id, Parsed::Unclear { why: "" }),
        };
        Reading { id: message.id, parts }
    }
}

impl Model for Offline {
    fn most_usd(&self, _: &Conversation) -> f64 {
        0.0
    }

    fn name(&self) -> &str {
        crate::config::OFFLINE_MODEL
    }

    fn cost_usd(&self, _: &Usage) -> f64 {
        0.0
    }

    fn turn<'a>(&'a self, conversation: &'a Conversation, _: &'a Progress) -> TurnFuture<'a> {
        Box::pin(async { Ok(self.answer(conversation)) })
    }
}

/// What follows a mention at a text's beginning: in a group it says whom the rest is for.
fn without_mention(text: &str) -> &str {
    let is_mention = text.starts_with('@');
    text.split_once(char::is_whitespace).filter(|_| is_mention).map_or(text, |(_, rest)| rest.trim_start())
}

/// The newest messages of the conversation, and which of its messages shows them.
fn latest_messages(conversation: &Conversation) -> Option<(usize, Vec<Shown>)> {
    let shown = conversation.messages.iter().enumerate().rev();
    shown.map(|(at, raw)| (at, brief::shown(raw))).find(|(_, messages)| !messages.is_empty())
}

/// The plan, and the calls that carry the messages out.
fn first_calls(readings: &[Reading]) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut calls = Vec::new();
    let mut deferred = Vec::new();
    for reading in readings {
        let Some(parts) = &reading.parts else {
            deferred.push(format!("message {} is kept for a mind that can answer it", reading.id));
            continue;
        };
        for part in parts {
            if let Part::Call { id, tool, input, step, .. } = part {
                calls.push(call(id, tool, input));
                steps.extend(step.iter().map(|what| json!({"what": what, "tool": tool})));
            }
        }
    }
    let mut turn = vec![call(&format!("plan-{}", first_id(readings)), "plan", &plan(readings, &steps, &deferred))];
    turn.extend(calls);
    turn
}

/// Keeps what can't be answered, says what came of the rest, and puts the plan right where a step failed.
fn last_calls(readings: &[Reading], outcomes: &Outcomes, mut calls: Vec<Value>) -> Vec<Value> {
    let mut said = Vec::new();
    let mut kept = Vec::new();
    let mut steps = Vec::new();
    let mut deferred = Vec::new();
    for reading in readings {
        match reading.parts.as_deref().and_then(|parts| phrase::spoken(parts, outcomes)) {
            Some(text) => said.push(text),
            None => kept.push(reading.id),
        }
        for part in reading.parts.iter().flatten() {
            if let Part::Call { id, tool, step: Some(what), .. } = part {
                match outcomes.get(id) {
                    Some((_, true)) => deferred.push(format!("{what}: it could not be done")),
                    _ => steps.push(json!({"what": what, "tool": tool})),
                }
            }
        }
    }
    let first = first_id(readings);
    if !deferred.is_empty() {
        calls.push(call(&format!("replan-{first}"), "plan", &plan(readings, &steps, &deferred)));
    }
    if !kept.is_empty() {
        let notice = phrase::kept_notice(kept.len());
        calls.push(call(&format!("end-keep-{first}"), "keep", &json!({"messages": kept, "notice": notice})));
    }
    if !said.is_empty() {
        calls.push(call(&format!("end-reply-{first}"), "reply", &json!({"text": said.join("\n\n")})));
    }
    calls
}

fn plan(readings: &[Reading], steps: &[Value], deferred: &[String]) -> Value {
    let understood = match readings.len() {
        1 => "One message, read by the offline grammar.".to_owned(),
        n => format!("{n} messages, read by the offline grammar."),
    };
    let (steps, understood) = match steps.get(..MAX_STEPS) {
        Some(listed) if listed.len() < steps.len() => {
            (listed, format!("{understood} Listed are the first {MAX_STEPS} of {} steps.", steps.len()))
        }
        _ => (steps, understood),
    };
    json!({"understood": understood, "steps": steps, "deferred": deferred, "complexity": "quick"})
}

fn first_id(readings: &[Reading]) -> i64 {
    readings.first().map_or(0, |reading| reading.id)
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn turn_of(calls: Vec<Value>) -> Turn {
    let stop = if calls.is_empty() { Stop::EndTurn } else { Stop::ToolUse };
    Turn { content: Value::Array(calls).to_string(), stop, usage: Usage::default(), cost_usd: None, request_id: None }
}

fn ended() -> Turn {
    turn_of(Vec::new())
}

/// What the calls since the newest messages have come to.
fn outcomes(messages: &[String]) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for raw in messages {
        let Ok(message) = serde_json::from_str::<Value>(raw) else {
            continue;
        };
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            if let (Some(id), Some(content)) =
                (block.get("tool_use_id").and_then(Value::as_str), block.get("content").and_then(Value::as_str))
            {
                let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                outcomes.insert(id.to_owned(), (content.to_owned(), is_error));
            }
        }
    }
    outcomes
}

#[cfg(test)]
mod tests;
