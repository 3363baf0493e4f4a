//! What becomes of the files that come with messages, beside the polling and never in its way: `fetch` brings them here,
//! `listen` has speech among them written down by a child process (`transcriber`), so that the bot stays small.
//!
//! Both go from what the store says: killed anywhere, the next bot goes on where this one was. They and the child are the only
//! ones that write the steps of a file.

mod engine;
mod fetch;
mod landing;
mod listen;
mod transcriber;
mod words;

use std::{cell::RefCell, path::PathBuf, time::Duration};

use tokio::sync::{Notify, watch};

use reveille_store::Store;

pub use transcriber::{TranscribeFn, TranscriberError, by_program, engine, work};

pub(crate) use landing::{Landing, PART};

use super::BotContext;

/// How often it is looked for files without another reason.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// The shortest wait until a time that the store names.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// Who wakes whom.
#[derive(Debug, Default)]
pub(super) struct Bells {
    /// Messages were stored: there may be files to fetch.
    pub(super) arrived: Notify,
    /// All work was ordered to stop, or to go on: who listens is to end, or may begin.
    pub(super) ordered: Notify,
    /// A file was fetched: there may be something to listen to.
    kept: Notify,
    /// A file has come to rest: its message may be given to a model.
    pub(super) settled: Notify,
}

/// What both work with. The store is borrowed between two waits only.
#[derive(Clone, Copy)]
struct Shared<'a> {
    outside: BotContext<'a>,
    store: &'a RefCell<Store>,
    bells: &'a Bells,
}

impl Shared<'_> {
    /// How long to wait for what the store says is due later.
    fn wait(&self) -> Duration {
        let now = self.outside.clock.now();
        let next_at = self.store.borrow().next_file_step_at(now).ok().flatten();
        let next_in = next_at.and_then(|at| (at - now).to_std().ok());
        next_in.unwrap_or(LOOK_EVERY).clamp(LOOK_GAP, LOOK_EVERY)
    }
}

/// Works until the other end of `running` is gone, and then ends who listens in order. `transcriber`: a program that listens in place
/// of this one.
pub(super) async fn tend(
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
    listener.into_inner().end(shared);
}
