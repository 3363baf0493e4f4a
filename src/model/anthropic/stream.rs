//! From the bytes of a streamed answer to a [`Turn`], without any I/O: [`TurnStream`] assembles events into content blocks, usage
//! and the reason for stopping.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{block::Block, error, price};
use crate::{
    model::{ModelError, Turn},
    sse::Events,
    types::{Stop, Usage},
};

/// The longest answer that is read, in bytes of the event stream. The longest real ones are some megabytes.
pub const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;

/// Assembles one streamed turn.
#[derive(Debug, Default)]
pub struct TurnStream {
    sse: Events,
    received_bytes: usize,
    blocks: BTreeMap<u64, Block>,
    usage: Usage,
    /// Of what was written to the cache, what is kept there for an hour.
    hour_tokens: u64,
    stop_reason: Option<String>,
    refusal: Option<String>,
    complete: bool,
}

impl TurnStream {
    /// Takes the next bytes of the answer. `true` once the turn is complete; what follows then is ignored.
    ///
    /// # Errors
    /// An `error` event, an answer that isn't a stream of events as documented, or one beyond [`MAX_STREAM_BYTES`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ModelError> {
        self.count_bytes(bytes.len())?;
        for data in self.sse.take(bytes, MAX_STREAM_BYTES).map_err(|_| self.too_long())? {
            if self.complete {
                break;
            }
            self.on_event(&data)?;
        }
        Ok(self.complete)
    }

    /// Takes the data of one event that somebody else has cut out of the stream. `true` once the turn is complete.
    ///
    /// # Errors
    /// As [`TurnStream::push`].
    pub fn event(&mut self, data: &str) -> Result<bool, ModelError> {
        self.count_bytes(data.len())?;
        if !self.complete {
            self.on_event(data)?;
        }
        Ok(self.complete)
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(more);
        if self.received_bytes > MAX_STREAM_BYTES {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> ModelError {
        self.broken("Claude's answer is longer than this program reads")
    }

    /// The finished turn.
    ///
    /// # Errors
    /// The stream ended before the turn did.
    pub fn finish(self, request_id: Option<String>) -> Result<Turn, ModelError> {
        if !self.complete {
            return Err(self.broken("Claude's answer was cut off before its end"));
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
        let streamed_bytes: usize = self.blocks.values().map(Block::bytes).sum();
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

    fn on_event(&mut self, data: &str) -> Result<(), ModelError> {
        let event: Event<'_> = serde_json::from_str(data).map_err(|_| self.malformed())?;
        match &*event.kind {
            "message_start" => {
                if let Some(message) = event.message {
                    let start: MessageStart = serde_json::from_str(message.get()).map_err(|_| self.malformed())?;
                    self.count(start.usage);
                }
            }
            "content_block_start" => {
                let (index, block) = event.index().zip(event.content_block).ok_or_else(|| self.malformed())?;
                let block = Block::start(block.get()).map_err(|_| self.malformed())?;
                self.blocks.insert(index, block);
            }
            "content_block_delta" => {
                let (index, delta) = event.index().zip(event.delta).ok_or_else(|| self.malformed())?;
                let applied = self.blocks.get_mut(&index).map(|block| block.apply(delta.get()));
                applied.and_then(Result::ok).ok_or_else(|| self.malformed())?;
            }
            "message_delta" => self.on_message_delta(event.delta, event.usage)?,
            "message_stop" => self.complete = true,
            "error" => return Err(error::from_event(event.error, self.usage())),
            // `content_block_stop` says nothing new, `ping` nothing at all, and new kinds must not break us.
            _ => {}
        }
        Ok(())
    }

    fn on_message_delta(&mut self, delta: Option<&RawValue>, usage: Option<&RawValue>) -> Result<(), ModelError> {
        if let Some(usage) = usage {
            self.count(serde_json::from_str(usage.get()).map_err(|_| self.malformed())?);
        }
        if let Some(delta) = delta {
            let delta: MessageDelta = serde_json::from_str(delta.get()).map_err(|_| self.malformed())?;
            self.refusal = delta.refusal().or_else(|| self.refusal.take());
            self.stop_reason = delta.stop_reason.or_else(|| self.stop_reason.take());
        }
        Ok(())
    }

    /// Later values replace earlier ones: the server's counts are totals.
    fn count(&mut self, seen: UsageCounts) {
        let usage = &mut self.usage;
        usage.input = seen.input_tokens.unwrap_or(usage.input);
        usage.output = seen.output_tokens.unwrap_or(usage.output);
        usage.cache_read = seen.cache_read_input_tokens.unwrap_or(usage.cache_read);
        usage.cache_write = seen.cache_creation_input_tokens.unwrap_or(usage.cache_write);
        let for_an_hour = seen.cache_creation.and_then(|written| written.ephemeral_1h_input_tokens);
        self.hour_tokens = for_an_hour.unwrap_or(self.hour_tokens);
    }

    fn malformed(&self) -> ModelError {
        self.broken("Claude's answer can't be read: it isn't the event stream that the API documents")
    }
}

/// The raw JSON array of the blocks, in the order of their index.
///
/// An empty text block is left out unless thinking follows it: the server refuses it when it is sent back, and only
/// thinking is signed over what stands before it.
fn content(blocks: BTreeMap<u64, Block>) -> String {
    let mut kept = Vec::with_capacity(blocks.len());
    let mut thinking_follows = false;
    for block in blocks.into_values().rev().map(Block::finish) {
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
        Some("end_turn") => Stop::EndTurn,
        Some("tool_use") => Stop::ToolUse,
        Some("max_tokens") => Stop::MaxTokens,
        Some("model_context_window_exceeded") => Stop::ContextExceeded,
        Some("stop_sequence") => Stop::StopSequence,
        Some("pause_turn") => Stop::PauseTurn,
        Some("refusal") => Stop::Refusal(refusal.unwrap_or_default()),
        Some(other) => Stop::Unknown(other.to_owned()),
        None => Stop::Unknown("none given".to_owned()),
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
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
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

impl Event<'_> {
    fn index(&self) -> Option<u64> {
        self.index?.get().parse().ok()
    }
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    usage: UsageCounts,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct UsageCounts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
}

/// How long what was written to the cache is kept there.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: serde_json::Value,
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
