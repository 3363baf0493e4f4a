//! The model's seam: a conversation goes in, one assistant turn comes out.
//!
//! A model does one request and knows nothing of journals, budgets or retries: `cycle` decides those, so that
//! each try is written down. Conversations are append-only raw JSON (see [`conversation`]): signed thinking makes any rewritten byte
//! of an earlier turn an error, so turns are kept and sent back exactly as they came.

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

pub use self::{chain::ModelChain, configured::configured, conversation::Conversation};

/// A future that stays on its thread: the wake runs on one.
pub type TurnFuture<'a> = Pin<Box<dyn Future<Output = Result<Turn, ModelError>> + 'a>>;

/// Something that can take the next turn of a conversation.
pub trait Model {
    /// The model's id as it goes into trailers and the ledger, such as `claude-sonnet-5-5` or `offline`.
    fn name(&self) -> &str;

    /// The most that the next turn may cost, in US dollars: set aside before it is asked for.
    fn most_usd(&self, conversation: &Conversation) -> f64;

    /// What these tokens cost, in US dollars, where the turn doesn't say it itself.
    fn cost_usd(&self, usage: &Usage) -> f64;

    /// Asks once for the next turn. No retries: the caller decides by the error. How far the request gets is told meanwhile.
    fn turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a>;

    /// How many tokens a conversation may have, prompt and answer together; none: the model keeps its conversations short by itself.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Whether it is a small one: then it gets few and harmless tools, and a short prompt.
    fn is_small(&self) -> bool {
        false
    }

    /// Lets go of what is kept from one turn of a conversation to its next. Called when nobody asks for that one any more, for
    /// now: it must go at once.
    fn rest(&self) {}
}

/// How far a request has got, for whoever waits for its turn: one that is given up is paid for as far as it went.
#[derive(Debug, Default)]
pub struct Progress {
    is_leaving: Arc<AtomicBool>,
    usage: Cell<Usage>,
    news: Notify,
}

/// What is known of a request that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// No byte of it has left: it costs nothing.
    Unsent,
    /// It has left, and nothing was told of it: it may cost what was set aside.
    Sent,
    /// What its answer has told so far: the prompt's tokens, and as many of the answer as have come.
    Told(Usage),
}

impl Progress {
    /// To be set, on whichever thread, before the first byte of what is asked leaves.
    fn leaving(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_leaving)
    }

    /// Takes down what an answer has told so far.
    fn tell(&self, usage: Usage) {
        if self.usage.replace(usage) != usage {
            self.news.notify_one();
        }
    }

    /// What is known by now.
    pub fn known(&self) -> Known {
        match self.usage.get() {
            usage if usage != Usage::default() => Known::Told(usage),
            _ if self.is_leaving.load(Ordering::Acquire) => Known::Sent,
            _ => Known::Unsent,
        }
    }

    /// Ends when more has been told.
    pub async fn news(&self) {
        self.news.notified().await;
    }
}

/// An assistant turn as it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The raw JSON array of content blocks, kept byte for byte where the server sent whole blocks; a stream's blocks
    /// are assembled, a tool's `input` being its partial JSON joined verbatim.
    pub content: String,
    /// Why the model stopped.
    pub stop: Stop,
    /// What the turn cost in tokens.
    pub usage: Usage,
    /// What it cost in US dollars, where whoever took it says so.
    pub cost_usd: Option<f64>,
    /// The server's request id, for support.
    pub request_id: Option<String>,
}

/// Why no turn was had, by what the caller should do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Overload, rate limit, server fault, broken or cut connection, time-out: try again later.
    #[error("{why}")]
    Transient {
        /// What happened, without secrets.
        why: String,
        /// How long the server asked us to wait.
        retry_after: Option<Duration>,
        /// Tokens of a turn that was cut off in the middle; they are counted, the turn is not kept.
        spent: Usage,
    },
    /// The key, the account or the spending limit: a person must act, the messages stay queued.
    #[error("{why}")]
    Account {
        /// What happened, without secrets.
        why: String,
    },
    /// The server won't take this conversation (bad request, unknown model, too large): sending it again is no use.
    #[error("{why}")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// What happened, without secrets.
        why: String,
    },
}

/// The HTTP status of [`ModelError::Rejected`] where the conversation is longer than the model can take.
pub const TOO_LONG: u16 = 413;

impl ModelError {
    /// The same with the secrets masked in what it says: whoever answered may have quoted one.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> Self {
        let (Self::Transient { why, .. } | Self::Account { why } | Self::Rejected { why, .. }) = &mut self;
        *why = redactor.redact(why);
        self
    }
}
