//! Handles the files of messages beside the polling, without delaying it. `fetch` downloads them. `listen` has
//! recordings transcribed by a child process (`transcriber`), so the bot stays small.
//!
//! Both follow the store's rows, so after a kill the next bot continues. Only they and the child write the state of a
//! file.

mod engine;
mod fetch;
mod landing;
mod listen;
mod transcriber;
mod words;

use std::{cell::RefCell, path::PathBuf, time::Duration};

use tokio::sync::{Notify, watch};

use reveille_store::Store;

pub use transcriber::{TranscribeFn, TranscriberError, build_program_transcriber, start_engine, transcribe_all};

pub(crate) use landing::{Landing, PART, remove_uploads};
pub(crate) use listen::start_listener;
pub(crate) use words::describe_landed_file;

use super::BotContext;

/// How often to look for files without another reason.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// The shortest wait for a time in the store.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// Notifications between the tasks.
#[derive(Debug, Default)]
pub(super) struct Bells {
    /// Messages were stored, perhaps with files to fetch.
    pub(super) arrived: Notify,
    /// All work was ordered to stop or resume, so the listener must end or may start.
    pub(super) ordered: Notify,
    /// A file was fetched, perhaps a recording.
    kept: Notify,
    /// A file is final, so a model may get its message.
    pub(super) settled: Notify,
}

/// The dependencies of both tasks. They borrow the store only between two waits.
#[derive(Clone, Copy)]
struct Shared<'a> {
    outside: BotContext<'a>,
    store: &'a RefCell<Store>,
    bells: &'a Bells,
}

impl Shared<'_> {
    /// Returns the wait until the store's next due file.
    fn compute_wait(&self) -> Duration {
        let now = self.outside.clock.now();
        let next_at = self.store.borrow().attachments().find_file_step_time(now).ok().flatten();
        let next_in = next_at.and_then(|at| (at - now).to_std().ok());
        next_in.unwrap_or(LOOK_EVERY).clamp(LOOK_GAP, LOOK_EVERY)
    }
}

/// Works until the sender of `running` is dropped, then ends the listener in order. `transcriber` is a program that
/// replaces the listening child's speech model.
pub(super) async fn run(
    outside: BotContext<'_>,
    store: &RefCell<Store>,
    bells: &Bells,
    transcriber: Option<PathBuf>,
    mut running: watch::Receiver<bool>,
) {
    let shared = Shared { outside, store, bells };
    let listener = RefCell::new(listen::Listener::default());
    let work = async { tokio::join!(fetch::run(shared), listen::run(shared, &listener, transcriber)) };
    tokio::select! {
        _ = running.wait_for(|_| false) => {}
        _ = work => {}
    }
    listener.into_inner().end_child(shared);
}
