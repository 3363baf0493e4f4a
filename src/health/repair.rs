//! Repairs, under the wake lock and its fence. Each looks again before it acts: what was seen without the lock may be
//! over by now.

use reveille_base::{clock::FixedClock, process::Identity};
use reveille_cycle as cycle;
use reveille_cycle::Teller;
use reveille_store::{
    Fence, FencedStore, LeaseHolder, Store, database,
    wake_lock::{LockError, LockedWork, WakeLock},
};

use super::{
    checks::{Check, lock},
    finding::Trouble,
    scene::Scene,
};

/// What a repair works with.
pub(super) struct RepairTools<'a> {
    /// The look that found it broken.
    pub(super) scene: &'a Scene<'a>,
    /// The database for writing, and the fence; none if it can't be used.
    store: Option<(Store, Fence)>,
    clock: FixedClock,
    /// Whether the lock file named a holder though nobody held the lock.
    pub(super) had_stale_line: bool,
    /// What `processing_lock` said once nobody else could change it.
    pub(super) claim_before: Option<LeaseHolder>,
}

/// How the repairs went.
#[derive(Debug, Default)]
pub(super) struct RepairOutcome {
    /// Checks in which something was repaired.
    pub(super) repaired: Vec<&'static str>,
    failures: Vec<(&'static str, String)>,
}

impl RepairOutcome {
    /// Why repairs of a check didn't work.
    pub(super) fn failures_of(&self, id: &str) -> impl Iterator<Item = &str> {
        let of_id = self.failures.iter().filter(move |(failed, _)| *failed == id);
        of_id.map(|(_, why)| why.as_str())
    }

    fn failed(&mut self, check: &Check, why: &impl std::fmt::Display) {
        self.failures.push((check.id, why.to_string()));
    }
}

/// Repairs these checks, unless a wake runs by now: then it is the wake's affair, or the next `health check`'s.
pub(super) fn repair(scene: &Scene<'_>, broken: &[&Check]) -> RepairOutcome {
    let mut outcome = RepairOutcome::default();
    let me = Identity::current();
    // Whoever ends in order clears the line first, so a line that is still the same was left by the dead.
    let line = lock::line(&scene.config.lock_path());
    let had_stale_line = !line.is_empty() && line == scene.lock.line;
    let mut lock = match WakeLock::take(&scene.config.lock_path()) {
        Ok(lock) => lock,
        Err(LockError::Held(_)) => return outcome,
        Err(error) => {
            broken.iter().for_each(|check| outcome.failed(check, &error));
            return outcome;
        }
    };
    let mut tools =
        RepairTools { scene, store: None, clock: FixedClock(scene.now), had_stale_line, claim_before: None };
    if let Err(error) = tools.claim(&me, &mut lock) {
        broken.iter().for_each(|check| outcome.failed(check, &error));
    }
    for check in broken {
        let Some(repair) = check.repair else { continue };
        match repair(&mut tools) {
            Ok(done) if done.is_empty() => {}
            Ok(done) => {
                outcome.repaired.push(check.id);
                note(&mut tools, check, &done, &mut outcome);
            }
            Err(error) => outcome.failed(check, &error),
        }
    }
    if let Some(mut store) = tools.store()
        && let Err(error) = store.release_lease()
    {
        broken.iter().for_each(|check| outcome.failed(check, &error));
    }
    drop(lock);
    outcome
}

impl RepairTools<'_> {
    /// The database as the holder of the lock writes it; none if it can't be used.
    pub(super) fn store(&mut self) -> Option<FencedStore<'_>> {
        let (store, fence) = self.store.as_mut()?;
        Some(FencedStore::new(store, *fence, &self.clock))
    }

    /// Opens the database for writing and takes the fence. A database that isn't there, or can't be opened, isn't made.
    /// What the lock file says of a killed wake's cycle is taken note of before the line is written over.
    fn claim(&mut self, me: &Identity, lock: &mut WakeLock) -> Result<(), Trouble> {
        if matches!(self.scene.store(), Ok(Some(_))) {
            let mut store = database::open(self.scene.config)?;
            self.claim_before = store.holder()?;
            let fence = store.take_lease(me, self.scene.now)?;
            let teller = Teller { owner_chat: self.scene.config.owner_chat, redactor: self.scene.redactor };
            let store = self.store.insert((store, fence));
            if let Some((left, cycle_id)) = lock.cut_off(me) {
                let mut store = FencedStore::new(&mut store.0, fence, &self.clock);
                cycle::note_cut_off(&mut store, left, cycle_id, teller)?;
            }
        }
        lock.describe(me, self.scene.now, LockedWork::default())?;
        lock.show_life(self.scene.config.wake_timeout);
        Ok(())
    }
}

/// Leaves word for the next wake. Without a database nothing can be left; the report says what was done.
fn note(tools: &mut RepairTools<'_>, check: &Check, done: &[String], outcome: &mut RepairOutcome) {
    let scene = tools.scene;
    let Some(mut store) = tools.store() else { return };
    for what in done {
        let what = scene.redactor.redact(what);
        if let Err(error) = store.note_repair(check.id, &what) {
            outcome.failed(check, &format!("it was done, but not noted: {error}"));
        }
    }
}
