//! Merges one section changed by both sides: tasks by key, facts by fact, other text by line.

use std::collections::HashSet;

use chrono::NaiveDate;

use super::{
    ByHand, ConflictStyle, Merger, Outcome,
    diff::{ThreeWay, UnitRun, are_same, diff3, is_same_unit},
    pieces::{Piece, trim_blank_units},
};
use crate::{
    DocKind,
    tasks::{RawKey, RawTask, raw_task},
    text::{fold_text, is_blank, split_comment, split_lines},
    unsettled::{self, Version},
};

impl Merger<'_> {
    /// Merges a section whose first `headings` units are its heading. The person's heading wins unless only ours changed.
    pub(super) fn merge_under_heading<'a>(&self, all: ThreeWay<'_, 'a>, headings: usize) -> Outcome<'a> {
        let split = |units: &[&'a str]| {
            let (heading, rest) = units.split_at_checked(headings).unwrap_or_default();
            (heading.to_vec(), rest.to_vec())
        };
        let ((was, base), (theirs, person), (mine, ours)) = (split(all.base), split(all.person), split(all.ours));
        let heading = if are_same(&was, &theirs) { mine } else { theirs };
        // Merging without quotes serves undo, for which neighbouring lines are as independent as facts.
        let resolve = if self.kind == DocKind::Facts || self.style == ConflictStyle::Unmarked {
            resolve_facts
        } else {
            resolve_lines
        };
        let (text, quoted) = self.merge_runs(ThreeWay { base: &base, person: &person, ours: &ours }, resolve);
        (self.join_units(&heading) + &text, quoted)
    }

    /// Aligns the units and merges them; `resolve` handles runs that both sides changed.
    fn merge_runs<'a>(
        &self,
        all: ThreeWay<'_, 'a>,
        resolve: fn(ThreeWay<'_, 'a>, &ByHand) -> Resolution<'a>,
    ) -> Outcome<'a> {
        let (mut text, mut quoted) = (String::new(), Vec::new());
        for run in diff3(all) {
            match run {
                UnitRun::Settled(units) => text.push_str(&self.join_units(units)),
                UnitRun::Conflict(run) => {
                    let resolution = resolve(run, self.by_hand);
                    text.push_str(&self.render_versions(&resolution.kept));
                    quoted.extend(resolution.quoted);
                }
            }
        }
        (text, quoted)
    }

    /// Joins the resulting units, and marks those that the person has to choose from.
    fn render_versions(&self, kept: &[(&str, Option<Version>)]) -> String {
        let number = kept.iter().any(|(_, version)| version.is_some()).then(|| self.take_number());
        let shown = kept.iter().map(|(unit, version)| match number.zip(*version).filter(|_| !is_blank(unit)) {
            Some(mark) => self.end_line(unsettled::add_mark(unit, mark)),
            None => self.end_line((*unit).to_owned()),
        });
        shown.collect()
    }

    /// Merges a task by key, and its free text by line.
    pub(super) fn merge_task<'a>(&self, base: Option<&Piece<'a>>, person: &Piece<'a>, ours: &Piece<'a>) -> Outcome<'a> {
        let (theirs, mine) = (raw_task(person.text), raw_task(ours.text));
        let was = base.map(|base| raw_task(base.text));
        let was_keys = was.as_ref().map(|was| was.keys.as_slice()).unwrap_or_default();
        let mut text = if was.as_ref().is_some_and(|was| is_same_unit(was.heading, theirs.heading)) {
            self.end_line(mine.heading.to_owned())
        } else {
            self.end_line(theirs.heading.to_owned())
        };
        let mut quoted = Vec::new();
        let by_hand = |key: &RawKey<'_>, before: Option<&RawKey<'_>>| {
            let base: Vec<&str> = before.map(|before| before.raw).into_iter().collect();
            self.by_hand.has_written(key.raw, &base)
        };
        for key in &theirs.keys {
            let (before, other) = (find_key(was_keys, &key.name), find_key(&mine.keys, &key.name));
            let untouched = before.is_some_and(|before| is_same_key(before, key));
            match other {
                None if untouched => continue,
                None if before.is_some_and(|before| self.by_hand.has_removed(&[before.raw], &[])) => {
                    text.push_str(&self.render_versions(&[(key.raw, Some(Version::Alone))]));
                    continue;
                }
                Some(other) if untouched || is_later_touch(key, other) => {
                    text.push_str(&self.end_line(other.raw.to_owned()));
                    continue;
                }
                _ => {}
            }
            let lost = other.filter(|other| !is_same_key(key, other) && key.name != "touched");
            match lost.filter(|lost| !before.is_some_and(|before| is_same_key(before, lost))) {
                Some(lost) if by_hand(lost, before) => {
                    text.push_str(&self.render_versions(&[(key.raw, Some(Version::A)), (lost.raw, Some(Version::B))]));
                }
                lost => {
                    text.push_str(&self.end_line(key.raw.to_owned()));
                    quoted.extend(lost.map(|lost| lost.raw));
                }
            }
        }
        for key in mine.keys.iter().filter(|key| find_key(&theirs.keys, &key.name).is_none()) {
            match find_key(was_keys, &key.name) {
                None => text.push_str(&self.end_line(key.raw.to_owned())),
                Some(before) if is_same_key(before, key) => {}
                before if by_hand(key, before) => {
                    text.push_str(&self.render_versions(&[(key.raw, Some(Version::Alone))]));
                }
                Some(_) => quoted.push(key.raw),
            }
        }
        let rest = |task: &RawTask<'a>| split_lines(task.rest).collect::<Vec<_>>();
        let (was_rest, their_rest, my_rest) = (was.as_ref().map(rest).unwrap_or_default(), rest(&theirs), rest(&mine));
        let all = ThreeWay {
            base: trim_blank_units(&was_rest),
            person: trim_blank_units(&their_rest),
            ours: trim_blank_units(&my_rest),
        };
        let (body, left) = self.merge_runs(all, resolve_lines);
        quoted.extend(left);
        (text + &body, quoted)
    }
}

fn find_key<'k, 'a>(keys: &'k [RawKey<'a>], name: &str) -> Option<&'k RawKey<'a>> {
    keys.iter().find(|key| key.name == name)
}

fn is_same_key(a: &RawKey<'_>, b: &RawKey<'_>) -> bool {
    a.raw.trim() == b.raw.trim()
}

/// Returns whether both keys are `touched` dates and the other one is later, because a touch on either side counts.
fn is_later_touch(key: &RawKey<'_>, other: &RawKey<'_>) -> bool {
    let day = |key: &RawKey<'_>| key.value.parse::<NaiveDate>().ok();
    key.name == "touched" && day(other).is_some_and(|other| day(key).is_none_or(|day| other > day))
}

/// The result for a run that both sides changed: the units to keep, and the units of our side to quote below.
struct Resolution<'a> {
    kept: Vec<(&'a str, Option<Version>)>,
    quoted: Vec<&'a str>,
}

/// Resolves lines: keeps the person's and quotes ours, except equal lines at either end. Also keeps the lines that a person wrote on our
/// side.
fn resolve_lines<'a>(run: ThreeWay<'_, 'a>, by_hand: &ByHand) -> Resolution<'a> {
    let (person, ours) = (run.person, run.ours);
    let head = person.iter().zip(ours).take_while(|(a, b)| is_same_unit(a, b)).count();
    let rest = |units: &[&'a str]| units.get(head..).unwrap_or_default().to_vec();
    let (mut their_rest, mut my_rest) = (rest(person), rest(ours));
    let tail = their_rest.iter().rev().zip(my_rest.iter().rev()).take_while(|(a, b)| is_same_unit(a, b)).count();
    my_rest.truncate(my_rest.len() - tail);
    let is_old = |unit: &&str| is_blank(unit) || run.base.iter().any(|was| is_same_unit(was, unit));
    let is_persons = |unit: &&str| by_hand.has_written(unit, run.base);
    let is_by_hand =
        my_rest.iter().any(&is_persons) || my_rest.iter().all(&is_old) && by_hand.has_removed(run.base, ours);
    if !is_by_hand {
        let quoted = if my_rest.iter().all(|line| is_blank(line)) { Vec::new() } else { my_rest };
        return Resolution { kept: to_unmarked_units(person), quoted };
    }
    let ends = their_rest.split_off(their_rest.len() - tail);
    let (our_kept, quoted): (Vec<&str>, Vec<&str>) =
        my_rest.into_iter().partition(|unit| is_old(unit) || is_persons(unit));
    let mut all = to_unmarked_units(person.get(..head).unwrap_or_default());
    // An addition to an empty base can't contradict anything.
    let is_empty = |units: &[&str]| units.iter().all(|unit| is_blank(unit));
    let written = WrittenSides { has_theirs: !is_empty(&their_rest), has_ours: !is_empty(&our_kept) };
    let (a, b) = if is_empty(run.base) { (None, None) } else { choose_versions(&written) };
    all.extend(their_rest.into_iter().map(|unit| (unit, a)));
    all.extend(our_kept.into_iter().map(|unit| (unit, b)));
    all.extend(to_unmarked_units(&ends));
    Resolution { kept: all, quoted }
}

/// Resolves facts: applies the additions and removals of both sides. The versions contradict each other only if both sides removed the
/// same fact and ours put another in its place. Ours is then quoted, or kept as well if a person wrote it.
fn resolve_facts<'a>(run: ThreeWay<'_, 'a>, by_hand: &ByHand) -> Resolution<'a> {
    let (base, person, ours) = (trim_units(run.base), trim_units(run.person), trim_units(run.ours));
    let removed_by_us = |unit: &str| base.contains(unit) && !ours.contains(unit);
    let mut kept: Vec<&str> = run.person.iter().filter(|unit| !removed_by_us(unit.trim_end())).copied().collect();
    let known: HashSet<String> = kept.iter().map(|unit| fold_fact(unit)).collect();
    let is_new = |unit: &&&str| !is_blank(unit) && !base.contains(unit.trim_end()) && !known.contains(&fold_fact(unit));
    let new: Vec<&str> = run.ours.iter().filter(is_new).copied().collect();
    let contested: Vec<&str> = run
        .base
        .iter()
        .filter(|unit| !person.contains(unit.trim_end()) && !ours.contains(unit.trim_end()))
        .copied()
        .collect();
    if contested.iter().all(|unit| is_blank(unit)) {
        kept.extend(new);
        return Resolution { kept: to_unmarked_units(&kept), quoted: Vec::new() };
    }
    let (our_kept, quoted): (Vec<&str>, Vec<&str>) =
        new.into_iter().partition(|unit| by_hand.has_written(unit, run.base));
    let is_deletion = quoted.is_empty() && by_hand.has_removed(&contested, &[]);
    if our_kept.is_empty() && !is_deletion {
        return Resolution { kept: to_unmarked_units(&kept), quoted };
    }
    let is_old = |unit: &str| is_blank(unit) || base.contains(unit.trim_end()) || ours.contains(unit.trim_end());
    let last = kept.iter().rposition(|unit| !is_old(unit));
    let (a, b) = choose_versions(&WrittenSides { has_theirs: last.is_some(), has_ours: !our_kept.is_empty() });
    let at = last.map_or(kept.len(), |last| last + 1);
    let mut all: Vec<_> = kept.into_iter().map(|unit| (unit, a.filter(|_| !is_old(unit)))).collect();
    all.splice(at..at, our_kept.into_iter().map(|unit| (unit, b)));
    Resolution { kept: all, quoted }
}

/// The sides of a conflict that have content.
struct WrittenSides {
    has_theirs: bool,
    has_ours: bool,
}

/// Returns the version mark of each side with content.
fn choose_versions(written: &WrittenSides) -> (Option<Version>, Option<Version>) {
    match (written.has_theirs, written.has_ours) {
        (true, true) => (Some(Version::A), Some(Version::B)),
        (false, false) => (None, None),
        _ => (Some(Version::Alone), Some(Version::Alone)),
    }
}

fn to_unmarked_units<'a>(units: &[&'a str]) -> Vec<(&'a str, Option<Version>)> {
    units.iter().map(|unit| (*unit, None)).collect()
}

/// Returns the non-blank units without trailing white space.
fn trim_units<'a>(units: &[&'a str]) -> HashSet<&'a str> {
    units.iter().filter(|unit| !is_blank(unit)).map(|unit| unit.trim_end()).collect()
}

/// Normalises a fact for comparison, without its origin.
fn fold_fact(unit: &str) -> String {
    fold_text(split_comment(&unsettled::remove_marks(unit)).0)
}
