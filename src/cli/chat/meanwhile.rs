//! What goes on beside the thread that talks: something done again and again until its value is dropped, and while nobody types the
//! wakes that are started for what is due, and what they and others' say.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{Store, StoreError, TerminalSession};

use super::on_page;
use crate::bot::DueWatch;

/// How often news is looked for.
pub(super) const NEWS_EVERY: Duration = Duration::from_secs(1);

/// A thread at work until this is dropped.
pub(super) struct Meanwhile {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meanwhile {
    /// Does this again and again. What it shows is a courtesy: without a thread it isn't shown.
    pub(super) fn again_and_again(pause: Duration, mut work: impl FnMut() + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_there = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("meanwhile".to_owned()).spawn(move || {
            while !is_over_there.load(Ordering::SeqCst) {
                work();
                std::thread::park_timeout(pause);
            }
        });
        Self { is_over, thread: thread.ok() }
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}

/// What is said to this terminal by wakes that it didn't start: a reminder, a late answer.
pub(super) struct News {
    pub(super) config: Config,
    pub(super) session: TerminalSession,
    /// Starts the wakes for what is due.
    pub(super) watch: Arc<Mutex<DueWatch>>,
}

impl News {
    /// Shows it until the value is dropped, each text by `print`, which says whether it was shown.
    pub(super) fn watch(self, mut print: impl FnMut(String) -> bool + Send + 'static) -> Meanwhile {
        let mut store = None;
        Meanwhile::again_and_again(NEWS_EVERY, move || {
            self.watch.lock().unwrap_or_else(PoisonError::into_inner).tick(&self.config);
            if store.is_none() {
                store = cycle::open_store(&self.config).ok();
            }
            if let Some(Err(error)) = store.as_mut().map(|store| self.show(store, &mut print)) {
                tracing::debug!(%error, "what came meanwhile is shown later");
            }
        })
    }

    /// A question waits for the end of the line: it is asked then.
    fn show(&self, store: &mut Store, print: &mut impl FnMut(String) -> bool) -> Result<(), StoreError> {
        for (id, text) in store.console_unshown(Some(&self.session))? {
            if !store.is_question(id)? && print(format!("{}\n", on_page(&self.config, text.trim_end()))) {
                store.mark_shown(id, self.config.clock().now())?;
            }
        }
        Ok(())
    }
}
