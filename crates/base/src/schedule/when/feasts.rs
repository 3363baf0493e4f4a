//! Holidays and other named days: Christmas, Easter Monday, Pi Day.

use chrono::Weekday;

use super::{
    super::words::Cursor,
    draft::{DraftDay, Feast},
};

/// Holidays with a fixed date: month and day.
const FIXED: &[(&str, u32, u32)] = &[
    ("new year's|years eve", 12, 31),
    ("new year eve", 12, 31),
    ("nye", 12, 31),
    ("silvester|sylvester", 12, 31),
    ("new year's|years ?day", 1, 1),
    ("new year ?day", 1, 1),
    ("epiphany", 1, 6),
    ("three kings ?day", 1, 6),
    ("groundhog day", 2, 2),
    ("candlemas", 2, 2),
    ("valentine's|valentines|valentine ?day", 2, 14),
    ("women's|womens day", 3, 8),
    ("international women's|womens day", 3, 8),
    ("pi day", 3, 14),
    ("saint|st ?. patrick's|patricks|patrick ?day", 3, 17),
    ("april fools|fool's|fools' ?day", 4, 1),
    ("april fool day", 4, 1),
    ("earth day", 4, 22),
    ("saint|st ?. george's|georges day", 4, 23),
    ("anzac day", 4, 25),
    ("may day", 5, 1),
    ("?international workers|worker's ' day", 5, 1),
    ("?international workers|worker's day", 5, 1),
    ("labour day", 5, 1),
    ("star wars day", 5, 4),
    ("cinco de mayo", 5, 5),
    ("juneteenth", 6, 19),
    ("midsummer's|midsummer day", 6, 24),
    ("canada day", 7, 1),
    ("american|us|u.s. independence day", 7, 4),
    ("independence day", 7, 4),
    ("bastille day", 7, 14),
    ("german unity day", 10, 3),
    ("halloween|hallowe'en", 10, 31),
    ("reformation day", 10, 31),
    ("all saints|saints' day", 11, 1),
    ("all saints ' day", 11, 1),
    ("all souls|souls' day", 11, 2),
    ("guy fawkes ?night|day", 11, 5),
    ("bonfire night", 11, 5),
    ("veterans|veteran's day", 11, 11),
    ("armistice day", 11, 11),
    ("saint|st ?. martin's|martins day", 11, 11),
    ("saint|st ?. nicholas ?day", 12, 6),
    ("christmas|xmas eve", 12, 24),
    ("boxing day", 12, 26),
    ("saint|st ?. stephen's|stephens day", 12, 26),
    ("christmas|xmas ?day", 12, 25),
    ("x-mas ?day", 12, 25),
];

/// Holidays whose date differs from year to year.
const MOVING: &[(&str, Feast)] = &[
    ("shrove tuesday", Feast::Easter(-47)),
    ("mardi gras", Feast::Easter(-47)),
    ("pancake day", Feast::Easter(-47)),
    ("rose monday", Feast::Easter(-48)),
    ("ash wednesday", Feast::Easter(-46)),
    ("palm sunday", Feast::Easter(-7)),
    ("maundy|holy thursday", Feast::Easter(-3)),
    ("good friday", Feast::Easter(-2)),
    ("holy saturday", Feast::Easter(-1)),
    ("easter eve", Feast::Easter(-1)),
    ("easter monday", Feast::Easter(1)),
    ("easter ?sunday", Feast::Easter(0)),
    ("ascension ?day", Feast::Easter(39)),
    ("whit|pentecost monday", Feast::Easter(50)),
    ("whit sunday", Feast::Easter(49)),
    ("whitsun|pentecost ?sunday", Feast::Easter(49)),
    ("corpus christi", Feast::Easter(60)),
    ("martin luther king ?jr ?. day", Feast::Nth { month: 1, nth: 3, weekday: Weekday::Mon, days: 0 }),
    ("mlk day", Feast::Nth { month: 1, nth: 3, weekday: Weekday::Mon, days: 0 }),
    ("presidents|president's|presidents' day", Feast::Nth { month: 2, nth: 3, weekday: Weekday::Mon, days: 0 }),
    ("mother's|mothers day", Feast::Nth { month: 5, nth: 2, weekday: Weekday::Sun, days: 0 }),
    ("memorial day", Feast::Nth { month: 5, nth: -1, weekday: Weekday::Mon, days: 0 }),
    ("father's|fathers day", Feast::Nth { month: 6, nth: 3, weekday: Weekday::Sun, days: 0 }),
    ("labor day", Feast::Nth { month: 9, nth: 1, weekday: Weekday::Mon, days: 0 }),
    ("columbus day", Feast::Nth { month: 10, nth: 2, weekday: Weekday::Mon, days: 0 }),
    ("indigenous peoples|people's|peoples' day", Feast::Nth { month: 10, nth: 2, weekday: Weekday::Mon, days: 0 }),
    ("thanksgiving ?day", Feast::Nth { month: 11, nth: 4, weekday: Weekday::Thu, days: 0 }),
    ("black friday", Feast::Nth { month: 11, nth: 4, weekday: Weekday::Thu, days: 1 }),
    ("cyber monday", Feast::Nth { month: 11, nth: 4, weekday: Weekday::Thu, days: 4 }),
    ("first advent", Feast::Advent(1)),
    ("?the first sunday of|in advent", Feast::Advent(1)),
    ("second advent", Feast::Advent(2)),
    ("third advent", Feast::Advent(3)),
    ("fourth advent", Feast::Advent(4)),
];

/// Words that may follow a holiday used as a date. Other words make the holiday describe a thing: "Christmas presents".
const FOLLOWERS: &str = "to|,|.|!|?|;|at|on|in|of|and|or|morning|evening|afternoon|night|early|late|around|this|next|until|till|that|(|-|noon|midnight|every";

/// Returns true if a holiday is used as a date: "on Christmas", "Easter at 10", but not "Christmas presents".
fn is_used_as_date(start: Cursor<'_>, end: Cursor<'_>) -> bool {
    const INTRODUCTIONS: &str =
        "on|at|of|over|around|about|until|till|before|after|from|by|for|every|each|next|this|coming|upcoming|following";
    let is_introduced =
        start.previous_token().is_some_and(|_| start.move_to(start.index - 1).match_phrase(INTRODUCTIONS).is_some())
            || start.index == 0;
    let may_end =
        end.is_end() || end.match_phrase(FOLLOWERS).is_some() || end.text().starts_with(|c: char| c.is_ascii_digit());
    may_end && (is_introduced || end.is_end())
}

/// Parses a holiday, with "this" or "next" before it or a year after it.
pub(super) fn parse_holiday(start: Cursor<'_>) -> Option<(DraftDay, Cursor<'_>)> {
    let named = start.skip("?the").skip("?next|this|coming|upcoming|following");
    let moving = named.match_table(MOVING).map(|(feast, end)| (DraftDay::Feast(feast, None), end));
    let fixed = || {
        let (_, month, day, end) =
            FIXED.iter().find_map(|(name, month, day)| Some((name, *month, *day, named.match_phrase(name)?)))?;
        Some((DraftDay::Date { year: None, month, day }, end))
    };
    let (day, end) = moving.or_else(fixed)?;
    if !is_used_as_date(start, end) {
        return None;
    }
    // A year may follow: "Christmas 2027".
    let year = end.skip("?of|in|,").text().parse::<i32>().ok().filter(|year| (1900..=2999).contains(year));
    let (day, end) = match (day, year) {
        (DraftDay::Feast(feast, _), Some(year)) => (DraftDay::Feast(feast, Some(year)), end.skip("?of|in|,").next()),
        (DraftDay::Date { month, day, .. }, Some(year)) => {
            (DraftDay::Date { year: Some(year), month, day }, end.skip("?of|in|,").next())
        }
        (day, _) => (day, end),
    };
    Some((day, end))
}
