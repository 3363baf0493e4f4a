//! What happens at a look at the clock: which slot happens now, which are past and are only said, and which comes next.
//!
//! Looks come when they come: every few seconds, every quarter of an hour, after a week of sleep, on a clock that was set
//! wrong and right again. So nothing is computed ahead but the next slot, and what became of each slot is kept by its key: a
//! slot happens at most once, and one that doesn't happen is said. Values in, values out; `store` keeps them.

use std::{collections::BTreeSet, fmt};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Rule, Slot};
use crate::zone::Tz;

/// So late a slot still counts as met: cron may come by once in a quarter of an hour, and a wake can be busy for a while.
/// What is later was missed.
pub const MISSED_AFTER: TimeDelta = TimeDelta::minutes(30);
/// A clock that goes back by less than this was only corrected: nothing can have been missed under the wrong time.
pub const CLOCK_SLACK: TimeDelta = TimeDelta::minutes(1);
/// Slots that one look goes through at most: two years of minutes. The rest is passed over as if it were one.
const MAX_DUE: u32 = 1_000_000;

/// What to do about something that was missed: the machine was asleep or off at its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Do it late, once, and say for when it was. The default: what is lost hurts more than what is late.
    #[default]
    Run,
    /// Leave it out. The memory's log and the list of reminders say so, no message does.
    Skip,
    /// Leave it out, and say in a message what was missed and when.
    Tell,
}

impl Missed {
    /// As a person or the database writes it; case doesn't matter.
    pub fn read(text: &str) -> Option<Self> {
        [Self::Run, Self::Skip, Self::Tell].into_iter().find(|policy| policy.name().eq_ignore_ascii_case(text.trim()))
    }

    /// Its one word.
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

/// Something that comes once or again and again, as it stands.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// How it recurs; `None`: once.
    pub rule: Option<&'a Rule>,
    /// The zone of its civil times.
    pub tz: Tz,
    /// What to do about a missed slot.
    pub missed: Missed,
    /// The next slot.
    pub next: Slot,
}

/// What became of slots from the next one on. Empty unless the clock was set back: then times come again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotHistory {
    /// Slots that happened.
    pub happened: BTreeSet<NaiveDateTime>,
    /// First and last of slots that were passed over, and were said to be if they ought to.
    pub passed: Vec<(NaiveDateTime, NaiveDateTime)>,
}

/// What one look decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTurn {
    /// What happens now.
    pub happens: Option<Slot>,
    /// Whether it was missed and happens all the same.
    pub is_late: bool,
    /// What came due and doesn't happen: it was missed, or a later slot of the same thing happens in its place.
    pub passed: Option<Passed>,
    /// What comes next; `None`: nothing any more.
    pub next: Option<Slot>,
}

/// Slots that don't happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The oldest.
    pub first: Slot,
    /// The latest.
    pub last: Slot,
    /// How many.
    pub count: u32,
}

impl DueTurn {
    /// Whether something was missed, as opposed to met a little late.
    pub fn has_missed(&self, now: DateTime<Utc>) -> bool {
        self.is_late || self.passed.is_some_and(|passed| was_missed(passed.first, now))
    }
}

impl Series<'_> {
    /// What happens at `now`. Of several slots that are due only the latest can happen; whether it does when it was missed is
    /// the policy's to say.
    pub fn turn(&self, history: &SlotHistory, now: DateTime<Utc>) -> DueTurn {
        let mut turn = DueTurn { happens: None, is_late: false, passed: None, next: Some(self.next) };
        for _ in 0..MAX_DUE {
            let Some(due) = turn.next.filter(|slot| slot.at <= now) else { break };
            // fault: next-slot-reckoned-now
            turn.next = self.following(due);
            // fault: slot-comes-again-happens
            if history.has_happened(due) || was_missed(due, now) && history.has_passed(due) {
                continue;
            }
            if let Some(earlier) = turn.happens.replace(due) {
                turn.pass(earlier);
            }
        }
        if turn.next.is_some_and(|slot| slot.at <= now) {
            turn.next = self.rule.and_then(|rule| rule.next_after(now, self.tz));
        }
        turn.is_late = turn.happens.is_some_and(|slot| was_missed(slot, now));
        if turn.is_late && self.missed != Missed::Run {
            turn.is_late = false;
            turn.happens.take().into_iter().for_each(|slot| turn.pass(slot));
        }
        turn
    }

    /// The next slot after the clock was set back to `now`, if that brings one nearer: what was passed over under the wrong
    /// time is still ahead, and comes; what has happened doesn't come again. Nothing was due before it was `created`.
    pub fn rewound(&self, history: &SlotHistory, created: DateTime<Utc>, now: DateTime<Utc>) -> Option<Slot> {
        let mut slot = self.rule?.next_after(created.max(now - MISSED_AFTER), self.tz)?;
        for _ in 0..MAX_DUE {
            if slot.civil >= self.next.civil {
                return None;
            }
            if !history.has_happened(slot) {
                return Some(slot);
            }
            slot = self.following(slot)?;
        }
        None
    }

    fn following(&self, slot: Slot) -> Option<Slot> {
        self.rule.and_then(|rule| rule.following(slot, self.tz))
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
    fn pass(&mut self, slot: Slot) {
        match &mut self.passed {
            Some(passed) => {
                passed.last = slot;
                passed.count += 1;
            }
            None => self.passed = Some(Passed { first: slot, last: slot, count: 1 }),
        }
    }
}

/// Whether a slot lies so far back that it was missed.
pub fn was_missed(slot: Slot, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(slot.at) > MISSED_AFTER
}

/// Whether the clock has been set back since a time that was written down.
pub fn is_set_back(written: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    written.signed_duration_since(now) > CLOCK_SLACK
}

#[cfg(test)]
mod tests;
