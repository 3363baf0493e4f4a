//! A person's hand in the memory and the database: nobody else writes meanwhile, and what is written is theirs.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use reveille_base::{clock::Clock, process::Identity, redact::Redactor, types::ChatRef};
use reveille_config::{Config, RepoUrl};
use reveille_cycle as cycle;
use reveille_cycle::{Teller, merge_texts, workspace};
use reveille_git::{Created, FileChange, LeftAlone, Oid, PersonEdits, Publish, Repo};
use reveille_index::{Index, Sources};
use reveille_memory::templates::templates;
use reveille_store::{
    Fence, FencedStore, HEAD_SEEN, NewStep, Store,
    wake_lock::{LockError, LockedWork, WakeLock, takeover},
};

use super::ProvenanceError;

/// How long a wake that is at work is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// What a person's command is given.
#[derive(Clone, Copy)]
pub struct HandTools<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Masks secrets, and tells what must not be committed.
    pub redactor: &'a Redactor,
}

/// The wake lock in a person's hand, with the memory and the database.
pub struct Hand<'a> {
    tools: HandTools<'a>,
    /// The memory.
    pub repo: Repo,
    store: Store,
    fence: Fence,
    /// Last, so that it is freed last.
    _lock: WakeLock,
}

/// What was committed for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonsCommit {
    /// The commit.
    pub commit: Oid,
    /// The files that were edited and not committed yet: a commit of their own, before it.
    pub before: Vec<String>,
    /// Files that were written and couldn't be committed.
    pub left_alone: Vec<LeftAlone>,
}

impl<'a> Hand<'a> {
    /// Takes the lock, waiting some seconds for a wake that is at work.
    ///
    /// # Errors
    /// [`ProvenanceError::Busy`] while one works longer.
    pub fn take(tools: HandTools<'a>) -> Result<Self, ProvenanceError> {
        let config = tools.config;
        let lock = wait(config)?;
        let (repo, _) = open_or_make(config, tools.clock.now())?;
        let mut store = workspace::open(config)?;
        let (me, now) = (Identity::current(), tools.clock.now());
        let fence = store.take_lease(&me, now)?;
        // The line of a killed wake is the only witness of that.
        if let Some((left, cycle_id)) = lock.cut_off(&me) {
            let teller = Teller { owner_chat: config.owner_chat, redactor: tools.redactor };
            cycle::note_cut_off(&mut FencedStore::new(&mut store, fence, tools.clock), left, cycle_id, teller)?;
        }
        let mut hand = Self { tools, repo, store, fence, _lock: lock };
        hand.introduce(&me, now)?;
        Ok(hand)
    }

    fn introduce(&mut self, me: &Identity, now: DateTime<Utc>) -> Result<(), ProvenanceError> {
        self._lock.describe(me, now, LockedWork::default()).map_err(ProvenanceError::Lock)?;
        self._lock.show_life(self.tools.config.wake_timeout);
        self.repo.finish_interrupted(&merge_texts)?;
        Ok(())
    }

    /// The database, for reading.
    pub fn rows(&self) -> &Store {
        &self.store
    }

    /// The database, as the holder of the lock writes it.
    pub fn store(&mut self) -> FencedStore<'_> {
        FencedStore::new(&mut self.store, self.fence, self.tools.clock)
    }

    /// Commits what the person has edited and not committed: before anything is put in its place.
    pub fn commit_edits(&self) -> Result<PersonEdits, ProvenanceError> {
        let redactor = self.tools.redactor;
        let now = self.tools.clock.now();
        Ok(self.repo.commit_person_edits(now, &|text| redactor.contains_secret(text), &merge_texts)?)
    }

    /// Commits these changes as the person's. They wake nobody: what the person had committed before stays a reason, this isn't one.
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
        let is_alone = edits.commit.is_none() && published.persons.is_none();
        let was_seen = self.store.handled(HEAD_SEEN)? == head_before.map(|head| head.to_string());
        if is_alone && was_seen {
            self.store().set_handled(HEAD_SEEN, &published.commit.to_string())?;
        }
        Ok(PersonsCommit { commit: published.commit, before: edits.files, left_alone: published.left_alone })
    }

    /// The same as a step that undo takes back. `did`: in words, in the past tense.
    pub fn commit_step(
        &mut self,
        changes: &[FileChange],
        subject: &str,
        did: &str,
    ) -> Result<PersonsCommit, ProvenanceError> {
        let made = self.commit(changes, subject)?;
        let did = self.tools.redactor.redact(did);
        let step = NewStep { chat: ChatRef::TERMINAL, did, commit: Some(made.commit.to_string()) };
        self.store().note_step(&step)?;
        Ok(made)
    }

    /// Makes the index anew, without what is gone by now.
    pub fn scrub_index(&self) -> Result<(), ProvenanceError> {
        let config = self.tools.config;
        let sources = Sources { brain: self.repo.root(), store: Some(&self.store), zone: config.timezone };
        Index::scrub(&config.index_path(), &sources).map_err(ProvenanceError::Scrub)
    }

    /// Frees the lease and the lock.
    pub fn put_down(mut self) -> Result<(), ProvenanceError> {
        Ok(self.store().release_lease()?)
    }
}

/// Makes the memory where there is none yet, as the first wake would: how it came about, or `None` where it was there.
///
/// # Errors
/// [`ProvenanceError::Busy`] while a wake works long, and what keeps it from being made.
pub fn make_memory(config: &Config, now: DateTime<Utc>) -> Result<Option<Created>, ProvenanceError> {
    if config.repo_dir().join(".git").exists() {
        return Ok(None);
    }
    let _lock = wait(config)?;
    open_or_make(config, now).map(|(_, created)| Some(created).filter(|created| *created != Created::Existing))
}

fn open_or_make(config: &Config, now: DateTime<Utc>) -> Result<(Repo, Created), ProvenanceError> {
    let url = config.repo_url.as_ref().map(RepoUrl::expose);
    Ok(Repo::open_or_create(&config.repo_dir(), url, &templates(), now)?)
}

fn wait(config: &Config) -> Result<WakeLock, ProvenanceError> {
    workspace::prepare_workspace(config).map_err(|error| ProvenanceError::Refused(error.to_string()))?;
    let begun = Instant::now();
    loop {
        match takeover::acquire(&config.lock_path(), config.stale_lock) {
            Ok(taken) => return Ok(taken.lock),
            Err(LockError::Held(_)) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(held @ (LockError::Held(_) | LockError::Stuck { .. })) => {
                let held = held.in_words(config.timezone);
                return Err(ProvenanceError::Busy(format!("{held} Nothing was changed; try again when it is done.")));
            }
            Err(error) => return Err(ProvenanceError::Lock(error)),
        }
    }
}
