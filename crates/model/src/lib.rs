//! The interface to models: takes a conversation, returns one assistant turn.
//!
//! A model makes one request and has no knowledge of journals, budgets or retries. The caller (`cycle`) decides those and journals each
//! attempt. Conversations are append-only raw JSON (see [`conversation`]). Signed thinking makes the server refuse any changed byte of an
//! earlier turn, so turns are stored and sent back exactly as received.

mod answer;
pub mod anthropic;
mod chain;
pub mod claude_code;
mod complaint;
mod configured;
pub mod content;
pub mod conversation;
pub mod offered;
pub mod offline;
pub mod openai;

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use reveille_base::{
    redact::Redactor,
    types::{Stop, Usage},
};

pub use self::{chain::ModelChain, configured::create_model, conversation::Conversation};

/// A future that stays on its thread: a wake runs on a single thread.
pub type TurnFuture<'a> = Pin<Box<dyn Future<Output = Result<Turn, ModelError>> + 'a>>;

/// A provider of the next turn of a conversation.
pub trait Model {
    /// The model's id in commit trailers and the ledger, such as `claude-sonnet-5-5` or `offline`.
    fn name(&self) -> &str;

    /// The maximum cost of the next turn in US dollars, reserved before the request.
    fn most_usd(&self, conversation: &Conversation) -> f64;

    /// The cost of these tokens in US dollars, for turns without a cost of their own.
    fn cost_usd(&self, usage: &Usage) -> f64;

    /// Requests the next turn once and reports on `progress` meanwhile. Retries are the caller's decision, by the error.
    fn request_turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a>;

    /// Maximum tokens of a conversation, prompt and answer together. `None` if the model shortens conversations by itself.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// True for a small model, which gets a few harmless tools and a short prompt.
    fn is_small(&self) -> bool {
        false
    }

    /// Releases at once anything held between turns, such as a running process. Called when the conversation is done or paused.
    fn release(&self) {}
}

/// A piece of a turn that is still being written. Providers that don't stream give none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnPiece {
    /// More of the text outside of calls.
    Text(String),
    /// A call of this tool begins.
    Call(String),
    /// More of the arguments of the last call, as raw JSON.
    Arguments(String),
    /// The server starts over: the pieces so far count no more.
    Restart,
}

/// Sees each piece of a turn as soon as it has arrived.
pub type Watcher = Box<dyn Fn(TurnPiece)>;

/// The progress of a request, for a caller that may abandon it: an abandoned request is still charged for the part that ran.
#[derive(Default)]
pub struct Progress {
    is_sent: Arc<AtomicBool>,
    usage: Cell<Usage>,
    news: Notify,
    watcher: Option<Watcher>,
}

/// The known state of an abandoned request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing was sent, so the request costs nothing.
    Unsent,
    /// The request was sent but no usage was reported: it may cost the reserved amount.
    Sent,
    /// Usage reported so far: the prompt's tokens and the answer's tokens received.
    Told(Usage),
}

impl Progress {
    /// Creates the progress of a request whose answer is watched.
    pub fn watched_by(watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), ..Self::default() }
    }

    /// Shows pieces to the watcher.
    fn show(&self, pieces: Vec<TurnPiece>) {
        if let Some(watcher) = &self.watcher {
            pieces.into_iter().for_each(watcher);
        }
    }

    /// The flag to set, from any thread, before the first byte of the request leaves.
    fn sent_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_sent)
    }

    /// Records the usage that an answer has reported so far.
    fn record_usage(&self, usage: Usage) {
        if self.usage.replace(usage) != usage {
            self.news.notify_one();
        }
    }

    /// Returns the state known by now.
    pub fn state(&self) -> Known {
        match self.usage.get() {
            usage if usage != Usage::default() => Known::Told(usage),
            _ if self.is_sent.load(Ordering::Acquire) => Known::Sent,
            _ => Known::Unsent,
        }
    }

    /// Waits until more usage is reported.
    pub async fn wait_for_news(&self) {
        self.news.notified().await;
    }
}

/// An assistant turn as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The raw JSON array of content blocks. Blocks sent whole are kept byte for byte. Blocks of a stream are assembled, a tool's `input`
    /// being its partial JSON joined verbatim.
    pub content: String,
    /// The reason the model stopped.
    pub stop: Stop,
    /// Tokens used by the turn.
    pub usage: Usage,
    /// Cost in US dollars, if the provider reports one.
    pub cost_usd: Option<f64>,
    /// The server's request id, for support.
    pub request_id: Option<String>,
}

/// The reason for a missing turn, by the caller's next act.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Overload, rate limit, server fault, broken connection or time-out: try again later.
    #[error("{why}")]
    Transient {
        /// The cause, without secrets.
        why: String,
        /// The delay that the server asked for.
        retry_after: Option<Duration>,
        /// Tokens of a turn that was cut off in the middle: they are counted, the turn is discarded.
        spent: Usage,
    },
    /// A problem with the key, the account or the spending limit: a person must act, and messages stay queued.
    #[error("{why}")]
    Account {
        /// The cause, without secrets.
        why: String,
    },
    /// The server refuses this conversation (bad request, unknown model, too large): sending it again is useless.
    #[error("{why}")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// The cause, without secrets.
        why: String,
    },
}

/// The HTTP status of [`ModelError::Rejected`] for a conversation beyond the model's maximum length.
pub const TOO_LONG: u16 = 413;

impl ModelError {
    /// Masks secrets in the message, since the server may have quoted one.
    #[must_use]
    pub fn redact(mut self, redactor: &Redactor) -> Self {
        let (Self::Transient { why, .. } | Self::Account { why } | Self::Rejected { why, .. }) = &mut self;
        *why = redactor.redact(why);
        self
    }
}
