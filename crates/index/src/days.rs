//! Finds days in texts: the day of a heading or a line, and the days a question asks about.

use chrono::{Datelike as _, Days, Months, NaiveDate};

use reveille_base::schedule::words::WEEKDAYS;

/// The range of numbers taken for years.
const YEARS: std::ops::RangeInclusive<i32> = 1900..=2100;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A range of days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DaySpan {
    /// The first day.
    pub(super) first: NaiveDate,
    /// The last day.
    pub(super) last: NaiveDate,
}

impl DaySpan {
    fn for_day(day: NaiveDate) -> Self {
        Self { first: day, last: day }
    }

    fn for_month(year: i32, month: u32) -> Option<Self> {
        let first = NaiveDate::from_ymd_opt(year, month, 1)?;
        Some(Self { first, last: first.checked_add_months(Months::new(1))?.pred_opt()? })
    }

    fn for_year(year: i32) -> Option<Self> {
        Some(Self { first: NaiveDate::from_ymd_opt(year, 1, 1)?, last: NaiveDate::from_ymd_opt(year, 12, 31)? })
    }

    /// Returns the number of days between the range and a day; 0 within.
    pub(super) fn distance(&self, day: NaiveDate) -> i64 {
        (self.first - day).num_days().max((day - self.last).num_days()).max(0)
    }
}

/// Returns the first complete date in a text: `2026-11-21`, `21 November 2026`, `Nov 21st, 2026`.
pub(super) fn find_day(text: &str) -> Option<NaiveDate> {
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let words = split_words(text);
    (0..words.len()).find_map(|at| parse_full_day(words.get(at..)?))
}

/// Returns the days a question asks about. Dates without a year mean the latest such date up to `today`. `None` without a date.
pub(super) fn parse_asked_days(question: &str, today: NaiveDate) -> Option<DaySpan> {
    let words = split_words(question);
    let from = |at: usize| words.get(at..).unwrap_or_default();
    let all = 0..words.len();
    if let Some(day) = all.clone().find_map(|at| parse_full_day(from(at))) {
        return Some(DaySpan::for_day(day));
    }
    if let Some(span) = all.clone().find_map(|at| parse_relative(from(at), today)) {
        return Some(span);
    }
    if let Some(span) = all.clone().find_map(|at| parse_month_of_year(from(at))) {
        return Some(span);
    }
    if let Some(span) = all.clone().find_map(|at| parse_day_of_month(from(at), today)) {
        return Some(span);
    }
    let before = |at: usize| at.checked_sub(1).and_then(|at| words.get(at)).map(String::as_str).unwrap_or_default();
    let follows_time_word =
        |at: usize| matches!(before(at), "in" | "during" | "of" | "since" | "last" | "this" | "by" | "until");
    all.filter(|at| follows_time_word(*at)).find_map(|at| {
        let word = words.get(at)?;
        if let Some(year) = parse_year(word) {
            return DaySpan::for_year(year);
        }
        let month = parse_month(word)?;
        let this = DaySpan::for_month(today.year(), month)?;
        if this.first <= today { Some(this) } else { DaySpan::for_month(today.year() - 1, month) }
    })
}

/// Splits a text into lower-case words and numbers; an ISO date stays whole.
fn split_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').map(|word| word.trim_matches('-'));
    words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
}

fn parse_full_day(words: &[String]) -> Option<NaiveDate> {
    let first = words.first()?;
    // A time in RFC 3339 begins with its date.
    if let Some(iso) = first.get(..10).filter(|iso| iso.bytes().filter(|byte| *byte == b'-').count() == 2)
        && let Ok(day) = iso.parse::<NaiveDate>()
        && YEARS.contains(&day.year())
    {
        return Some(day);
    }
    let (second, third) = (words.get(1)?, words.get(2)?);
    // "8th of May 2023"
    let (second, third) = if second == "of" { (third, words.get(3)?) } else { (second, third) };
    let (day, month) = match (parse_day_number(first), parse_month(second)) {
        (Some(day), Some(month)) => (day, month),
        _ => (parse_day_number(second)?, parse_month(first)?),
    };
    NaiveDate::from_ymd_opt(parse_year(third)?, month, day)
}

fn parse_month_of_year(words: &[String]) -> Option<DaySpan> {
    let second = words.get(1)?;
    let second = if second == "of" { words.get(2)? } else { second };
    DaySpan::for_month(parse_year(second)?, parse_month(words.first()?)?)
}

fn parse_day_of_month(words: &[String], today: NaiveDate) -> Option<DaySpan> {
    let (first, second) = (words.first()?, words.get(1)?);
    let second = if second == "of" { words.get(2)? } else { second };
    let (day, month) = match (parse_day_number(first), parse_month(second)) {
        (Some(day), Some(month)) => (day, month),
        _ => (parse_day_number(second)?, parse_month(first)?),
    };
    let this = NaiveDate::from_ymd_opt(today.year(), month, day)?;
    let found = if this <= today { Some(this) } else { NaiveDate::from_ymd_opt(today.year() - 1, month, day) };
    found.map(DaySpan::for_day)
}

fn parse_relative(words: &[String], today: NaiveDate) -> Option<DaySpan> {
    let first = words.first()?.as_str();
    let second = words.get(1).map(String::as_str).unwrap_or_default();
    let back = |days: u64| today.checked_sub_days(Days::new(days));
    let months_back = |months: u32| today.checked_sub_months(Months::new(months));
    match (first, second) {
        ("today", _) => Some(DaySpan::for_day(today)),
        ("yesterday", _) => back(1).map(DaySpan::for_day),
        ("last" | "this" | "past", "week" | "weekend") => {
            let monday = back(u64::from(today.weekday().num_days_from_monday()))?;
            let monday = if first == "this" { monday } else { monday.checked_sub_days(Days::new(7))? };
            Some(DaySpan { first: monday, last: monday.checked_add_days(Days::new(6))? })
        }
        ("last" | "this" | "past", "month") => {
            let day = if first == "this" { today } else { months_back(1)? };
            DaySpan::for_month(day.year(), day.month())
        }
        ("last" | "this" | "past", "year") => DaySpan::for_year(today.year() - i32::from(first != "this")),
        ("last" | "on", day) => {
            let weekday = WEEKDAYS.iter().find(|(name, _)| *name == day)?.1;
            let ago = (7 + today.weekday().num_days_from_monday() - weekday.num_days_from_monday()) % 7;
            back(u64::from(if ago == 0 { 7 } else { ago })).map(DaySpan::for_day)
        }
        (count, unit) if words.get(2).is_some_and(|word| word == "ago") => {
            let count = match count {
                "a" | "an" | "one" => 1,
                "two" => 2,
                "three" => 3,
                _ => count.parse().ok()?,
            };
            let (day, slack) = match unit.trim_end_matches('s') {
                "day" => (back(u64::from(count))?, 0),
                "week" => (back(7 * u64::from(count))?, 3),
                "month" => (months_back(count)?, 15),
                "year" => (months_back(count.checked_mul(12)?)?, 90),
                _ => return None,
            };
            Some(DaySpan {
                first: day.checked_sub_days(Days::new(slack))?,
                last: day.checked_add_days(Days::new(slack))?,
            })
        }
        _ => None,
    }
}

fn parse_month(word: &str) -> Option<u32> {
    let begin = word.get(..3)?;
    let at = MONTHS.iter().position(|month| *month == begin)?;
    const WHOLE: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is_month = word.len() == 3 || word == "sept" || WHOLE.get(at).is_some_and(|whole| *whole == word);
    is_month.then_some(at as u32 + 1)
}

fn parse_year(word: &str) -> Option<i32> {
    word.parse().ok().filter(|year| word.len() == 4 && YEARS.contains(year))
}

fn parse_day_number(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = word.get(digits.len()..)?;
    let is_ordinal_or_plain = matches!(ending, "" | "st" | "nd" | "rd" | "th");
    digits.parse().ok().filter(|day| is_ordinal_or_plain && (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn the_day_of_a_heading_is_read() {
        for heading in [
            "2023-05-08",
            "Session 1 (2023-05-08T13:56:00Z)",
            "Session 1: 1:56 pm on 8 May, 2023",
            "May 8th, 2023",
            "the 8th of May 2023",
        ] {
            assert_eq!(find_day(heading), Some(day("2023-05-08")), "{heading}");
        }
        for heading in ["Session 1", "8 May", "May 2023", "31 February 2023", "1234-56-78", "3000-01-01"] {
            assert_eq!(find_day(heading), None, "{heading}");
        }
    }

    #[test]
    fn the_days_of_a_question_are_read() {
        let today = day("2026-11-24");
        for (question, first, last) in [
            ("what happened on 8 May 2023?", "2023-05-08", "2023-05-08"),
            ("what did I do yesterday", "2026-11-23", "2026-11-23"),
            ("what was last week about", "2026-11-16", "2026-11-22"),
            ("who called last Friday", "2026-11-20", "2026-11-20"),
            ("plans in May 2023", "2023-05-01", "2023-05-31"),
            ("what did we do in December", "2025-12-01", "2025-12-31"),
            ("the trip on May 3", "2026-05-03", "2026-05-03"),
            ("where was I in 2024?", "2024-01-01", "2024-12-31"),
            ("two weeks ago", "2026-11-07", "2026-11-13"),
        ] {
            assert_eq!(
                parse_asked_days(question, today),
                Some(DaySpan { first: day(first), last: day(last) }),
                "{question}"
            );
        }
        for question in ["may I have tea", "what is the code 2024", "how many days"] {
            assert_eq!(parse_asked_days(question, today), None, "{question}");
        }
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in ".{0,80}|[0-9a-z ,-]{0,80}") {
            find_day(&text);
            parse_asked_days(&text, day("2026-11-24"));
        }
    }
}
