//! Tests the reader on a public collection of times in words (see `LICENSE-recognizers`).

use chrono::{NaiveDate, Timelike as _};
use serde::Deserialize;

use super::*;

/// An entry of the collection: a text and its possible values (past ones included) or its rule.
#[derive(Deserialize)]
struct SaidTime {
    text: String,
    now: String,
    #[serde(rename = "type")]
    kind: String,
    values: Vec<String>,
}

/// The reader's result for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Score {
    Right,
    Asked,
    Wrong,
}

/// Compares a slot with a value of the collection: a day, a time of any day, or a moment.
fn is_value(slot: NaiveDateTime, value: &str) -> bool {
    let day = NaiveDate::parse_from_str(value, "%Y-%m-%d").ok();
    let time = NaiveTime::parse_from_str(value, "%H:%M:%S").ok();
    let moment = NaiveDateTime::parse_from_str(value, "%Y-%m-%d %H:%M:%S").ok();
    day.is_some_and(|day| slot.date() == day)
        || time.is_some_and(|time| slot.time() == time)
        || moment.is_some_and(|moment| slot == moment)
}

fn is_ahead(value: &str, now: NaiveDateTime) -> bool {
    let day = NaiveDate::parse_from_str(value, "%Y-%m-%d").ok();
    let moment = NaiveDateTime::parse_from_str(value, "%Y-%m-%d %H:%M:%S").ok();
    let time = NaiveTime::parse_from_str(value, "%H:%M:%S").ok();
    day.is_some_and(|day| day >= now.date()) || moment.is_some_and(|moment| moment > now) || time.is_some()
}

/// Drops values that only repeat another one half a day later. The reader takes hours from 7 to 12 literally, and for a time without a
/// day it takes the next occurrence.
fn distinct<'a>(values: &[&'a String]) -> Vec<&'a String> {
    let hour =
        |value: &str| value.rsplit([' ', 'T']).next().and_then(|time| NaiveTime::parse_from_str(time, "%H:%M:%S").ok());
    let twelve_later = |value: &str| {
        let is_time = !value.contains('-');
        hour(value)
            .is_some_and(|time| (13..=23).contains(&time.hour()) && (time.hour() >= 19 || is_time) || time.hour() == 0)
    };
    let mut kept: Vec<&String> =
        values.iter().copied().filter(|value| values.len() == 1 || !twelve_later(value)).collect();
    kept.sort();
    kept.dedup();
    kept
}

fn score(said: &SaidTime) -> Score {
    let now = NaiveDateTime::parse_from_str(&said.now, "%Y-%m-%dT%H:%M").unwrap();
    let found = parse_when(
        &format!("{} to water the plants", said.text),
        berlin().from_local_datetime(&now).earliest().unwrap(),
    );
    let when = found.and_then(|found| found.when.ok());
    if said.kind == "set" {
        return match (when, said.values.first()) {
            (None, None) => Score::Right,
            (None, Some(_)) => Score::Asked,
            (Some(When::Every(rule)), Some(expected)) if rule.to_string() == *expected => Score::Right,
            _ => Score::Wrong,
        };
    }
    let ahead: Vec<&String> = said.values.iter().filter(|value| is_ahead(value, now)).collect();
    match (when, distinct(&ahead).len()) {
        (None, 0 | 2..) => Score::Right,
        (None, 1) => Score::Asked,
        (Some(When::At(slot)), 1) if ahead.iter().any(|value| is_value(slot.civil, value)) => Score::Right,
        _ => Score::Wrong,
    }
}

#[test]
fn of_a_public_collection_four_in_five_are_right_and_none_is_silently_wrong() {
    let lines = include_str!("recognizers.jsonl").lines();
    let said: Vec<SaidTime> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |wanted: Score| -> Vec<&SaidTime> { said.iter().filter(|said| score(said) == wanted).collect() };
    let wrong: Vec<String> =
        of(Score::Wrong).iter().map(|said| format!("{} (at {}): {:?}", said.text, said.now, said.values)).collect();
    assert!(wrong.is_empty(), "{} of {} silently wrong:\n{}", wrong.len(), said.len(), wrong.join("\n"));
    let (right, all) = (of(Score::Right).len(), said.len());
    assert!(right * 5 >= all * 4, "{right} of {all} right");
}
