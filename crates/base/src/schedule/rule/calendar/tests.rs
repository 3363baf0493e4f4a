use chrono::{TimeDelta, TimeZone as _};
use proptest::prelude::*;

use super::{super::Rule, *};

fn berlin() -> Tz {
    Tz::of("Europe/Berlin")
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn utc(text: &str) -> DateTime<Utc> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap().and_utc()
}

fn at(hour: u32) -> NaiveTime {
    NaiveTime::from_hms_opt(hour, 0, 0).unwrap()
}

fn calendar(days: CalendarDays, times: &[u32]) -> Calendar {
    Calendar {
        days,
        times: times.iter().copied().map(at).collect(),
        from: None,
        until: None,
        except: Exceptions::default(),
    }
}

/// Checks the slots after Saturday 2026-11-21 14:00 in Berlin by their keys.
#[track_caller]
fn check(rule: Calendar, words: &str, slots: &[&str]) {
    let rule = Rule::Calendar(Box::new(rule));
    assert_eq!(rule.to_string(), words);
    let found = rule.list_missed(utc("2026-11-21 13:00"), utc("2100-01-01 00:00"), berlin(), slots.len());
    let found: Vec<String> = found.iter().map(|slot| slot.civil.format("%a %Y-%m-%d %H:%M").to_string()).collect();
    assert_eq!(found, slots, "{words}");
    let stored = serde_json::to_string(&rule).unwrap();
    assert_eq!(serde_json::from_str::<Rule>(&stored).unwrap(), rule, "{stored}");
}

#[test]
fn each_kind_of_days_names_itself_and_its_slots() {
    let anchor = date("2026-11-21");
    check(
        calendar(CalendarDays::Daily { n: 1, anchor }, &[8, 18]),
        "every day at 08:00 and 18:00",
        &["Sat 2026-11-21 18:00", "Sun 2026-11-22 08:00", "Sun 2026-11-22 18:00"],
    );
    check(
        calendar(CalendarDays::Monthly { n: 1, days: vec![-2, 15], anchor }, &[9]),
        "every month on the 2nd to last day and 15th at 09:00",
        &["Sun 2026-11-29 09:00", "Tue 2026-12-15 09:00", "Wed 2026-12-30 09:00"],
    );
    check(
        calendar(CalendarDays::Monthly { n: 1, days: vec![31], anchor }, &[9]),
        "every month on the 31st at 09:00",
        &["Mon 2026-11-30 09:00", "Thu 2026-12-31 09:00", "Sun 2027-01-31 09:00", "Sun 2027-02-28 09:00"],
    );
    check(
        calendar(
            CalendarDays::MonthWeekdays { n: 1, which: vec![(1, Weekday::Mon), (-1, Weekday::Fri)], anchor },
            &[9],
        ),
        "every month on the 1st Monday and last Friday at 09:00",
        &["Fri 2026-11-27 09:00", "Mon 2026-12-07 09:00", "Fri 2026-12-25 09:00"],
    );
    check(
        calendar(CalendarDays::MonthWeekdays { n: 1, which: vec![(5, Weekday::Mon)], anchor }, &[9]),
        "every month on the 5th Monday at 09:00",
        &["Mon 2026-11-30 09:00", "Mon 2027-03-29 09:00"],
    );
    check(
        calendar(CalendarDays::YearWeekday { month: 2, nth: 5, weekday: Weekday::Fri }, &[9]),
        "every year on the 5th Friday of February at 09:00",
        &["Fri 2036-02-29 09:00", "Fri 2064-02-29 09:00"],
    );
    check(
        calendar(CalendarDays::MonthWorkday { n: 1, nth: -1, anchor }, &[9]),
        "every month on the last working day at 09:00",
        &["Mon 2026-11-30 09:00", "Thu 2026-12-31 09:00", "Fri 2027-01-29 09:00"],
    );
    check(
        calendar(CalendarDays::FromEaster { days: 1 }, &[9]),
        "every Easter Monday at 09:00",
        &["Mon 2027-03-29 09:00", "Mon 2028-04-17 09:00"],
    );
    check(
        calendar(CalendarDays::YearWeekday { month: 11, nth: 4, weekday: Weekday::Thu }, &[9]),
        "every year on the 4th Thursday of November at 09:00",
        &["Thu 2026-11-26 09:00", "Thu 2027-11-25 09:00"],
    );
    check(
        calendar(CalendarDays::Yearly { n: 4, month: 2, day: 29, anchor }, &[9]),
        "every 4 years on 29 February at 09:00",
        &["Thu 2030-02-28 09:00", "Tue 2034-02-28 09:00"],
    );
}

#[test]
fn limits_and_exceptions_count() {
    let anchor = date("2026-11-21");
    let daily = calendar(CalendarDays::Daily { n: 1, anchor }, &[9]);
    let until = Some(date("2026-11-24").and_time(at(9)));
    check(
        Calendar { from: Some(date("2026-11-23")), until, ..daily.clone() },
        "every day at 09:00, from Mon 23 November 2026, until Tue 24 November 2026",
        &["Mon 2026-11-23 09:00", "Tue 2026-11-24 09:00"],
    );
    let except = Exceptions { on: super::super::WEEKEND, dates: vec![date("2026-11-23")] };
    check(
        Calendar { except, ..daily.clone() },
        "every day at 09:00, except on Saturdays and Sundays and on Mon 23 November 2026",
        &["Tue 2026-11-24 09:00", "Wed 2026-11-25 09:00"],
    );
    let ended = Rule::Calendar(Box::new(Calendar { until, ..daily }));
    assert_eq!(ended.next_after(utc("2026-11-24 08:00"), berlin()), None);
    let dates = CalendarDays::Dates { dates: vec![date("2026-11-23"), date("2026-11-26")] };
    check(
        calendar(dates.clone(), &[7]),
        "on Mon 23 November 2026 and Thu 26 November 2026 at 07:00",
        &["Mon 2026-11-23 07:00", "Thu 2026-11-26 07:00"],
    );
    assert_eq!(Rule::Calendar(Box::new(calendar(dates, &[7]))).next_after(utc("2026-11-26 06:00"), berlin()), None);
}

/// Dates from published church tables.
#[test]
fn easter_is_when_it_is() {
    for day in
        ["2008-03-23", "2011-04-24", "2016-03-27", "2019-04-21", "2024-03-31", "2026-04-05", "2038-04-25", "2285-03-22"]
    {
        assert_eq!(easter_sunday(date(day).year()), Some(date(day)));
    }
}

proptest! {
    /// From anywhere between two slots the next slot is the same, also at clock changes.
    #[test]
    fn between_two_slots_there_is_none(offset_min in 0i64..5_256_000, part in 0i64..1000, hour in 0u32..23) {
        let anchor = date("2026-11-20");
        for days in [
            CalendarDays::Daily { n: 2, anchor },
            CalendarDays::Monthly { n: 1, days: vec![-1, 10], anchor },
            CalendarDays::MonthWeekdays { n: 2, which: vec![(2, Weekday::Sun), (-1, Weekday::Sun)], anchor },
            CalendarDays::FromEaster { days: 0 },
        ] {
            let rule = Rule::Calendar(Box::new(calendar(days, &[hour, hour + 1])));
            let start = utc("2026-01-01 00:00") + TimeDelta::minutes(offset_min);
            let one = rule.next_after(start, berlin()).unwrap();
            let two = rule.next_after(one.at, berlin()).unwrap();
            prop_assert!(one.at > start && two.at > one.at);
            let between = one.at + (two.at - one.at) * i32::try_from(part).unwrap() / 1000;
            prop_assert_eq!(rule.next_after(between, berlin()), Some(two));
            prop_assert!(berlin().from_utc_datetime(&two.at.naive_utc()).naive_local() >= two.civil);
        }
    }
}
