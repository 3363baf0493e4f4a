//! The model behind the Claude Code command: one run of `claude -p` takes the turns of a cycle, and our tools are the only ones it has.
//!
//! It is a [`Model`] like the others, so that journal, policy, approvals, limits and budgets are the cycle's as ever: a turn is what
//! the run relays of the Messages API's stream (`relay`); its calls come back to us by MCP on a loopback port (`desk`), where they
//! wait until the cycle asks for the next turn with their results. So no request of the run leaves before the cycle has agreed to it.
//! A run that is gone (a question to a person, a kill, news from the chat) is followed by a new one that is told what was said and
//! done (`prompt`). Whatever would let the run go on by itself ends it.

mod desk;
mod error;
mod place;
mod prompt;
mod relay;
mod run;

use std::{cell::RefCell, fmt, path::PathBuf, time::Duration};

use reveille_base::{
    redact::{Redactor, Secret},
    types::Usage,
};
use reveille_config::CLAUDE_CODE;

use self::run::Run;
use super::{Conversation, Model, ModelError, Progress, Turn, TurnFuture, anthropic::price};

/// What Claude Code adds to a prompt of ours: its own opening words, and longer names of tools, in bytes.
const OVERHEAD_BYTES: usize = 8_192;

/// How Claude Code proves who it works for.
#[derive(Debug, Clone)]
pub enum Login {
    /// The account's key to the API.
    Key(Secret),
    /// The long-lived token of a subscription.
    Token(Secret),
    /// Whatever it finds in the person's home directory, if that is known.
    Own(Option<PathBuf>),
}

impl Login {
    fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Key(secret) | Self::Token(secret) => Some(secret),
            Self::Own(_) => None,
        }
    }
}

/// What [`ClaudeCode`] needs to know.
#[derive(Debug, Clone)]
pub struct ClaudeCodeOptions {
    /// The command, by its path or its name.
    pub program: PathBuf,
    /// The model that it asks.
    pub model: String,
    /// Who it works for.
    pub login: Login,
    /// Where the API is, such as `https://api.anthropic.com`.
    pub base_url: String,
    /// A directory that is a run's own: made for it and removed after it.
    pub dir: PathBuf,
    /// The longest answer, in tokens, thinking included.
    pub max_tokens: u64,
    /// How long one turn may take in all, the start of a run included.
    pub turn_timeout: Duration,
    /// The most that one run may cost, in US dollars: a bound behind the budgets, which are looked at before each turn.
    pub most_usd: f64,
}

/// The Claude Code command as a model.
pub struct ClaudeCode {
    options: ClaudeCodeOptions,
    redactor: Redactor,
    /// The run that waits for the results of its last turn's calls.
    waiting: RefCell<Option<Run>>,
}

impl fmt::Debug for ClaudeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaudeCode({})", self.options.model)
    }
}

impl ClaudeCode {
    /// Nothing is started yet.
    pub fn new(options: ClaudeCodeOptions) -> Self {
        let redactor = Redactor::new(options.login.secret());
        Self { options, redactor, waiting: RefCell::default() }
    }

    /// Goes on with the run that waits, where the conversation has just its results to tell; otherwise with a new one. Given up in
    /// between, the run ends with its future.
    async fn ask(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let timeout = self.options.turn_timeout;
        let turn = tokio::time::timeout(timeout, async {
            let waiting = self.waiting.take();
            let run = match waiting.and_then(|run| run.told(conversation, progress)) {
                Some(run) => run,
                None => Run::begin(&self.options, conversation, progress).await?,
            };
            run.turn(conversation, progress).await
        });
        let (turn, waits) = turn.await.unwrap_or_else(|_| Err(error::too_slow(timeout, progress.usage.get())))?;
        self.waiting.replace(waits);
        Ok(turn)
    }
}

impl Model for ClaudeCode {
    fn name(&self) -> &str {
        CLAUDE_CODE
    }

    fn most_usd(&self, conversation: &Conversation) -> f64 {
        let bytes = price::prompt_bytes(conversation) + OVERHEAD_BYTES;
        price::estimate_max_cost(&self.options.model, bytes, self.options.max_tokens)
    }

    fn cost_usd(&self, usage: &Usage) -> f64 {
        price::cost_usd(&self.options.model, usage)
    }

    fn turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        // The last gate: the command may have quoted its key.
        Box::pin(async { self.ask(conversation, progress).await.map_err(|error| error.redacted(&self.redactor)) })
    }

    fn rest(&self) {
        drop(self.waiting.take());
    }
}
