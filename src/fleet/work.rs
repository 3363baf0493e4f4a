//! The worker: lets the assistants that are due have their turns, so many at a time as it is told, and who waited longest first.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Fleet, FleetError, turn::TurnBox};
use crate::{
    clock::Clock,
    process, random,
    store::{FleetRegistry, StoreError, TurnClaim, TurnEnd, wait_after},
    types::AssistantName,
};

/// How long a claim lasts that isn't renewed: so long an assistant waits whose worker was killed.
const CLAIM_LASTS: TimeDelta = TimeDelta::seconds(120);
/// How often a worker renews what it holds.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// How often it is looked who is due, when nobody was; so long at most a worker that is asked to end goes on waiting.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The same where a worker hears of what comes: what wasn't heard is found so late at most.
const LOOK_UNTOLD: Duration = Duration::from_secs(30);
/// How often it is looked while turns run, which may make their assistants due again.
const LOOK_WHILE_WORKING: Duration = Duration::from_millis(20);
/// How long after trouble with the list it is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The longest that an assistant isn't looked at: what begins by itself at no time that is known (a look back, an idea) waits for it.
const LONGEST_REST: TimeDelta = TimeDelta::hours(1);
/// The shortest wait after a turn that changed nothing about what is due.
const FRUITLESS_WAIT: TimeDelta = TimeDelta::seconds(5);

/// How a worker works.
pub struct WorkOrder<'a> {
    /// Turns at a time.
    pub slots: NonZeroU32,
    /// Whether it ends once nobody is due.
    pub once: bool,
    /// Whether it is asked to end: turns that run are let finish.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// The time.
    pub clock: &'a (dyn Clock + Sync),
}

/// What all slots of one worker share.
struct Worker<'a> {
    fleet: &'a Fleet,
    working: &'a WorkOrder<'a>,
    boxes: TurnBox,
    name: String,
    busy: AtomicUsize,
    turns: AtomicUsize,
    /// What was due after an assistant's last turn.
    left: Mutex<BTreeMap<AssistantName, Vec<String>>>,
    /// Whose turns it holds. A claim whose answer was lost isn't among them, and expires.
    held: Mutex<BTreeSet<AssistantName>>,
}

/// Works until it is over, or once nobody is due. Says how many turns there were. A worker that stays outlives trouble with the list.
///
/// # Errors
/// There is no box for an assistant, or the list can't be read or written at the start or by a worker that doesn't stay; then claims
/// expire by themselves.
pub fn work(fleet: &Fleet, working: &WorkOrder<'_>) -> Result<usize, FleetError> {
    let name = format!("{}/{}/{}", process::host_name(), std::process::id(), random::hex(&random::bytes::<4>()?));
    let worker = Worker {
        fleet,
        working,
        boxes: TurnBox::find(fleet)?,
        name,
        busy: AtomicUsize::new(0),
        turns: AtomicUsize::new(0),
        left: Mutex::default(),
        held: Mutex::default(),
    };
    let mut registries = Vec::new();
    for _ in 0..=working.slots.get() {
        registries.push(fleet.registry()?);
    }
    let mut keeper = registries.pop();
    thread::scope(|scope| {
        let slots: Vec<_> = registries.into_iter().map(|registry| scope.spawn(|| worker.slot(registry))).collect();
        let mut renewed = Instant::now();
        while !slots.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(LOOK_WHILE_WORKING);
            if let Some(keeper) = keeper.as_mut().filter(|_| renewed.elapsed() >= RENEW_EVERY) {
                renewed = Instant::now();
                let held = locked(&worker.held).clone();
                if let Err(error) = keeper.renew(&worker.name, &held, worker.now() + CLAIM_LASTS) {
                    tracing::warn!(%error, "the turns under way couldn't be kept; another worker may look at them, too");
                    worker.open_again(keeper);
                }
            }
        }
        slots.into_iter().try_for_each(|slot| slot.join().unwrap_or(Ok(())))
    })?;
    Ok(worker.turns.load(Ordering::Relaxed))
}

impl Worker<'_> {
    fn now(&self) -> DateTime<Utc> {
        self.working.clock.now()
    }

    /// One turn after the other.
    fn slot(&self, mut registry: FleetRegistry) -> Result<(), StoreError> {
        let mut owed = None;
        let mut is_in_trouble = false;
        while !(self.working.is_over)() {
            // Counted before it is looked, so that no other slot ends while this one may make somebody due.
            self.busy.fetch_add(1, Ordering::SeqCst);
            let took = self.look(&mut registry, &mut owed);
            let others = self.busy.fetch_sub(1, Ordering::SeqCst) - 1;
            match took {
                // Somebody writes for long.
                Err(StoreError::Busy) => continue,
                Err(error) if self.working.once => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut is_in_trouble, true) {
                        tracing::warn!(%error, "the list of assistants can't be used; it is tried again each second");
                    }
                    thread::sleep(TRY_AGAIN_AFTER);
                    self.open_again(&mut registry);
                    continue;
                }
                Ok(true) => {}
                Ok(false) if self.working.once && others == 0 => return Ok(()),
                Ok(false) => self.rest(&registry, others > 0),
            }
            if std::mem::take(&mut is_in_trouble) {
                tracing::info!("the list of assistants can be used again");
            }
        }
        Ok(())
    }

    /// Waits until somebody may be due: something was heard, or it is time to look.
    fn rest(&self, registry: &FleetRegistry, others_work: bool) {
        // A list that can't be read is told of by the next look.
        let due_at = registry.due_after(self.now()).ok().flatten();
        let until_due = due_at.map_or(LOOK_UNTOLD, |at| (at - self.now()).to_std().unwrap_or_default());
        let end = Instant::now() + until_due.min(LOOK_UNTOLD);
        // Whoever notifies all the time makes nobody look all the time.
        thread::sleep(LOOK_WHILE_WORKING);
        let step = if others_work { LOOK_WHILE_WORKING } else { LOOK_EVERY };
        while !(self.working.is_over)() {
            let left = end.saturating_duration_since(Instant::now());
            let heard = registry.hears(left.min(step));
            // Where nobody can tell, it looks now. A worker that ends with the last turn looks each time, too.
            if heard != Some(false) || left.is_zero() || self.working.once {
                break;
            }
        }
    }

    /// A connection that broke doesn't come back; another one may.
    fn open_again(&self, registry: &mut FleetRegistry) {
        if let Ok(again) = self.fleet.registry() {
            *registry = again;
        }
    }

    /// A turn of whoever is due; none is. A turn that was had is given back before anything else: until then it is `owed`.
    fn look(&self, registry: &mut FleetRegistry, owed: &mut Option<(TurnClaim, TurnEnd)>) -> Result<bool, StoreError> {
        if owed.is_none() {
            let now = self.now();
            let Some(claim) = registry.claim(&self.name, now, now + CLAIM_LASTS)? else { return Ok(false) };
            locked(&self.held).insert(claim.name.clone());
            let end = self.turn(&claim);
            if let Some(why) = &end.trouble {
                tracing::warn!(assistant = claim.name.as_str(), why, "a turn failed; it is tried again later");
            }
            self.turns.fetch_add(1, Ordering::Relaxed);
            *owed = Some((claim, end));
        }
        if let Some((claim, end)) = owed {
            registry.give_back(&self.name, claim, end, self.now())?;
            locked(&self.held).remove(&claim.name);
        }
        *owed = None;
        Ok(true)
    }

    fn turn(&self, claim: &TurnClaim) -> TurnEnd {
        let taken = self.boxes.take(self.fleet, &claim.name);
        let now = self.now();
        let mut left = locked(&self.left);
        match taken {
            Ok(turn) => {
                let is_same =
                    left.insert(claim.name.clone(), turn.due.clone()).is_some_and(|before| before == turn.due);
                let due_at = match (turn.due.is_empty(), is_same) {
                    (true, _) => turn.next_at.unwrap_or(now + LONGEST_REST).clamp(now, now + LONGEST_REST),
                    (false, false) => now,
                    // What nothing was done about isn't asked for in a tight loop.
                    (false, true) => now + FRUITLESS_WAIT,
                };
                TurnEnd { due_at, trouble: None }
            }
            Err(why) => TurnEnd { due_at: now + wait_after(claim.failures.saturating_add(1)), trouble: Some(why) },
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
