//! Background threads of the chat. While nobody types, they start wakes for due work, and print the messages of those and
//! of other wakes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{Store, StoreError, TerminalSession};

use super::render_for_terminal;
use crate::{bot::DueWatch, cli::background::BackgroundThread};

/// How often to check for news.
pub(super) const NEWS_EVERY: Duration = Duration::from_secs(1);

/// Messages to this terminal from wakes outside the conversation, such as reminders and late answers.
pub(super) struct News {
    pub(super) config: Config,
    pub(super) session: TerminalSession,
    /// Starts wakes for due work.
    pub(super) watch: Arc<Mutex<DueWatch>>,
}

impl News {
    /// Prints news until the returned value is dropped. `print` returns `true` if it has shown a text.
    pub(super) fn watch(self, mut print: impl FnMut(String) -> bool + Send + 'static) -> BackgroundThread {
        let mut store = None;
        BackgroundThread::repeat_until_dropped(NEWS_EVERY, move || {
            self.watch.lock().unwrap_or_else(PoisonError::into_inner).tick(&self.config);
            if store.is_none() {
                store = cycle::open_store(&self.config).ok();
            }
            if let Some(Err(error)) = store.as_mut().map(|store| self.print_new_texts(store, &mut print)) {
                tracing::debug!(%error, "new messages will be shown later");
            }
        })
    }

    /// Prints the new texts. Questions wait until the current line is entered.
    fn print_new_texts(&self, store: &mut Store, print: &mut impl FnMut(String) -> bool) -> Result<(), StoreError> {
        for (id, text) in store.terminals().console_unshown(Some(&self.session))? {
            if !store.terminals().is_question(id)?
                && print(format!("{}\n", render_for_terminal(&self.config, text.trim_end())))
            {
                store.terminals_mut().record_shown_text(id, self.config.clock().now())?;
            }
        }
        Ok(())
    }
}
