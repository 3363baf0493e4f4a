//! Changes to the memory and the database by a person, made under the wake lock and in the person's name.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use reveille_base::{clock::Clock, process::Identity, redact::Redactor, types::ChatRef};
use reveille_config::{Config, RepoUrl};
use reveille_cycle as cycle;
use reveille_cycle::{Notifier, merge_texts, workspace};
use reveille_git::{Created, FileChange, LeftAlone, Oid, PersonEdits, Publish, Repo};
use reveille_index::{Index, Sources};
use reveille_memory::templates::list_files;
use reveille_store::{
    Fence, FencedStore, HEAD_SEEN, NewStep, Store,
    wake_lock::{LockError, LockedWork, WakeLock, takeover},
};

use super::ProvenanceError;

/// The longest wait for a running wake.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// The settings, clock and redactor that a person's command needs.
#[derive(Clone, Copy)]
pub struct PersonSessionTools<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Masks secrets, and finds secrets that must not be committed.
    pub redactor: &'a Redactor,
}

/// The wake lock held for a person, with memory and database.
pub struct PersonSession<'a> {
    tools: PersonSessionTools<'a>,
    /// The memory.
    pub repo: Repo,
    store: Store,
    fence: Fence,
    /// Declared last, so that it is dropped last.
    lock: WakeLock,
}

/// The result of a commit for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsCommit {
    /// The commit.
    pub commit: Oid,
    /// The files with uncommitted edits, which went into a commit of their own first.
    pub before: Vec<String>,
    /// The files that were written but couldn't be committed.
    pub left_alone: Vec<LeftAlone>,
}

impl<'a> PersonSession<'a> {
    /// Takes the lock, waiting some seconds for a running wake.
    ///
    /// # Errors
    /// [`ProvenanceError::Busy`] if the wake takes longer.
    pub fn take(tools: PersonSessionTools<'a>) -> Result<Self, ProvenanceError> {
        let config = tools.config;
        let lock = wait_for_lock(config)?;
        let (repo, _) = open_or_make(config, tools.clock.now())?;
        let mut store = workspace::open_database(config)?;
        let (me, now) = (Identity::current(), tools.clock.now());
        let fence = store.take_lease(&me, now)?;
        // The line in the lock file is the only trace of a wake that was killed.
        if let Some((left, cycle_id)) = lock.cut_off(&me) {
            let notifier = Notifier { owner_chat: config.owner_chat, redactor: tools.redactor };
            cycle::note_cut_off(&mut FencedStore::new(&mut store, fence, tools.clock), left, cycle_id, notifier)?;
        }
        let mut hand = Self { tools, repo, store, fence, lock };
        hand.prepare_work(&me, now)?;
        Ok(hand)
    }

    fn prepare_work(&mut self, me: &Identity, now: DateTime<Utc>) -> Result<(), ProvenanceError> {
        self.lock.write_holder(me, now, LockedWork::default()).map_err(ProvenanceError::Lock)?;
        self.lock.show_life(self.tools.config.wake_timeout);
        self.repo.finish_interrupted_move(&merge_texts)?;
        Ok(())
    }

    /// The database for reading.
    pub fn readable_store(&self) -> &Store {
        &self.store
    }

    /// The database for writing, fenced by the lease.
    pub fn fenced_store(&mut self) -> FencedStore<'_> {
        FencedStore::new(&mut self.store, self.fence, self.tools.clock)
    }

    /// Commits the person's uncommitted edits before anything replaces them.
    pub fn commit_edits(&self) -> Result<PersonEdits, ProvenanceError> {
        let redactor = self.tools.redactor;
        let now = self.tools.clock.now();
        Ok(self.repo.commit_person_edits(now, &|text| redactor.contains_secret(text), &merge_texts)?)
    }

    /// Commits these changes in the person's name. They don't trigger a wake, but earlier commits by the person still do.
    pub fn commit(&mut self, changes: &[FileChange], subject: &str) -> Result<PersonsCommit, ProvenanceError> {
        let head_before = self.repo.head()?;
        let edits = self.commit_edits()?;
        let redactor = self.tools.redactor;
        let message = format!("{}\n", redactor.redact(subject));
        let published = self.repo.publish_as_person(&Publish {
            changes,
            message: &message,
            now: self.tools.clock.now(),
            merge: &merge_texts,
            is_secret: &|text| redactor.contains_secret(text),
        })?;
        // Only if the person made no other commit may the new one count as seen.
        let is_only_commit = edits.commit.is_none() && published.persons.is_none();
        let was_seen =
            self.store.maintenance().find_handled_value(HEAD_SEEN)? == head_before.map(|head| head.to_string());
        if is_only_commit && was_seen {
            self.fenced_store().maintenance_mut().set_handled_value(HEAD_SEEN, &published.commit.to_string())?;
        }
        Ok(PersonsCommit { commit: published.commit, before: edits.files, left_alone: published.left_alone })
    }

    /// Commits like [`Self::commit`], as a step that can be undone. `did` describes the step in the past tense.
    pub fn commit_step(
        &mut self,
        changes: &[FileChange],
        subject: &str,
        did: &str,
    ) -> Result<PersonsCommit, ProvenanceError> {
        let made = self.commit(changes, subject)?;
        let did = self.tools.redactor.redact(did);
        let step = NewStep { chat: ChatRef::TERMINAL, did, commit: Some(made.commit.to_string()) };
        self.fenced_store().undos_mut().note_step(&step)?;
        Ok(made)
    }

    /// Rebuilds the index without removed content.
    pub fn scrub_index(&self) -> Result<(), ProvenanceError> {
        let config = self.tools.config;
        let sources = Sources { brain: self.repo.root(), store: Some(&self.store), zone: config.timezone };
        Index::scrub(&config.index_path(), &sources).map_err(ProvenanceError::Scrub)
    }

    /// Releases the lease and the lock.
    pub fn release(mut self) -> Result<(), ProvenanceError> {
        Ok(self.fenced_store().release_lease()?)
    }
}

/// Creates the memory if missing, as the first wake would. `None` if it existed already.
///
/// # Errors
/// [`ProvenanceError::Busy`] if a running wake takes too long, or the reason for a failed creation.
pub fn make_memory(config: &Config, now: DateTime<Utc>) -> Result<Option<Created>, ProvenanceError> {
    if config.repo_dir().join(".git").exists() {
        return Ok(None);
    }
    let _lock = wait_for_lock(config)?;
    open_or_make(config, now).map(|(_, created)| Some(created).filter(|created| *created != Created::Existing))
}

fn open_or_make(config: &Config, now: DateTime<Utc>) -> Result<(Repo, Created), ProvenanceError> {
    let url = config.repo_url.as_ref().map(RepoUrl::expose);
    Ok(Repo::open_or_create(&config.repo_dir(), url, &list_files(), now)?)
}

fn wait_for_lock(config: &Config) -> Result<WakeLock, ProvenanceError> {
    workspace::prepare_workspace(config).map_err(|error| ProvenanceError::Refused(error.to_string()))?;
    let begun = Instant::now();
    loop {
        match takeover::acquire(&config.lock_path(), config.stale_lock) {
            Ok(taken) => return Ok(taken.lock),
            Err(LockError::Held(_)) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(held @ (LockError::Held(_) | LockError::Stuck { .. })) => {
                let held = held.describe(config.timezone);
                return Err(ProvenanceError::Busy(format!("{held} Nothing was changed; try again when it is done.")));
            }
            Err(error) => return Err(ProvenanceError::Lock(error)),
        }
    }
}
