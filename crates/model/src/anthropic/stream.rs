//! From the bytes of a streamed answer to a [`Turn`], without any I/O: [`TurnStream`] assembles events into content blocks, usage
//! and the reason for stopping.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use reveille_base::types::{Stop, Usage};

use super::{block::Block, error, price};
use crate::{
    ModelError, Turn,
    answer::{AnswerBody, BodyFault, documents},
};

/// The longest answer that is read, in bytes of the event stream. The longest real ones are some megabytes.
pub const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;

/// More blocks than any turn has.
const MAX_BLOCKS: usize = 10_000;
/// More tokens than any turn has: what a server says beyond that is taken for that.
const MOST_TOKENS: u64 = 1 << 40;
/// How a stream ends that some proxies pass on in the way of another API.
const DONE: &str = "[DONE]";
/// How a block of words begins.
const NO_TEXT: &str = r#"{"type":"text","text":""}"#;
/// Events that some proxies send to keep a stream open, though they are no JSON.
const KEEP_ALIVE: [&str; 5] = ["ping", "pong", "keepalive", "keep-alive", "heartbeat"];

/// Assembles one turn, streamed or whole.
pub struct TurnStream {
    body: AnswerBody,
    received_bytes: usize,
    /// Each with its index, in the order in which they began. Some proxies give them all the same one.
    blocks: Vec<(u64, Block)>,
    /// The message's id.
    id: Option<String>,
    usage: Usage,
    /// Of what was written to the cache, what is kept there for an hour.
    hour_tokens: u64,
    stop_reason: Option<String>,
    refusal: Option<String>,
    complete: bool,
}

impl Default for TurnStream {
    fn default() -> Self {
        Self {
            body: AnswerBody::new(MAX_STREAM_BYTES),
            received_bytes: 0,
            blocks: Vec::new(),
            id: None,
            usage: Usage::default(),
            hour_tokens: 0,
            stop_reason: None,
            refusal: None,
            complete: false,
        }
    }
}

impl TurnStream {
    /// Takes the next bytes of the answer. `true` once the turn is complete; what follows then is ignored.
    ///
    /// # Errors
    /// An `error` event, an answer that isn't a stream of events as documented, or one beyond [`MAX_STREAM_BYTES`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ModelError> {
        self.count_bytes(bytes.len())?;
        for data in self.body.push(bytes).map_err(|fault| self.unreadable(fault))? {
            self.on_data(&data)?;
        }
        Ok(self.complete)
    }

    /// Takes what the end of the body leaves: all of an answer that isn't a stream.
    ///
    /// # Errors
    /// As [`TurnStream::push`].
    pub fn end(&mut self) -> Result<(), ModelError> {
        let rest = self.body.end().map_err(|fault| self.unreadable(fault))?;
        let is_whole = self.body.is_whole();
        for data in rest {
            match self.on_data(&data) {
                // The last event of a stream may be cut off in its middle, which its end tells.
                Err(ModelError::Transient { .. }) if !is_whole && !is_json(&data) => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// Whether the server has said why the turn ended: what may follow is its end.
    pub fn has_ended(&self) -> bool {
        self.complete || self.stop_reason.is_some()
    }

    /// Takes the data of one event that somebody else has cut out of the stream. `true` once the turn is complete.
    ///
    /// # Errors
    /// As [`TurnStream::push`].
    pub fn event(&mut self, data: &str) -> Result<bool, ModelError> {
        self.count_bytes(data.len())?;
        self.on_data(data)?;
        Ok(self.complete)
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(more);
        if self.received_bytes > MAX_STREAM_BYTES {
            return Err(self.unreadable(BodyFault::TooLong));
        }
        Ok(())
    }

    fn unreadable(&self, fault: BodyFault) -> ModelError {
        self.broken(match fault {
            BodyFault::TooLong => "Claude's answer is longer than this program reads",
            BodyFault::Damaged => "Claude's answer is packed, and damaged",
        })
    }

    /// The finished turn.
    ///
    /// # Errors
    /// The stream ended before the turn did.
    pub fn finish(self, request_id: Option<String>) -> Result<Turn, ModelError> {
        // fault: stream-cut-off-taken
        if !self.has_ended() {
            return Err(self.broken("Claude's answer was cut off before its end"));
            // fault end: stream-cut-off-taken
        }
        if self.stop_reason.is_none() && self.blocks.is_empty() {
            return Err(self.broken("Claude answered nothing"));
        }
        if let Some(reason) = self.stop_reason.as_deref().filter(|reason| matches!(*reason, "error" | "abort")) {
            return Err(self.broken(&format!("Claude's answer ended with `{reason}`")));
        }
        let stop = stop(self.stop_reason.as_deref(), self.refusal);
        Ok(Turn { content: content(self.blocks), stop, usage: self.usage, cost_usd: None, request_id })
    }

    /// Its tokens so far; none before the server has told those of the prompt. A server counts output only at the end: until then
    /// it is as much as the bytes that have come can be.
    pub fn usage(&self) -> Usage {
        if self.usage == Usage::default() {
            return self.usage;
        }
        let streamed_bytes: usize = self.blocks.iter().map(|(_, block)| block.bytes()).sum();
        Usage { output: self.usage.output.max(price::most_tokens(streamed_bytes)), ..self.usage }
    }

    /// Tokens that were written to the cache for an hour, which costs more.
    pub fn hour_tokens(&self) -> u64 {
        self.hour_tokens
    }

    /// An error for an answer that broke off, with the tokens it cost so far.
    pub fn broken(&self, why: &str) -> ModelError {
        ModelError::Transient { why: why.to_owned(), retry_after: None, spent: self.usage() }
    }

    fn on_data(&mut self, data: &str) -> Result<(), ModelError> {
        let data = data.trim();
        if self.complete || data.is_empty() || data.starts_with(':') || KEEP_ALIVE.contains(&data) {
            return Ok(());
        }
        if data == DONE {
            self.complete = true;
            return Ok(());
        }
        if is_json(data) {
            return self.on_event(data);
        }
        // Events that nothing parts.
        let parts: Vec<&str> = data.lines().flat_map(documents).collect();
        if parts.len() > 1 && parts.iter().all(|part| *part == DONE || is_json(part)) {
            return parts.into_iter().try_for_each(|part| self.on_data(part));
        }
        self.on_event(data)
    }

    fn on_event(&mut self, data: &str) -> Result<(), ModelError> {
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else {
            return Err(complaint(data, self.usage()).unwrap_or_else(|| self.malformed()));
        };
        match &*event.kind {
            "message_start" => {
                if let Some(message) = event.message {
                    let start: MessageStart = serde_json::from_str(message.get()).map_err(|_| self.malformed())?;
                    // Another message: its server began anew.
                    if self.id.is_some() && start.id.is_some() && self.id != start.id {
                        self.blocks.clear();
                    }
                    self.id = start.id.or_else(|| self.id.take());
                    self.count(&start.usage.unwrap_or_default());
                }
            }
            "content_block_start" => {
                let (index, block) = event.index().zip(event.content_block).ok_or_else(|| self.malformed())?;
                let block = Block::start(block.get()).map_err(|_| self.malformed())?;
                self.begin(index, block)?;
            }
            "content_block_delta" => {
                let (index, delta) = event.index().zip(event.delta).ok_or_else(|| self.malformed())?;
                // Words need no beginning to be words.
                if !self.blocks.iter().any(|(known, _)| *known == index) && delta.get().contains("\"text_delta\"") {
                    self.begin(index, Block::start(NO_TEXT).map_err(|_| self.malformed())?)?;
                }
                let block = self.blocks.iter_mut().rev().find(|(known, _)| *known == index);
                let applied = block.map(|(_, block)| block.apply(delta.get()));
                applied.and_then(Result::ok).ok_or_else(|| self.malformed())?;
            }
            "message_delta" => self.on_message_delta(event.delta, event.usage)?,
            "message_stop" => self.complete = true,
            "message" => self.on_whole(data)?,
            // Some proxies keep a stream open with an object that says nothing.
            "" => return complaint(data, self.usage()).map_or(Ok(()), Err),
            "error" => return Err(complaint(data, self.usage()).unwrap_or_else(|| self.malformed())),
            // `content_block_stop` says nothing new, `ping` nothing at all, and new kinds must not break us.
            _ => {}
        }
        Ok(())
    }

    /// Takes a turn that comes in one piece.
    fn on_whole(&mut self, data: &str) -> Result<(), ModelError> {
        let whole: WholeMessage<'_> = serde_json::from_str(data).map_err(|_| self.malformed())?;
        self.blocks.clear();
        for raw in whole.content {
            self.begin(0, Block::start(raw.get()).map_err(|_| self.malformed())?)?;
        }
        self.count(&whole.usage.unwrap_or_default());
        let end: MessageDelta = serde_json::from_str(data).map_err(|_| self.malformed())?;
        self.take_end(&end);
        self.complete = true;
        Ok(())
    }

    fn begin(&mut self, index: u64, block: Block) -> Result<(), ModelError> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(self.unreadable(BodyFault::TooLong));
        }
        self.blocks.push((index, block));
        Ok(())
    }

    fn on_message_delta(&mut self, delta: Option<&RawValue>, usage: Option<&RawValue>) -> Result<(), ModelError> {
        if let Some(usage) = usage {
            self.count(&serde_json::from_str(usage.get()).unwrap_or_default());
        }
        if let Some(delta) = delta {
            let delta: MessageDelta = serde_json::from_str(delta.get()).map_err(|_| self.malformed())?;
            self.take_end(&delta);
        }
        Ok(())
    }

    fn take_end(&mut self, end: &MessageDelta) {
        self.refusal = end.refusal().or_else(|| self.refusal.take());
        let reason = end.stop_reason.as_str().map(str::trim).filter(|reason| !reason.is_empty());
        self.stop_reason = reason.map(str::to_owned).or_else(|| self.stop_reason.take());
    }

    /// Later values replace earlier ones: the server's counts are totals. A proxy may tell a prompt's tokens once, and later none.
    fn count(&mut self, seen: &UsageCounts) {
        let usage = &mut self.usage;
        let later = |known: u64, seen: &Value| match tokens(seen) {
            Some(0) | None => known,
            Some(tokens) => tokens,
        };
        usage.input = later(usage.input, &seen.input_tokens);
        usage.output = later(usage.output, &seen.output_tokens);
        usage.cache_read = later(usage.cache_read, &seen.cache_read_input_tokens);
        usage.cache_write = later(usage.cache_write, &seen.cache_creation_input_tokens);
        let for_an_hour = seen.cache_creation.get("ephemeral_1h_input_tokens").and_then(tokens);
        self.hour_tokens = for_an_hour.unwrap_or(self.hour_tokens);
    }

    fn malformed(&self) -> ModelError {
        self.broken("Claude's answer can't be read: it isn't the event stream that the API documents")
    }
}

/// The error for an event that complains.
fn complaint(data: &str, spent: Usage) -> Option<ModelError> {
    serde_json::from_str::<Value>(data).ok().and_then(|value| error::from_event(&value, spent))
}

/// The raw JSON array of the blocks, in the order of their index.
///
/// An empty text block is left out unless thinking follows it: the server refuses it when it is sent back, and only
/// thinking is signed over what stands before it.
fn content(mut blocks: Vec<(u64, Block)>) -> String {
    // Those of one index stay in their order.
    blocks.sort_by_key(|(index, _)| *index);
    let mut kept = Vec::with_capacity(blocks.len());
    let mut thinking_follows = false;
    for block in blocks.into_iter().rev().map(|(_, block)| block.finish()) {
        let head: BlockHead<'_> = serde_json::from_str(&block).unwrap_or_default();
        thinking_follows |= matches!(&*head.kind, "thinking" | "redacted_thinking");
        let is_empty_text = head.kind == "text" && head.text.is_some_and(|text| text.is_empty());
        if thinking_follows || !is_empty_text {
            kept.push(block);
        }
    }
    kept.reverse();
    format!("[{}]", kept.join(","))
}

fn stop(reason: Option<&str>, refusal: Option<String>) -> Stop {
    match reason {
        // Behind them the words of another API, which some proxies leave.
        Some("end_turn" | "stop") => Stop::EndTurn,
        Some("tool_use" | "tool_calls") => Stop::ToolUse,
        Some("max_tokens" | "length") => Stop::MaxTokens,
        Some("model_context_window_exceeded") => Stop::ContextExceeded,
        Some("stop_sequence") => Stop::StopSequence,
        Some("pause_turn") => Stop::PauseTurn,
        Some("refusal" | "content_filter") => Stop::Refusal(refusal.unwrap_or_default()),
        Some(other) => Stop::Unknown(other.to_owned()),
        None => Stop::Unknown("none given".to_owned()),
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    index: Option<&'a RawValue>,
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

impl Event<'_> {
    fn index(&self) -> Option<u64> {
        self.index?.get().parse().ok()
    }
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    usage: Option<UsageCounts>,
}

/// A turn that isn't streamed.
#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
    #[serde(default)]
    usage: Option<UsageCounts>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct UsageCounts {
    input_tokens: Value,
    output_tokens: Value,
    cache_read_input_tokens: Value,
    cache_creation_input_tokens: Value,
    /// How long what was written to the cache is kept there.
    cache_creation: Value,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is brought within bounds before")]
fn tokens(count: &Value) -> Option<u64> {
    let number = count.as_f64().filter(|number| number.is_finite());
    number.map(|number| number.clamp(0.0, MOST_TOKENS as f64) as u64)
}

fn is_json(data: &str) -> bool {
    serde_json::from_str::<&RawValue>(data).is_ok()
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Value,
    #[serde(default)]
    stop_details: Value,
}

impl MessageDelta {
    /// What the server says of a refusal's reason.
    fn refusal(&self) -> Option<String> {
        let said = ["category", "explanation"].into_iter().filter_map(|key| self.stop_details.get(key)?.as_str());
        let said: Vec<&str> = said.collect();
        (!said.is_empty()).then(|| said.join(": "))
    }
}

#[derive(Deserialize, Default)]
struct BlockHead<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests;
