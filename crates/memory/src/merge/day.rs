//! Merges one day of the log that both sides wrote to: the union of their entries.

use std::collections::{HashMap, HashSet};

use chrono::NaiveTime;

use super::{
    Merger,
    diff::{ThreeWay, is_same_unit},
};
use crate::{
    episodic::entry_time,
    sections::{Spacing, build_bridge},
    text::is_blank,
};

impl Merger<'_> {
    /// Merges a day of the log. Keeps the person's entries (units) except those our side removed, and inserts our new ones by time. Keeps
    /// the person's heading. Removes a day without entries.
    pub(super) fn merge_day(&self, all: ThreeWay<'_, '_>) -> String {
        let (was, theirs, mine) = (number_units(all.base), number_units(all.person), number_units(all.ours));
        let heading = all.person.first().or(all.ours.first()).copied().unwrap_or_default();
        let (was_set, their_set): (HashSet<_>, HashSet<_>) = (was.iter().collect(), theirs.iter().collect());
        let my_set: HashSet<_> = mine.iter().collect();
        let kept = theirs.iter().zip(all.person).skip(1);
        let kept = kept.filter(|(unit, _)| unit.0.is_empty() || !was_set.contains(unit) || my_set.contains(unit));
        let mut out: Vec<&str> = std::iter::once(heading).chain(kept.map(|(_, unit)| *unit)).collect();
        let mut at = 1;
        let mut tail: Vec<&str> = Vec::new();
        for (unit, raw) in mine.iter().zip(all.ours).skip(1) {
            if their_set.contains(unit) {
                at = out.iter().position(|other| is_same_unit(other, raw)).map_or(at, |place| place + 1);
            } else if !unit.0.is_empty() && !was_set.contains(unit) {
                at = entry_time(raw).map_or(at, |time| place_by_time(&out, time)).min(out.len());
                if at == out.len() {
                    tail.push(raw);
                } else {
                    out.insert(at, raw);
                    at += 1;
                }
            }
        }
        if tail.is_empty() && out.iter().skip(1).all(|unit| is_blank(unit)) {
            return String::new();
        }
        let text = self.join_units(&out);
        let bridge = if tail.is_empty() { String::new() } else { build_bridge(&text, self.eol, Spacing::Tight) };
        text + &bridge + &self.join_units(&tail)
    }
}

/// Returns the position for an entry of this time: after the last entry that isn't later, and before the next later one.
fn place_by_time(units: &[&str], time: NaiveTime) -> usize {
    let times: Vec<Option<NaiveTime>> = units.iter().map(|unit| entry_time(unit)).collect();
    let after = times.iter().rposition(|other| other.is_some_and(|other| other <= time)).map_or(0, |at| at + 1);
    let later = times.iter().skip(after).position(|other| other.is_some_and(|other| other > time));
    later.map_or(units.len(), |at| after + at)
}

/// Returns each unit without trailing white space, numbered among its duplicates.
fn number_units<'a>(units: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let nth = |unit: &&'a str| {
        let unit = unit.trim_end();
        let count = seen.entry(unit).or_default();
        *count += 1;
        (unit, *count)
    };
    units.iter().map(nth).collect()
}
