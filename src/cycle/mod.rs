//! One wake: upkeep, gate, lock, observe, orient, decide and act, verify, commit, deliver, push, unlock, look again.
//!
//! [`once`] is the way of one wake from outside; [`wake::Wake`] is what it can do while it holds the lock. What is decided
//! stands in pure modules: [`orient`] (what is due), [`machine`] (what a conversation needs next), [`brief`] (what the mind
//! is told), [`verify`] (what is written of it).

pub mod ask;
mod attached;
pub mod brief;
pub mod budget;
mod by_rule;
mod drive;
mod finish;
pub mod gate;
mod interrupt;
pub mod limits;
pub mod lock;
pub mod machine;
mod observe;
pub mod orient;
pub mod outside;
pub mod plan_file;
mod prepare;
pub mod present;
mod remind;
mod resume;
mod retention;
mod stale;
pub mod stop;
mod taint;
mod takeover;
mod trouble;
mod turn;
mod undo;
mod undoable;
mod upkeep;
pub mod verify;
mod waiting;
pub mod wake;
pub mod waker;

use std::path::PathBuf;

use tokio::sync::watch;

pub use budget::{day_begin, month_begin};
pub use observe::{mind_again_at, mind_called, mind_of};
pub use resume::{GivingUp, MAX_TRIES, Uptake, uptake};
pub(crate) use resume::{Teller, note_cut_off};
pub use undoable::{Choice, undoable, what_it_did};
pub(crate) use upkeep::merge_texts;
pub use waiting::{Waiting, waiting};

use crate::{
    channel::Channel,
    clock::Clock,
    config::Config,
    model::{Model, Usage},
    queue::{Store, StoreError, UpkeepKind},
    random::NoRandomness,
    redact::Redactor,
    repo::RepoError,
    tool::Documents,
};
use lock::LockError;
use wake::Wake;

/// Looks at the queue that one `wake --once` takes at most: after the lock is freed it looks once more, so that what
/// came in the last moment isn't left.
const MAX_LOOKS: u32 = 5;

/// How often `wake` that stays looks for something due.
pub const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// What a wake is given from outside.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The time.
    pub clock: &'a dyn Clock,
    /// The mind.
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
    fn instead_of_terminal(&self) -> Option<i64> {
        let has_chat = matches!(self.terminal, Terminal::Unwatched) && self.channel.is_some();
        Some(self.config.owner_chat_id).filter(|owner| has_chat && *owner > 0)
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

/// A message that a wake wrote.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reply {
    /// The chat; 0 is the console.
    pub chat_id: i64,
    /// Markdown.
    pub text: String,
}

/// One wake: does what is due, or finds that nothing is.
///
/// # Errors
/// When the workspace, the database or the repository can't be used. A mind or a remote that can't be reached is no error.
pub async fn once(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    let ended = look(context, store, trigger).await;
    let now = context.clock.now();
    let noted = match &ended {
        // Of these the next try knows nothing.
        Err(WakeError::Store(StoreError::Busy | StoreError::LeaseLost { .. })) => Ok(()),
        Err(error) => store.trouble(UpkeepKind::Wake, &context.redactor.redact(&error.to_string()), now),
        Ok(report) if report.outcome == WakeOutcome::Locked => Ok(()),
        Ok(_) => store.trouble_over(UpkeepKind::Wake, now),
    };
    if let Err(error) = noted {
        tracing::debug!(%error, "how the wake went was not noted");
    }
    ended
}

async fn look(context: Context<'_>, store: &mut Store, trigger: &str) -> Result<Report, WakeError> {
    store.forget_dead_sessions()?;
    let mut report = Report::default();
    for look in 0..MAX_LOOKS {
        if *context.stop.borrow() {
            break;
        }
        let (settles_doubts, is_due) = store.reading(|| {
            // What ended in doubt in this very wake is the next one's to repeat.
            let settles_doubts = look == 0
                && context.channel.is_some()
                && store.stopped()?.is_none()
                && store.has_doubtful(context.clock.now())?;
            let is_due = match observe::is_anything_due(store, context) {
                // Whoever holds the lock finds the same, and tells of it.
                Err(WakeError::Repo(_)) => true,
                is_due => is_due?,
            };
            Ok::<_, WakeError>((settles_doubts, is_due || settles_doubts))
        })?;
        if !is_due {
            break;
        }
        (context.at_work)();
        let lock = match takeover::acquire(&context.config.lock_path(), context.config.stale_lock) {
            Ok(taken) => {
                report.notes.extend(taken.note);
                taken.lock
            }
            Err(held @ (LockError::Held(_) | LockError::Stuck { .. })) => {
                if report.outcome == WakeOutcome::Idle {
                    report.outcome = WakeOutcome::Locked;
                    report.notes.push(held.in_words(context.config.timezone));
                }
                break;
            }
            Err(error) => return Err(WakeError::Lock(error)),
        };
        let mut wake = Wake::begin(context, store, lock, trigger, &mut report)?;
        let ran = match wake.introduce() {
            Ok(()) => wake.run(settles_doubts).await,
            Err(error) => Err(error),
        };
        wake.note_trouble(ran.as_ref().err()).await;
        let ended = wake.end();
        let did_something = ran?;
        ended?;
        if !did_something || report.outcome == WakeOutcome::Failed {
            break;
        }
    }
    if let Some(stopped) = store.stopped()? {
        report.notes.push(stop::notice(stopped, context.config.timezone));
    }
    Ok(report)
}

/// Opens the database, in a workspace that is made if need be.
///
/// # Errors
/// When the workspace or the database can't be used.
pub fn open_store(config: &Config) -> Result<Store, WakeError> {
    prepare_workspace(config)?;
    Ok(present::open(config)?)
}

/// Makes the workspace's directories, readable by their owner alone.
pub fn prepare_workspace(config: &Config) -> Result<(), WakeError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let dir = &config.workspace_dir;
    if dir.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| WakeError::Workspace { path: dir.clone(), source })
}

/// An error when some of the memory couldn't be read for reasons that aren't its own, such as no descriptor left: what would be
/// built on it would take a sound file for an empty one.
fn check_readable(documents: &Documents) -> Result<(), WakeError> {
    match documents.take_trouble() {
        Some((path, source)) => Err(WakeError::Workspace { path, source }),
        None => Ok(()),
    }
}
