//! Defines layers, and chooses, runs and counts their trials.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::Options;

/// Failures printed in full; the others are counted.
const MAX_SHOWN: usize = 5;
/// The longest allowed recovery: the bound of docs/RELIABILITY.md.
const MAX_RECOVERY: Duration = Duration::from_secs(10);

/// The part of a layer to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// A sample that fits into the test suite; different trials every day.
    Sample,
    /// All of it.
    Nightly,
}

/// Every nth trial and broken variant from the kth on, for runs that take longer than a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// From 0.
    k: usize,
    n: usize,
}

impl Part {
    pub(crate) const ALL: Self = Self { k: 0, n: 1 };

    /// Parses `2/7`, where the first part is `1/7`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (k, n) = text.split_once('/')?;
        let (k, n) = (k.parse::<usize>().ok()?.checked_sub(1)?, n.parse().ok()?);
        (k < n).then_some(Self { k, n })
    }

    /// This part's items of a list.
    pub(crate) fn of<T>(self, list: impl IntoIterator<Item = T>) -> Vec<T> {
        list.into_iter().skip(self.k).step_by(self.n).collect()
    }
}

/// One kind of harm.
pub(crate) trait Layer: Send + Sync {
    /// The total number of trials, numbered from 0; `None` if any number is a trial.
    fn space(&self) -> Option<u64> {
        None
    }

    /// The number of trials, from 0 on, that are cheap enough for the suite's sample.
    fn sample_space(&self) -> Option<u64> {
        self.space()
    }

    /// A requirement this machine lacks; the layer is then skipped, and the table says so.
    fn missing(&self) -> Option<&'static str> {
        None
    }

    /// The number of trials to run. A smaller countable space is run whole.
    fn trials(&self, share: Share) -> u64;

    /// Trials at the start of each run: cases random trials would miss, or hit too rarely.
    fn first(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Runs one trial; the same number plays the same one. An error describes the violation with everything needed to understand it; a
    /// panic counts as an error too.
    fn trial(&self, id: u64) -> Result<Recovery, String>;

    /// The number of trials side by side: more than processors, since programs wait for disks and for each other.
    fn workers(&self) -> usize {
        usual_workers()
    }
}

/// Half as many again as there are processors.
pub(crate) fn usual_workers() -> usize {
    thread::available_parallelism().map_or(2, usize::from) * 3 / 2
}

/// A layer without any setup.
pub(crate) struct Plain {
    /// The number of trials, numbered from 0.
    pub(crate) space: u64,
    /// The number of cheap ones, from 0 on.
    pub(crate) cheap: u64,
    /// The number of these in the suite's sample.
    pub(crate) sample: u64,
    pub(crate) trial: fn(u64) -> Result<(), String>,
}

impl Layer for Plain {
    fn space(&self) -> Option<u64> {
        Some(self.space)
    }

    fn sample_space(&self) -> Option<u64> {
        Some(self.cheap)
    }

    fn trials(&self, share: Share) -> u64 {
        if share == Share::Sample { self.sample } else { self.space }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        (self.trial)(id).map(|()| Recovery(None))
    }
}

/// The time until the next run had recovered; `None` if the trial doesn't measure that.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovery(pub(crate) Option<Duration>);

/// A layer's line in the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) layer: &'static str,
    /// The missing requirement, if the layer was skipped.
    pub(crate) missing: Option<&'static str>,
    pub(crate) trials: u64,
    /// The total number of trials; `None` if they can't be counted.
    pub(crate) space: Option<u64>,
    pub(crate) failures: u64,
    /// The recovery times, sorted.
    pub(crate) recoveries: Vec<Duration>,
    pub(crate) took: Duration,
}

impl Row {
    /// A layer without a trial counts as a failure.
    pub(crate) fn is_good(&self) -> bool {
        self.trials > 0 && self.failures == 0
    }
}

/// The day's seed (UTC).
pub(crate) fn todays_seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the campaign rotates with the real day")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_secs() / 86_400
}

/// Runs a layer's share of trials.
pub(crate) fn run(name: &'static str, layer: &dyn Layer, options: &Options) -> Row {
    let begun = Instant::now();
    let Options { share, seed, trials, part, .. } = *options;
    let space = if share == Share::Sample { layer.sample_space() } else { layer.space() };
    let missing = layer.missing();
    let count = if missing.is_some() { 0 } else { trials.unwrap_or_else(|| layer.trials(share)) };
    let mut ids = chosen(&layer.first(), space, seed, count);
    // A layer with fewer trials than parts is run whole in each part, since an empty part would show nothing.
    if ids.len() >= part.n {
        ids = part.of(ids);
    }
    let results = Mutex::new((Vec::new(), Vec::new()));
    let progress = Progress::new(begun, ids.len());
    in_parallel(layer, &ids, |id, result| {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        progress.one_more(name, results.1.len() + usize::from(result.is_err()));
        match result {
            Ok(Recovery(time)) => results.0.extend(time),
            Err(why) => {
                results.1.push(id);
                if results.1.len() <= MAX_SHOWN {
                    super::say(&format!("FAILED: scripts/campaign --replay {name} {id}\n{why}\n"));
                }
            }
        }
        true
    });
    let (mut recoveries, failed) = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    recoveries.sort_unstable();
    Row {
        layer: name,
        missing,
        trials: ids.len() as u64,
        space: layer.space(),
        failures: failed.len() as u64,
        recoveries,
        took: begun.elapsed(),
    }
}

/// A layer's progress, printed once a minute.
struct Progress {
    begun: Instant,
    trials: usize,
    done: AtomicU64,
    minutes_told: AtomicU64,
}

impl Progress {
    fn new(begun: Instant, trials: usize) -> Self {
        Self { begun, trials, done: AtomicU64::new(0), minutes_told: AtomicU64::new(0) }
    }

    fn one_more(&self, layer: &str, failures: usize) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let minutes = self.begun.elapsed().as_secs() / 60;
        if minutes > self.minutes_told.fetch_max(minutes, Ordering::Relaxed) {
            super::say(&format!("{layer}: {done} of {} trials after {minutes} min, {failures} failed", self.trials));
        }
    }
}

/// Tells whether `health check` inspects a trial's harm before the recovery, as in half of the trials.
pub(crate) fn is_examined(trial: u64) -> bool {
    fastrand::Rng::with_seed(trial).bool()
}

/// Runs trials until one fails. Returns the number of trials so far, and the failure.
pub(crate) fn until_failure(layer: &dyn Layer, seed: u64, trials: u64) -> Option<(u64, String)> {
    let ids = chosen(&layer.first(), layer.sample_space(), seed, trials);
    let tried = AtomicU64::new(0);
    let first = Mutex::new(None);
    in_parallel(layer, &ids, |id, result| {
        let tried = tried.fetch_add(1, Ordering::Relaxed) + 1;
        let Err(why) = result else { return true };
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| (tried, format!("trial {id}: {why}")));
        false
    });
    first.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one trial and turns its panic into a failure. Other panics are reported as usual: a layer that can't be opened ends the
/// campaign.
pub(crate) fn one(layer: &dyn Layer, id: u64) -> Result<Recovery, String> {
    thread_local! {
        /// The panic of this thread's trial; `None` outside a trial.
        static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_of_trial =
                PANIC.with_borrow_mut(|panic| panic.as_mut().map(|panic| *panic = info.to_string()).is_some());
            if !is_of_trial {
                told(info);
            }
        }));
    });
    PANIC.set(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(|| layer.trial(id)));
    let panic = PANIC.take().unwrap_or_default();
    match result.unwrap_or(Err(panic)) {
        Ok(Recovery(Some(took))) if took > MAX_RECOVERY => {
            Err(format!("recovery took {} ms; {MAX_RECOVERY:?} are promised at most", took.as_millis()))
        }
        result => result,
    }
}

/// Passes each trial's result to `seen` until `seen` returns false.
fn in_parallel(layer: &dyn Layer, ids: &[u64], seen: impl Fn(u64, Result<Recovery, String>) -> bool + Sync) {
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..layer.workers().min(ids.len()) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                    let Some(id) = ids.get(at) else { break };
                    if !seen(*id, one(layer, *id)) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// The trials of a run: `first`, followed by distinct ones drawn by the seed.
fn chosen(first: &[u64], space: Option<u64>, seed: u64, trials: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let Some(space) = space else {
        return (0..trials).map(|_| random.u64(..)).collect();
    };
    if trials >= space {
        return (0..space).collect();
    }
    let mut first = first.to_vec();
    first.truncate(usize::try_from(trials).unwrap_or(usize::MAX));
    let mut ids: BTreeSet<u64> = first.iter().copied().collect();
    while (ids.len() as u64) < trials {
        ids.insert(random.u64(0..space));
    }
    let mut drawn: Vec<u64> = ids.into_iter().filter(|id| !first.contains(id)).collect();
    random.shuffle(&mut drawn);
    [first, drawn].concat()
}
