//! Three-way merge of a document that a person and a wake both changed since the same base.
//!
//! Section by section: what only one side changed is that side's. Where both did, tasks are merged by key, facts by
//! fact, the log by entry (both sides' entries stay, in time order), other text by line. In a true conflict the
//! person's side stands and the other is kept below it in a marked quote, which no parser here takes for a task, fact
//! or entry. What one side deleted and the other left alone stays deleted.

mod diff;

use std::collections::{HashMap, HashSet};

use chrono::{NaiveDate, NaiveTime};

use self::diff::{Meeting, Run, all_same, diff3, same};
use super::{
    DocKind,
    episodic::{entry_time, part_date},
    sections::{Document, Part, Spacing, bridge},
    tasks::{RawKey, RawTask, raw_task},
    text::{ends_line, eol, folded, is_blank, lines, split_comment},
};

/// The note above a quote of what didn't prevail.
const BOTH_CHANGED: &str = "<!-- Both of us changed this. Yours stands above, mine follows as a quote: \
                            keep what is right and delete the rest. -->";
/// The note above a quote of something that a person deleted while a wake changed it.
const DELETED_HERE: &str = "<!-- You deleted this while I changed it. It stays deleted, my version follows as a quote: \
                            copy what you want and delete the rest. -->";

/// A merged document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Its text.
    pub text: String,
    /// Where both sides changed the same thing differently; the texts below the notes say what.
    pub conflicts: Vec<Conflict>,
}

/// One place where the person's side prevailed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The section's title; empty above the first section.
    pub section: String,
    /// What the other side had there, as kept in the quote.
    pub other: String,
}

/// Merges what a person (`theirs_person`) and a wake (`ours`) made of the same `base`.
pub fn merge(kind: DocKind, base: &str, theirs_person: &str, ours: &str) -> Merged {
    if base == theirs_person || theirs_person == ours {
        return Merged {
            text: ours.to_owned(),
            conflicts: Vec::new(),
        };
    }
    if base == ours {
        return Merged {
            text: theirs_person.to_owned(),
            conflicts: Vec::new(),
        };
    }
    let ending = eol(theirs_person);
    let (base, ours) = (with_endings(base, ending), with_endings(ours, ending));
    let mut merger = Merger {
        kind,
        eol: ending,
        conflicts: Vec::new(),
    };
    let text = merger.documents(&Pieces::of(&base), &Pieces::of(theirs_person), &Pieces::of(&ours));
    Merged {
        text,
        conflicts: merger.conflicts,
    }
}

/// The text with the line endings of the person's, so that a change of endings alone is no change.
fn with_endings(text: &str, ending: &str) -> String {
    if eol(text) == ending {
        text.to_owned()
    } else {
        text.replace("\r\n", "\n").replace('\n', ending)
    }
}

/// What a part is known by: level and title, and which of those with the same title it is.
type Name = (u8, String, usize);

/// One part of a document.
#[derive(Debug, Clone)]
struct Piece<'a> {
    name: Name,
    date: Option<NaiveDate>,
    title: &'a str,
    text: &'a str,
    units: Vec<&'a str>,
}

/// The parts of a document, in order and by name.
struct Pieces<'a> {
    list: Vec<Piece<'a>>,
    by_name: HashMap<Name, usize>,
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Self {
        let document = Document::split(text);
        let mut list: Vec<Piece<'a>> = Vec::new();
        let mut by_name = HashMap::new();
        let mut seen: HashMap<(u8, String), usize> = HashMap::new();
        for part in &document.parts {
            let title = folded(&part.title);
            let nth = seen.entry((part.level, title.clone())).or_default();
            let name = (part.level, title, *nth);
            *nth += 1;
            by_name.insert(name.clone(), list.len());
            let heading = document.slice(&(part.range.start..part.body_start));
            list.push(Piece {
                name,
                date: part_date(part),
                title: heading.trim_start_matches([' ', '#']).trim_end(),
                text: document.slice(&part.range),
                units: units(&document, part),
            });
        }
        Self { list, by_name }
    }

    fn get(&self, name: &Name) -> Option<&Piece<'a>> {
        self.by_name.get(name).and_then(|at| self.list.get(*at))
    }
}

/// The units of a part: each bullet item whole, every other line by itself.
fn units<'a>(document: &Document<'a>, part: &Part) -> Vec<&'a str> {
    let mut units = Vec::new();
    let mut at = part.range.start;
    for item in &part.items {
        units.extend(lines(document.slice(&(at..item.start))));
        units.push(document.slice(item));
        at = item.end;
    }
    units.extend(lines(document.slice(&(at..part.range.end))));
    units
}

/// The units without the blank ones at the end, which only separate a part from the next.
fn content<'a, 'b>(units: &'b [&'a str]) -> &'b [&'a str] {
    let end = units
        .iter()
        .rposition(|unit| !is_blank(unit))
        .map_or(0, |last| last + 1);
    units.get(..end).unwrap_or_default()
}

/// The blank lines that separate a part from the next.
fn blank_end(piece: &Piece<'_>) -> String {
    piece
        .units
        .get(content(&piece.units).len()..)
        .unwrap_or_default()
        .concat()
}

/// What came of merging one section: its text, and units of our side that didn't prevail.
type Outcome<'a> = (String, Vec<&'a str>);

struct Merger {
    kind: DocKind,
    eol: &'static str,
    conflicts: Vec<Conflict>,
}

/// A part of the outcome. A foreign one isn't the person's and needs care where it joins its neighbours.
struct Placed<'p, 'a> {
    piece: &'p Piece<'a>,
    text: String,
    foreign: bool,
}

impl Merger {
    fn documents(&mut self, base: &Pieces<'_>, person: &Pieces<'_>, ours: &Pieces<'_>) -> String {
        let mut out: Vec<Placed<'_, '_>> = Vec::new();
        for piece in &person.list {
            let text = match (base.get(&piece.name), ours.get(&piece.name)) {
                (was, Some(other)) => self.piece(was, piece, other),
                (Some(was), None) => self.deleted_by_us(was, piece),
                (None, None) => piece.text.to_owned(),
            };
            out.push(Placed {
                piece,
                text,
                foreign: false,
            });
        }
        for (at, piece) in ours
            .list
            .iter()
            .enumerate()
            .filter(|(_, piece)| person.get(&piece.name).is_none())
        {
            let text = match base.get(&piece.name) {
                None => piece.text.to_owned(),
                Some(was) => self.deleted_by_person(was, piece),
            };
            let place = self.place(&out, ours.list.get(..at).unwrap_or_default(), piece.date);
            out.insert(
                place,
                Placed {
                    piece,
                    text,
                    foreign: true,
                },
            );
        }
        self.join(&out)
    }

    /// Where a part that only our side has goes: a day by its date, anything else after what it followed.
    fn place(&self, out: &[Placed<'_, '_>], before: &[Piece<'_>], date: Option<NaiveDate>) -> usize {
        let is_later = |date: NaiveDate| {
            out.iter()
                .position(|placed| placed.piece.date.is_some_and(|other| other > date))
        };
        if self.kind == DocKind::Log && date.is_some() {
            return date.and_then(is_later).unwrap_or(out.len());
        }
        let place_of = |piece: &Piece<'_>| out.iter().position(|placed| placed.piece.name == piece.name);
        before.iter().rev().find_map(place_of).map_or(out.len(), |at| at + 1)
    }

    /// The parts one after another. Around a foreign one there are blank lines, and nothing open swallows it.
    fn join(&self, parts: &[Placed<'_, '_>]) -> String {
        let mut text = String::new();
        let mut last: Option<&Placed<'_, '_>> = None;
        for placed in parts.iter().filter(|placed| !placed.text.is_empty()) {
            if let Some(last) = last {
                let care = placed.foreign || last.foreign || !ends_line(&text);
                text.push_str(&if care {
                    bridge(&last.text, self.eol, Spacing::BlankLine)
                } else {
                    String::new()
                });
            }
            text.push_str(&placed.text);
            last = Some(placed);
        }
        text
    }

    /// A section that both sides have.
    fn piece(&mut self, base: Option<&Piece<'_>>, person: &Piece<'_>, ours: &Piece<'_>) -> String {
        let was = base.map(|base| content(&base.units)).unwrap_or_default();
        let (theirs, mine) = (content(&person.units), content(&ours.units));
        if all_same(theirs, mine) || (base.is_some() && all_same(was, mine)) {
            return person.text.to_owned();
        }
        if base.is_some() && all_same(was, theirs) {
            return self.ended(mine.concat()) + &blank_end(person);
        }
        let all = Meeting {
            base: was,
            person: theirs,
            ours: mine,
        };
        let (text, quoted) = match self.kind {
            DocKind::Log if person.date.is_some() => (self.day(all), Vec::new()),
            DocKind::Tasks if person.name.0 == 2 => self.task(base, person, ours),
            _ => self.under_heading(all, usize::from(person.name.0 > 0)),
        };
        let mut text = self.ended(text);
        if !quoted.is_empty() {
            let other: String = quoted.iter().map(|unit| self.ended((*unit).to_owned())).collect();
            let quote = self.quote(BOTH_CHANGED, &other);
            text = Document::split(&text).append(&quote);
            self.conflicts.push(Conflict {
                section: person.title.to_owned(),
                other,
            });
        }
        text + &blank_end(person)
    }

    /// A section that our side deleted: the person's changes to it stay.
    fn deleted_by_us(&self, was: &Piece<'_>, person: &Piece<'_>) -> String {
        let (was, theirs) = (content(&was.units), content(&person.units));
        if all_same(was, theirs) {
            return String::new();
        }
        if self.kind != DocKind::Log || person.date.is_none() {
            return person.text.to_owned();
        }
        let day = self.day(Meeting {
            base: was,
            person: theirs,
            ours: &[],
        });
        if day.is_empty() { day } else { day + &blank_end(person) }
    }

    /// A section that the person deleted: it stays deleted, our changes to it are kept in a quote.
    fn deleted_by_person(&mut self, was: &Piece<'_>, ours: &Piece<'_>) -> String {
        let (was, mine) = (content(&was.units), content(&ours.units));
        if all_same(was, mine) {
            return String::new();
        }
        if self.kind == DocKind::Log && ours.date.is_some() {
            return self.day(Meeting {
                base: was,
                person: &[],
                ours: mine,
            });
        }
        self.conflicts.push(Conflict {
            section: ours.title.to_owned(),
            other: ours.text.to_owned(),
        });
        self.quote(DELETED_HERE, &mine.concat())
    }

    fn quote(&self, note: &str, other: &str) -> String {
        let mut quote = format!("{note}{}", self.eol);
        for line in lines(other) {
            quote.push_str(if is_blank(line) { ">" } else { "> " });
            quote.push_str(line.trim_end_matches(['\n', '\r']));
            quote.push_str(self.eol);
        }
        quote
    }

    fn ended(&self, text: String) -> String {
        if ends_line(&text) { text } else { text + self.eol }
    }

    fn joined(&self, units: &[&str]) -> String {
        units.iter().map(|unit| self.ended((*unit).to_owned())).collect()
    }

    /// Merges a part whose first lines, as many as `headings`, are its heading: the person's unless only ours changed.
    fn under_heading<'a>(&self, all: Meeting<'_, 'a>, headings: usize) -> Outcome<'a> {
        let split = |units: &[&'a str]| {
            let (heading, rest) = units.split_at_checked(headings).unwrap_or_default();
            (heading.to_vec(), rest.to_vec())
        };
        let ((was, base), (theirs, person), (mine, ours)) = (split(all.base), split(all.person), split(all.ours));
        let heading = if all_same(&was, &theirs) { mine } else { theirs };
        let meet = if self.kind == DocKind::Facts {
            meet_facts
        } else {
            meet_lines
        };
        let (text, quoted) = self.aligned(
            Meeting {
                base: &base,
                person: &person,
                ours: &ours,
            },
            meet,
        );
        (self.joined(&heading) + &text, quoted)
    }

    /// Merges units along their alignment.
    fn aligned<'a>(&self, all: Meeting<'_, 'a>, meet: fn(Meeting<'_, 'a>) -> Met<'a>) -> Outcome<'a> {
        let (mut text, mut quoted) = (String::new(), Vec::new());
        for run in diff3(all) {
            match run {
                Run::Settled(units) => text.push_str(&self.joined(units)),
                Run::Both(meeting) => {
                    let met = meet(meeting);
                    text.push_str(&self.joined(&met.stands));
                    quoted.extend(met.quoted);
                }
            }
        }
        (text, quoted)
    }

    /// Merges a task by key, and its free text by line.
    fn task<'a>(&self, base: Option<&Piece<'a>>, person: &Piece<'a>, ours: &Piece<'a>) -> Outcome<'a> {
        let (theirs, mine) = (raw_task(person.text), raw_task(ours.text));
        let was = base.map(|base| raw_task(base.text));
        let was_keys = was.as_ref().map(|was| was.keys.as_slice()).unwrap_or_default();
        let mut text = if was.as_ref().is_some_and(|was| same(was.heading, theirs.heading)) {
            self.ended(mine.heading.to_owned())
        } else {
            self.ended(theirs.heading.to_owned())
        };
        let mut quoted = Vec::new();
        for key in &theirs.keys {
            let (before, other) = (key_of(was_keys, &key.name), key_of(&mine.keys, &key.name));
            let untouched = before.is_some_and(|before| same_key(before, key));
            match other {
                None if untouched => continue,
                Some(other) if untouched || later_touch(key, other) => text.push_str(&self.ended(other.raw.to_owned())),
                _ => text.push_str(&self.ended(key.raw.to_owned())),
            }
            let lost = other.filter(|other| !untouched && !same_key(key, other) && key.name != "touched");
            quoted.extend(
                lost.filter(|lost| !before.is_some_and(|before| same_key(before, lost)))
                    .map(|lost| lost.raw),
            );
        }
        for key in mine.keys.iter().filter(|key| key_of(&theirs.keys, &key.name).is_none()) {
            match key_of(was_keys, &key.name) {
                None => text.push_str(&self.ended(key.raw.to_owned())),
                Some(before) if same_key(before, key) => {}
                Some(_) => quoted.push(key.raw),
            }
        }
        let rest = |task: &RawTask<'a>| lines(task.rest).collect::<Vec<_>>();
        let (was_rest, their_rest, my_rest) = (was.as_ref().map(rest).unwrap_or_default(), rest(&theirs), rest(&mine));
        let all = Meeting {
            base: content(&was_rest),
            person: content(&their_rest),
            ours: content(&my_rest),
        };
        let (body, left) = self.aligned(all, meet_lines);
        quoted.extend(left);
        (text + &body, quoted)
    }

    /// Merges a day of the log: the person's units but for those that our side took out, and our new ones among them
    /// in order of time. The heading always stays; without anything below it the day is gone.
    fn day(&self, all: Meeting<'_, '_>) -> String {
        let (was, theirs, mine) = (counted(all.base), counted(all.person), counted(all.ours));
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
                at = out
                    .iter()
                    .position(|other| same(other, raw))
                    .map_or(at, |place| place + 1);
            } else if !unit.0.is_empty() && !was_set.contains(unit) {
                at = entry_time(raw)
                    .map_or(at, |time| place_by_time(&out, time))
                    .min(out.len());
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
        let text = self.joined(&out);
        let bridge = if tail.is_empty() {
            String::new()
        } else {
            bridge(&text, self.eol, Spacing::Tight)
        };
        text + &bridge + &self.joined(&tail)
    }
}

/// Where an entry goes among units: before the first later one that follows the last earlier one.
fn place_by_time(units: &[&str], time: NaiveTime) -> usize {
    let times: Vec<Option<NaiveTime>> = units.iter().map(|unit| entry_time(unit)).collect();
    let after = times
        .iter()
        .rposition(|other| other.is_some_and(|other| other <= time))
        .map_or(0, |at| at + 1);
    let later = times
        .iter()
        .skip(after)
        .position(|other| other.is_some_and(|other| other > time));
    later.map_or(units.len(), |at| after + at)
}

/// Each unit without white space at its end, and how many of the same stand before it.
fn counted<'a>(units: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let nth = |unit: &&'a str| {
        let unit = unit.trim_end();
        let count = seen.entry(unit).or_default();
        *count += 1;
        (unit, *count)
    };
    units.iter().map(nth).collect()
}

fn key_of<'k, 'a>(keys: &'k [RawKey<'a>], name: &str) -> Option<&'k RawKey<'a>> {
    keys.iter().find(|key| key.name == name)
}

fn same_key(a: &RawKey<'_>, b: &RawKey<'_>) -> bool {
    a.raw.trim() == b.raw.trim()
}

/// Whether both are `touched` dates and the other is the later one: a touch on either side is a touch.
fn later_touch(key: &RawKey<'_>, other: &RawKey<'_>) -> bool {
    let day = |key: &RawKey<'_>| key.value.parse::<NaiveDate>().ok();
    key.name == "touched" && day(other).is_some_and(|other| day(key).is_none_or(|day| other > day))
}

/// What stands where both sides changed something, and what of our side is left for the quote.
struct Met<'a> {
    stands: Vec<&'a str>,
    quoted: Vec<&'a str>,
}

/// Lines: the person's stand, ours are quoted, without those that both have at either end.
fn meet_lines<'a>(run: Meeting<'_, 'a>) -> Met<'a> {
    let (person, ours) = (run.person, run.ours);
    let head = person.iter().zip(ours).take_while(|(a, b)| same(a, b)).count();
    let rest = |units: &[&'a str]| units.get(head..).unwrap_or_default().to_vec();
    let (their_rest, mut my_rest) = (rest(person), rest(ours));
    let tail = their_rest
        .iter()
        .rev()
        .zip(my_rest.iter().rev())
        .take_while(|(a, b)| same(a, b))
        .count();
    my_rest.truncate(my_rest.len() - tail);
    let quoted = if my_rest.iter().all(|line| is_blank(line)) {
        Vec::new()
    } else {
        my_rest
    };
    Met {
        stands: person.to_vec(),
        quoted,
    }
}

/// Facts: additions and removals of both sides are done. Only where both sides took the same fact out and ours put
/// something else there, the two versions contradict each other: ours is quoted.
fn meet_facts<'a>(run: Meeting<'_, 'a>) -> Met<'a> {
    let has = |units: &[&str], wanted: &str| units.iter().any(|unit| same(unit, wanted));
    let knows = |units: &[&str], wanted: &str| units.iter().any(|unit| fact(unit) == fact(wanted));
    let removed_by_us = |unit: &str| !is_blank(unit) && has(run.base, unit) && !has(run.ours, unit);
    let mut stands: Vec<&str> = run.person.iter().filter(|unit| !removed_by_us(unit)).copied().collect();
    let is_new = |unit: &&&str| !is_blank(unit) && !has(run.base, unit) && !knows(&stands, unit);
    let new: Vec<&str> = run.ours.iter().filter(is_new).copied().collect();
    let contradict = run
        .base
        .iter()
        .any(|unit| !is_blank(unit) && !has(run.person, unit) && !has(run.ours, unit));
    if contradict {
        return Met { stands, quoted: new };
    }
    stands.extend(new);
    Met {
        stands,
        quoted: Vec::new(),
    }
}

/// A fact as it is compared: without its origin.
fn fact(unit: &str) -> String {
    folded(split_comment(unit).0)
}

#[cfg(test)]
mod tests;
