//! The shared facts of all checks: settings, time, database, repository, and the state of the wake lock.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::decide::{budget::Budget, lineup::ModelState};
use reveille_git::{Repo, RepoError};
use reveille_store::{Schema, Store, StoreError, database, in_force::load_effective_config};

use super::{checks::lock::LockFacts, finding::Trouble, reach::ServerAnswers};
use crate::RunMode;

/// One snapshot for all checks.
pub(super) struct Scene<'a> {
    pub(super) config: &'a Config,
    pub(super) redactor: &'a Redactor,
    pub(super) now: DateTime<Utc>,
    pub(super) lock: LockFacts,
    /// `true` if nothing may be written.
    pub(super) is_dry: bool,
    /// `true` if someone waits for the answer, so slow checks are left out.
    pub(super) is_brief: bool,
    /// Answers of other servers; empty if none were asked.
    pub(super) reached: ServerAnswers,
    store: Result<Option<Store>, StoreError>,
    repo: Result<Option<Repo>, RepoError>,
}

impl<'a> Scene<'a> {
    /// Takes the snapshot. Creates nothing.
    pub(super) fn load(config: &'a Config, redactor: &'a Redactor, now: DateTime<Utc>, mode: RunMode) -> Self {
        let store = open_store(config);
        let lease_holder = match &store {
            Ok(Some(store)) => store.find_lease_holder().ok().flatten(),
            _ => None,
        };
        Self {
            lock: LockFacts::read(&config.lock_path(), lease_holder.as_ref()),
            is_dry: mode.is_dry(),
            is_brief: false,
            reached: ServerAnswers::default(),
            repo: open_repo(config, mode),
            store,
            config,
            redactor,
            now,
        }
    }

    /// Sets whether slow checks are left out.
    pub(super) fn with_brief(self, is_brief: bool) -> Self {
        Self { is_brief, ..self }
    }

    /// Adds the answers of other servers.
    pub(super) fn with_reached(self, reached: ServerAnswers) -> Self {
        Self { reached, ..self }
    }

    /// Returns `true` if a wake or another repair is running, which then owns open work.
    pub(super) fn is_wake_running(&self) -> bool {
        self.lock.is_held
    }

    /// Returns the database. `None` before the first wake. Fails if the database can't be opened.
    pub(super) fn store(&self) -> Result<Option<&Store>, Trouble> {
        let unusable = Trouble::Unusable { what: "the database", see: "database" };
        self.store.as_ref().map(Option::as_ref).map_err(|_| unusable)
    }

    /// Returns the reason why the database can't be opened.
    pub(super) fn store_error(&self) -> Option<&StoreError> {
        self.store.as_ref().err()
    }

    /// Returns the repository. `None` before the first wake. Fails if the repository can't be opened.
    pub(super) fn repo(&self) -> Result<Option<&Repo>, Trouble> {
        let unusable = Trouble::Unusable { what: "the repository", see: "repository" };
        self.repo.as_ref().map(Option::as_ref).map_err(|_| unusable)
    }

    /// Returns the reason why the repository can't be opened.
    pub(super) fn repo_error(&self) -> Option<&RepoError> {
        self.repo.as_ref().err()
    }

    /// Returns the budget and the amounts spent.
    pub(super) fn budget(&self, store: &Store) -> Result<Budget, StoreError> {
        Budget::read(store, self.config, self.now)
    }

    /// Returns the state of the configured model, as a wake would see it now.
    pub(super) fn model_state(&self, store: &Store) -> Result<ModelState, StoreError> {
        cycle::read_model_state(store, &load_effective_config(self.config, store)?, self.now)
    }

    /// Returns the settings in force. Falls back to the plain settings if the database can't be read, which the check `database` reports.
    pub(super) fn effective_config(&self) -> Config {
        let store = self.store.as_ref().ok().and_then(Option::as_ref);
        store.and_then(|store| load_effective_config(self.config, store).ok()).unwrap_or_else(|| self.config.clone())
    }
}

/// Opens the database and reads its schema, since a file of another kind opens without an error.
fn open_store(config: &Config) -> Result<Option<Store>, StoreError> {
    cycle::workspace::check_database(config)?;
    let Some(store) = database::open_read_only(config)? else {
        return Ok(None);
    };
    // If the first run was killed, the database may have no tables: it counts as missing.
    let schema = store.read_schema()?;
    let Schema { found, known, .. } = schema;
    let path = PathBuf::from(database::name(config));
    match found {
        _ if schema.is_too_new() => return Err(StoreError::Newer { path, found, known }),
        1.. if found < known => return Err(StoreError::Older { path, found, known }),
        _ => {}
    }
    Ok((found > 0).then_some(store))
}

/// Opens the repository. `None` if there is no directory or an empty one, because the first wake creates the repository in either case.
fn open_repo(config: &Config, mode: RunMode) -> Result<Option<Repo>, RepoError> {
    let dir = config.repo_dir();
    let is_empty = std::fs::read_dir(&dir).map_or(true, |mut entries| entries.next().is_none());
    // Opening a repository for the first time creates `.git/reveille`, which a dry run must not do.
    let never_opened = dir.join(".git").exists() && !dir.join(".git/reveille").exists();
    if !dir.exists() || dir.is_dir() && is_empty || mode.is_dry() && never_opened {
        return Ok(None);
    }
    Repo::open(&dir).map(Some)
}
