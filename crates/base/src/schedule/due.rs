//! Decides at each check of the clock which slot happens, which were missed, and which comes next.
//!
//! Checks come irregularly: every few seconds, every quarter of an hour, after a week of sleep, on a clock that was wrong for a
//! while. So only the next slot is computed ahead, and the outcome of each slot is stored by its key. A slot happens at most once,
//! and a missed one is reported. Does no I/O; `store` keeps the history.

use std::{collections::BTreeSet, fmt};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Rule, Slot};
use crate::zone::Tz;

/// The lateness after which a slot counts as missed. Cron may come by only every quarter of an hour, and a wake can be busy.
pub const MISSED_AFTER: TimeDelta = TimeDelta::minutes(30);
/// A smaller step back of the clock is a mere correction: nothing can have been missed under the wrong time.
pub const CLOCK_SLACK: TimeDelta = TimeDelta::minutes(1);
/// The maximum number of slots in one check: two years of minutes. The rest is passed over at once.
const MAX_DUE: u32 = 1_000_000;

/// The policy for a slot that was missed because the machine was asleep or off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Fire once, late, and mention the intended time. The default: a loss hurts more than a delay.
    #[default]
    Run,
    /// Leave it out. The memory's log and the list of reminders mention it, but no message does.
    Skip,
    /// Leave it out, and report the missed time in a message.
    Tell,
}

impl Missed {
    /// Parses the word of a person or the database, ignoring case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Run, Self::Skip, Self::Tell].into_iter().find(|policy| policy.name().eq_ignore_ascii_case(text.trim()))
    }

    /// The policy in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skip => "skip",
            Self::Tell => "tell",
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "late if missed",
            Self::Skip => "skipped if missed",
            Self::Tell => "only told of if missed",
        })
    }
}

/// The state of a single or recurring series.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// The recurrence; `None` for a single time.
    pub rule: Option<&'a Rule>,
    /// The zone of the civil times.
    pub tz: Tz,
    /// The policy for missed slots.
    pub missed: Missed,
    /// The next slot.
    pub next: Slot,
}

/// The outcomes of slots from the next one on. Empty unless the clock was set back, so that times come again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotHistory {
    /// The slots that happened.
    pub happened: BTreeSet<NaiveDateTime>,
    /// The first and last slots of each range that was passed over, and reported if required.
    pub passed: Vec<(NaiveDateTime, NaiveDateTime)>,
}

/// The decision of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTurn {
    /// The slot that happens now.
    pub happens: Option<Slot>,
    /// True if the slot was missed and happens late.
    pub is_late: bool,
    /// Slots that were due but don't happen: missed, or replaced by a later slot of the series.
    pub passed: Option<Passed>,
    /// The next slot; `None` if the series is over.
    pub next: Option<Slot>,
}

/// A range of slots that don't happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The earliest slot.
    pub first: Slot,
    /// The latest slot.
    pub last: Slot,
    /// The number of slots.
    pub count: u32,
}

impl DueTurn {
    /// Returns true if a slot was missed rather than a little late.
    pub fn has_missed(&self, now: DateTime<Utc>) -> bool {
        self.is_late || self.passed.is_some_and(|passed| is_slot_missed(passed.first, now))
    }
}

impl Series<'_> {
    /// Decides at `now`. Only the latest of several due slots can happen; if that slot was missed, the policy decides.
    pub fn decide_turn(&self, history: &SlotHistory, now: DateTime<Utc>) -> DueTurn {
        let mut turn = DueTurn { happens: None, is_late: false, passed: None, next: Some(self.next) };
        for _ in 0..MAX_DUE {
            let Some(due) = turn.next.filter(|slot| slot.at <= now) else { break };
            // fault: next-slot-reckoned-now
            turn.next = self.next_slot(due);
            // fault: slot-comes-again-happens
            if history.has_happened(due) || is_slot_missed(due, now) && history.has_passed(due) {
                continue;
            }
            if let Some(earlier) = turn.happens.replace(due) {
                turn.record_passed(earlier);
            }
        }
        if turn.next.is_some_and(|slot| slot.at <= now) {
            turn.next = self.rule.and_then(|rule| rule.next_after(now, self.tz));
        }
        turn.is_late = turn.happens.is_some_and(|slot| is_slot_missed(slot, now));
        if turn.is_late && self.missed != Missed::Run {
            turn.is_late = false;
            turn.happens.take().into_iter().for_each(|slot| turn.record_passed(slot));
        }
        turn
    }

    /// The next slot after the clock was set back to `now`, if earlier than the present one. Slots that were passed over under the wrong
    /// time come again; slots that happened don't. No slot lies before `created`.
    pub fn find_rewound_slot(&self, history: &SlotHistory, created: DateTime<Utc>, now: DateTime<Utc>) -> Option<Slot> {
        let mut slot = self.rule?.next_after(created.max(now - MISSED_AFTER), self.tz)?;
        for _ in 0..MAX_DUE {
            if slot.civil >= self.next.civil {
                return None;
            }
            if !history.has_happened(slot) {
                return Some(slot);
            }
            slot = self.next_slot(slot)?;
        }
        None
    }

    fn next_slot(&self, slot: Slot) -> Option<Slot> {
        self.rule.and_then(|rule| rule.next_slot(slot, self.tz))
    }
}

impl SlotHistory {
    fn has_happened(&self, slot: Slot) -> bool {
        self.happened.contains(&slot.civil)
    }

    fn has_passed(&self, slot: Slot) -> bool {
        self.passed.iter().any(|(first, last)| (*first..=*last).contains(&slot.civil))
    }
}

impl DueTurn {
    fn record_passed(&mut self, slot: Slot) {
        match &mut self.passed {
            Some(passed) => {
                passed.last = slot;
                passed.count += 1;
            }
            None => self.passed = Some(Passed { first: slot, last: slot, count: 1 }),
        }
    }
}

/// Returns true if a slot is too old to count as met.
pub fn is_slot_missed(slot: Slot, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(slot.at) > MISSED_AFTER
}

/// Returns true if the clock has been set back since a stored time.
pub fn is_set_back(written: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    written.signed_duration_since(now) > CLOCK_SLACK
}

#[cfg(test)]
mod tests;
