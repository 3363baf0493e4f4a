//! People's typing (fillers before and after, swapped letters, missing capitals) and their names for a day.

use chrono::{Datelike as _, Days, NaiveDate};

use reveille_base::schedule::words::MONTHS;

use super::draw::Draw;

const BEFORE: [&str; 12] = [
    "So, ",
    "Btw ",
    "I think ",
    "ok ",
    "Hm. ",
    "By the way: ",
    "Well, ",
    "Finally: ",
    "Sooo ",
    "Not sure if I said it: ",
    "Small thing: ",
    "For the record, ",
];
const AFTER: [&str; 14] = [
    " 😅",
    " lol",
    " Anyway.",
    " !!",
    " I guess",
    ", you know",
    " 🙈",
    " That's all.",
    " Don't laugh.",
    " (sorry, long day)",
    " Okay?",
    " Can you believe it?",
    ", right?",
    " How are things with you?",
];

/// A statement as people type it.
pub(crate) fn typed(text: &str, draw: &mut Draw) -> String {
    let mut text = text.to_owned();
    if draw.happens(0.2) && text.len() > 30 {
        text = format!("{}{text}", draw.one(&BEFORE));
    }
    if draw.happens(0.2) && text.len() > 30 {
        text.push_str(draw.one::<&str>(&AFTER));
    }
    if draw.happens(0.06) { slip(&text, draw) } else { text }
}

/// A question as people type it into a search.
pub(crate) fn asked(text: &str, draw: &mut Draw) -> String {
    let text = if draw.happens(0.04) { slip(text, draw) } else { text.to_owned() };
    if draw.happens(0.15) { text.to_lowercase().trim_end_matches(['?', '.']).to_owned() } else { text }
}

/// Swaps two letters within a long word.
fn slip(text: &str, draw: &mut Draw) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let long: Vec<usize> = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| (word.len() > 5 && word.chars().all(|c| c.is_ascii_lowercase())).then_some(at))
        .collect();
    if let Some(at) = (!long.is_empty()).then(|| *draw.one(&long)) {
        let mut letters: Vec<char> = words[at].chars().collect();
        let from = 1 + draw.below(letters.len() - 3);
        letters.swap(from, from + 1);
        words[at] = letters.into_iter().collect();
    }
    words.join(" ")
}

/// Names a time that contains a day, with the first and last day of its meaning.
pub(crate) fn time_named(day: NaiveDate, draw: &mut Draw) -> (String, NaiveDate, NaiveDate) {
    let (month, year) = (MONTHS[day.month0() as usize], day.year());
    let first = day.with_day(1).unwrap();
    let last = first.checked_add_months(chrono::Months::new(1)).unwrap().pred_opt().unwrap();
    let around = |days: u64| (day - Days::new(days), day + Days::new(days));
    match draw.below(9) {
        0 => (format!("in {month} {year}"), first, last),
        1 => (format!("on {} {month} {year}", day.day()), day, day),
        2 => (format!("on {day}"), day, day),
        3 => (format!("around {} {month} {year}", day.day()), around(6).0, around(6).1),
        4 if day.day() <= 10 => (format!("at the beginning of {month} {year}"), first, first + Days::new(11)),
        4 if day.day() <= 20 => {
            (format!("in the middle of {month} {year}"), first + Days::new(8), first + Days::new(21))
        }
        4 => (format!("at the end of {month} {year}"), first + Days::new(18), last),
        5 => {
            let (season, from) = season(day);
            (format!("in {season}"), from, from.checked_add_months(chrono::Months::new(3)).unwrap().pred_opt().unwrap())
        }
        6 => {
            let monday = day - Days::new(u64::from(day.weekday().num_days_from_monday()));
            (format!("in the week of {} {month} {year}", day.day()), monday, monday + Days::new(6))
        }
        7 => (format!("on {} {}", month, day.day()), day, day),
        _ => (format!("in {} {year}", month.chars().take(3).collect::<String>()), first, last),
    }
}

/// The season of a day, named with its year, and its first day.
fn season(day: NaiveDate) -> (String, NaiveDate) {
    let (name, month) = match day.month() {
        3..=5 => ("spring", 3),
        6..=8 => ("summer", 6),
        9..=11 => ("autumn", 9),
        _ => ("winter", 12),
    };
    let year = if day.month() < 3 { day.year() - 1 } else { day.year() };
    let named =
        if name == "winter" { format!("the winter of {year}/{}", (year + 1) % 100) } else { format!("{name} {year}") };
    (named, NaiveDate::from_ymd_opt(year, month, 1).unwrap())
}
