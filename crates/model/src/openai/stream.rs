//! Assembles the bytes of an answer into a [`Turn`] without any I/O. Accepts streamed and whole answers, with parts of the protocol
//! missing.

mod arguments;
mod chunk;
mod thought;

use serde_json::{Map, Value, json, value::RawValue};

use reveille_base::types::{Stop, Usage};

use self::{
    arguments::{is_whole, repair_arguments},
    chunk::{ChatChunk, ChatSaid, Counts, RawCall},
    thought::without_thought,
};
use super::{
    call_ids::CallIds,
    encode::{BY, OF_CALLS},
    error, small, written,
};
use crate::{
    ModelError, Turn, TurnPiece,
    answer::{AnswerBody, BodyFault, split_json},
    anthropic::price,
    complaint::Complaint,
    content::build_input,
    conversation,
};

/// Maximum bytes read of an answer.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// Maximum calls read of a turn.
const MAX_CALLS: usize = 128;
/// The event that ends a stream.
const DONE: &str = "[DONE]";
/// Fields of thinking. A server that sends one wants it back beside the calls that followed.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// Keep-alive texts that some proxies send as events.
const KEEP_ALIVE: [&str; 6] = ["ping", "pong", "keepalive", "keep-alive", "heartbeat", "null"];
/// Finish reasons of a failed answer: the server gave up, or couldn't parse the model's output.
const BROKEN: [&str; 13] = [
    "error",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "timeout",
    "network_error",
    "engine_error",
    "insufficient_system_resource",
    "malformed_function_call",
    "function_call_filter: malformed_function_call",
    "function_call_filter: unexpected_tool_call",
    "unexpected_tool_call",
];

/// Assembles an answer.
pub(super) struct ChatStream {
    server: String,
    /// The name in `MODEL`.
    model: String,
    prompt_bytes: usize,
    body: AnswerBody,
    received_bytes: usize,
    /// The index of the choice being read. `None` before the first choice.
    choice: Option<u64>,
    text: String,
    refusal: String,
    thinking: Map<String, Value>,
    calls: Vec<PartialCall>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    /// The last event contained just the token count.
    is_counted: bool,
    is_over: bool,
    /// The pieces that arrived since they were last taken.
    pieces: Vec<TurnPiece>,
}

/// A call of a finished answer.
struct FinishedCall {
    name: String,
    /// The arguments, as JSON.
    arguments: String,
    /// Further fields that the server wants back.
    more: Option<Value>,
}

/// A call under construction.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Extra fields to send back with the call.
    more: Option<Value>,
}

/// The context for finishing an answer.
pub(super) struct Finishing<'a> {
    /// Generator of the calls' ids.
    pub(super) ids: CallIds,
    /// Names of the offered tools.
    pub(super) offered: &'a [String],
    /// Text may be parsed as a call.
    pub(super) reads_text: bool,
    /// The answer was requested in the form of `small`.
    pub(super) is_small: bool,
    /// The server enforced that form's schema, so nothing in the answer is a quotation.
    pub(super) is_bound: bool,
    /// The server's request id.
    pub(super) request_id: Option<String>,
}

/// The content of an answer before it becomes a turn.
#[derive(Debug, Default)]
pub(super) struct ReadAnswer {
    /// The text.
    pub(super) text: String,
    /// Calls: a tool's name, and arguments as text.
    pub(super) calls: Vec<(String, String)>,
}

impl ChatStream {
    /// Returns the pieces of the turn that arrived since the last call.
    pub(super) fn take_pieces(&mut self) -> Vec<TurnPiece> {
        std::mem::take(&mut self.pieces)
    }

    /// Starts an answer to a prompt of `prompt_bytes` by this server's model.
    pub(super) fn new(server: String, model: &str, prompt_bytes: usize) -> Self {
        Self {
            server,
            model: model.to_owned(),
            prompt_bytes,
            body: AnswerBody::new(MAX_ANSWER_BYTES),
            received_bytes: 0,
            choice: None,
            text: String::new(),
            refusal: String::new(),
            thinking: Map::new(),
            calls: Vec::new(),
            finish_reason: None,
            usage: None,
            is_counted: false,
            is_over: false,
            pieces: Vec::new(),
        }
    }

    /// Accepts the next bytes of an answer, streamed or whole. Returns `true` once the answer is over.
    ///
    /// # Errors
    /// A complaint by the server, or anything else that isn't a turn.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(bytes.len());
        if self.received_bytes > MAX_ANSWER_BYTES {
            return Err(self.build_fault_error(BodyFault::TooLong));
        }
        for data in self.body.push(bytes).map_err(|fault| self.build_fault_error(fault))? {
            self.on_event(&data)?;
        }
        Ok(self.is_over)
    }

    /// Handles the rest at the body's end: everything, if the answer isn't a stream.
    ///
    /// # Errors
    /// Same as [`ChatStream::push`].
    pub(super) fn end_body(&mut self) -> Result<(), ModelError> {
        let rest = self.body.finish().map_err(|fault| self.build_fault_error(fault))?;
        let is_whole = self.body.is_whole();
        for data in rest {
            match self.on_event(&data) {
                // A stream may end in the middle of its last event, which `finish` detects.
                Err(ModelError::Transient { .. }) if !is_whole && !is_json(&data) => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// True once the turn is complete, even if the stream continues.
    pub(super) fn has_ended(&self) -> bool {
        self.is_over || self.finish_reason.is_some()
    }

    fn on_event(&mut self, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        let word = data.trim_matches('"');
        if word == DONE {
            self.is_over = true;
        }
        let is_silent = data.is_empty() || data.starts_with(':') || KEEP_ALIVE.contains(&&*word.to_ascii_lowercase());
        if self.is_over || is_silent {
            return Ok(());
        }
        if let Some(chunk) = chunk::read_leniently::<ChatChunk>(data) {
            return self.add_chunk(chunk, data);
        }
        // Events without separators.
        let parts: Vec<&str> = data.lines().flat_map(split_json).collect();
        if parts.len() > 1 && parts.iter().all(|part| *part == DONE || is_json(part)) {
            return parts.into_iter().try_for_each(|part| self.on_event(part));
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) => Err(self.find_complaint(&value).unwrap_or_else(|| self.build_format_error())),
            Err(_) if data.starts_with(['{', '[', '<']) => Err(self.build_format_error()),
            Err(_) => {
                Err(self
                    .build_error(&format!("it sent plain text instead of its answer: {}", error::quote_server(data))))
            }
        }
    }

    fn build_fault_error(&self, fault: BodyFault) -> ModelError {
        self.build_error(match fault {
            BodyFault::TooLong => "its answer is longer than this program reads",
            BodyFault::Damaged => "its answer is packed, and damaged",
        })
    }

    /// Builds the error for an interrupted answer, with the tokens spent so far.
    pub(super) fn build_error(&self, why: &str) -> ModelError {
        let why = format!("{}: {why}", self.server);
        ModelError::Transient { why, retry_after: None, spent: self.usage() }
    }

    /// Tokens so far, counted by the server or estimated. Zero before the first byte.
    pub(super) fn usage(&self) -> Usage {
        match self.usage {
            Some(usage) => usage,
            None if self.received_bytes == 0 => Usage::default(),
            None => self.estimate_usage(),
        }
    }

    fn estimate_usage(&self) -> Usage {
        let thought: usize = self.thinking.values().map(|value| value.as_str().map_or(0, str::len)).sum();
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        Usage {
            output: price::estimated_tokens(self.text.len() + self.refusal.len() + thought + called),
            ..price::estimated_prompt(self.prompt_bytes)
        }
    }

    fn add_chunk(&mut self, chunk: ChatChunk, data: &str) -> Result<(), ModelError> {
        let choices: Vec<_> = chunk.choices.into_iter().flatten().filter_map(|choice| choice.0).collect();
        // A chunk that reports an error has no usable answer, even with choices in it.
        let is_complaint =
            |error: &Value| !matches!(error, Value::Null | Value::Bool(false)) && error != "" && error != &json!({});
        if choices.is_empty() || chunk.error.as_ref().is_some_and(is_complaint) {
            let value: Value = serde_json::from_str(data).unwrap_or_default();
            if let Some(error) = self.find_complaint(&value) {
                return Err(error);
            }
        }
        let counts = [chunk.usage, chunk.x_groq.and_then(|groq| groq.usage)];
        let counted = counts.iter().flatten().find_map(Counts::usage);
        self.usage = counted.or(self.usage);
        // Some servers mark the end of a stream by this event alone.
        self.is_counted = choices.is_empty() && counted.is_some_and(|usage| usage.output > 0);
        for mut choice in choices {
            if let Some(error) = choice.error.take().filter(is_complaint) {
                return Err(error::from_event(&json!({"error": error}), &self.server, &self.model, self.usage()));
            }
            // Only one answer was requested.
            if *self.choice.get_or_insert(choice.index.unwrap_or(0)) != choice.index.unwrap_or(0) {
                continue;
            }
            let delta = choice.delta.take().filter(|delta| !delta.is_empty());
            let whole = choice.message.take().filter(|_| delta.is_none() && self.is_empty());
            // A whole answer is at its end even without a finish reason.
            self.is_over |= whole.is_some() && self.body.is_whole();
            let is_whole_message = whole.is_some();
            if let Some(said) = delta.or(whole) {
                self.add_content(said, is_whole_message);
            }
            self.usage = choice.usage.as_ref().and_then(Counts::usage).or(self.usage);
            let reason = choice.finish_reason.filter(|reason| !matches!(reason.trim(), "" | "null"));
            self.finish_reason = reason.or(self.finish_reason.take());
        }
        Ok(())
    }

    /// Builds the error for an event without a turn. `None` if the event isn't a complaint.
    fn find_complaint(&self, value: &Value) -> Option<ModelError> {
        Complaint::parse_in_stream(value).map(|_| error::from_event(value, &self.server, &self.model, self.usage()))
    }

    fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.refusal.is_empty() && self.calls.is_empty() && self.thinking.is_empty()
    }

    fn add_content(&mut self, mut said: ChatSaid, is_whole_message: bool) {
        let calls = said.take_calls();
        let text = said.content.as_ref().map(join_text).unwrap_or_default();
        self.text.push_str(&text);
        if !text.is_empty() {
            self.pieces.push(TurnPiece::Text(text));
        }
        self.refusal.push_str(said.refusal.as_deref().unwrap_or_default());
        for (name, value) in THINKING.into_iter().zip([said.reasoning_content, said.reasoning, said.reasoning_details])
        {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                append_value(self.thinking.entry(name).or_insert(Value::Null), value);
            }
        }
        calls.into_iter().for_each(|call| self.add_call(call, is_whole_message));
    }

    /// Adds a call or a piece of one. Servers number pieces in different ways: every call is 0, or has no number. A new id begins another
    /// call; so does a name after complete arguments.
    fn add_call(&mut self, piece: RawCall, is_whole_call: bool) {
        let function = piece.function.unwrap_or_default();
        let id = piece.id.map(chunk::CallName::into_text).unwrap_or_default();
        let name = function.name.unwrap_or_default().trim().to_owned();
        let arguments = function.arguments.map(|raw| parse_arguments(&raw)).unwrap_or_default();
        let is_same = |call: &PartialCall| {
            let is_named_anew = !name.is_empty() && !call.name.is_empty();
            if is_whole_call {
                return false;
            }
            match (piece.index, call.index) {
                (Some(index), Some(known)) if index != known => false,
                _ if !id.is_empty() && !call.id.is_empty() => id == call.id,
                _ => !is_named_anew || (name == call.name && !is_whole(&call.arguments)),
            }
        };
        let at = self.calls.iter().rposition(is_same).unwrap_or(self.calls.len());
        if at == self.calls.len() && at < MAX_CALLS {
            self.calls.push(PartialCall { index: piece.index, ..PartialCall::default() });
        }
        let Some(known) = self.calls.get_mut(at) else { return };
        if known.id.is_empty() {
            known.id = id;
        }
        if known.name.is_empty() {
            known.name = name;
            if !known.name.is_empty() {
                self.pieces.push(TurnPiece::Call(known.name.clone()));
            }
        }
        known.arguments.push_str(&arguments);
        if !arguments.is_empty() {
            self.pieces.push(TurnPiece::Arguments(arguments));
        }
        known.more = piece.extra_content.or(known.more.take());
    }

    /// Returns the finished turn.
    ///
    /// # Errors
    /// The answer ended before the turn did.
    pub(super) fn finish(mut self, mut finishing: Finishing<'_>) -> Result<Turn, ModelError> {
        if self.choice.is_none() {
            return Err(self.build_error("its answer was empty"));
        }
        let is_ended = self.is_over || self.is_counted || self.finish_reason.is_some();
        if !is_ended || self.finish_reason.is_none() && self.is_empty() {
            return Err(self.build_error("its answer was cut off before its end"));
        }
        if let Some(reason) = self.finish_reason.as_deref().filter(|reason| is_broken(reason)) {
            return Err(self.build_error(&format!("it ended its answer with {}", error::quote_server(reason))));
        }
        if self.usage.is_none() {
            tracing::info!(server = %self.server, "the server doesn't say how many tokens this took; they are estimated by bytes");
        }
        let usage = self.usage();
        let is_cut = self.find_stated_stop() == Some(Stop::MaxTokens);
        let text = without_thought(std::mem::take(&mut self.text), is_cut);
        let mut calls: Vec<FinishedCall> = Vec::new();
        calls.extend(self.calls.drain(..).filter(|call| !call.name.is_empty()).map(|call| FinishedCall {
            name: call.name,
            arguments: repair_arguments(call.arguments),
            more: call.more,
        }));
        let text = if !calls.is_empty() {
            text
        } else {
            let read = match (finishing.is_small, finishing.reads_text) {
                (true, reads_text) if reads_text || finishing.is_bound => {
                    small::parse_answer(&text, finishing.offered, is_cut)
                }
                // Text only: an apparent call may be quoted from a page.
                (true, _) => small::parse_answer(&text, &[], is_cut),
                (false, true) => written::parse_calls(&text, finishing.offered),
                (false, false) => None,
            };
            let ReadAnswer { text, calls: found } = read.unwrap_or(ReadAnswer { text, calls: Vec::new() });
            calls.extend(found.into_iter().map(|(name, arguments)| FinishedCall { name, arguments, more: None }));
            text
        };
        let stop = self.choose_stop(!calls.is_empty());
        let content = self.build_content(&text, calls, &mut finishing.ids);
        Ok(Turn { content, stop, usage, cost_usd: None, request_id: finishing.request_id })
    }

    /// Builds the raw JSON array of blocks. Thinking is kept only beside calls.
    fn build_content(&mut self, text: &str, calls: Vec<FinishedCall>, ids: &mut CallIds) -> String {
        let mut blocks = Vec::new();
        let mut own = std::mem::take(&mut self.thinking);
        let mut of_calls = Map::new();
        if !text.trim().is_empty() {
            blocks.push(conversation::text_block(text.trim_end()));
        }
        let has_calls = !calls.is_empty();
        for FinishedCall { name, arguments, more } in calls {
            let id = ids.next();
            let input: Option<Box<RawValue>> = serde_json::from_str(&build_input(&arguments)).ok();
            // The arguments keep their own bytes.
            let input = input.as_ref().map_or("{}", |input| input.get());
            blocks.push(format!(
                r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
                Value::from(id.as_str()),
                Value::from(name)
            ));
            if let Some(more) = more.filter(|more| !more.is_null()) {
                of_calls.insert(id, json!({"extra_content": more}));
            }
        }
        if !of_calls.is_empty() {
            own.insert(OF_CALLS.to_owned(), of_calls.into());
        }
        if has_calls && !own.is_empty() {
            blocks.insert(0, conversation::build_opaque_block(BY, &own.into()));
        }
        format!("[{}]", blocks.join(","))
    }

    /// Returns the reason for the end. Content outweighs the stated reason, since many servers say `stop` after calls.
    fn choose_stop(&self, has_calls: bool) -> Stop {
        self.find_stated_stop().unwrap_or(if has_calls { Stop::ToolUse } else { Stop::EndTurn })
    }

    /// Returns the stated reason for the end. `None` for an ordinary end.
    fn find_stated_stop(&self) -> Option<Stop> {
        let stop = match self.finish_reason.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("length" | "max_tokens" | "model_length" | "max_output_tokens" | "max_length" | "token_limit") => {
                Stop::MaxTokens
            }
            Some("model_context_window_exceeded" | "context_length_exceeded") => Stop::ContextExceeded,
            Some(
                "content_filter" | "content-filter" | "safety" | "refusal" | "sensitive" | "recitation" | "blocklist"
                | "prohibited_content" | "spii",
            ) => Stop::Refusal(self.refusal.clone()),
            _ if !self.refusal.is_empty() => Stop::Refusal(self.refusal.clone()),
            None
            | Some(
                "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" | "done" | "complete" | "",
            ) => return None,
            Some("stop_sequence") => Stop::StopSequence,
            Some(other) => Stop::Unknown(other.to_owned()),
        };
        Some(stop)
    }

    fn build_format_error(&self) -> ModelError {
        self.build_error("its answer can't be read: it isn't a chat completion")
    }
}

/// Returns a text, or the texts among an answer's parts, without thinking.
fn join_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(parts) => parts.iter().map(join_text).collect(),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_thought = ["think", "reason"].iter().any(|word| kind.contains(word));
            part.get("text").and_then(Value::as_str).filter(|_| !is_thought).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

fn is_json(data: &str) -> bool {
    serde_json::from_str::<&RawValue>(data).is_ok()
}

fn is_broken(reason: &str) -> bool {
    BROKEN.contains(&&*reason.trim().to_ascii_lowercase())
}

/// Appends to a text or a list; replaces any other value.
fn append_value(known: &mut Value, more: Value) {
    match (known, more) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (known, more) => *known = more,
    }
}

/// Returns arguments as text, from a JSON string or a plain object.
fn parse_arguments(raw: &RawValue) -> String {
    let text = serde_json::from_str::<String>(raw.get());
    text.unwrap_or_else(|_| if raw.get() == "null" { String::new() } else { raw.get().to_owned() })
}

#[cfg(test)]
mod tests;
