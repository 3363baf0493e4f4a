//! Repairs under the wake lock and its fence. Each repair looks again before it acts, since a problem seen without the
//! lock may be gone.

use reveille_base::{clock::FixedClock, process::Identity};
use reveille_cycle as cycle;
use reveille_cycle::Notifier;
use reveille_store::{
    Fence, FencedStore, LeaseHolder, Store, database,
    wake_lock::{LockError, LockedWork, WakeLock},
};

use super::{
    checks::{Check, lock},
    finding::Trouble,
    scene::Scene,
};

/// The tools of a repair.
pub(super) struct RepairTools<'a> {
    /// The scene in which the problem was found.
    pub(super) scene: &'a Scene<'a>,
    /// The writable database and the fence. `None` if the database can't be used.
    store: Option<(Store, Fence)>,
    clock: FixedClock,
    /// `true` if the lock file named a holder although nobody held the lock.
    pub(super) had_stale_line: bool,
    /// The contents of `processing_lock` once nobody else could change it.
    pub(super) claim_before: Option<LeaseHolder>,
}

/// The results of the repairs.
#[derive(Debug, Default)]
pub(super) struct RepairOutcome {
    /// The checks in which something was repaired.
    pub(super) repaired: Vec<&'static str>,
    failures: Vec<(&'static str, String)>,
}

impl RepairOutcome {
    /// Returns the reasons why repairs of a check failed.
    pub(super) fn list_failures(&self, id: &str) -> impl Iterator<Item = &str> {
        let of_id = self.failures.iter().filter(move |(failed, _)| *failed == id);
        of_id.map(|(_, why)| why.as_str())
    }

    fn add_failure(&mut self, check: &Check, why: &impl std::fmt::Display) {
        self.failures.push((check.id, why.to_string()));
    }
}

/// Repairs these checks. Does nothing if a wake runs by now, which leaves the problems to it or to the next `health check`.
pub(super) fn repair_checks(scene: &Scene<'_>, broken: &[&Check]) -> RepairOutcome {
    let mut outcome = RepairOutcome::default();
    let me = Identity::current();
    // A wake that ends in order clears its line first, so an unchanged line is left from a dead wake.
    let line = lock::read_line(&scene.config.lock_path());
    let had_stale_line = !line.is_empty() && line == scene.lock.line;
    let mut lock = match WakeLock::take(&scene.config.lock_path()) {
        Ok(lock) => lock,
        Err(LockError::Held(_)) => return outcome,
        Err(error) => {
            broken.iter().for_each(|check| outcome.add_failure(check, &error));
            return outcome;
        }
    };
    let mut tools =
        RepairTools { scene, store: None, clock: FixedClock(scene.now), had_stale_line, claim_before: None };
    if let Err(error) = tools.claim_store(&me, &mut lock) {
        broken.iter().for_each(|check| outcome.add_failure(check, &error));
    }
    for check in broken {
        let Some(repair) = check.repair else { continue };
        match repair(&mut tools) {
            Ok(done) if done.is_empty() => {}
            Ok(done) => {
                outcome.repaired.push(check.id);
                record_repairs(&mut tools, check, &done, &mut outcome);
            }
            Err(error) => outcome.add_failure(check, &error),
        }
    }
    if let Some(mut store) = tools.store()
        && let Err(error) = store.release_lease()
    {
        broken.iter().for_each(|check| outcome.add_failure(check, &error));
    }
    drop(lock);
    outcome
}

impl RepairTools<'_> {
    /// Returns the database for writing under the fence. `None` if it can't be used.
    pub(super) fn store(&mut self) -> Option<FencedStore<'_>> {
        let (store, fence) = self.store.as_mut()?;
        Some(FencedStore::new(store, *fence, &self.clock))
    }

    /// Opens the database for writing and takes the fence; never creates a database. Records a killed wake's cycle from
    /// the lock file before the line is overwritten.
    fn claim_store(&mut self, me: &Identity, lock: &mut WakeLock) -> Result<(), Trouble> {
        if matches!(self.scene.store(), Ok(Some(_))) {
            let mut store = database::open(self.scene.config)?;
            self.claim_before = store.find_lease_holder()?;
            let fence = store.take_lease(me, self.scene.now)?;
            let teller = Notifier { owner_chat: self.scene.config.owner_chat, redactor: self.scene.redactor };
            let store = self.store.insert((store, fence));
            if let Some((left, cycle_id)) = lock.cut_off(me) {
                let mut store = FencedStore::new(&mut store.0, fence, &self.clock);
                cycle::note_cut_off(&mut store, left, cycle_id, teller)?;
            }
        }
        lock.write_holder(me, self.scene.now, LockedWork::default())?;
        lock.show_life(self.scene.config.wake_timeout);
        Ok(())
    }
}

/// Leaves a note for the next wake. Without a database no note is possible, and only the report names the repair.
fn record_repairs(tools: &mut RepairTools<'_>, check: &Check, done: &[String], outcome: &mut RepairOutcome) {
    let scene = tools.scene;
    let Some(mut store) = tools.store() else { return };
    for what in done {
        let what = scene.redactor.redact(what);
        if let Err(error) = store.maintenance_mut().note_repair(check.id, &what) {
            outcome.add_failure(check, &format!("it was done, but couldn't be recorded: {error}"));
        }
    }
}
