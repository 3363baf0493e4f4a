//! Past moments in a person's words: a day, or how long ago. Does no I/O.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};

use reveille_base::{schedule, zone::Tz};

/// The accepted forms, for an error message.
pub const EXPECTED: &str = "today, yesterday, a day such as 2026-11-20, or how long ago: 90min, 12h, 7d, 2w";

/// Parses a moment: the beginning of a day, or a time before `now`. `None` for other texts.
pub fn parse_moment(text: &str, now: DateTime<Utc>, tz: Tz) -> Option<DateTime<Utc>> {
    let text = text.trim().to_lowercase();
    let today = now.with_timezone(&tz).date_naive();
    let day = match text.as_str() {
        "today" => Some(today),
        "yesterday" => today.checked_sub_days(Days::new(1)),
        _ => NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok(),
    };
    if let Some(day) = day {
        return Some(day_begin(day, tz));
    }
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|number| *number >= 0)?;
    let distance = match text.strip_prefix(digits)?.trim() {
        "m" | "min" | "mins" | "minute" | "minutes" => TimeDelta::try_minutes(number),
        "h" | "hour" | "hours" => TimeDelta::try_hours(number),
        "d" | "day" | "days" => TimeDelta::try_days(number),
        "w" | "week" | "weeks" => TimeDelta::try_weeks(number),
        _ => None,
    };
    now.checked_sub_signed(distance?)
}

/// The beginning of a day in the person's zone.
pub fn day_begin(day: NaiveDate, tz: Tz) -> DateTime<Utc> {
    schedule::resolve_local_time(day.and_time(NaiveTime::MIN), tz).at
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::{format_rfc3339, parse_time};

    #[test]
    fn a_day_begins_at_the_persons_midnight_and_a_span_counts_back_from_now() {
        let now = parse_time("2026-11-21T14:00:00Z").unwrap();
        let of = |text| parse_moment(text, now, "Europe/Berlin".parse::<Tz>().unwrap()).map(format_rfc3339);
        for (text, at) in [
            ("today", "2026-11-20T23:00:00.000Z"),
            ("Yesterday", "2026-11-19T23:00:00.000Z"),
            ("2026-11-01", "2026-10-31T23:00:00.000Z"),
            ("90min", "2026-11-21T12:30:00.000Z"),
            ("2 h", "2026-11-21T12:00:00.000Z"),
            ("7d", "2026-11-14T14:00:00.000Z"),
            ("2 weeks", "2026-11-07T14:00:00.000Z"),
        ] {
            assert_eq!(of(text).as_deref(), Some(at), "{text}");
        }
        for text in ["", "d", "-3d", "3", "soon", "2026-13-01", "99999999999999999999d", "9223372036854775807w"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
