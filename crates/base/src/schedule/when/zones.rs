//! Time zones in speech: "GMT", "EST", "UTC+2", "Berlin time".

use super::super::words::Cursor;
use crate::zone::Tz;

/// The zone stated with a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidZone {
    /// Minutes east of UTC.
    Offset(i32),
    /// A region's local time, with daylight saving.
    Region(Tz),
    /// An abbreviation for one half of the year, with its region: ambiguous in the other half.
    Half(i32, Tz),
    /// A name used by several regions for different times.
    Unsure,
}

/// Abbreviations with their minutes east of UTC, and the region if daylight saving changes them.
const ABBREVIATIONS: &[(&str, i32, &str)] = &[
    ("utc", 0, ""),
    ("gmt", 0, ""),
    ("z", 0, ""),
    ("zulu", 0, ""),
    ("wet", 0, "Europe/Lisbon"),
    ("bst", 60, "Europe/London"),
    ("cet", 60, "Europe/Paris"),
    ("mez", 60, "Europe/Berlin"),
    ("cest", 120, "Europe/Paris"),
    ("mesz", 120, "Europe/Berlin"),
    ("eet", 120, "Europe/Helsinki"),
    ("eest", 180, "Europe/Helsinki"),
    ("msk", 180, ""),
    ("est", -300, "America/New_York"),
    ("edt", -240, "America/New_York"),
    ("cdt", -300, "America/Chicago"),
    ("mst", -420, "America/Denver"),
    ("mdt", -360, "America/Denver"),
    ("pst", -480, "America/Los_Angeles"),
    ("pdt", -420, "America/Los_Angeles"),
    ("akst", -540, "America/Anchorage"),
    ("akdt", -480, "America/Anchorage"),
    ("hst", -600, ""),
    ("brt", -180, ""),
    ("sast", 120, ""),
    ("pkt", 300, ""),
    ("jst", 540, ""),
    ("kst", 540, ""),
    ("sgt", 480, ""),
    ("hkt", 480, ""),
    ("awst", 480, ""),
    ("acst", 570, "Australia/Adelaide"),
    ("acdt", 630, "Australia/Adelaide"),
    ("aest", 600, "Australia/Sydney"),
    ("aedt", 660, "Australia/Sydney"),
    ("nzst", 720, "Pacific/Auckland"),
    ("nzdt", 780, "Pacific/Auckland"),
];

/// Names of a region's time, some without "time" after them.
const REGIONS: &[(&str, &str)] = &[
    ("eastern standard|daylight time", "America/New_York"),
    ("central standard|daylight time", "America/Chicago"),
    ("mountain standard|daylight time", "America/Denver"),
    ("pacific standard|daylight time", "America/Los_Angeles"),
    ("eastern time|timezone", "America/New_York"),
    ("eastern time zone", "America/New_York"),
    ("central time|timezone", "America/Chicago"),
    ("central time zone", "America/Chicago"),
    ("mountain time|timezone", "America/Denver"),
    ("mountain time zone", "America/Denver"),
    ("pacific time|timezone", "America/Los_Angeles"),
    ("pacific time zone", "America/Los_Angeles"),
    ("uk|british|london time", "Europe/London"),
    ("central european time", "Europe/Paris"),
    ("german time", "Europe/Berlin"),
    ("indian|india time", "Asia/Kolkata"),
    ("japan|japanese time", "Asia/Tokyo"),
    ("beijing|china|chinese time", "Asia/Shanghai"),
    ("et", "America/New_York"),
    ("ct", "America/Chicago"),
    ("mt", "America/Denver"),
    ("pt", "America/Los_Angeles"),
];

/// Ambiguous names: "China Standard Time" and "Central Standard Time"; India, Israel and Ireland.
const UNSURE: &str = "cst|ist|ast|amt|gst|ect|wib";

/// The maximum difference of a zone from UTC in hours.
const MAX_HOURS: u32 = 14;

/// Parses a zone after a time of day.
pub(super) fn read_zone(start: Cursor<'_>) -> Option<(SaidZone, Cursor<'_>)> {
    let start = start
        .match_phrase("in the")
        .filter(|end| end.next().match_phrase("?standard time|timezone|zone").is_some())
        .unwrap_or(start);
    let start = start.match_phrase("(").unwrap_or(start);
    let (zone, end) = read_named(start).or_else(|| read_offset(start))?;
    Some((
        zone,
        end.match_phrase(")")
            .filter(|_| start.previous_token().is_some_and(|before| before.text == "("))
            .unwrap_or(end),
    ))
}

fn read_named(start: Cursor<'_>) -> Option<(SaidZone, Cursor<'_>)> {
    if let Some((name, end)) = start.match_table(REGIONS) {
        return Some((SaidZone::Region(name.parse().ok()?), end));
    }
    if let Some(end) = start.match_phrase("?utc|gmt").filter(|end| end.index > start.index)
        && let Some((SaidZone::Offset(minutes), end)) = read_offset(end)
    {
        return Some((SaidZone::Offset(minutes), end));
    }
    if let Some((_, minutes, region)) = ABBREVIATIONS.iter().find(|(name, ..)| *name == start.text()) {
        let zone = match region.parse() {
            Ok(region) => SaidZone::Half(*minutes, region),
            Err(_) => SaidZone::Offset(*minutes),
        };
        return Some((zone, start.next().skip("?time")));
    }
    if let Some(end) = start.match_phrase(UNSURE) {
        return Some((SaidZone::Unsure, end));
    }
    read_city(start)
}

/// Parses "Berlin time", "New York time".
fn read_city(start: Cursor<'_>) -> Option<(SaidZone, Cursor<'_>)> {
    let mut name = String::new();
    let mut end = start;
    for _ in 0..3 {
        let word = end.token().filter(|word| !word.is_mark())?;
        name = if name.is_empty() { word.text.clone() } else { format!("{name} {}", word.text) };
        end = end.next();
        if let Some(after) = end.match_phrase("time") {
            return Some((SaidZone::Region(Tz::find_name(&name)?.parse().ok()?), after));
        }
    }
    None
}

/// Parses `+01:00`, `+0100` or `+2`, glued to a time or after "UTC".
fn read_offset(start: Cursor<'_>) -> Option<(SaidZone, Cursor<'_>)> {
    let sign = match start.text() {
        "+" => 1,
        "-" | "−" => -1,
        _ => return None,
    };
    let figures = start.next().glued_text();
    let mut end = start.next().next();
    let number: u32 = figures.parse().ok()?;
    let (hours, minutes) = match figures.len() {
        1 | 2 if end.glued_text() == ":" && end.next().glued_text().len() == 2 => {
            let minutes: u32 = end.next().text().parse().ok()?;
            end = end.next().next();
            (number, minutes)
        }
        1 | 2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return None,
    };
    if hours > MAX_HOURS || minutes > 59 {
        return None;
    }
    Some((SaidZone::Offset(sign * i32::try_from(hours * 60 + minutes).ok()?), end))
}
