//! Assembles a streamed answer into a [`Turn`] without any I/O: content blocks, usage and the stop reason.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use reveille_base::types::{Stop, Usage};

use super::{block::Block, error, price};
use crate::{
    ModelError, Turn, TurnPiece,
    answer::{AnswerBody, BodyFault, split_json},
};

/// Maximum bytes read of an event stream. The longest real answers are a few megabytes.
pub const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;

/// Maximum blocks of a turn, more than any has.
const MAX_BLOCKS: usize = 10_000;
/// Upper limit for a token count; larger counts are clamped to it.
const MOST_TOKENS: u64 = 1 << 40;
/// The stream's end in another API, passed on by some proxies.
const DONE: &str = "[DONE]";
/// An empty text block.
const NO_TEXT: &str = r#"{"type":"text","text":""}"#;
/// Keep-alive texts that some proxies send as events.
const KEEP_ALIVE: [&str; 5] = ["ping", "pong", "keepalive", "keep-alive", "heartbeat"];

/// Assembles a turn, streamed or whole.
pub struct TurnStream {
    body: AnswerBody,
    received_bytes: usize,
    /// Blocks with their index, in order of arrival. Some proxies give all blocks the same index.
    blocks: Vec<(u64, Block)>,
    /// The message's id.
    id: Option<String>,
    usage: Usage,
    /// The cache writes kept for an hour, in tokens.
    hour_tokens: u64,
    stop_reason: Option<String>,
    refusal: Option<String>,
    complete: bool,
    /// The pieces that arrived since they were last taken.
    pieces: Vec<TurnPiece>,
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
            pieces: Vec::new(),
        }
    }
}

impl TurnStream {
    /// Accepts the next bytes of the answer. Returns `true` once the turn is complete; later bytes are ignored.
    ///
    /// # Errors
    /// An `error` event, an answer other than a documented event stream, or one beyond [`MAX_STREAM_BYTES`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ModelError> {
        self.count_bytes(bytes.len())?;
        for data in self.body.push(bytes).map_err(|fault| self.build_fault_error(fault))? {
            self.on_data(&data)?;
        }
        Ok(self.complete)
    }

    /// Returns the pieces of the turn that arrived since the last call.
    pub(crate) fn take_pieces(&mut self) -> Vec<TurnPiece> {
        std::mem::take(&mut self.pieces)
    }

    /// Handles the rest at the body's end: everything, if the answer isn't a stream.
    ///
    /// # Errors
    /// Same as [`TurnStream::push`].
    pub fn end_body(&mut self) -> Result<(), ModelError> {
        let rest = self.body.finish().map_err(|fault| self.build_fault_error(fault))?;
        let is_whole = self.body.is_whole();
        for data in rest {
            match self.on_data(&data) {
                // A stream may end in the middle of its last event, which `finish` detects.
                Err(ModelError::Transient { .. }) if !is_whole && !is_json(&data) => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// True once the server has given the stop reason, so that only the stream's end may follow.
    pub fn has_ended(&self) -> bool {
        self.complete || self.stop_reason.is_some()
    }

    /// Accepts the data of one event that the caller has extracted from a stream. Returns `true` once the turn is complete.
    ///
    /// # Errors
    /// Same as [`TurnStream::push`].
    pub fn push_event(&mut self, data: &str) -> Result<bool, ModelError> {
        self.count_bytes(data.len())?;
        self.on_data(data)?;
        Ok(self.complete)
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(more);
        if self.received_bytes > MAX_STREAM_BYTES {
            return Err(self.build_fault_error(BodyFault::TooLong));
        }
        Ok(())
    }

    fn build_fault_error(&self, fault: BodyFault) -> ModelError {
        self.build_error(match fault {
            BodyFault::TooLong => "Claude's answer is longer than this program reads",
            BodyFault::Damaged => "Claude's answer is packed, and damaged",
        })
    }

    /// Returns the finished turn.
    ///
    /// # Errors
    /// The stream ended before the turn did.
    pub fn finish(self, request_id: Option<String>) -> Result<Turn, ModelError> {
        // fault: stream-cut-off-taken
        if !self.has_ended() {
            return Err(self.build_error("Claude's answer was cut off before its end"));
            // fault end: stream-cut-off-taken
        }
        if self.stop_reason.is_none() && self.blocks.is_empty() {
            return Err(self.build_error("Claude's answer was empty"));
        }
        if let Some(reason) = self.stop_reason.as_deref().filter(|reason| matches!(*reason, "error" | "abort")) {
            return Err(self.build_error(&format!("Claude's answer ended with `{reason}`")));
        }
        let stop = parse_stop(self.stop_reason.as_deref(), self.refusal);
        Ok(Turn { content: join_blocks(self.blocks), stop, usage: self.usage, cost_usd: None, request_id })
    }

    /// Tokens so far; zero until the server reports the prompt's tokens. A server reports output only at the end, so until then output is
    /// the maximum that the received bytes can be.
    pub fn usage(&self) -> Usage {
        if self.usage == Usage::default() {
            return self.usage;
        }
        let streamed_bytes: usize = self.blocks.iter().map(|(_, block)| block.count_bytes()).sum();
        Usage { output: self.usage.output.max(price::most_tokens(streamed_bytes)), ..self.usage }
    }

    /// Tokens written to the cache for an hour, at a higher price.
    pub fn hour_tokens(&self) -> u64 {
        self.hour_tokens
    }

    /// Builds the error for an interrupted answer, with the tokens spent so far.
    pub fn build_error(&self, why: &str) -> ModelError {
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
        // Events without separators.
        let parts: Vec<&str> = data.lines().flat_map(split_json).collect();
        if parts.len() > 1 && parts.iter().all(|part| *part == DONE || is_json(part)) {
            return parts.into_iter().try_for_each(|part| self.on_data(part));
        }
        self.on_event(data)
    }

    fn on_event(&mut self, data: &str) -> Result<(), ModelError> {
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else {
            return Err(parse_complaint(data, self.usage()).unwrap_or_else(|| self.build_format_error()));
        };
        match &*event.kind {
            "message_start" => {
                if let Some(message) = event.message {
                    let start: MessageStart =
                        serde_json::from_str(message.get()).map_err(|_| self.build_format_error())?;
                    // Another message: the server started over.
                    if self.id.is_some() && start.id.is_some() && self.id != start.id {
                        self.blocks.clear();
                        self.pieces.push(TurnPiece::Restart);
                    }
                    self.id = start.id.or_else(|| self.id.take());
                    self.record_usage(&start.usage.unwrap_or_default());
                }
            }
            "content_block_start" => {
                let (index, block) = event.index().zip(event.content_block).ok_or_else(|| self.build_format_error())?;
                self.pieces.extend(parse_start(block.get()));
                let block = Block::start(block.get()).map_err(|_| self.build_format_error())?;
                self.begin_block(index, block)?;
            }
            "content_block_delta" => {
                let (index, delta) = event.index().zip(event.delta).ok_or_else(|| self.build_format_error())?;
                // Text is accepted without a start event.
                if !self.blocks.iter().any(|(known, _)| *known == index) && delta.get().contains("\"text_delta\"") {
                    self.begin_block(index, Block::start(NO_TEXT).map_err(|_| self.build_format_error())?)?;
                }
                self.pieces.extend(parse_delta(delta.get()));
                let block = self.blocks.iter_mut().rev().find(|(known, _)| *known == index);
                let applied = block.map(|(_, block)| block.apply(delta.get()));
                applied.and_then(Result::ok).ok_or_else(|| self.build_format_error())?;
            }
            "message_delta" => self.on_message_delta(event.delta, event.usage)?,
            "message_stop" => self.complete = true,
            "message" => self.on_whole(data)?,
            // Some proxies keep a stream open with an empty object.
            "" => return parse_complaint(data, self.usage()).map_or(Ok(()), Err),
            "error" => return Err(parse_complaint(data, self.usage()).unwrap_or_else(|| self.build_format_error())),
            // `content_block_stop` and `ping` add nothing, and unknown kinds must be harmless.
            _ => {}
        }
        Ok(())
    }

    /// Handles an unstreamed turn.
    fn on_whole(&mut self, data: &str) -> Result<(), ModelError> {
        let whole: WholeMessage<'_> = serde_json::from_str(data).map_err(|_| self.build_format_error())?;
        self.blocks.clear();
        for raw in whole.content {
            self.begin_block(0, Block::start(raw.get()).map_err(|_| self.build_format_error())?)?;
        }
        self.record_usage(&whole.usage.unwrap_or_default());
        let end: MessageDelta = serde_json::from_str(data).map_err(|_| self.build_format_error())?;
        self.take_end(&end);
        self.complete = true;
        Ok(())
    }

    fn begin_block(&mut self, index: u64, block: Block) -> Result<(), ModelError> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(self.build_fault_error(BodyFault::TooLong));
        }
        self.blocks.push((index, block));
        Ok(())
    }

    fn on_message_delta(&mut self, delta: Option<&RawValue>, usage: Option<&RawValue>) -> Result<(), ModelError> {
        if let Some(usage) = usage {
            self.record_usage(&serde_json::from_str(usage.get()).unwrap_or_default());
        }
        if let Some(delta) = delta {
            let delta: MessageDelta = serde_json::from_str(delta.get()).map_err(|_| self.build_format_error())?;
            self.take_end(&delta);
        }
        Ok(())
    }

    fn take_end(&mut self, end: &MessageDelta) {
        self.refusal = end.refusal().or_else(|| self.refusal.take());
        let reason = end.stop_reason.as_str().map(str::trim).filter(|reason| !reason.is_empty());
        self.stop_reason = reason.map(str::to_owned).or_else(|| self.stop_reason.take());
    }

    /// Records token counts. Later totals replace earlier ones, except zeros: some proxies report the prompt's tokens just once.
    fn record_usage(&mut self, seen: &UsageCounts) {
        let usage = &mut self.usage;
        let later = |known: u64, seen: &Value| match parse_tokens(seen) {
            Some(0) | None => known,
            Some(tokens) => tokens,
        };
        usage.input = later(usage.input, &seen.input_tokens);
        usage.output = later(usage.output, &seen.output_tokens);
        usage.cache_read = later(usage.cache_read, &seen.cache_read_input_tokens);
        usage.cache_write = later(usage.cache_write, &seen.cache_creation_input_tokens);
        let for_an_hour = seen.cache_creation.get("ephemeral_1h_input_tokens").and_then(parse_tokens);
        self.hour_tokens = for_an_hour.unwrap_or(self.hour_tokens);
    }

    fn build_format_error(&self) -> ModelError {
        self.build_error("Claude's answer can't be read: it isn't the event stream that the API documents")
    }
}

/// Builds the error for an event that complains.
/// A block's beginning or a delta, as far as people are shown it.
#[derive(Deserialize)]
struct ShownPart<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    partial_json: Cow<'a, str>,
}

fn parse_start(raw: &str) -> Option<TurnPiece> {
    let part: ShownPart<'_> = serde_json::from_str(raw).ok()?;
    match &*part.kind {
        "tool_use" => Some(TurnPiece::Call(part.name.into_owned())),
        "text" if !part.text.is_empty() => Some(TurnPiece::Text(part.text.into_owned())),
        _ => None,
    }
}

fn parse_delta(raw: &str) -> Option<TurnPiece> {
    let part: ShownPart<'_> = serde_json::from_str(raw).ok()?;
    match &*part.kind {
        "text_delta" => Some(TurnPiece::Text(part.text.into_owned())),
        "input_json_delta" => Some(TurnPiece::Arguments(part.partial_json.into_owned())),
        _ => None,
    }
}

fn parse_complaint(data: &str, spent: Usage) -> Option<ModelError> {
    serde_json::from_str::<Value>(data).ok().and_then(|value| error::from_event(&value, spent))
}

/// Joins the blocks in order of their index into a raw JSON array.
///
/// Drops an empty text block unless thinking follows. The server refuses empty text when sent back, but the signature of thinking covers
/// everything before it.
fn join_blocks(mut blocks: Vec<(u64, Block)>) -> String {
    // A stable sort: blocks with the same index keep their order.
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

fn parse_stop(reason: Option<&str>, refusal: Option<String>) -> Stop {
    match reason {
        // The second words belong to another API, and some proxies pass them on.
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

/// An unstreamed turn.
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
    /// Cache writes by lifetime.
    cache_creation: Value,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is brought within bounds before")]
fn parse_tokens(count: &Value) -> Option<u64> {
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
    /// Returns the stated reason for a refusal.
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
