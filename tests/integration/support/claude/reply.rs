//! Scripted replies, rendered as the event stream that the real API sends.

use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{
    super::http::{Gate, Response, Step},
    ClaudeRequest,
};

/// A content block of a scripted turn.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// `input` is raw JSON, sent and expected back verbatim.
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    /// A call that the output limit cut off in the middle of its arguments.
    CutToolUse {
        id: String,
        name: String,
        partial: String,
    },
    /// Any block, as raw JSON, sent whole in its start event.
    Raw(String),
}

impl Block {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A thinking block. Models that hide their thinking send it with an empty text.
    pub(crate) fn thinking(text: &str) -> Self {
        Self::Thinking { text: text.to_owned(), signature: format!("Eq+{:x}/w==", text.len()) }
    }

    /// A call; `input` is a JSON value or raw JSON.
    pub(crate) fn tool(id: &str, name: &str, input: impl Display) -> Self {
        Self::ToolUse { id: id.to_owned(), name: name.to_owned(), input: input.to_string() }
    }

    pub(crate) fn cut_tool(id: &str, name: &str, partial: &str) -> Self {
        Self::CutToolUse { id: id.to_owned(), name: name.to_owned(), partial: partial.to_owned() }
    }

    pub(crate) fn raw(raw: &str) -> Self {
        Self::Raw(raw.to_owned())
    }

    /// The block as the client must have assembled it, in raw JSON. (A cut call has several correct forms.)
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Text(text) => format!(r#"{{"type":"text","text":{}}}"#, Value::from(text.as_str())),
            Self::Thinking { text, signature } => format!(
                r#"{{"type":"thinking","thinking":{},"signature":{}}}"#,
                Value::from(text.as_str()),
                Value::from(signature.as_str())
            ),
            Self::ToolUse { id, name, input } => {
                format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
            }
            Self::CutToolUse { .. } => String::new(),
            Self::Raw(raw) => raw.clone(),
        }
    }

    fn events(&self, index: usize) -> Vec<String> {
        let (start, deltas) = match self {
            Self::Text(text) => (r#"{"type":"text","text":""}"#.to_owned(), deltas("text_delta", "text", text)),
            Self::Thinking { text, signature } => {
                let mut all = deltas("thinking_delta", "thinking", text);
                all.extend(deltas("signature_delta", "signature", signature));
                (r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned(), all)
            }
            Self::ToolUse { id, name, input: json } | Self::CutToolUse { id, name, partial: json } => (
                format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#),
                deltas("input_json_delta", "partial_json", json),
            ),
            Self::Raw(raw) => (raw.clone(), Vec::new()),
        };
        let mut events = vec![format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#)];
        events.extend(
            deltas.iter().map(|delta| format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)),
        );
        events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
        events
    }
}

/// Splits a text into up to three deltas.
fn deltas(kind: &str, field: &str, text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(3).max(1);
    chars
        .chunks(size)
        .map(|piece| {
            let piece = Value::from(piece.iter().collect::<String>());
            format!(r#"{{"type":"{kind}","{field}":{piece}}}"#)
        })
        .collect()
}

/// One reply of the server's script.
pub(crate) struct Reply(Kind);

enum Kind {
    Turn(ScriptedTurn),
    Http(Response),
    With(Box<dyn FnOnce(&ClaudeRequest) -> Reply + Send>),
}

struct ScriptedTurn {
    blocks: Vec<Block>,
    stop_reason: &'static str,
    stop_details: Value,
    usage: Value,
    output_tokens: u64,
    end: End,
}

/// The way a stream ends, after this number of events.
enum End {
    Whole,
    Cut(usize),
    CutAt(usize, Gate),
    Error(usize, Value),
    Stall(usize, Gate),
    /// Stalls at several places, each with its own gate.
    Paced(Vec<(usize, Gate)>),
}

/// A rendered reply, and the turn that a client receives by reading all of it.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) delivered: Option<Delivered>,
}

#[derive(Debug, Clone)]
pub(super) struct Delivered {
    pub(super) blocks: Vec<Block>,
    pub(super) is_paused: bool,
}

impl Reply {
    /// A turn of any blocks, with the API's name for the reason it stopped.
    pub(crate) fn turn(blocks: Vec<Block>, stop_reason: &'static str) -> Self {
        Self(Kind::Turn(ScriptedTurn {
            blocks,
            stop_reason,
            stop_details: Value::Null,
            usage: json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}),
            output_tokens: 40,
            end: End::Whole,
        }))
    }

    /// A final text.
    pub(crate) fn text(text: &str) -> Self {
        Self::turn(vec![Block::text(text)], "end_turn")
    }

    /// One tool call.
    pub(crate) fn tool(id: &str, name: &str, input: impl Display) -> Self {
        Self::tools(vec![Block::tool(id, name, input)])
    }

    /// Several calls, and any other blocks.
    pub(crate) fn tools(blocks: Vec<Block>) -> Self {
        Self::turn(blocks, "tool_use")
    }

    /// Thinking, then one call.
    pub(crate) fn thinking_then_tool(thinking: &str, id: &str, name: &str, input: impl Display) -> Self {
        Self::tools(vec![Block::thinking(thinking), Block::tool(id, name, input)])
    }

    /// A turn in which the model declines.
    pub(crate) fn refusal(category: &str, explanation: &str) -> Self {
        let mut reply = Self::turn(Vec::new(), "refusal");
        if let Kind::Turn(turn) = &mut reply.0 {
            turn.stop_details = json!({"type": "refusal", "category": category, "explanation": explanation});
        }
        reply
    }

    /// A turn that was cut off at the output limit.
    pub(crate) fn max_tokens(blocks: Vec<Block>) -> Self {
        Self::turn(blocks, "max_tokens")
    }

    /// A turn that was cut off at the context's limit.
    pub(crate) fn context_exceeded(text: &str) -> Self {
        Self::turn(vec![Block::text(text)], "model_context_window_exceeded")
    }

    /// A pause: the client sends the content back to continue.
    pub(crate) fn pause_turn(text: &str) -> Self {
        Self::turn(vec![Block::text(text)], "pause_turn")
    }

    /// An error status with the API's JSON body.
    pub(crate) fn error(status: u16, kind: &str, message: &str) -> Self {
        Self(Kind::Http(error_response(status, kind, message)))
    }

    /// The error for an account that reached its spending limit.
    pub(crate) fn spending_limit() -> Self {
        let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Spend limit reached",
            "details": {"error_code": "enforced_spend_limit_reached"}}});
        Self::http(Response::json(429, &body))
    }

    /// Any HTTP answer, well-behaved or not.
    pub(crate) fn http(response: Response) -> Self {
        Self(Kind::Http(response))
    }

    /// A reply that is made from the request.
    pub(crate) fn with(make: impl FnOnce(&ClaudeRequest) -> Self + Send + 'static) -> Self {
        Self(Kind::With(Box::new(make)))
    }

    /// Adds an HTTP header (not to streamed turns).
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        match self.0 {
            Kind::Http(response) => Self(Kind::Http(response.header(name, value))),
            other => Self(other),
        }
    }

    /// Sets the numbers of tokens. The prompt's number is in the first event, the answer's in the last.
    pub(crate) fn using(mut self, input: u64, output: u64) -> Self {
        if let Kind::Turn(turn) = &mut self.0 {
            turn.usage["input_tokens"] = input.into();
            turn.output_tokens = output;
        }
        self
    }

    /// Closes the connection after this number of events.
    pub(crate) fn cut_after(self, events: usize) -> Self {
        self.ending(End::Cut(events))
    }

    /// Closes the connection after this number of events, once the gate opens.
    pub(crate) fn cut_at(self, events: usize, gate: &Gate) -> Self {
        self.ending(End::CutAt(events, gate.clone()))
    }

    /// Sends an `error` event after this number of events.
    pub(crate) fn error_event_after(self, events: usize, kind: &str) -> Self {
        self.ending(End::Error(events, json!({"type": "error", "error": {"type": kind, "message": "Broken off"}})))
    }

    /// Stalls the stream after this number of events, until the gate opens.
    pub(crate) fn stalled_after(self, events: usize, gate: &Gate) -> Self {
        self.ending(End::Stall(events, gate.clone()))
    }

    /// Stalls the stream after each of these numbers of events, until its gate opens. The numbers grow.
    pub(crate) fn paced(self, stalls: Vec<(usize, Gate)>) -> Self {
        self.ending(End::Paced(stalls))
    }

    fn ending(mut self, end: End) -> Self {
        if let Kind::Turn(turn) = &mut self.0 {
            turn.end = end;
        }
        self
    }

    pub(super) fn answer(self, request: &ClaudeRequest) -> Answer {
        match self.0 {
            Kind::Http(response) => Answer { response, delivered: None },
            Kind::With(make) => make(request).answer(request),
            Kind::Turn(turn) => turn.answer(&request.json["model"]),
        }
    }
}

impl ScriptedTurn {
    fn answer(self, model: &Value) -> Answer {
        let events = self.events(model);
        let mut is_whole = true;
        let steps = match self.end {
            End::Whole => sent(&events),
            End::Cut(count) => {
                is_whole = false;
                [sent(&events[..count]), vec![Step::Close]].concat()
            }
            End::CutAt(count, gate) => {
                is_whole = false;
                [sent(&events[..count]), vec![Step::Wait(gate), Step::Close]].concat()
            }
            End::Error(count, error) => {
                is_whole = false;
                [sent(&events[..count]), sent(&[error.to_string()])].concat()
            }
            End::Stall(count, gate) => {
                [sent(&events[..count]), vec![Step::Wait(gate)], sent(&events[count..])].concat()
            }
            End::Paced(stalls) => {
                let (mut steps, mut at) = (Vec::new(), 0);
                for (count, gate) in stalls {
                    steps.extend(sent(&events[at..count]));
                    steps.push(Step::Wait(gate));
                    at = count;
                }
                steps.extend(sent(&events[at..]));
                steps
            }
        };
        let response = Response::stream(200, steps)
            .header("content-type", "text/event-stream; charset=utf-8")
            .header("request-id", "req_fake");
        let is_paused = self.stop_reason == "pause_turn";
        Answer { response, delivered: is_whole.then_some(Delivered { blocks: self.blocks, is_paused }) }
    }

    fn events(&self, model: &Value) -> Vec<String> {
        // Claude Code takes everything under one id for one message, so each id is new.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = format!("msg_fake_{}", LAST.fetch_add(1, Ordering::Relaxed));
        let message = json!({"id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": self.usage});
        let mut events = vec![json!({"type": "message_start", "message": message}).to_string()];
        events.extend(self.blocks.iter().enumerate().flat_map(|(index, block)| block.events(index)));
        events.insert(1.min(events.len()), json!({"type": "ping"}).to_string());
        let delta = json!({"stop_reason": self.stop_reason, "stop_sequence": null, "stop_details": self.stop_details});
        let usage = json!({"output_tokens": self.output_tokens});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}).to_string());
        events.push(json!({"type": "message_stop"}).to_string());
        events
    }
}

/// Renders the events as bytes, in pieces that break within lines and characters.
fn sent(events: &[String]) -> Vec<Step> {
    let kind = |event: &str| {
        serde_json::from_str::<Value>(event).ok().and_then(|event| event["type"].as_str().map(str::to_owned))
    };
    let text: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", kind(event).unwrap_or_default())).collect();
    let size = (text.len() / 32).max(61);
    text.as_bytes().chunks(size).map(|piece| Step::Send(piece.to_vec())).collect()
}

/// An error in the API's format.
pub(super) fn error_response(status: u16, kind: &str, message: &str) -> Response {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"});
    Response::json(status, &body).header("request-id", "req_fake")
}
