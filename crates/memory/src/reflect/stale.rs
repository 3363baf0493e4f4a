//! Facts that may be outdated: statements about a passing time, and facts unmentioned for a year. They stay, with the day on which they
//! held.

use chrono::NaiveDate;

use reveille_base::words::one_line;

use super::{PersonMemoryEdits, append_words, list_untrusted_lines};
use crate::facts;

/// Expressions for a passing time.
const PASSING: [&str; 17] = [
    "today",
    "tonight",
    "tomorrow",
    "currently",
    "now",
    "at the moment",
    "these days",
    "this week",
    "this month",
    "this year",
    "next week",
    "next month",
    "soon",
    "for now",
    "at present",
    "this weekend",
    "lately",
];
/// Days before a fact about a passing time may be outdated.
const PASSING_DAYS: i64 = 14;
/// Days before any fact may be outdated.
const OLD_DAYS: i64 = 365;
/// The beginning of the mark.
const MARK: &str = "(as of ";

/// Adds the marks. Returns the facts and the number of new marks. A person's own lines stay unchanged.
pub(super) fn mark_stale_facts(text: &str, today: NaiveDate, by_hand: &PersonMemoryEdits) -> (String, usize) {
    let mut count = 0;
    let of_others = list_untrusted_lines(text);
    let dated = facts::edit_facts(text, |fact, item| {
        let stated_on = fact.date()?;
        let is_stale = is_stale(&fact.text, today.signed_duration_since(stated_on).num_days());
        if !is_stale || fact.text.contains(MARK) || by_hand.has_written(fact) || of_others.contains(&fact.line) {
            return None;
        }
        count += 1;
        Some(append_words(item, &format!("{MARK}{stated_on})")))
    });
    (dated, count)
}

fn is_stale(fact: &str, days: i64) -> bool {
    let words: String = fact.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let words = format!(" {} ", one_line(&words));
    let is_passing = || PASSING.iter().any(|passing| words.contains(&format!(" {passing} ")));
    days >= OLD_DAYS || days >= PASSING_DAYS && is_passing()
}
