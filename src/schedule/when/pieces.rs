//! Tokens to drafts: each function reads one kind of piece at a place, or declines.

use super::{
    super::words::Cursor,
    TimeTrouble,
    clock::{clock, part},
    date::{date, day},
    distance::{distance, quarters, unit_of_time},
    draft::Draft,
    every::every,
};

pub(super) type Read<'t> = Option<(Draft, Cursor<'t>)>;

/// Tried in this order: "in the morning" before "in 5 hours", "5 December" before "5 pm".
const PIECES: [for<'t> fn(Cursor<'t>) -> Read<'t>; 6] = [every, date, day, part, distance, clock];

/// The longest run of pieces that say one time together.
pub(super) fn expression(start: Cursor<'_>) -> Read<'_> {
    let (mut draft, mut end) = piece(start)?;
    while let Some((more, after)) = piece(end.skip("?,")) {
        match draft.merge(more) {
            Some(merged) => (draft, end) = (merged, after),
            None => break,
        }
    }
    if let Some(after) = too_much(&draft, end) {
        (draft.trouble, end) = (Some(TimeTrouble::Unsupported), after);
    }
    Some((draft, end))
}

fn piece(start: Cursor<'_>) -> Read<'_> {
    PIECES.iter().find_map(|read| read(start))
}

/// What follows an expression and makes it more than one time: "and at 18", "until Friday", "for two weeks".
fn too_much<'t>(draft: &Draft, end: Cursor<'t>) -> Option<Cursor<'t>> {
    let second = end
        .phrase("and|or|,")
        .and_then(|and| clock(and).or_else(|| day(and)).or_else(|| date(and)).or_else(|| bare_clock(and)));
    if let Some((_, after)) = second
        && (draft.clock.is_some() || draft.day.is_some())
    {
        return Some(after);
    }
    draft.every?;
    end.phrase("until|till|starting|beginning|from|except|between|unless").or_else(|| {
        let count = end.phrase("for")?;
        let (_, unit) = quarters(count)?;
        unit_of_time(unit).map(|(_, after)| after)
    })
}

/// `8` after "at 7 and".
fn bare_clock(start: Cursor<'_>) -> Read<'_> {
    let (hour, end) = start.number()?;
    let ends = end.is_end() || end.phrase("to|,|.|!|?").is_some();
    (hour < 24 && ends).then(|| (Draft::default(), end))
}
