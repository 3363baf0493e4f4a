//! The limits of an unattended cycle. Rounds and working time are limited by the complexity of its plan; a call with the same result may
//! be repeated only a few times. Pure: the machine counts from the journal.
//!
//! Counting restarts only with the first plan and with each approval by a person. A model that raises its plan gets the larger limit from
//! the same start, so repeated planning can't extend a cycle forever.

use std::{collections::BTreeMap, time::Duration};

use reveille_tools::Complexity;

use crate::decide::fold::Window;

/// The pseudo-tool that asks a person whether a cycle may continue.
pub const GO_ON: &str = "go_on";
/// The number of later plans that may raise the complexity. Further raises need a person.
const MAX_RAISES: u32 = 1;

/// The allowance of a cycle before a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The number of turns of the model.
    pub rounds: u32,
    /// The working time: received turns and completed calls, without waiting for a person or an unavailable model. `None` if unlimited. The
    /// limit is checked before each turn and each acting call. Running work isn't cut off: a request would be paid for in vain, a command
    /// would be left half done, and an approval would repeat it. So the limit can be exceeded by one request or call, each with a limit of
    /// its own.
    pub work: Option<Duration>,
}

/// The limits of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One or two calls.
    pub quick: Stretch,
    /// A handful of steps, and a cycle without a plan.
    pub medium: Stretch,
    /// Many steps or much reading.
    pub complex: Stretch,
    /// Work without a time limit, over several wakes.
    pub background: Stretch,
    /// The number of identical results of a call after which the cycle ends.
    pub same_results: u32,
    /// The conversation size for folding. `None` if the conversation is never folded.
    pub window: Option<Window>,
}

impl Limits {
    /// The limits for a model that costs time and money.
    pub const STANDARD: Self = Self {
        quick: Stretch::new(10, Some(60)),
        medium: Stretch::new(30, Some(5 * 60)),
        complex: Stretch::new(100, Some(30 * 60)),
        background: Stretch::new(500, None),
        same_results: 3,
        window: None,
    };
    /// The limits for the offline model: it follows rules and costs nothing, and a person may repeat a request.
    pub const OFFLINE: Self = Self::from_stretch(Stretch::new(500, None), u32::MAX);

    /// The same limits for every complexity.
    pub const fn from_stretch(stretch: Stretch, same_results: u32) -> Self {
        Self { quick: stretch, medium: stretch, complex: stretch, background: stretch, same_results, window: None }
    }

    /// Sets the window for a model that accepts this many tokens. `None` if the model manages its own conversations.
    #[must_use]
    pub fn with_window(self, window_tokens: Option<u64>) -> Self {
        Self { window: window_tokens.map(Window::for_model), ..self }
    }

    fn stretch(&self, complexity: Complexity) -> Stretch {
        match complexity {
            Complexity::Quick => self.quick,
            Complexity::Medium => self.medium,
            Complexity::Complex => self.complex,
            Complexity::Background => self.background,
        }
    }
}

impl Stretch {
    /// Builds a stretch from rounds and seconds.
    pub const fn new(rounds: u32, work_s: Option<u64>) -> Self {
        let work = match work_s {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => None,
        };
        Self { rounds, work }
    }

    /// Describes the stretch for people: `30 rounds or 5 min of work`.
    pub fn describe(&self) -> String {
        let work = self.work.map(|work| format!(" or {} of work", format_duration(work))).unwrap_or_default();
        format!("{} rounds{work}", self.rounds)
    }
}

/// The work done by a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkTaken {
    /// The number of turns of the model.
    pub rounds: u32,
    /// Working time.
    pub work: Duration,
}

impl WorkTaken {
    /// Describes the work for people: `30 rounds, 2 min of work`.
    pub fn describe(&self) -> String {
        let rounds = if self.rounds == 1 { "1 round" } else { &format!("{} rounds", self.rounds) };
        format!("{rounds}, {} of work", format_duration(self.work))
    }
}

/// A reached limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The complexity of the limit.
    pub complexity: Complexity,
    /// The limit. An approval grants the same amount again.
    pub stretch: Stretch,
    /// The work since the last approval, or since the plan.
    pub taken: WorkTaken,
}

impl Reached {
    /// Returns `true` if the time limit is reached, not only the rounds.
    pub(crate) fn is_of_time(&self) -> bool {
        self.stretch.work.is_some_and(|work| self.taken.work >= work)
    }
}

/// Measures the work of a cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meter {
    /// The total work.
    pub taken: WorkTaken,
    /// The total work at the beginning of the current stretch.
    from: WorkTaken,
    complexity: Option<Complexity>,
    raises: u32,
    /// The number of decided questions.
    decided: u32,
    is_asked: bool,
    /// The reason why a person's refusal or silence ends the cycle.
    refusal: Option<String>,
}

impl Meter {
    /// The complexity: as planned, otherwise medium.
    pub fn complexity(&self) -> Complexity {
        self.complexity.unwrap_or_default()
    }

    /// Counts a received turn.
    pub(crate) fn count_round(&mut self) {
        self.taken.rounds = self.taken.rounds.saturating_add(1);
    }

    /// Adds working time.
    pub(crate) fn add_work(&mut self, ms: u64) {
        self.taken.work = self.taken.work.saturating_add(Duration::from_millis(ms));
    }

    /// Records a plan.
    pub(crate) fn record_plan(&mut self, complexity: Complexity) {
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

    /// Returns the reached limit, if any.
    pub fn find_reached_limit(&self, limits: &Limits) -> Option<Reached> {
        let complexity = self.complexity();
        let stretch = limits.stretch(complexity);
        let taken = WorkTaken {
            rounds: self.taken.rounds.saturating_sub(self.from.rounds),
            work: self.taken.work.saturating_sub(self.from.work),
        };
        // fault: working-time-limit
        // fault: rounds-limit
        let is_reached = taken.rounds >= stretch.rounds || stretch.work.is_some_and(|work| taken.work >= work);
        is_reached.then_some(Reached { complexity, stretch, taken })
    }

    /// The id of the current question. It stands where a call's id would, and can't equal one (see [`is_reserved`]).
    pub(crate) fn question_id(&self) -> String {
        format!("{GO_ON}/{}", self.decided + 1)
    }

    /// Returns `true` if a person has been asked the current question.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub(crate) fn mark_asked(&mut self) {
        self.is_asked = true;
    }

    /// Records the decision on the current question. Silence counts as a refusal.
    pub(crate) fn record_decision(&mut self, is_approved: bool, why: &str) {
        self.decided += 1;
        self.is_asked = false;
        if is_approved {
            self.from = self.taken;
        } else {
            self.refusal = Some(why.to_owned());
        }
    }

    /// Returns why the cycle can't continue. `None` unless a person has refused.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// Returns `true` if an id is reserved for our own questions, so that no call of a model may use it.
pub(crate) fn is_reserved(id: &str) -> bool {
    id.strip_prefix(GO_ON).is_some_and(|rest| rest.starts_with('/'))
}

/// Counts identical results of the same call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    seen: BTreeMap<(String, String, String), u32>,
    most: Option<Repeated>,
}

/// A call with a repeated result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: String,
    /// The number of times.
    pub times: u32,
}

impl Repeats {
    /// Counts a result. The formatting of the arguments makes no difference.
    pub(crate) fn record_result(&mut self, name: &str, input: &str, result: &str) {
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

    /// Restarts the count after a new message, since earlier questions may be asked again.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the call with too many identical results, if any.
    pub fn find_excessive_repeat(&self, limits: &Limits) -> Option<&Repeated> {
        // fault: mind-go-round-circles
        self.most.as_ref().filter(|most| most.times >= limits.same_results)
    }
}

/// Renders a duration for people: seconds below two minutes, otherwise whole minutes.
fn format_duration(time: Duration) -> String {
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
    fn the_tool_definitions_state_the_limits_in_force() {
        let definitions = Registry::with_standard_tools().render_definitions();
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
        assert!(definitions.contains(": 500 rounds.") && Limits::STANDARD.background == Stretch::new(500, None));
    }

    #[test]
    fn work_and_limits_are_described_in_words() {
        let taken = |rounds, seconds| WorkTaken { rounds, work: Duration::from_secs(seconds) }.describe();
        assert_eq!(taken(1, 0), "1 round, 0 s of work");
        assert_eq!(taken(30, 119), "30 rounds, 119 s of work");
        assert_eq!(taken(30, 299), "30 rounds, 4 min of work");
        assert_eq!(Limits::STANDARD.medium.describe(), "30 rounds or 5 min of work");
        assert_eq!(Limits::STANDARD.background.describe(), "500 rounds");
    }
}
