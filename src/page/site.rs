//! What all views share: the settings, the clock, what masks secrets, and a store for each request.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::error::PageError;
use crate::{
    config::Config,
    outside,
    redact::Redactor,
    repo::Repo,
    store::{Store, StoreError},
};

/// What the page shows, and by which settings.
pub struct PageSite {
    config: Config,
    redactor: Arc<Redactor>,
}

/// What one request looks at. It lives on a thread where waiting for a disk is allowed.
pub(super) struct Desk<'a> {
    pub(super) config: &'a Config,
    pub(super) redactor: &'a Redactor,
    pub(super) now: DateTime<Utc>,
}

impl PageSite {
    /// For one workspace.
    pub fn new(config: Config, redactor: Arc<Redactor>) -> Self {
        Self { config, redactor }
    }

    /// Lets `work` read or write on a thread of its own, and gives what it makes.
    ///
    /// # Errors
    /// Whatever `work` says; or it ended without a word.
    pub(super) async fn at_desk<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Desk<'_>) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let site = Arc::clone(self);
        let worked = tokio::task::spawn_blocking(move || {
            let now = site.config.clock().now();
            work(&Desk { config: &site.config, redactor: &site.redactor, now })
        });
        worked.await.map_err(|_| PageError::Broken)?
    }
}

impl Desk<'_> {
    /// The database to read from; none before the first wake.
    pub(super) fn store(&self) -> Result<Option<Store>, StoreError> {
        Store::open_read_only(&self.config.db_path())
    }

    /// The memory's repository; none before the first wake.
    pub(super) fn repo(&self) -> Result<Option<Repo>, PageError> {
        let dir = self.config.repo_dir();
        if !dir.join(".git").exists() {
            return Ok(None);
        }
        Ok(Some(Repo::open(&dir)?))
    }

    /// A text as it may be shown: without secrets and unseen marks.
    pub(super) fn shown(&self, text: &str) -> String {
        self.redactor.redact(&outside::unmarked(text))
    }
}
