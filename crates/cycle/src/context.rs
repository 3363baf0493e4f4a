//! What a wake is given, and what it gives back.

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

/// How often `wake` that stays looks for something due.
pub const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// What a wake is given from outside.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The program's version, for the assistant that is asked.
    pub version: &'static str,
    /// The time.
    pub clock: &'a dyn Clock,
    /// The model.
    pub model: &'a dyn Model,
    /// The door that messages leave by; none without a token.
    pub channel: Option<&'a dyn Channel>,
    /// Masks the live secrets in whatever is written or sent.
    pub redactor: &'a Redactor,
    /// Becomes `true` when the process is asked to end.
    pub stop: &'a watch::Receiver<bool>,
    /// Called before the lock is taken, for what an idle look does without, such as hearing signals: until then nothing is begun
    /// that they could cut off.
    pub at_work: &'a dyn Fn(),
    /// Who is shown what is meant for the terminal, and when.
    pub terminal: Terminal<'a>,
    /// Whether it is one of many assistants' turns: it ends after one cycle, for the others.
    pub is_turn: bool,
    /// What answers in the place of the tools that act, where nothing may happen; none: they act.
    pub stand_in: Option<&'a StandIn>,
}

/// Who is shown what is meant for the terminal, and when.
#[derive(Clone, Copy)]
pub enum Terminal<'a> {
    /// Nobody by this process: it waits, or goes to the owner's chat.
    Unwatched,
    /// Whoever looks at what this process leaves. Nobody waits for that.
    Later,
    /// Somebody who waits for the end of the wake, so that it spends no time on a remote that failed when it was last asked.
    AtEnd,
    /// Somebody who waits, as soon as it is committed.
    AtOnce(&'a dyn Screen),
}

/// A terminal that somebody looks at.
pub trait Screen {
    /// Shows what is written for it and wasn't shown yet.
    ///
    /// # Errors
    /// When that can't be read, or can't be marked as shown.
    fn show(&self, store: &mut Store) -> Result<(), StoreError>;

    /// Says that the answer is there, and that what takes long begins.
    fn saving(&self);
}

impl Context<'_> {
    /// The chat that texts for the terminal go to while nobody looks at one: the owner's private chat, if there is one.
    pub(crate) fn instead_of_terminal(&self) -> Option<ChatRef> {
        let has_chat = matches!(self.terminal, Terminal::Unwatched) && self.channel.is_some();
        Some(self.config.owner_chat).filter(|owner| has_chat && owner.person().is_some())
    }
}

/// Why a wake failed, by what should be done. What was stored before stays queued in every case.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The workspace can't be made or written.
    #[error("{}: {source}", path.display())]
    Workspace {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The wake lock's file.
    #[error(transparent)]
    Lock(LockError),
    /// A model that the settings name can't be made.
    #[error("{0}; see MODEL")]
    Model(String),
    /// A person had to be asked, and no button could be made for it.
    #[error("{0}, so nobody can be asked; it is tried again")]
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
    /// A cycle could not be brought to its end; what it was about is kept.
    Failed,
    /// A cycle waits for a person.
    Parked,
}

/// What a wake did, for people and for `--json`.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// How it ended.
    pub outcome: WakeOutcome,
    /// Its last cycle.
    pub cycle_id: Option<String>,
    /// Why it worked.
    pub reasons: Vec<String>,
    /// Messages that were answered.
    pub answered: usize,
    /// What was said, to which chat.
    pub replies: Vec<Reply>,
    /// Its last commit.
    pub commit: Option<String>,
    /// Whether the remote has that commit; `false` without a remote.
    pub pushed: bool,
    /// Tokens used.
    pub tokens: Usage,
    /// What they cost.
    pub cost_usd: f64,
    /// What went wrong.
    pub error: Option<String>,
    /// What a person should know and no message tells.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Report {
    /// Another wake is at work, and does what is due: told by who hasn't done anything itself.
    pub(crate) fn leave_to(&mut self, who: String) {
        if self.outcome == WakeOutcome::Idle {
            self.outcome = WakeOutcome::Locked;
            self.notes.push(who);
        }
    }
}

/// A message that a wake wrote.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reply {
    /// The chat; 0 is the console.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Markdown.
    pub text: String,
}

/// An error when some of the memory couldn't be read for reasons that aren't its own, such as no descriptor left: what would be
/// built on it would take a sound file for an empty one.
pub(crate) fn check_readable(documents: &Documents) -> Result<(), WakeError> {
    match documents.take_trouble() {
        Some((path, source)) => Err(WakeError::Workspace { path, source }),
        None => Ok(()),
    }
}
