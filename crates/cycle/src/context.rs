//! The input of a wake and its report.

use std::path::PathBuf;

use tokio::sync::watch;

use reveille_base::{
    clock::Clock,
    random::NoRandomness,
    redact::Redactor,
    types::{ChatRef, Usage},
};
use reveille_channels::Channel;
use reveille_config::Config;
use reveille_git::RepoError;
use reveille_model::Model;
use reveille_store::{Store, StoreError, wake_lock::LockError};
use reveille_tools::{Documents, StandIn};

/// How often a staying `wake` looks for due work.
pub const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// The input of a wake, given from outside.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The program's version, shown to the model.
    pub version: &'static str,
    /// The time.
    pub clock: &'a dyn Clock,
    /// The model.
    pub model: &'a dyn Model,
    /// The channel for outgoing messages. `None` without a token.
    pub channel: Option<&'a dyn Channel>,
    /// Masks the live secrets in whatever is written or sent.
    pub redactor: &'a Redactor,
    /// Becomes `true` when the process is asked to end.
    pub stop: &'a watch::Receiver<bool>,
    /// Called before the lock is taken, for set-up that an idle look does without, such as signal handlers. Nothing that a signal could
    /// interrupt has begun before this call.
    pub at_work: &'a dyn Fn(),
    /// The reader of the terminal's texts, and when they are shown.
    pub terminal: Terminal<'a>,
    /// True if several assistants take turns: this wake then ends after one cycle.
    pub is_turn: bool,
    /// Replaces the acting tools in a trial, so that nothing happens. `None` for a real wake.
    pub stand_in: Option<&'a StandIn>,
}

/// The reader of the terminal's texts, and when they are shown.
#[derive(Clone, Copy)]
pub enum Terminal<'a> {
    /// No reader in this process: the texts wait, or go to the owner's chat.
    Unwatched,
    /// The output is read later, and no person waits for it.
    Later,
    /// A person waits for the end of the wake, so the wake skips a remote that failed last time.
    AtEnd,
    /// A person waits and sees each text as soon as it is committed.
    AtOnce(&'a dyn Screen),
}

/// A terminal with a reader.
pub trait Screen {
    /// Shows the new texts for the terminal.
    ///
    /// # Errors
    /// If the texts can't be read or marked as shown.
    fn show(&self, store: &mut Store) -> Result<(), StoreError>;

    /// Announces that the answer is complete and that the slow saving begins.
    fn announce_saving(&self);
}

impl Context<'_> {
    /// Returns the owner's private chat while no terminal has a reader. `None` without such a chat.
    pub(crate) fn find_terminal_fallback(&self) -> Option<ChatRef> {
        let has_chat = matches!(self.terminal, Terminal::Unwatched) && self.channel.is_some();
        Some(self.config.owner_chat).filter(|owner| has_chat && owner.person_id().is_some())
    }
}

/// The failure of a wake, by its remedy. Everything stored before stays queued in every case.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The workspace can't be created or written.
    #[error("{}: {source}", path.display())]
    Workspace {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A database error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A repository error.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// An error of the wake lock's file.
    #[error(transparent)]
    Lock(LockError),
    /// A model named in the settings can't be created.
    #[error("{0}; see MODEL")]
    Model(String),
    /// The button of an approval couldn't be created for lack of randomness.
    #[error("{0}, so I can't ask you; I'll try again")]
    NoRandomness(#[from] NoRandomness),
}

/// How a wake ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeOutcome {
    /// Nothing was due.
    #[default]
    Idle,
    /// At least one cycle or some upkeep was done.
    Worked,
    /// Another wake holds the lock.
    Locked,
    /// A cycle couldn't be completed. Its messages are kept.
    Failed,
    /// A cycle waits for a person.
    Parked,
}

/// The report of a wake, for people and for `--json`.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// The outcome.
    pub outcome: WakeOutcome,
    /// The last cycle.
    pub cycle_id: Option<String>,
    /// The reasons for working.
    pub reasons: Vec<String>,
    /// The number of answered messages.
    pub answered: usize,
    /// The replies with their chats.
    pub replies: Vec<Reply>,
    /// The last commit.
    pub commit: Option<String>,
    /// True if the remote has that commit. `false` without a remote.
    pub pushed: bool,
    /// The tokens used.
    pub tokens: Usage,
    /// The cost of those tokens.
    pub cost_usd: f64,
    /// The error, if any.
    pub error: Option<String>,
    /// Notes for a person that no message contains.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Report {
    /// Reports that another wake holds the lock, unless this wake has done something itself.
    pub(crate) fn note_lock_holder(&mut self, who: String) {
        if self.outcome == WakeOutcome::Idle {
            self.outcome = WakeOutcome::Locked;
            self.notes.push(who);
        }
    }
}

/// A message written by a wake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reply {
    /// The chat; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The text, as Markdown.
    pub text: String,
}

/// Returns an error if part of the memory was unreadable for a foreign reason, such as no free file descriptor. Otherwise later writing
/// would treat an intact file as empty.
pub(crate) fn check_readable(documents: &Documents) -> Result<(), WakeError> {
    match documents.take_trouble() {
        Some((path, source)) => Err(WakeError::Workspace { path, source }),
        None => Ok(()),
    }
}
