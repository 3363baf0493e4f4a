//! The Claude Code command as a model: one run of `claude -p` takes the turns of a cycle, and has only our tools.
//!
//! As a [`Model`] like the others, it leaves the journal, policy, approvals, limits and budgets to the cycle. A turn is relayed from the
//! run's Messages API stream (`relay`). The run sends its calls to our MCP server on a loopback port (`call_handler`), where they wait
//! until the cycle requests the next turn with their results. Thus the run makes no request to its model before the cycle asks for one. A
//! run that has ended (a question to a person, a kill, a new chat message) is followed by a new one, with a record of the conversation so
//! far (`prompt`). A run that would continue on its own is stopped.

mod call_handler;
mod error;
mod prompt;
mod relay;
mod run;
mod run_directory;

use std::{cell::RefCell, fmt, path::PathBuf, time::Duration};

use reveille_base::{
    redact::{Redactor, Secret},
    types::Usage,
};
use reveille_config::CLAUDE_CODE;

use self::run::Run;
use super::{Conversation, Model, ModelError, Progress, Turn, TurnFuture, anthropic::price};

/// Bytes that Claude Code adds to our prompt: its own opening words, and longer names of tools.
const OVERHEAD_BYTES: usize = 8_192;

/// Credentials for Claude Code.
#[derive(Debug, Clone)]
pub enum Login {
    /// An API key, paid per use.
    Key(Secret),
    /// A subscription's long-lived token.
    Token(Secret),
    /// The command's own login, found in the person's home directory if that is known.
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

/// The settings of [`ClaudeCode`].
#[derive(Debug, Clone)]
pub struct ClaudeCodeOptions {
    /// The command's path or name.
    pub program: PathBuf,
    /// The model to use.
    pub model: String,
    /// The credentials.
    pub login: Login,
    /// Base URL of the API, such as `https://api.anthropic.com`.
    pub base_url: String,
    /// The directory of a run, created before the run and removed after it.
    pub dir: PathBuf,
    /// Maximum tokens of an answer, thinking included.
    pub max_tokens: u64,
    /// Longest duration of a turn, including the start of a run.
    pub turn_timeout: Duration,
    /// Maximum cost of a run in US dollars: a second limit behind the budgets, which are checked before each turn.
    pub most_usd: f64,
}

/// The Claude Code command as a model.
pub struct ClaudeCode {
    options: ClaudeCodeOptions,
    redactor: Redactor,
    /// The run that waits for the results of its last calls.
    waiting: RefCell<Option<Run>>,
}

impl fmt::Debug for ClaudeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaudeCode({})", self.options.model)
    }
}

impl ClaudeCode {
    /// Creates the model without starting the command.
    pub fn new(options: ClaudeCodeOptions) -> Self {
        let redactor = Redactor::new(options.login.secret());
        Self { options, redactor, waiting: RefCell::default() }
    }

    /// Resumes the waiting run if its results are the only new messages, else starts a new run. A run is ended when this future is dropped.
    async fn run_request(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let timeout = self.options.turn_timeout;
        let turn = tokio::time::timeout(timeout, async {
            let waiting = self.waiting.take();
            let run = match waiting.and_then(|run| run.give_results(conversation, progress)) {
                Some(run) => run,
                None => Run::begin(&self.options, conversation, progress).await?,
            };
            run.read_turn(conversation, progress).await
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

    fn request_turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        // Masks the key, which the command may have quoted.
        Box::pin(async { self.run_request(conversation, progress).await.map_err(|error| error.redact(&self.redactor)) })
    }

    fn release(&self) {
        drop(self.waiting.take());
    }
}
