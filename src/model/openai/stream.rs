//! From the bytes of an answer to a [`Turn`], without any I/O: streamed or whole, and whatever of the protocol a server leaves out.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    call_ids::CallIds,
    encode::{BY, OF_CALLS},
    error, small, written,
};
use crate::{
    model::{ModelError, Turn, anthropic::price, content::input_of, conversation},
    sse::Events,
    types::{Stop, Usage},
};

/// The longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// Calls of one turn that are looked at.
const MAX_CALLS: usize = 128;
/// The end of a stream.
const DONE: &str = "[DONE]";
/// Fields of thinking: a server that sends one wants it back beside the calls that followed.
const THINKING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// Where models put their thinking whose server doesn't know it.
const THOUGHT: (&str, &str) = ("<think>", "</think>");

/// Assembles one answer.
pub(super) struct ChatStream {
    server: String,
    prompt_bytes: usize,
    events: Events,
    whole: Vec<u8>,
    received_bytes: usize,
    text: String,
    refusal: String,
    thinking: Map<String, Value>,
    calls: Vec<PartialCall>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    is_over: bool,
}

/// A call under construction.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// What belongs to the call and has to go back with it.
    more: Option<Value>,
}

/// What a finished answer is read with.
pub(super) struct Finishing<'a> {
    /// Ids for its calls.
    pub(super) ids: CallIds,
    /// Names of the tools that were offered.
    pub(super) offered: &'a [String],
    /// Whether a text may be taken for a call.
    pub(super) reads_text: bool,
    /// Whether the answer was asked for in `small`'s form.
    pub(super) is_small: bool,
    /// Whether it was bound to that form's schema: then none of it is quoted.
    pub(super) is_bound: bool,
    /// The server's id of the request.
    pub(super) request_id: Option<String>,
}

/// What is in an answer, before it becomes a turn.
#[derive(Debug, Default)]
pub(super) struct ReadAnswer {
    /// Words.
    pub(super) text: String,
    /// Calls: a tool, and arguments as text.
    pub(super) calls: Vec<(String, String)>,
}

impl ChatStream {
    /// Of an answer by this server to a prompt of so many bytes.
    pub(super) fn new(server: String, prompt_bytes: usize) -> Self {
        Self {
            server,
            prompt_bytes,
            events: Events::default(),
            whole: Vec::new(),
            received_bytes: 0,
            text: String::new(),
            refusal: String::new(),
            thinking: Map::new(),
            calls: Vec::new(),
            finish_reason: None,
            usage: None,
            is_over: false,
        }
    }

    /// Takes the next bytes of a stream. `true` once it says that it is over.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<bool, ModelError> {
        self.count_bytes(bytes.len())?;
        for data in self.events.take(bytes, MAX_ANSWER_BYTES).map_err(|_| self.too_long())? {
            match data.trim() {
                DONE => self.is_over = true,
                "" => {}
                _ if self.is_over => {}
                data => self.chunk(data)?,
            }
        }
        Ok(self.is_over)
    }

    /// Takes the next bytes of an answer that isn't a stream.
    pub(super) fn push_whole(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.count_bytes(bytes.len())?;
        self.whole.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads such an answer: it is one chunk.
    pub(super) fn end_whole(&mut self) -> Result<(), ModelError> {
        let whole = std::mem::take(&mut self.whole);
        let whole = String::from_utf8_lossy(&whole);
        self.chunk(&whole)?;
        self.is_over = true;
        Ok(())
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(more);
        if self.received_bytes > MAX_ANSWER_BYTES {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> ModelError {
        self.broken("its answer is longer than this program reads")
    }

    /// An error for an answer that broke off, with the tokens that it cost so far.
    pub(super) fn broken(&self, why: &str) -> ModelError {
        let why = format!("{}: {why}", self.server);
        ModelError::Transient { why, retry_after: None, spent: self.usage() }
    }

    /// Its tokens so far, by the server's count or by an estimate; none before anything has come.
    pub(super) fn usage(&self) -> Usage {
        match self.usage {
            Some(usage) => usage,
            None if self.received_bytes == 0 => Usage::default(),
            None => self.estimated(),
        }
    }

    fn estimated(&self) -> Usage {
        let thought: usize = self.thinking.values().map(|value| value.as_str().map_or(0, str::len)).sum();
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        Usage {
            output: price::estimated_tokens(self.text.len() + self.refusal.len() + thought + called),
            ..price::estimated_prompt(self.prompt_bytes)
        }
    }

    fn chunk(&mut self, data: &str) -> Result<(), ModelError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| self.malformed())?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(error::from_event(&json!({"error": error}), &self.server, self.usage()));
        }
        self.usage = chunk.usage.as_ref().and_then(Counts::usage).or(self.usage);
        for choice in chunk.choices.unwrap_or_default() {
            // One answer is asked for.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(said) = choice.delta.or(choice.message) {
                self.said(said);
            }
            self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        }
        Ok(())
    }

    fn said(&mut self, said: Said) {
        self.text.push_str(&said.content.as_ref().map(text_of).unwrap_or_default());
        self.refusal.push_str(said.refusal.as_deref().unwrap_or_default());
        for (name, value) in THINKING.into_iter().zip([said.reasoning_content, said.reasoning, said.reasoning_details])
        {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                grow(self.thinking.entry(name).or_insert(Value::Null), value);
            }
        }
        for call in said.tool_calls.unwrap_or_default() {
            self.call(call);
        }
    }

    /// Takes a piece of a call. Servers number pieces and calls in their own ways: all calls 0, or none at all; an id that is new, or a
    /// name behind whole arguments, begins another call.
    fn call(&mut self, piece: RawCall) {
        let function = piece.function.unwrap_or_default();
        let (id, name) = (piece.id.unwrap_or_default(), function.name.unwrap_or_default());
        let arguments = function.arguments.map(|raw| arguments_of(&raw)).unwrap_or_default();
        let is_same = |call: &PartialCall| {
            let is_named_anew = !name.is_empty() && !call.name.is_empty();
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
        }
        known.arguments.push_str(&arguments);
        known.more = piece.extra_content.or(known.more.take());
    }

    /// The finished turn.
    ///
    /// # Errors
    /// The answer ended before the turn did.
    pub(super) fn finish(mut self, mut finishing: Finishing<'_>) -> Result<Turn, ModelError> {
        if !self.is_over && self.finish_reason.is_none() {
            return Err(self.broken("its answer was cut off before its end"));
        }
        if self.usage.is_none() {
            tracing::info!(server = %self.server, "the server doesn't say how many tokens this took; they are estimated by bytes");
        }
        let usage = self.usage();
        let is_cut = self.stop(true) == Stop::MaxTokens;
        let text = without_thought(std::mem::take(&mut self.text));
        let mut calls: Vec<(String, String, Option<Value>)> = Vec::new();
        calls.extend(
            self.calls
                .drain(..)
                .filter(|call| !call.name.is_empty())
                .map(|call| (call.name, call.arguments, call.more)),
        );
        let text = if !calls.is_empty() {
            text
        } else {
            let read = match (finishing.is_small, finishing.reads_text) {
                (true, reads_text) if reads_text || finishing.is_bound => small::read(&text, finishing.offered, is_cut),
                // Words alone: what looks like a call may be a page's.
                (true, _) => small::read(&text, &[], is_cut),
                (false, true) => written::read(&text, finishing.offered),
                (false, false) => None,
            };
            let ReadAnswer { text, calls: found } = read.unwrap_or(ReadAnswer { text, calls: Vec::new() });
            calls.extend(found.into_iter().map(|(name, arguments)| (name, arguments, None)));
            text
        };
        let stop = self.stop(!calls.is_empty());
        let content = self.content(&text, calls, &mut finishing.ids);
        Ok(Turn { content, stop, usage, cost_usd: None, request_id: finishing.request_id })
    }

    /// The raw JSON array of blocks. Thinking goes back beside calls alone.
    fn content(&mut self, text: &str, calls: Vec<(String, String, Option<Value>)>, ids: &mut CallIds) -> String {
        let mut blocks = Vec::new();
        let mut own = std::mem::take(&mut self.thinking);
        let mut of_calls = Map::new();
        if !text.trim().is_empty() {
            blocks.push(conversation::text_block(text.trim_end()));
        }
        let has_calls = !calls.is_empty();
        for (name, arguments, more) in calls {
            let id = ids.next();
            let input: Option<Box<RawValue>> = serde_json::from_str(&input_of(&arguments)).ok();
            // Its own bytes are kept.
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
            blocks.insert(0, conversation::opaque(BY, &own.into()));
        }
        format!("[{}]", blocks.join(","))
    }

    /// Why it ended. What it holds counts more than what it says: many servers say `stop` of calls.
    fn stop(&self, has_calls: bool) -> Stop {
        match self.finish_reason.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("length" | "max_tokens" | "model_length") => Stop::MaxTokens,
            Some("content_filter" | "safety" | "refusal") => Stop::Refusal(self.refusal.clone()),
            _ if !self.refusal.is_empty() => Stop::Refusal(self.refusal.clone()),
            None
            | Some(
                "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" | "done" | "complete" | "",
            ) => {
                if has_calls {
                    Stop::ToolUse
                } else {
                    Stop::EndTurn
                }
            }
            Some("stop_sequence") => Stop::StopSequence,
            Some(other) => Stop::Unknown(other.to_owned()),
        }
    }

    fn malformed(&self) -> ModelError {
        self.broken("its answer can't be read: it isn't a chat completion")
    }
}

/// A text, or the texts among an answer's parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Adds to a text or to a list; anything else replaces it.
fn grow(known: &mut Value, more: Value) {
    match (known, more) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (known, more) => *known = more,
    }
}

/// Arguments as text: a JSON string holds them, or they stand there as an object.
fn arguments_of(raw: &RawValue) -> String {
    let text = serde_json::from_str::<String>(raw.get());
    text.unwrap_or_else(|_| if raw.get() == "null" { String::new() } else { raw.get().to_owned() })
}

/// Whether arguments are complete.
fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<&RawValue>(arguments).is_ok()
}

/// The text without the thinking at its beginning. A prompt may have begun that itself: then only its end stands there.
fn without_thought(text: String) -> String {
    let (begin, end) = THOUGHT;
    match text.split_once(end) {
        Some((thought, said)) if thought.trim_start().starts_with(begin) || !thought.contains(begin) => {
            said.trim_start().to_owned()
        }
        _ => text,
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    delta: Option<Said>,
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    reasoning_details: Option<Value>,
    #[serde(default)]
    tool_calls: Option<Vec<RawCall>>,
}

#[derive(Deserialize)]
struct RawCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<RawFunction>,
    /// What Gemini's server wants back with a call.
    #[serde(default)]
    extra_content: Option<Value>,
}

#[derive(Deserialize, Default)]
struct RawFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptCounts>,
    /// DeepSeek's word for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptCounts {
    cached_tokens: Option<u64>,
}

impl Counts {
    /// None where nothing was counted: some servers send zeros.
    fn usage(&self) -> Option<Usage> {
        let prompt = self.prompt_tokens.filter(|tokens| *tokens > 0)?;
        let details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cached = details.or(self.prompt_cache_hit_tokens).unwrap_or(0).min(prompt);
        let output = self.completion_tokens.unwrap_or(0);
        Some(Usage { input: prompt - cached, output, cache_read: cached, cache_write: 0 })
    }
}

#[cfg(test)]
mod tests;
