//! Splits a document into parts and matches them by name with another version's.

use std::collections::HashMap;

use chrono::NaiveDate;

use crate::{
    episodic::part_date,
    sections::{Document, Part},
    text::{fold_text, is_blank, split_lines},
};

/// The name of a part: level, title, and its number among parts of the same title.
pub(super) type Name = (u8, String, usize);

/// One part of a document.
#[derive(Debug, Clone)]
pub(super) struct Piece<'a> {
    pub(super) name: Name,
    pub(super) date: Option<NaiveDate>,
    pub(super) title: String,
    pub(super) text: &'a str,
    pub(super) units: Vec<&'a str>,
}

/// The parts of a document, in order and by name.
pub(super) struct Pieces<'a> {
    pub(super) list: Vec<Piece<'a>>,
    by_name: HashMap<Name, usize>,
}

impl<'a> Pieces<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let document = Document::split(text);
        let mut list: Vec<Piece<'a>> = Vec::new();
        let mut by_name = HashMap::new();
        let mut seen: HashMap<(u8, String), usize> = HashMap::new();
        for part in &document.parts {
            let title = fold_text(&part.title);
            let nth = seen.entry((part.level, title.clone())).or_default();
            let name = (part.level, title, *nth);
            *nth += 1;
            by_name.insert(name.clone(), list.len());
            list.push(Piece {
                name,
                date: part_date(part),
                title: part.title.clone(),
                text: document.slice(&part.range),
                units: split_units(&document, part),
            });
        }
        Self { list, by_name }
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Piece<'a>> {
        self.by_name.get(name).and_then(|at| self.list.get(*at))
    }
}

/// Returns the units of a part: each bullet item whole, every other line separately.
fn split_units<'a>(document: &Document<'a>, part: &Part) -> Vec<&'a str> {
    let mut units = Vec::new();
    let mut at = part.range.start;
    for item in &part.items {
        units.extend(split_lines(document.slice(&(at..item.start))));
        units.push(document.slice(item));
        at = item.end;
    }
    units.extend(split_lines(document.slice(&(at..part.range.end))));
    units
}

/// Returns the units without trailing blank ones, which only separate a part from the next.
pub(super) fn trim_blank_units<'a, 'b>(units: &'b [&'a str]) -> &'b [&'a str] {
    let end = units.iter().rposition(|unit| !is_blank(unit)).map_or(0, |last| last + 1);
    units.get(..end).unwrap_or_default()
}

/// Returns the blank lines that separate a part from the next.
pub(super) fn blank_end(piece: &Piece<'_>) -> String {
    piece.units.get(trim_blank_units(&piece.units).len()..).unwrap_or_default().concat()
}
