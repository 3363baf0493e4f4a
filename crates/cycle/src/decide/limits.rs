//! How far a cycle may go by itself: rounds and working time by the complexity of its plan, and how often a call may come to the
//! same result. Pure: the machine counts what the journal tells.
//!
//! What is counted begins anew with the first plan and with each yes of a person, and with nothing else: a model that raises its
//! plan gets the larger stretch from the same beginning, and so can't go on for ever by planning again and again.

use std::{collections::BTreeMap, time::Duration};

use reveille_tools::Complexity;

use super::fold::Window;

/// The pseudo-tool by which a person is asked whether a cycle may go on.
pub const GO_ON: &str = "go_on";
/// Plans after the first that may raise the complexity: more is a person's to allow.
const MAX_RAISES: u32 = 1;

/// What a cycle may take before a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Turns of the model.
    pub rounds: u32,
    /// Working time: turns that were received and calls that have ended; not what was waited for a person or for a model out of
    /// reach. None: no bound. It is looked at before each turn and before each call that acts. What is under way isn't cut off: a
    /// request would be paid for nothing, a command left half done, and a yes would have to begin it again. So it is passed by one
    /// request or one call at most, each of which has its own bound.
    pub work: Option<Duration>,
}

/// Bounds of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One or two calls.
    pub quick: Stretch,
    /// A handful of steps, and a cycle without a plan.
    pub medium: Stretch,
    /// Many steps or much reading.
    pub complex: Stretch,
    /// Work that goes on for as long as it takes, over several wakes.
    pub background: Stretch,
    /// So often the same call may come to the same result: then the cycle ends.
    pub same_results: u32,
    /// How long a conversation may get before it is folded; none: it isn't.
    pub window: Option<Window>,
}

impl Limits {
    /// Those of a model that costs time and money.
    pub const STANDARD: Self = Self {
        quick: Stretch::of(10, Some(60)),
        medium: Stretch::of(30, Some(5 * 60)),
        complex: Stretch::of(100, Some(30 * 60)),
        background: Stretch::of(500, None),
        same_results: 3,
        window: None,
    };
    /// Those of the offline model: it goes by rule and costs nothing, and a person may well say the same thing thrice.
    pub const OFFLINE: Self = Self::alike(Stretch::of(500, None), u32::MAX);

    /// The same for every complexity.
    pub const fn alike(stretch: Stretch, same_results: u32) -> Self {
        Self { quick: stretch, medium: stretch, complex: stretch, background: stretch, same_results, window: None }
    }

    /// The same for a model that can take so many tokens; none: it keeps its conversations by itself.
    #[must_use]
    pub fn within(self, window_tokens: Option<u64>) -> Self {
        Self { window: window_tokens.map(Window::of), ..self }
    }

    fn of(&self, complexity: Complexity) -> Stretch {
        match complexity {
            Complexity::Quick => self.quick,
            Complexity::Medium => self.medium,
            Complexity::Complex => self.complex,
            Complexity::Background => self.background,
        }
    }
}

impl Stretch {
    /// So many rounds, and so many seconds.
    pub const fn of(rounds: u32, work_s: Option<u64>) -> Self {
        let work = match work_s {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => None,
        };
        Self { rounds, work }
    }

    /// For people: `30 rounds or 5 min of work`.
    pub fn describe(&self) -> String {
        let work = self.work.map(|work| format!(" or {} of work", in_words(work))).unwrap_or_default();
        format!("{} rounds{work}", self.rounds)
    }
}

/// What a cycle has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkTaken {
    /// Turns of the model.
    pub rounds: u32,
    /// Working time.
    pub work: Duration,
}

impl WorkTaken {
    /// For people: `30 rounds, 2 min of work`.
    pub fn describe(&self) -> String {
        let rounds = if self.rounds == 1 { "1 round" } else { &format!("{} rounds", self.rounds) };
        format!("{rounds}, {} of work", in_words(self.work))
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// What kind of work it is the limit of.
    pub complexity: Complexity,
    /// The limit, and what a yes allows once more.
    pub stretch: Stretch,
    /// What was taken since the last yes, or the plan.
    pub taken: WorkTaken,
}

impl Reached {
    /// Whether the time is over, and not only the rounds.
    pub(crate) fn is_of_time(&self) -> bool {
        self.stretch.work.is_some_and(|work| self.taken.work >= work)
    }
}

/// Counts what a cycle takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meter {
    /// All that it has taken.
    pub taken: WorkTaken,
    /// What it had taken when the present stretch began.
    from: WorkTaken,
    complexity: Option<Complexity>,
    raises: u32,
    /// Questions that were decided.
    decided: u32,
    is_asked: bool,
    /// Why a person's word, or their silence, ends it.
    refusal: Option<String>,
}

impl Meter {
    /// What kind of work it is: as planned, else medium.
    pub fn complexity(&self) -> Complexity {
        self.complexity.unwrap_or_default()
    }

    /// A turn was received.
    pub(crate) fn round(&mut self) {
        self.taken.rounds = self.taken.rounds.saturating_add(1);
    }

    /// So long was worked.
    pub(crate) fn worked(&mut self, ms: u64) {
        self.taken.work = self.taken.work.saturating_add(Duration::from_millis(ms));
    }

    /// A plan was taken.
    pub(crate) fn planned(&mut self, complexity: Complexity) {
        match self.complexity {
            None => {
                self.complexity = Some(complexity);
                self.from = self.taken;
            }
            // fault: plan-raised-again-again
            Some(known) if known < complexity && self.raises < MAX_RAISES => {
                // fault: raised-plan-begins-anew
                self.raises += 1;
                self.complexity = Some(complexity);
            }
            Some(_) => {}
        }
    }

    /// The limit that is reached, if one is.
    pub fn reached(&self, limits: &Limits) -> Option<Reached> {
        let complexity = self.complexity();
        let stretch = limits.of(complexity);
        let taken = WorkTaken {
            rounds: self.taken.rounds.saturating_sub(self.from.rounds),
            work: self.taken.work.saturating_sub(self.from.work),
        };
        // fault: working-time-limit
        // fault: rounds-limit
        let is_reached = taken.rounds >= stretch.rounds || stretch.work.is_some_and(|work| taken.work >= work);
        is_reached.then_some(Reached { complexity, stretch, taken })
    }

    /// The present question's id among those of calls, which can't be one of them (see [`is_reserved`]).
    pub(crate) fn question(&self) -> String {
        format!("{GO_ON}/{}", self.decided + 1)
    }

    /// Whether a person has been asked the present question.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    /// A person has decided the present question, or nobody did in time.
    pub(crate) fn decided(&mut self, is_approved: bool, why: &str) {
        self.decided += 1;
        self.is_asked = false;
        if is_approved {
            self.from = self.taken;
        } else {
            self.refusal = Some(why.to_owned());
        }
    }

    /// Why it may not go on.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// Whether an id belongs to us: no call of a model may have it.
pub(crate) fn is_reserved(id: &str) -> bool {
    id.strip_prefix(GO_ON).is_some_and(|rest| rest.starts_with('/'))
}

/// Counts how often a call has come to the same result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    seen: BTreeMap<(String, String, String), u32>,
    most: Option<Repeated>,
}

/// A call that came to the same result again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: String,
    /// How often.
    pub times: u32,
}

impl Repeats {
    /// A call has come to this. How its arguments are written makes no difference.
    pub(crate) fn note(&mut self, name: &str, input: &str, result: &str) {
        let input = match serde_json::from_str::<serde_json::Value>(input) {
            Ok(mut value) => {
                value.sort_all_objects();
                value.to_string()
            }
            Err(_) => input.trim().to_owned(),
        };
        let times = self.seen.entry((name.to_owned(), input.clone(), result.to_owned())).or_default();
        *times += 1;
        if self.most.as_ref().is_none_or(|most| most.times < *times) {
            self.most = Some(Repeated { name: name.to_owned(), input, times: *times });
        }
    }

    /// Something new was said: what was found out before may be asked for again.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The call that came to the same result too often, if one did.
    pub fn too_many(&self, limits: &Limits) -> Option<&Repeated> {
        // fault: mind-go-round-circles
        self.most.as_ref().filter(|most| most.times >= limits.same_results)
    }
}

/// A time as people say it: seconds below two minutes, else minutes, rounded down.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_tools::Registry;

    #[test]
    fn the_model_is_told_the_limits_that_hold() {
        let definitions = Registry::standard().definitions();
        for stretch in [Limits::STANDARD.quick, Limits::STANDARD.medium, Limits::STANDARD.complex] {
            let work = stretch.work.unwrap();
            let work = if work.as_secs() < 120 {
                format!("{} seconds", work.as_secs())
            } else {
                format!("{} minutes", work.as_secs() / 60)
            };
            let told = format!("{} rounds or {work}", stretch.rounds);
            assert!(definitions.contains(&told), "{told}");
        }
        assert!(definitions.contains(": 500 rounds.") && Limits::STANDARD.background == Stretch::of(500, None));
    }

    #[test]
    fn how_far_it_went_is_said_in_words() {
        let taken = |rounds, seconds| WorkTaken { rounds, work: Duration::from_secs(seconds) }.describe();
        assert_eq!(taken(1, 0), "1 round, 0 s of work");
        assert_eq!(taken(30, 119), "30 rounds, 119 s of work");
        assert_eq!(taken(30, 299), "30 rounds, 4 min of work");
        assert_eq!(Limits::STANDARD.medium.describe(), "30 rounds or 5 min of work");
        assert_eq!(Limits::STANDARD.background.describe(), "500 rounds");
    }
}
