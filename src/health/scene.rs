//! What all checks look at: the settings, the time, the opened database and repository, and whether a wake runs.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::decide::{budget::Budget, lineup::ModelState};
use reveille_git::{Repo, RepoError};
use reveille_store::{Schema, Store, StoreError, database, in_force::in_force};

use super::{checks::lock::LockFacts, finding::Trouble, reach::OthersSaid};

/// One look at everything.
pub(super) struct Scene<'a> {
    pub(super) config: &'a Config,
    pub(super) redactor: &'a Redactor,
    pub(super) now: DateTime<Utc>,
    pub(super) lock: LockFacts,
    /// Whether nothing at all may be written.
    pub(super) is_dry: bool,
    /// Whether somebody waits for the answer: what takes seconds is left out.
    pub(super) is_brief: bool,
    /// What others say; nothing where none are asked.
    pub(super) reached: OthersSaid,
    store: Result<Option<Store>, StoreError>,
    repo: Result<Option<Repo>, RepoError>,
}

impl<'a> Scene<'a> {
    /// Looks. Nothing is made that isn't there.
    pub(super) fn look(config: &'a Config, redactor: &'a Redactor, now: DateTime<Utc>, dry_run: bool) -> Self {
        let store = open_store(config);
        let row = match &store {
            Ok(Some(store)) => store.holder().ok().flatten(),
            _ => None,
        };
        Self {
            lock: LockFacts::look(&config.lock_path(), row.as_ref()),
            is_dry: dry_run,
            is_brief: false,
            reached: OthersSaid::default(),
            repo: open_repo(config, dry_run),
            store,
            config,
            redactor,
            now,
        }
    }

    /// The same for somebody who waits, or not.
    pub(super) fn brief(self, is_brief: bool) -> Self {
        Self { is_brief, ..self }
    }

    /// The same with what others say.
    pub(super) fn reached(self, reached: OthersSaid) -> Self {
        Self { reached, ..self }
    }

    /// Whether a wake (or another repair) is at work: what is open then is its affair.
    pub(super) fn is_wake_running(&self) -> bool {
        self.lock.is_held
    }

    /// The database; none before the first wake.
    pub(super) fn store(&self) -> Result<Option<&Store>, Trouble> {
        let unusable = Trouble::Unusable { what: "the database", see: "database" };
        self.store.as_ref().map(Option::as_ref).map_err(|_| unusable)
    }

    /// Why the database can't be opened.
    pub(super) fn store_error(&self) -> Option<&StoreError> {
        self.store.as_ref().err()
    }

    /// The repository; none before the first wake.
    pub(super) fn repo(&self) -> Result<Option<&Repo>, Trouble> {
        let unusable = Trouble::Unusable { what: "the repository", see: "repository" };
        self.repo.as_ref().map(Option::as_ref).map_err(|_| unusable)
    }

    /// Why the repository can't be opened.
    pub(super) fn repo_error(&self) -> Option<&RepoError> {
        self.repo.as_ref().err()
    }

    /// What may be spent on thinking, and was.
    pub(super) fn budget(&self, store: &Store) -> Result<Budget, StoreError> {
        Budget::look(store, self.config, self.now)
    }

    /// The configured model as the gate of a wake would see it now.
    pub(super) fn model(&self, store: &Store) -> Result<ModelState, StoreError> {
        cycle::model_state(store, &in_force(self.config, store)?, self.now)
    }

    /// The settings in force; the plain ones where the database can't be read, which another check says.
    pub(super) fn in_force(&self) -> Config {
        let store = self.store.as_ref().ok().and_then(Option::as_ref);
        store.and_then(|store| in_force(self.config, store).ok()).unwrap_or_else(|| self.config.clone())
    }
}

/// Opens the database for looking, and looks: a file that isn't one opens without complaint.
fn open_store(config: &Config) -> Result<Option<Store>, StoreError> {
    cycle::workspace::check(config)?;
    let Some(store) = database::look(config)? else {
        return Ok(None);
    };
    // A database that a killed first run left empty has no tables to be asked of.
    let schema = store.schema()?;
    let Schema { found, known, .. } = schema;
    let path = PathBuf::from(database::name(config));
    match found {
        _ if schema.is_too_new() => return Err(StoreError::Newer { path, found, known }),
        1.. if found < known => return Err(StoreError::Older { path, found, known }),
        _ => {}
    }
    Ok((found > 0).then_some(store))
}

/// Opens the repository; none before the first wake, which makes it even in a directory that is there and empty.
fn open_repo(config: &Config, dry_run: bool) -> Result<Option<Repo>, RepoError> {
    let dir = config.repo_dir();
    let is_empty = std::fs::read_dir(&dir).map_or(true, |mut entries| entries.next().is_none());
    // The first opening makes a place of our own in the git directory, which a dry run leaves to a wake.
    let never_opened = dir.join(".git").exists() && !dir.join(".git/reveille").exists();
    if !dir.exists() || dir.is_dir() && is_empty || dry_run && never_opened {
        return Ok(None);
    }
    Repo::open(&dir).map(Some)
}
