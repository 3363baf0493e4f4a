//! Distances from now: "in 20 minutes", "in an hour and a half", "2 days from now".

use super::{
    super::words::Cursor,
    draft::{Distance, Draft},
    pieces::Read,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds(u32),
    Days(u32),
    Months(u32),
}

const UNITS: &[(&str, Unit)] = &[
    ("second|seconds|sec|secs|s", Unit::Seconds(1)),
    ("minute|minutes|min|mins|m", Unit::Seconds(60)),
    ("hour|hours|hr|hrs|h", Unit::Seconds(3600)),
    ("day|days|d", Unit::Days(1)),
    ("week|weeks|wk|wks", Unit::Days(7)),
    ("fortnight|fortnights", Unit::Days(14)),
    ("month|months", Unit::Months(1)),
    ("year|years", Unit::Months(12)),
];

pub(super) fn unit_of_time(start: Cursor<'_>) -> Option<(Unit, Cursor<'_>)> {
    let (unit, end) = start.lookup(UNITS)?;
    // "2 m" and "5 s" glued to something else are no units; nor is "5 d" in "5 d'or".
    (end.glued_text().is_empty()
        || end.token().is_some_and(|next| next.is_mark() || next.text.starts_with(char::is_numeric)))
    .then_some((unit, end))
}

/// "In 20 minutes", "in an hour and a half", "2 hours from now".
pub(super) fn distance(start: Cursor<'_>) -> Read<'_> {
    let begin = start.phrase("in ?about|around");
    let (mut total, mut end) = amount(begin.unwrap_or(start))?;
    while let Some((more, after)) = amount(end.skip("?, ?and")) {
        (total, end) = (sum(total, more)?, after);
    }
    let end = match (begin, end.phrase("from now")) {
        (_, Some(after)) => after,
        (Some(_), None) => end,
        (None, None) => return None,
    };
    Some((Draft::distance(total), end))
}

/// "2 hours", "an hour and a half", "half an hour", "1h".
fn amount(start: Cursor<'_>) -> Option<(Distance, Cursor<'_>)> {
    let (mut count, after) = quarters(start)?;
    let (unit, mut end) = unit_of_time(after.skip("?of ?a|an"))?;
    if let Some(half) = end.phrase("and a half").filter(|half| unit_of_time(half.skip("?of ?a|an")).is_none()) {
        (count, end) = (count.checked_add(2)?, half);
    }
    Some((times(unit, count)?, end))
}

/// How many, in quarters: "half an" is 2, "a couple of" 8, "1.5" 6.
pub(super) fn quarters(start: Cursor<'_>) -> Option<(u32, Cursor<'_>)> {
    const FIXED: &[(&str, u32)] = &[
        ("half a|an", 2),
        ("a half", 2),
        ("three quarters of a|an", 3),
        ("three-quarters of a|an", 3),
        ("a|one quarter of a|an", 1),
        ("a couple of", 8),
        ("a couple", 8),
        ("one and a half", 6),
        ("a|an", 4),
    ];
    if let Some(fixed) = start.lookup(FIXED) {
        return Some(fixed);
    }
    let (whole, after) = start.number()?;
    let whole = whole.checked_mul(4)?;
    if let (".", fraction @ ("5" | "25" | "75")) = (after.glued_text(), after.next().glued_text()) {
        let part = match fraction {
            "25" => 1,
            "5" => 2,
            _ => 3,
        };
        return Some((whole.checked_add(part)?, after.next().next()));
    }
    let (half, after) = after.phrase("and a half").map_or((0, after), |half| (2, half));
    Some((whole.checked_add(half)?, after))
}

fn times(unit: Unit, quarters: u32) -> Option<Distance> {
    let whole = |n: u32| Some(n.checked_mul(quarters)?).filter(|n| n % 4 == 0).map(|n| n / 4);
    let in_seconds = |n: u32| Some(Distance { seconds: whole(n)?, ..Distance::default() });
    match unit {
        Unit::Seconds(n) => in_seconds(n),
        Unit::Days(n) => match whole(n) {
            Some(days) => Some(Distance { days, ..Distance::default() }),
            None => in_seconds(n.checked_mul(86_400)?),
        },
        Unit::Months(n) => Some(Distance { months: whole(n)?, ..Distance::default() }),
    }
}

fn sum(one: Distance, two: Distance) -> Option<Distance> {
    Some(Distance {
        months: one.months.checked_add(two.months)?,
        days: one.days.checked_add(two.days)?,
        seconds: one.seconds.checked_add(two.seconds)?,
    })
}
