//! Three-way merge of a document changed by both a person and a wake since the same base.
//!
//! The merge works section by section; a section changed by one side takes that side. If both sides changed it, tasks merge by key, facts
//! by fact, the log by entry (both sides' entries stay, in time order), and other text by line. In a true conflict the person's side is
//! kept. The other side follows in a marked quote, which no parser here reads as a task, fact or entry. A section deleted by one side and
//! unchanged on the other stays deleted. If the person wrote both sides, only they can settle the conflict: both versions are kept, each
//! with a mark ([`super::unsettled`]).

mod day;
mod diff;
mod pieces;
mod section;

use std::{cell::Cell, collections::BTreeSet};

use chrono::NaiveDate;

use self::{
    diff::{ThreeWay, are_same, is_same_unit},
    pieces::{Piece, Pieces, blank_end, trim_blank_units},
};
use super::{
    DocKind,
    sections::{Document, Spacing, build_bridge},
    text::{detect_line_ending, ends_line, is_blank, split_lines},
    unsettled::{self, Version},
};

/// The note above a quote of the version that didn't prevail.
const BOTH_CHANGED: &str = "<!-- Both of us changed this. Yours stands above, mine follows as a quote: \
                            keep what is right and delete the rest. -->";
/// The note above a quote of a section that a person deleted while a wake changed it.
const DELETED_HERE: &str = "<!-- You deleted this while I changed it. It stays deleted, my version follows as a quote: \
                            copy what you want and delete the rest. -->";

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The merged text.
    pub text: String,
    /// The conflicting changes; the notes in the text explain them.
    pub conflicts: Vec<Conflict>,
}

/// A place where the person's side prevailed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The section's title; empty above the first heading.
    pub section: String,
    /// The other side's version, as kept in the quote.
    pub other: String,
}

/// The person's edits that are part of our side, as lines without trailing white space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ByHand {
    /// The lines the person wrote.
    pub written: BTreeSet<String>,
    /// The lines the person removed.
    pub deleted: BTreeSet<String>,
}

impl ByHand {
    /// Returns whether a unit is the person's: they wrote one of its lines, and the others existed before.
    fn has_written(&self, unit: &str, base: &[&str]) -> bool {
        let has = |line: &str| self.written.contains(line.trim_end());
        let was = |line: &str| base.iter().flat_map(|unit| split_lines(unit)).any(|other| is_same_unit(other, line));
        split_lines(unit).any(has) && split_lines(unit).all(|line| is_blank(line) || has(line) || was(line))
    }

    /// Returns whether the person removed a unit of `base` that is missing from `ours`.
    fn has_removed(&self, base: &[&str], ours: &[&str]) -> bool {
        let gone = base.iter().filter(|unit| !is_blank(unit) && !ours.iter().any(|other| is_same_unit(unit, other)));
        gone.flat_map(|unit| split_lines(unit)).any(|line| self.deleted.contains(line.trim_end()))
    }
}

/// Merges a person's version (`person`) with a wake's (`ours`). Both were made from the same `base`.
pub fn merge(kind: DocKind, base: &str, person: &str, ours: &str) -> Merged {
    merge_by_hand(kind, base, person, ours, &ByHand::default())
}

/// Merges like [`merge`], if a person's edits are also part of our side.
pub fn merge_by_hand(kind: DocKind, base: &str, person: &str, ours: &str, by_hand: &ByHand) -> Merged {
    merge_texts(kind, ConflictStyle::Quoted, [base, person, ours], by_hand)
}

/// Merges without quotes: in a conflict only the person's side is kept.
pub(super) fn merge_unmarked(kind: DocKind, base: &str, person: &str, ours: &str) -> String {
    merge_texts(kind, ConflictStyle::Unmarked, [base, person, ours], &ByHand::default()).text
}

/// How a conflict appears in the merged text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConflictStyle {
    /// The losing version is quoted below the winning one.
    Quoted,
    /// Only the winning version is kept.
    Unmarked,
}

fn merge_texts(kind: DocKind, style: ConflictStyle, [base, person, ours]: [&str; 3], by_hand: &ByHand) -> Merged {
    if base == person || person == ours {
        return Merged { text: ours.to_owned(), conflicts: Vec::new() };
    }
    if base == ours {
        return Merged { text: person.to_owned(), conflicts: Vec::new() };
    }
    let ending = detect_line_ending(person);
    let (base, ours) = (with_endings(base, ending), with_endings(ours, ending));
    let next_number = Cell::new(unsettled::next_number(&[&base, person, &ours]));
    let mut merger = Merger { kind, eol: ending, style, by_hand, next_number, conflicts: Vec::new() };
    let text = merger.merge_pieces(&Pieces::parse(&base), &Pieces::parse(person), &Pieces::parse(&ours));
    Merged { text, conflicts: merger.conflicts }
}

/// Returns the text with the person's line endings, to ignore changes of endings alone.
fn with_endings(text: &str, ending: &str) -> String {
    if detect_line_ending(text) == ending { text.to_owned() } else { text.replace("\r\n", "\n").replace('\n', ending) }
}

/// The result of merging one section: its text, and the units of our side that didn't prevail.
type Outcome<'a> = (String, Vec<&'a str>);

struct Merger<'h> {
    kind: DocKind,
    eol: &'static str,
    style: ConflictStyle,
    by_hand: &'h ByHand,
    /// The number of the next conflict left to the person.
    next_number: Cell<usize>,
    conflicts: Vec<Conflict>,
}

/// A part of the result. A foreign part comes from our side, so its ends must be made to fit its neighbours.
struct Placed<'p, 'a> {
    piece: &'p Piece<'a>,
    text: String,
    foreign: bool,
}

impl Merger<'_> {
    fn merge_pieces(&mut self, base: &Pieces<'_>, person: &Pieces<'_>, ours: &Pieces<'_>) -> String {
        let mut out: Vec<Placed<'_, '_>> = Vec::new();
        for piece in &person.list {
            let text = match (base.get(&piece.name), ours.get(&piece.name)) {
                (was, Some(other)) => self.merge_section(was, piece, other),
                (Some(was), None) => self.merge_our_deletion(was, piece),
                (None, None) => piece.text.to_owned(),
            };
            out.push(Placed { piece, text, foreign: false });
        }
        for (at, piece) in ours.list.iter().enumerate().filter(|(_, piece)| person.get(&piece.name).is_none()) {
            let text = match base.get(&piece.name) {
                None => piece.text.to_owned(),
                Some(was) => self.merge_persons_deletion(was, piece),
            };
            let place = self.find_place(&out, ours.list.get(..at).unwrap_or_default(), piece.date);
            out.insert(place, Placed { piece, text, foreign: true });
        }
        self.join_parts(&out)
    }

    /// Returns the position of a part that only our side has: a day by its date, any other part after its predecessor. An empty preamble
    /// doesn't count as a predecessor.
    fn find_place(&self, out: &[Placed<'_, '_>], before: &[Piece<'_>], date: Option<NaiveDate>) -> usize {
        let is_later =
            |date: NaiveDate| out.iter().position(|placed| placed.piece.date.is_some_and(|other| other > date));
        if self.kind == DocKind::Log && date.is_some() {
            return date.and_then(is_later).unwrap_or(out.len());
        }
        let place_of = |piece: &Piece<'_>| out.iter().position(|placed| placed.piece.name == piece.name);
        before.iter().rev().filter(|piece| !piece.text.is_empty()).find_map(place_of).map_or(out.len(), |at| at + 1)
    }

    /// Joins the parts. Puts blank lines around a foreign part, and closes open blocks that would swallow it.
    fn join_parts(&self, parts: &[Placed<'_, '_>]) -> String {
        let mut text = String::new();
        let mut last: Option<&Placed<'_, '_>> = None;
        for placed in parts.iter().filter(|placed| !placed.text.is_empty()) {
            if let Some(last) = last {
                let needs_bridge = placed.foreign || last.foreign || !ends_line(&text);
                text.push_str(&if needs_bridge {
                    build_bridge(&last.text, self.eol, Spacing::BlankLine)
                } else {
                    String::new()
                });
            }
            text.push_str(&placed.text);
            last = Some(placed);
        }
        text
    }

    /// Merges a section present on both sides.
    fn merge_section(&mut self, base: Option<&Piece<'_>>, person: &Piece<'_>, ours: &Piece<'_>) -> String {
        let was = base.map(|base| trim_blank_units(&base.units)).unwrap_or_default();
        let (theirs, mine) = (trim_blank_units(&person.units), trim_blank_units(&ours.units));
        if are_same(theirs, mine) || (base.is_some() && are_same(was, mine)) {
            return person.text.to_owned();
        }
        if base.is_some() && are_same(was, theirs) {
            return self.end_line(mine.concat()) + &blank_end(person);
        }
        let all = ThreeWay { base: was, person: theirs, ours: mine };
        let (text, quoted) = match self.kind {
            DocKind::Log if person.date.is_some() => (self.merge_day(all), Vec::new()),
            DocKind::Tasks if person.name.0 == 2 => self.merge_task(base, person, ours),
            _ => self.merge_under_heading(all, usize::from(person.name.0 > 0)),
        };
        let mut text = self.end_line(text);
        if !quoted.is_empty() {
            let other: String = quoted.iter().map(|unit| self.end_line((*unit).to_owned())).collect();
            if self.style == ConflictStyle::Quoted {
                let quote = self.quote(BOTH_CHANGED, &other);
                text = Document::split(&text).append(&quote);
            }
            self.conflicts.push(Conflict { section: person.title.clone(), other });
        }
        text + &blank_end(person)
    }

    /// Merges a section that only our side deleted: keeps the person's changes.
    fn merge_our_deletion(&self, was: &Piece<'_>, person: &Piece<'_>) -> String {
        let (was, theirs) = (trim_blank_units(&was.units), trim_blank_units(&person.units));
        if are_same(was, theirs) {
            return String::new();
        }
        if self.style == ConflictStyle::Unmarked && matches!(self.kind, DocKind::Facts | DocKind::Text) {
            return self.remove_units(was, person);
        }
        if self.by_hand.has_removed(was, &[]) && self.kind != DocKind::Log {
            return self.mark_alone(person);
        }
        if self.kind != DocKind::Log || person.date.is_none() {
            return person.text.to_owned();
        }
        let day = self.merge_day(ThreeWay { base: was, person: theirs, ours: &[] });
        if day.is_empty() { day } else { day + &blank_end(person) }
    }

    /// Returns a section without the units of `was`; empty if only the heading would be left.
    fn remove_units(&self, was: &[&str], person: &Piece<'_>) -> String {
        let was: Vec<&str> = was.iter().map(|unit| unit.trim_end()).filter(|unit| !unit.is_empty()).collect();
        let (heading, rest) =
            trim_blank_units(&person.units).split_at_checked(usize::from(person.name.0 > 0)).unwrap_or_default();
        let left: Vec<&str> = rest.iter().filter(|unit| !was.contains(&unit.trim_end())).copied().collect();
        if left.iter().all(|unit| is_blank(unit)) {
            return String::new();
        }
        self.join_units(heading) + &self.join_units(&left) + &blank_end(person)
    }

    /// Merges a section that only the person deleted: leaves it deleted, and quotes our changes.
    fn merge_persons_deletion(&mut self, was: &Piece<'_>, ours: &Piece<'_>) -> String {
        let (was, mine) = (trim_blank_units(&was.units), trim_blank_units(&ours.units));
        if are_same(was, mine) {
            return String::new();
        }
        if self.kind == DocKind::Log && ours.date.is_some() {
            return self.merge_day(ThreeWay { base: was, person: &[], ours: mine });
        }
        if mine.iter().any(|unit| self.by_hand.has_written(unit, was)) {
            return self.mark_alone(ours);
        }
        self.conflicts.push(Conflict { section: ours.title.clone(), other: ours.text.to_owned() });
        if self.style == ConflictStyle::Quoted { self.quote(DELETED_HERE, &mine.concat()) } else { String::new() }
    }

    /// Marks a section that a person changed on one side and deleted on the other.
    fn mark_alone(&self, piece: &Piece<'_>) -> String {
        let mark = unsettled::add_mark(self.eol, (self.take_number(), Version::Alone));
        let text = self.end_line(trim_blank_units(&piece.units).concat());
        Document::split(&text).append(&mark) + &blank_end(piece)
    }

    fn take_number(&self) -> usize {
        let number = self.next_number.get();
        self.next_number.set(number.saturating_add(1));
        number
    }

    fn quote(&self, note: &str, other: &str) -> String {
        let mut quote = format!("{note}{}", self.eol);
        for line in split_lines(other) {
            quote.push_str(if is_blank(line) { ">" } else { "> " });
            quote.push_str(line.trim_end_matches(['\n', '\r']));
            quote.push_str(self.eol);
        }
        quote
    }

    fn end_line(&self, text: String) -> String {
        if ends_line(&text) { text } else { text + self.eol }
    }

    fn join_units(&self, units: &[&str]) -> String {
        units.iter().map(|unit| self.end_line((*unit).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests;
