use chrono::NaiveTime;

use super::*;
use crate::schedule::resolve_local_time;

fn berlin() -> Tz {
    Tz::of("Europe/Berlin")
}

fn civil(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()
}

/// Reads an instant from Berlin's wall clock.
fn at(text: &str) -> DateTime<Utc> {
    resolve_local_time(civil(text), berlin()).at
}

fn nine() -> Rule {
    Rule::Daily { at: NaiveTime::from_hms_opt(9, 0, 0).unwrap() }
}

fn daily(rule: &Rule, missed: Missed, next: &str) -> DueTurn {
    series(rule, missed, next).decide_turn(&SlotHistory::default(), at("2026-11-21 12:00"))
}

fn series<'a>(rule: &'a Rule, missed: Missed, next: &str) -> Series<'a> {
    Series { rule: Some(rule), tz: berlin(), missed, next: resolve_local_time(civil(next), berlin()) }
}

/// Renders a turn: the slot that happens, the number and range of those passed over, and the next one.
fn told(turn: &DueTurn) -> String {
    let key = |slot: Slot| slot.civil.format("%d %H:%M").to_string();
    let happens = turn.happens.map_or("nothing".to_owned(), key);
    let late = if turn.is_late { " late" } else { "" };
    let passed = turn.passed.map_or(String::new(), |passed| {
        format!(", {} from {} to {}", passed.count, key(passed.first), key(passed.last))
    });
    format!("{happens}{late}{passed}; next {}", turn.next.map_or("never".to_owned(), key))
}

#[test]
fn of_what_was_missed_the_policy_says_what_happens() {
    let rule = nine();
    let turn = |missed| told(&daily(&rule, missed, "2026-11-18 09:00"));
    assert_eq!(turn(Missed::Run), "21 09:00 late, 3 from 18 09:00 to 20 09:00; next 22 09:00");
    assert_eq!(turn(Missed::Skip), "nothing, 4 from 18 09:00 to 21 09:00; next 22 09:00");
    assert_eq!(turn(Missed::Tell), turn(Missed::Skip));
    let once = Series { rule: None, ..series(&rule, Missed::Skip, "2026-11-18 09:00") };
    let now = at("2026-11-21 12:00");
    assert_eq!(
        told(&once.decide_turn(&SlotHistory::default(), now)),
        "nothing, 1 from 18 09:00 to 18 09:00; next never"
    );
    let once = Series { missed: Missed::Run, ..once };
    assert_eq!(told(&once.decide_turn(&SlotHistory::default(), now)), "18 09:00 late; next never");
}

#[test]
fn half_an_hour_late_is_met_and_later_is_missed() {
    let rule = nine();
    let series = series(&rule, Missed::Skip, "2026-11-21 09:00");
    let turn = |now: &str| told(&series.decide_turn(&SlotHistory::default(), at(now)));
    assert_eq!(turn("2026-11-21 08:59"), "nothing; next 21 09:00");
    assert_eq!(turn("2026-11-21 09:00"), "21 09:00; next 22 09:00");
    assert_eq!(turn("2026-11-21 09:30"), "21 09:00; next 22 09:00");
    assert_eq!(turn("2026-11-21 09:31"), "nothing, 1 from 21 09:00 to 21 09:00; next 22 09:00");
    assert_eq!(turn("2026-11-22 09:10"), "22 09:00, 1 from 21 09:00 to 21 09:00; next 23 09:00");
}

#[test]
fn a_clock_set_forward_and_back_neither_doubles_nor_skips() {
    let rule = nine();
    let monday = series(&rule, Missed::Run, "2026-11-23 09:00");
    let wrong = monday.decide_turn(&SlotHistory::default(), at("2026-11-25 12:00"));
    assert_eq!(told(&wrong), "25 09:00 late, 2 from 23 09:00 to 24 09:00; next 26 09:00");
    let history = SlotHistory {
        happened: BTreeSet::from([civil("2026-11-25 09:00")]),
        passed: vec![(civil("2026-11-23 09:00"), civil("2026-11-25 09:00"))],
    };
    let created = at("2026-11-01 12:00");
    let after_wrong = Series { next: wrong.next.unwrap(), ..monday };
    let next = after_wrong.find_rewound_slot(&history, created, at("2026-11-23 08:00")).unwrap();
    assert_eq!(next, monday.next, "it was passed over only under the wrong time");
    let lived = Series { next, ..monday };
    assert_eq!(told(&lived.decide_turn(&history, at("2026-11-23 09:01"))), "23 09:00; next 24 09:00");
    // The clock is right again: everything is reported and done once only.
    assert_eq!(told(&lived.decide_turn(&history, at("2026-11-25 12:05"))), "nothing; next 26 09:00");
    // Slots that happened are skipped, and a clock at 1970 restores nothing from before the creation.
    assert_eq!(after_wrong.find_rewound_slot(&history, created, at("2026-11-25 08:00")), None);
    let next = after_wrong.find_rewound_slot(&SlotHistory::default(), at("2026-11-24 10:00"), at("1970-01-01 00:00"));
    assert_eq!(next.unwrap().civil, civil("2026-11-25 09:00"));
}

#[test]
fn a_clock_set_back_after_firing_fires_nothing_again() {
    let rule = nine();
    let tomorrow = series(&rule, Missed::Run, "2026-11-22 09:00");
    let history = SlotHistory { happened: BTreeSet::from([civil("2026-11-21 09:00")]), passed: Vec::new() };
    assert_eq!(tomorrow.find_rewound_slot(&history, at("2026-11-01 12:00"), at("2026-11-21 08:00")), None);
    let again = series(&rule, Missed::Run, "2026-11-21 09:00");
    assert_eq!(told(&again.decide_turn(&history, at("2026-11-21 09:00"))), "nothing; next 22 09:00");
}

#[test]
fn years_of_minutes_are_passed_over_in_one_look() {
    let rule = Rule::Interval { minutes: 1, anchor: at("2016-11-21 12:00") };
    let series = Series {
        rule: Some(&rule),
        tz: berlin(),
        missed: Missed::Tell,
        next: rule.next_after(at("2016-11-21 12:00"), berlin()).unwrap(),
    };
    let now = at("2026-11-21 12:00");
    let turn = series.decide_turn(&SlotHistory::default(), now);
    assert!(turn.next.unwrap().at > now && turn.passed.unwrap().count >= MAX_DUE - 1, "{turn:?}");
}

#[test]
fn a_policy_is_read_as_it_is_written() {
    for policy in [Missed::Run, Missed::Skip, Missed::Tell] {
        assert_eq!(Missed::parse(&format!(" {} ", policy.name().to_uppercase())), Some(policy));
        assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
    }
    assert_eq!(Missed::parse("later"), None);
}
