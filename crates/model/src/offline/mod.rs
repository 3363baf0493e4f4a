//! The model without a key or a network: a small command grammar, with quotations from memory for questions.
//!
//! As a [`Model`] like Claude, it takes its turns with the same tools, so that the whole cycle runs, and is tested, without a network. Its
//! only input is the conversation: the messages shown to it and the results of its calls. For messages beyond its grammar it calls a tool
//! that keeps them for another model.

pub mod grammar;
mod history;
mod phrase;
mod small_talk;
pub mod transcript;
mod which;

use reveille_base::{
    types::{Stop, Usage},
    zone::Tz,
};
use reveille_tools::MAX_STEPS;

pub use phrase::{HELP, format_time};

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDateTime, TimeZone as _, Utc};
use serde_json::{Value, json};

use self::{
    grammar::{Near, OfflineCommand, ParsedMessage, Small},
    history::History,
    phrase::{KeptReason, MessageContext, OfflineCall, PhrasePart, build_message_parts},
    transcript::ShownMessage,
};
use super::{Conversation, Model, Progress, Turn, TurnFuture, conversation::SpokenMessage};

/// The offline model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    tz: Tz,
}

/// A parsed message: the parts of its answer, or the reason for keeping it.
struct Reading {
    id: i64,
    parts: Option<Vec<PhrasePart>>,
    kept: KeptReason,
}

/// Results of calls by id: the text, and true for a failure.
type Outcomes = BTreeMap<String, (String, bool)>;

impl Offline {
    /// Creates a model for times in a zone.
    pub fn new(tz: Tz) -> Self {
        Self { tz }
    }

    /// True if this text, received at that time, is a clear command that requires no question or guess. Such a command may be executed
    /// while the preferred model is unavailable.
    pub fn surely_understands(self, text: &str, at: DateTime<Utc>) -> bool {
        match grammar::parse(without_mention(text), at.with_timezone(&self.tz)) {
            ParsedMessage::Commands(commands) => commands.iter().all(OfflineCommand::is_sure),
            ParsedMessage::Question(_) | ParsedMessage::Unclear { .. } => false,
        }
    }

    /// Returns the next turn, derived from the conversation alone.
    pub fn answer(self, conversation: &Conversation) -> Turn {
        let Some((opening, messages)) = latest_messages(conversation) else {
            return build_empty_turn();
        };
        let readings = self.parse_messages(conversation, opening, &messages);
        let since = conversation.messages.get(opening..).unwrap_or_default();
        let outcomes = collect_outcomes(since);
        let calls = if outcomes.is_empty() {
            first_calls(&readings)
        } else if !outcomes.keys().any(|id| id.starts_with("end-")) {
            next_calls(&readings, &outcomes)
        } else {
            return build_empty_turn();
        };
        let is_acting = calls.iter().any(|call| call.get("name") != Some(&json!("plan")));
        build_turn(if is_acting { calls } else { last_calls(&readings, &outcomes, calls) })
    }

    /// Parses the newest messages in the context of the earlier ones.
    fn parse_messages(self, conversation: &Conversation, opening: usize, messages: &[ShownMessage]) -> Vec<Reading> {
        let told = conversation.messages.first().and_then(|raw| parse_opening_time(raw, self.tz));
        let said_at = |message: &ShownMessage| message.at.map(|at| at.with_timezone(&self.tz));
        let now = messages.iter().filter_map(said_at).chain(told).max();
        let Some(now) = now else {
            return messages
                .iter()
                .map(|message| Reading { id: message.id, parts: None, kept: KeptReason::Unclear })
                .collect();
        };
        let (before, latest) = conversation.messages.split_at(opening.min(conversation.messages.len()));
        let mut history = History::default();
        for raw in before {
            history.add_statements(raw, now);
            transcript::parse_messages(raw).iter().for_each(|message| history.push(message, now));
        }
        latest.first().into_iter().for_each(|raw| history.add_statements(raw, now));
        let mut readings = Vec::new();
        for message in messages {
            let replied = message.replies_to.as_deref().map(|quoted| history.cut_at_quote(quoted));
            let parts = self.parse_message(message, replied.as_ref().unwrap_or(&history), now);
            history.push(message, now);
            let kept = if message.is_own_text {
                KeptReason::from_text(without_mention(&message.text))
            } else {
                KeptReason::Unclear
            };
            readings.push(Reading { id: message.id, parts, kept });
        }
        readings
    }

    fn parse_message(self, message: &ShownMessage, history: &History, now: DateTime<Tz>) -> Option<Vec<PhrasePart>> {
        if message.is_correction {
            return Some(vec![PhrasePart::Say(phrase::CORRECTION.to_owned())]);
        }
        // Forwarded words, replies and empty texts are no commands.
        let at = message.at.filter(|_| message.is_own_text && !message.is_reply)?.with_timezone(&self.tz);
        let text = without_mention(&message.text);
        let settled = |fact| vec![OfflineCommand::Remember { fact, topic: None }];
        // An answer to a question needs no other context.
        let answered = history.find_chosen_fact(text).map(settled).or_else(|| history.complete_commands(text, at));
        let full = if answered.is_some() { None } else { history.complete_message(text, at) };
        let text = full.as_deref().unwrap_or(text);
        let parsed = match answered {
            Some(commands) => ParsedMessage::Commands(commands),
            None => grammar::parse(text, at),
        };
        let parsed = match parsed {
            ParsedMessage::Commands(commands) if commands == [OfflineCommand::Small(Small::Yes)] => {
                match history.find_offer() {
                    Some((form, said_at)) => grammar::parse(&form, said_at),
                    None => ParsedMessage::Commands(commands),
                }
            }
            ParsedMessage::Unclear { .. } => match grammar::find_nearest(text, at) {
                Some(Near::Form(form)) => return Some(phrase::build_offer(&form)),
                Some(Near::Ask(question)) => return Some(vec![PhrasePart::Say(question)]),
                None => parsed,
            },
            parsed => parsed,
        };
        let reminded = history.find_reminder_text();
        // After a reminder, "it" means the reminder rather than any earlier topic.
        let referent = if reminded.is_some() { None } else { history.find_referent() };
        let list = history.find_last_list();
        let around = MessageContext {
            now,
            referent: referent.as_ref(),
            reminded,
            was_asked: history.is_question_open(),
            is_reply: message.replies_to.is_some(),
            last_words: history.find_last_answer(),
            list: list.as_deref(),
            kept: history.find_kept_words(text),
        };
        build_message_parts(message.id, parsed, &around)
    }
}

impl Model for Offline {
    fn most_usd(&self, _: &Conversation) -> f64 {
        0.0
    }

    fn name(&self) -> &str {
        reveille_config::OFFLINE_MODEL
    }

    fn cost_usd(&self, _: &Usage) -> f64 {
        0.0
    }

    fn request_turn<'a>(&'a self, conversation: &'a Conversation, _: &'a Progress) -> TurnFuture<'a> {
        Box::pin(async { Ok(self.answer(conversation)) })
    }
}

/// Strips a mention at a text's beginning, which in a group names the addressee.
fn without_mention(text: &str) -> &str {
    let is_mention = text.starts_with('@');
    text.split_once(char::is_whitespace).filter(|_| is_mention).map_or(text, |(_, rest)| rest.trim_start())
}

/// Parses the time in a conversation's opening.
fn parse_opening_time(raw: &str, tz: Tz) -> Option<DateTime<Tz>> {
    let (_, rest) = raw.split_once("<situation ")?.1.split_once("It is ")?;
    let civil = NaiveDateTime::parse_from_str(rest.split_once(" in ")?.0, "%A %Y-%m-%d %H:%M").ok()?;
    tz.from_local_datetime(&civil).earliest()
}

/// Returns the newest messages, and the index of the conversation message that shows them.
fn latest_messages(conversation: &Conversation) -> Option<(usize, Vec<ShownMessage>)> {
    let shown = conversation.messages.iter().enumerate().rev();
    shown.map(|(at, raw)| (at, transcript::parse_messages(raw))).find(|(_, messages)| !messages.is_empty())
}

/// Builds the plan and the calls that execute the messages.
fn first_calls(readings: &[Reading]) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut calls = Vec::new();
    let mut deferred = Vec::new();
    for reading in readings {
        let Some(parts) = &reading.parts else {
            deferred.push(format!("message {} is kept for an AI model that can answer it", reading.id));
            continue;
        };
        for part in parts {
            if let PhrasePart::Call(one) = part {
                calls.push(build_call(&one.id, one.tool, &one.input));
                steps.extend(one.step.iter().map(|what| json!({"what": what, "tool": one.tool})));
            }
        }
    }
    let mut turn =
        vec![build_call(&format!("plan-{}", first_id(readings)), "plan", &build_plan(readings, &steps, &deferred))];
    turn.extend(calls);
    turn
}

/// Builds the calls that replace fruitless ones.
fn next_calls(readings: &[Reading], outcomes: &Outcomes) -> Vec<Value> {
    let others = readings.iter().filter_map(|reading| reading.parts.as_ref()).flatten().filter_map(|part| match part {
        PhrasePart::Call(one) => one.find_open(outcomes),
        PhrasePart::Say(_) => None,
    });
    others.map(|OfflineCall { id, tool, input, .. }| build_call(id, tool, input)).collect()
}

/// Builds the final calls: keep the unanswered messages, reply about the rest, and correct the plan if a step failed.
fn last_calls(readings: &[Reading], outcomes: &Outcomes, mut calls: Vec<Value>) -> Vec<Value> {
    let mut said = Vec::new();
    let mut kept = Vec::new();
    let mut steps = Vec::new();
    let mut deferred = Vec::new();
    let mut has_changed = false;
    for reading in readings {
        match reading.parts.as_deref().and_then(|parts| phrase::render_answer(parts, outcomes)) {
            Some(text) => said.push(text),
            None => kept.push((reading.id, reading.kept)),
        }
        for part in reading.parts.iter().flatten() {
            let PhrasePart::Call(first) = part else { continue };
            let one = first.last_call(outcomes);
            has_changed |= one != &**first;
            match (&one.step, outcomes.get(&one.id)) {
                (Some(what), Some((_, true))) => deferred.push(format!("{what}: it could not be done")),
                (Some(what), _) => steps.push(json!({"what": what, "tool": one.tool})),
                (None, _) => {}
            }
        }
    }
    let first = first_id(readings);
    if !deferred.is_empty() || has_changed {
        calls.push(build_call(&format!("replan-{first}"), "plan", &build_plan(readings, &steps, &deferred)));
    }
    if !kept.is_empty() {
        let (ids, why): (Vec<i64>, Vec<KeptReason>) = kept.into_iter().unzip();
        let notice = phrase::render_kept_notice(&why);
        calls.push(build_call(&format!("end-keep-{first}"), "keep", &json!({"messages": ids, "notice": notice})));
    }
    if !said.is_empty() {
        calls.push(build_call(&format!("end-reply-{first}"), "reply", &json!({"text": said.join("\n\n")})));
    }
    calls
}

fn build_plan(readings: &[Reading], steps: &[Value], deferred: &[String]) -> Value {
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

fn build_call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn build_turn(calls: Vec<Value>) -> Turn {
    let stop = if calls.is_empty() { Stop::EndTurn } else { Stop::ToolUse };
    Turn { content: Value::Array(calls).to_string(), stop, usage: Usage::default(), cost_usd: None, request_id: None }
}

fn build_empty_turn() -> Turn {
    build_turn(Vec::new())
}

/// Collects the results of the calls since the newest messages.
fn collect_outcomes(messages: &[String]) -> Outcomes {
    let messages = messages.iter().filter_map(|raw| SpokenMessage::parse(raw));
    let mut outcomes = Outcomes::new();
    for message in messages {
        let results = message.results().map(|result| (result.call.to_string(), (result.text.clone(), result.is_error)));
        outcomes.extend(results);
    }
    outcomes
}
