//! The worker: gives turns to the assistants that are due, several at a time, the longest waiting first.
//!
//! Most of a long turn is waiting: for a model, a download, a slow program. A waiting turn gives its place to the next one and continues
//! beside it (`place`), so that an unresponsive model never holds up another assistant.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{clock::Clock, process, random, types::AssistantName};
use reveille_store::{FleetRegistry, StoreError, TurnClaim, TurnEnd, compute_retry_wait};

use super::{
    Fleet, FleetError,
    place::{HeldPlace, has_room},
    turn::{RemainingWork, TurnBox},
};

/// How long a claim lasts unless renewed, and thus how long an assistant waits if its worker is killed.
const CLAIM_LASTS: TimeDelta = TimeDelta::seconds(120);
/// The interval at which a worker renews its claims.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// How often to look for due assistants while there are none. A request to end is noticed within this time, too.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often to look even if the list sends notifications: a missed one costs at most this delay.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// How often to look while turns compute, which may make their assistants due again.
const LOOK_WHILE_WORKING: Duration = Duration::from_millis(20);
/// How often to look while all turns only wait.
const LOOK_WHILE_WAITING: Duration = Duration::from_millis(100);
/// The interval at which the worker measures which turns compute.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
/// The pause after an error of the list, before another attempt.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The longest time between an assistant's turns. Background jobs without a known time (reflection, initiative) may wait this long.
const LONGEST_REST: TimeDelta = TimeDelta::hours(1);
/// The shortest wait after a turn that left the same things due.
const FRUITLESS_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The order given to a worker.
pub struct WorkOrder<'a> {
    /// The number of turns at a time, not counting those that only wait.
    pub slots: NonZeroU32,
    /// `true` to end once nobody is due.
    pub once: bool,
    /// Returns `true` if the worker should end; running turns may finish.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// The clock.
    pub clock: &'a (dyn Clock + Sync),
}

/// A turn in progress.
struct RunningTurn {
    claim: TurnClaim,
    /// The id of its leading process, once started.
    process: Option<u32>,
    place: HeldPlace,
}

/// News from the thread of a turn.
enum TurnNews {
    /// The turn has started, as this process.
    Started(AssistantName, u32),
    /// The turn is over.
    Ended(AssistantName, Result<RemainingWork, String>),
}

/// Starts a thread that runs an assistant's turn and reports on it.
type StartTurn<'a> = &'a dyn Fn(AssistantName);

struct Worker<'a> {
    fleet: &'a Fleet,
    order: &'a WorkOrder<'a>,
    name: String,
    registry: FleetRegistry,
    running: BTreeMap<AssistantName, RunningTurn>,
    /// Finished turns still to be reported to the list.
    owed: Vec<(TurnClaim, TurnEnd)>,
    /// The things due after each assistant's last turn.
    left: BTreeMap<AssistantName, Vec<String>>,
    renewed: Instant,
    measured: Instant,
    turns: usize,
}

/// Works until asked to end, or with [`WorkOrder::once`] until nobody is due; returns the number of turns. Without `once`, the worker
/// survives errors of the list.
///
/// # Errors
/// No box can be made, or the list fails: at the start, or later with `once`. The worker's claims then expire by themselves.
pub fn run_worker(fleet: &Fleet, order: &WorkOrder<'_>) -> Result<usize, FleetError> {
    let name = format!(
        "{}/{}/{}",
        process::host_name(),
        std::process::id(),
        random::format_hex(&random::generate_bytes::<4>()?)
    );
    let boxes = TurnBox::find(fleet)?;
    let worker = Worker {
        fleet,
        order,
        name,
        registry: fleet.open_registry()?,
        running: BTreeMap::new(),
        owed: Vec::new(),
        left: BTreeMap::new(),
        renewed: Instant::now(),
        measured: Instant::now(),
        turns: 0,
    };
    let (sender, news) = mpsc::channel();
    let turns = thread::scope(|scope| {
        let start = |name: AssistantName| {
            let (sender, boxes) = (sender.clone(), &boxes);
            scope.spawn(move || {
                let report_start = |process| drop(sender.send(TurnNews::Started(name.clone(), process)));
                let result = boxes.run_turn(fleet, &name, &report_start);
                sender.send(TurnNews::Ended(name, result)).ok();
            });
        };
        worker.run(&start, &news)
    })?;
    Ok(turns)
}

impl Worker<'_> {
    fn now(&self) -> DateTime<Utc> {
        self.order.clock.now()
    }

    fn run(mut self, start: StartTurn<'_>, news: &mpsc::Receiver<TurnNews>) -> Result<usize, StoreError> {
        let mut is_in_trouble = false;
        loop {
            news.try_iter().for_each(|news| self.handle_news(news));
            self.measure_turns();
            self.renew_claims();
            let is_over = (self.order.is_over)();
            match self.start_due_turns(start, is_over) {
                // Another program has been writing for a long time. The attempt has already waited, so try again at once.
                Err(StoreError::Busy) => continue,
                Err(error) if self.order.once => return Err(error),
                Err(error) => {
                    if is_over && self.running.is_empty() {
                        return Ok(self.turns);
                    }
                    if !std::mem::replace(&mut is_in_trouble, true) {
                        tracing::warn!(%error, "the list of assistants can't be used; retrying each second");
                    }
                    thread::sleep(TRY_AGAIN_AFTER);
                    self.reopen_registry();
                    continue;
                }
                Ok(is_nobody_due) => {
                    if std::mem::take(&mut is_in_trouble) {
                        tracing::info!("the list of assistants can be used again");
                    }
                    if self.running.is_empty() && (is_over || self.order.once && is_nobody_due) {
                        return Ok(self.turns);
                    }
                }
            }
            self.wait_for_work(news);
        }
    }

    /// Reports finished turns and starts others while there is room. Returns `true` if nobody is due any more.
    fn start_due_turns(&mut self, start: StartTurn<'_>, is_over: bool) -> Result<bool, StoreError> {
        while let Some((claim, end)) = self.owed.first() {
            self.registry.give_back(&self.name, claim, end, self.order.clock.now())?;
            self.owed.remove(0);
        }
        while !is_over && self.has_room() {
            let now = self.now();
            let Some(claim) = self.registry.claim_turn(&self.name, now, now + CLAIM_LASTS)? else { return Ok(true) };
            let name = claim.name.clone();
            // This turn is already running here: our claim had expired, and now we hold it again.
            if self.running.contains_key(&name) {
                continue;
            }
            self.turns += 1;
            let turn = RunningTurn { claim, process: None, place: HeldPlace::take(Instant::now()) };
            self.running.insert(name.clone(), turn);
            start(name);
        }
        Ok(false)
    }

    fn has_room(&self) -> bool {
        let held = self.running.values().filter(|turn| turn.place.is_held()).count();
        has_room(self.order.slots, held, self.running.len())
    }

    fn handle_news(&mut self, news: TurnNews) {
        match news {
            TurnNews::Started(name, process) => {
                if let Some(turn) = self.running.get_mut(&name) {
                    turn.process = Some(process);
                }
            }
            TurnNews::Ended(name, result) => {
                if let Some(RunningTurn { claim, .. }) = self.running.remove(&name) {
                    let end = self.decide_turn_end(&claim, result);
                    self.owed.push((claim, end));
                }
            }
        }
    }

    /// Decides when an assistant gets its next turn, from the result of the last.
    fn decide_turn_end(&mut self, claim: &TurnClaim, result: Result<RemainingWork, String>) -> TurnEnd {
        let now = self.now();
        match result {
            Ok(turn) => {
                let is_same =
                    self.left.insert(claim.name.clone(), turn.due.clone()).is_some_and(|before| before == turn.due);
                let due_at = match (turn.due.is_empty(), is_same) {
                    (true, _) => turn.next_at.unwrap_or(now + LONGEST_REST).clamp(now, now + LONGEST_REST),
                    (false, false) => now,
                    // Back off if the last turn did nothing about it.
                    (false, true) => now + FRUITLESS_WAIT,
                };
                TurnEnd { due_at, trouble: None }
            }
            Err(why) => {
                tracing::warn!(assistant = claim.name.as_str(), why, "a turn failed; the worker will retry it later");
                TurnEnd { due_at: now + compute_retry_wait(claim.failures.saturating_add(1)), trouble: Some(why) }
            }
        }
    }

    /// Measures which turns compute and which only wait.
    fn measure_turns(&mut self) {
        if self.measured.elapsed() < MEASURE_EVERY {
            return;
        }
        self.measured = Instant::now();
        let mut started: Vec<(u32, &mut HeldPlace)> =
            self.running.values_mut().filter_map(|turn| Some((turn.process?, &mut turn.place))).collect();
        let processes: Vec<u32> = started.iter().map(|(process, _)| *process).collect();
        for ((_, place), computed) in started.iter_mut().zip(process::computing_times(&processes)) {
            place.measure(self.measured, computed);
        }
    }

    /// Renews the claims of all turns whose end hasn't been reported to the list.
    fn renew_claims(&mut self) {
        if self.renewed.elapsed() < RENEW_EVERY {
            return;
        }
        self.renewed = Instant::now();
        let held = self.running.keys().chain(self.owed.iter().map(|(claim, _)| &claim.name)).cloned().collect();
        if let Err(error) = self.registry.renew_turns(&self.name, &held, self.now() + CLAIM_LASTS) {
            tracing::warn!(%error, "the claims on running turns couldn't be renewed; another worker may take them");
            self.reopen_registry();
        }
    }

    /// Waits for news of a turn, for a notification, or for the next time that an assistant may be due.
    fn wait_for_work(&mut self, news: &mpsc::Receiver<TurnNews>) {
        if !self.has_room() {
            self.wait_for_news(news, LOOK_WHILE_WORKING);
            return;
        }
        // If the list is unreadable, the next look reports it.
        let due_at = self.registry.find_next_due_time(self.now()).ok().flatten();
        let until_due = due_at.map_or(LOOK_AT_LEAST_EVERY, |at| (at - self.now()).to_std().unwrap_or_default());
        let longest = if self.running.is_empty() { LOOK_AT_LEAST_EVERY } else { MEASURE_EVERY };
        let end = Instant::now() + until_due.min(longest);
        // Limits the rate of looks under constant notifications.
        if self.wait_for_news(news, LOOK_WHILE_WORKING) {
            return;
        }
        while !(self.order.is_over)() {
            let left = end.saturating_duration_since(Instant::now());
            let step = if self.running.is_empty() { LOOK_EVERY } else { Duration::ZERO };
            let notified = self.registry.wait_for_change(left.min(step));
            // `None`: this list sends no notifications, so it has to be read again.
            if notified != Some(false) || left.is_zero() || self.order.once {
                break;
            }
            if self.wait_for_news(news, LOOK_WHILE_WORKING) {
                break;
            }
        }
    }

    /// Waits for news of a turn, longer if all turns only wait. Returns `true` if there was any.
    fn wait_for_news(&mut self, news: &mpsc::Receiver<TurnNews>, at_most: Duration) -> bool {
        let only_wait = !self.running.is_empty() && !self.running.values().any(|turn| turn.place.is_held());
        let at_most = if only_wait { LOOK_WHILE_WAITING } else { at_most };
        let received = news.recv_timeout(at_most).ok();
        let has_received = received.is_some();
        received.into_iter().for_each(|news| self.handle_news(news));
        has_received
    }

    /// Opens the list again, since a broken connection doesn't recover.
    fn reopen_registry(&mut self) {
        if let Ok(again) = self.fleet.open_registry() {
            self.registry = again;
        }
    }
}
