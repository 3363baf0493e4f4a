use chrono::{NaiveDateTime, TimeZone as _};
use proptest::prelude::*;

use super::*;

mod corpus;
mod reported;

fn berlin() -> Tz {
    Tz::of("Europe/Berlin")
}

fn civil(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()
}

fn local(tz: Tz, text: &str) -> DateTime<Tz> {
    tz.from_local_datetime(&civil(text)).earliest().unwrap()
}

/// Saturday, 14:00 in Berlin.
fn saturday() -> DateTime<Tz> {
    local(berlin(), "2026-11-21 14:00")
}

/// Renders the meaning of a text (a slot's local time, a rule in words, or a problem) and the rest of the text.
fn render_meaning(text: &str, now: DateTime<Tz>) -> String {
    let Some(found) = parse_when(text, now) else {
        return "nothing".to_owned();
    };
    let rest = [text.get(..found.span.start).unwrap(), text.get(found.span.end..).unwrap()].concat();
    let rest = rest.trim();
    let meaning = match found.when {
        Ok(When::At(slot)) => slot.civil.format("%a %Y-%m-%d %H:%M").to_string(),
        Ok(When::Every(rule)) => rule.to_string(),
        Err(TimeTrouble::Either(one, other)) => {
            format!("{} or {}", one.format("%Y-%m-%d %H:%M"), other.format("%Y-%m-%d %H:%M"))
        }
        Err(trouble) => format!("{trouble:?}"),
    };
    if rest.is_empty() { meaning } else { format!("{meaning} | {rest}") }
}

#[track_caller]
fn check_all(now: DateTime<Tz>, table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let got = render_meaning(text, now);
            (got != *expected).then(|| format!("{text:?}\n    expected {expected}\n    got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn times_of_day() {
    check_all(
        saturday(),
        &[
            ("at 9", "Sun 2026-11-22 09:00"),
            ("at 15", "Sat 2026-11-21 15:00"),
            ("at 14:00", "Sun 2026-11-22 14:00"),
            ("at 17:30", "Sat 2026-11-21 17:30"),
            ("17:30", "Sat 2026-11-21 17:30"),
            ("at 17.30", "Sat 2026-11-21 17:30"),
            ("at 1730", "Sat 2026-11-21 17:30"),
            ("5pm", "Sat 2026-11-21 17:00"),
            ("5 PM", "Sat 2026-11-21 17:00"),
            ("5:15 p.m.", "Sat 2026-11-21 17:15"),
            ("at 8 a.m. tomorrow", "Sun 2026-11-22 08:00"),
            ("at 5", "Sat 2026-11-21 17:00"),
            ("at 5:15", "Sat 2026-11-21 17:15"),
            ("at 05:15", "Sun 2026-11-22 05:15"),
            ("at 7", "Sun 2026-11-22 07:00"),
            ("at 7 in the evening", "Sat 2026-11-21 19:00"),
            ("at five in the morning", "Sun 2026-11-22 05:00"),
            ("at nine", "Sun 2026-11-22 09:00"),
            ("at 8 o’clock", "Sun 2026-11-22 08:00"),
            ("at half past 8", "Sun 2026-11-22 08:30"),
            ("at quarter to nine", "Sun 2026-11-22 08:45"),
            ("at a quarter past four", "Sat 2026-11-21 16:15"),
            ("at 10 past 9", "Sun 2026-11-22 09:10"),
            ("noon", "Sun 2026-11-22 12:00"),
            ("at midnight", "Sun 2026-11-22 00:00"),
            ("tomorrow at midnight", "2026-11-22 00:00 or 2026-11-23 00:00"),
            ("at 12am", "Sun 2026-11-22 00:00"),
            ("at 12", "Sun 2026-11-22 12:00"),
            ("at 25:00", "NoSuchTime"),
            ("at 13pm", "NoSuchTime"),
            ("today at 9", "Sat 2026-11-21 21:00"),
            ("today at 9am", "Past"),
            ("today", "NeedsTime"),
            ("this evening", "Sat 2026-11-21 19:00"),
            ("this evening at 8", "Sat 2026-11-21 20:00"),
            ("this morning", "Past"),
            ("tonight", "Sat 2026-11-21 20:00"),
            ("tonight at 9", "Sat 2026-11-21 21:00"),
            ("9 tonight", "Sat 2026-11-21 21:00"),
            ("tonight at 12", "Sun 2026-11-22 00:00"),
            ("tonight at 1", "Sun 2026-11-22 01:00"),
            ("in the morning", "Sun 2026-11-22 09:00"),
            ("at night", "Sat 2026-11-21 20:00"),
        ],
    );
}

#[test]
fn distances() {
    check_all(
        saturday(),
        &[
            ("in 20 minutes", "Sat 2026-11-21 14:20"),
            ("in twenty five min", "Sat 2026-11-21 14:25"),
            ("in fortyfive minutes", "Sat 2026-11-21 14:45"),
            ("in 20min", "Sat 2026-11-21 14:20"),
            ("in a minute", "Sat 2026-11-21 14:01"),
            ("in an hour", "Sat 2026-11-21 15:00"),
            ("in half an hour", "Sat 2026-11-21 14:30"),
            ("in a quarter of an hour", "Sat 2026-11-21 14:15"),
            ("in an hour and a half", "Sat 2026-11-21 15:30"),
            ("in one and a half hours", "Sat 2026-11-21 15:30"),
            ("in 2 and a half hours", "Sat 2026-11-21 16:30"),
            ("in 1.5 hours", "Sat 2026-11-21 15:30"),
            ("in 2 hours and 10 minutes", "Sat 2026-11-21 16:10"),
            ("in 2h30m", "Sat 2026-11-21 16:30"),
            ("in a couple of hours", "Sat 2026-11-21 16:00"),
            ("20 minutes from now", "Sat 2026-11-21 14:20"),
            ("in 2 days", "Mon 2026-11-23 14:00"),
            ("in 2 days at 9", "Mon 2026-11-23 09:00"),
            ("in two weeks", "Sat 2026-12-05 14:00"),
            ("in a fortnight", "Sat 2026-12-05 14:00"),
            ("in 3 months", "Sun 2027-02-21 14:00"),
            ("in half a year", "Fri 2027-05-21 14:00"),
            ("in a day and a half", "Mon 2026-11-23 02:00"),
            ("in 99999999 years", "nothing"),
            ("in 300 years", "TooFar"),
            ("in 0 minutes", "Past"),
        ],
    );
}

#[test]
fn days_and_dates() {
    check_all(
        saturday(),
        &[
            ("tomorrow", "Sun 2026-11-22 09:00"),
            ("tomorrow at 9", "Sun 2026-11-22 09:00"),
            ("at 9 tomorrow", "Sun 2026-11-22 09:00"),
            ("tomorrow, 16:45", "Sun 2026-11-22 16:45"),
            ("tomorrow morning", "Sun 2026-11-22 09:00"),
            ("tomorrow morning at 6", "Sun 2026-11-22 06:00"),
            ("tomorrow night", "Sun 2026-11-22 20:00"),
            ("day after tomorrow", "Mon 2026-11-23 09:00"),
            ("the day after tomorrow at noon", "Mon 2026-11-23 12:00"),
            ("yesterday at 5", "Past"),
            ("on Friday at 3pm", "Fri 2026-11-27 15:00"),
            ("Friday", "Fri 2026-11-27 09:00"),
            ("on Fri at 3", "2026-11-27 03:00 or 2026-11-27 15:00"),
            ("next Friday", "Fri 2026-11-27 09:00"),
            ("on Sunday", "Sun 2026-11-22 09:00"),
            ("next Sunday", "2026-11-22 09:00 or 2026-11-29 09:00"),
            ("on Saturday at 3pm", "2026-11-21 15:00 or 2026-11-28 15:00"),
            ("Friday evening", "Fri 2026-11-27 19:00"),
            ("on Friday next week at 10", "Fri 2026-11-27 10:00"),
            ("next week on Tuesday", "Tue 2026-11-24 09:00"),
            ("next week", "Mon 2026-11-23 09:00"),
            ("next month", "Tue 2026-12-01 09:00"),
            ("next year", "Fri 2027-01-01 09:00"),
            ("at the end of the month", "Mon 2026-11-30 09:00"),
            ("end of next month", "Thu 2026-12-31 09:00"),
            ("at the weekend", "Sun 2026-11-22 09:00"),
            ("on Valentine's Day morning", "Sun 2027-02-14 09:00"),
            ("3 December evening", "Thu 2026-12-03 19:00"),
            ("at the end of April at 10", "Fri 2027-04-30 10:00"),
            ("the end of the year", "Thu 2026-12-31 09:00"),
            ("on the evening of the 5th", "Sat 2026-12-05 19:00"),
            ("on the morning of Christmas Eve", "Thu 2026-12-24 09:00"),
            ("at 2026-12-03T18:00+02:00", "Thu 2026-12-03 17:00"),
            ("next weekend", "Sat 2026-11-28 09:00"),
            ("on 5 December", "Sat 2026-12-05 09:00"),
            ("on the 5th of December at 8", "Sat 2026-12-05 08:00"),
            ("December 5th at 10", "Sat 2026-12-05 10:00"),
            ("Dec 5", "Sat 2026-12-05 09:00"),
            ("on Dec. 5, 2027", "Sun 2027-12-05 09:00"),
            ("3 May", "Mon 2027-05-03 09:00"),
            ("on Saturday, 5 December at 18:00", "Sat 2026-12-05 18:00"),
            ("on Monday, 5 December", "WrongWeekday"),
            ("29 February", "Tue 2028-02-29 09:00"),
            ("on 30 February", "NoSuchDay"),
            ("2026-12-05 10:00", "Sat 2026-12-05 10:00"),
            ("2026-12-05T10:00", "Sat 2026-12-05 10:00"),
            ("2026-11-01 10:00", "Past"),
            ("on 2026-02-30", "NoSuchDay"),
            ("5.12. 14:00", "Sat 2026-12-05 14:00"),
            ("on 5.12.2026 at 14:00", "Sat 2026-12-05 14:00"),
            ("on 5/12 at 10", "2026-12-05 10:00 or 2027-05-12 10:00"),
            ("on 25/12 at 10", "Fri 2026-12-25 10:00"),
            ("on the 15th", "Tue 2026-12-15 09:00"),
            ("on the 25th at 7pm", "Wed 2026-11-25 19:00"),
            ("on the 31st", "Thu 2026-12-31 09:00"),
            ("on the 15th of next month", "Tue 2026-12-15 09:00"),
            ("on the 1st of this month", "Past"),
            ("on the 32nd", "NoSuchDay"),
            ("on the first Monday of May", "Mon 2027-05-03 09:00"),
            ("tomorrow at 8 and at 18", "on Sun 22 November 2026 at 08:00 and 18:00"),
        ],
    );
}

#[test]
fn recurrences() {
    check_all(
        saturday(),
        &[
            ("every day at 8", "every day at 08:00"),
            ("at 8 every day", "every day at 08:00"),
            ("daily at 9", "every day at 09:00"),
            ("each morning", "every day at 09:00"),
            ("every morning at 6", "every day at 06:00"),
            ("every evening", "every day at 19:00"),
            ("every day at midnight", "every day at 00:00"),
            ("every weekday at 8", "every weekday at 08:00"),
            ("on weekdays at 8:30", "every weekday at 08:30"),
            ("every quarter of an hour", "every 15 minutes"),
            ("every quarter hour", "every 15 minutes"),
            ("on weekends at 10", "every Saturday and Sunday at 10:00"),
            ("every Monday and Thursday at 7:30", "every Monday and Thursday at 07:30"),
            ("every Mon, Wed and Fri at 18:00", "every Monday, Wednesday and Friday at 18:00"),
            ("on Mondays at 9", "every Monday at 09:00"),
            ("Friday evenings", "every Friday at 19:00"),
            ("every other Friday", "every other Friday at 09:00"),
            ("every second Friday at 10", "every other Friday at 10:00"),
            ("every 2 weeks on Friday", "every other Friday at 09:00"),
            ("weekly on Sunday", "every Sunday at 09:00"),
            ("every week", "every Saturday at 09:00"),
            ("once a week on Friday", "every Friday at 09:00"),
            ("every 3 days at 20:00", "every 3 days at 20:00"),
            ("every other day", "every 2 days at 09:00"),
            ("every month on the 1st", "every month on the 1st at 09:00"),
            ("on the 1st of every month at 10", "every month on the 1st at 10:00"),
            ("every 15th of the month", "every month on the 15th at 09:00"),
            ("monthly on the 31st", "every month on the 31st at 09:00"),
            ("every month", "every month on the 21st at 09:00"),
            ("every 3 months on the 1st", "every 3 months on the 1st at 09:00"),
            ("every first Monday of the month at 9", "every first Monday of the month at 09:00"),
            ("on the last Friday of every month", "every last Friday of the month at 09:00"),
            ("every second Tuesday of the month", "every second Tuesday of the month at 09:00"),
            ("every 2 hours", "every 2 hours"),
            ("every half hour", "every 30 minutes"),
            ("hourly", "every hour"),
            ("every 45 minutes", "every 45 minutes"),
            ("every year on 3 March", "every year on 3 March at 09:00"),
            ("every 3 March at 8", "every year on 3 March at 08:00"),
            ("every year on 30 February", "NoSuchDay"),
            ("every full moon at 9", "Unsupported | moon at 9"),
            ("every 2 hours at 9", "NeedsHours"),
            ("twice a day", "NeedsTimes"),
            ("every day at 8 and 18", "every day at 08:00 and 18:00"),
            ("every day at 8 until Friday", "every day at 08:00, until Fri 27 November 2026"),
            ("every day for two weeks", "every day at 09:00, until Sat 5 December 2026"),
            ("every 0 days", "Unsupported | days"),
        ],
    );
}

#[test]
fn a_time_is_found_inside_a_sentence_unless_it_describes_a_noun() {
    check_all(
        saturday(),
        &[
            ("call Anna tomorrow at 9", "Sun 2026-11-22 09:00 | call Anna"),
            ("tomorrow at 9 call Anna", "Sun 2026-11-22 09:00 | call Anna"),
            ("call Anna tomorrow at 9, please", "Sun 2026-11-22 09:00 | call Anna , please"),
            ("tomorrow to book the table at 8pm", "2026-11-22 09:00 or 2026-11-22 20:00 | to book the table at 8pm"),
            ("buy tickets for Friday tomorrow", "Sun 2026-11-22 09:00 | buy tickets for Friday"),
            ("buy tickets for Friday", "nothing"),
            ("prepare the 9am meeting", "nothing"),
            ("read last Friday's notes", "nothing"),
            ("what happened last week", "Past | what happened"),
            ("hand it in by Monday", "nothing"),
            ("meet Bob at 221 Baker Street", "nothing"),
            ("meet Bob on the 5th floor", "nothing"),
            ("water it at 50%", "nothing"),
            ("buy 3 May apples", "Mon 2027-05-03 09:00 | buy  apples"),
            ("buy sun cream and sit down", "nothing"),
            ("greet every guest tonight", "Sat 2026-11-21 20:00 | greet every guest"),
            ("pay 5.12 for the 3:2 print", "nothing"),
            ("the score was 16:9", "nothing"),
            ("in the garden", "nothing"),
            ("", "nothing"),
        ],
    );
}

#[test]
fn a_time_that_dst_skips_moves_forward_but_its_slot_keeps_the_named_time() {
    let check = |now: DateTime<Tz>, text: &str, key: &str, local_time: &str| {
        let Some(FoundTime { when: Ok(When::At(slot)), .. }) = parse_when(text, now) else { panic!("{text}") };
        assert_eq!(slot.civil, civil(key), "{text}");
        assert_eq!(slot.at.with_timezone(&now.timezone()).naive_local(), civil(local_time), "{text}");
    };
    let berlin = local(berlin(), "2026-03-28 14:00");
    check(berlin, "tomorrow at 02:30", "2026-03-29 02:30", "2026-03-29 03:30");
    check(berlin, "in 13 hours", "2026-03-29 04:00", "2026-03-29 04:00");
    let new_york = local(Tz::of("America/New_York"), "2026-03-07 14:00");
    check(new_york, "tomorrow at 2:30am", "2026-03-08 02:30", "2026-03-08 03:30");
    check(new_york, "tomorrow at 2:30 in the morning", "2026-03-08 02:30", "2026-03-08 03:30");
}

#[test]
fn an_hour_that_dst_repeats_means_the_first_but_elapsed_time_can_reach_the_second() {
    let instant = |now: DateTime<Tz>, text: &str| {
        let Some(FoundTime { when: Ok(When::At(slot)), .. }) = parse_when(text, now) else { panic!("{text}") };
        slot.at.naive_utc()
    };
    let now = local(berlin(), "2026-10-24 14:00");
    assert_eq!(instant(now, "tomorrow at 02:30"), civil("2026-10-25 00:30"));
    assert_eq!(instant(now, "in 13 hours and 30 minutes"), civil("2026-10-25 01:30"), "02:30 for the second time");
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_a_panic_and_spans_are_valid(text in "\\PC{0,80}") {
        if let Some(found) = parse_when(&text, saturday()) {
            prop_assert!(text.get(found.span).is_some());
        }
    }

    /// The grammar's words in any order reach more of the parser's code than random characters do.
    #[test]
    fn any_mix_of_the_grammars_words_is_parsed_without_a_panic(
        words in prop::collection::vec(prop::sample::select(VOCABULARY.to_vec()), 0..9),
        glue in prop::sample::select(vec![" ", "", ", "]),
    ) {
        let text = words.join(glue);
        for now in [saturday(), local(berlin(), "2026-12-31 23:59"), local(Tz::of("Pacific/Apia"), "2028-02-29 00:00")] {
            if let Some(found) = parse_when(&text, now) {
                prop_assert!(text.get(found.span).is_some());
                if let Ok(When::At(slot)) = found.when {
                    prop_assert!(slot.at > now, "{text}: a found time must be in the future");
                }
            }
        }
    }
}

const VOCABULARY: &[&str] = &[
    "at",
    "on",
    "in",
    "the",
    "every",
    "each",
    "other",
    "next",
    "this",
    "of",
    "and",
    "a",
    "an",
    "half",
    "past",
    "to",
    "from now",
    "until",
    "tomorrow",
    "today",
    "tonight",
    "morning",
    "night",
    "noon",
    "midnight",
    "Friday",
    "Mondays",
    "weekday",
    "weekend",
    "week",
    "month",
    "day",
    "hour",
    "minutes",
    "year",
    "December",
    "5",
    "05",
    "12",
    "31st",
    "15th",
    "first",
    "last",
    "second",
    ":",
    "30",
    ".",
    "-",
    "/",
    "2026",
    "pm",
    "a.m.",
    "2027-02-29",
    "99999999",
    "0",
    "twenty",
    "4294967295",
    "1000",
    "½",
    "’",
];

#[test]
fn a_text_is_parsed_as_a_time_only_if_all_of_it_is_one() {
    let read = |text: &str| match parse_only_time(text, saturday()) {
        Some(Ok(When::At(slot))) => slot.civil.format("%a %H:%M").to_string(),
        Some(Ok(When::Every(rule))) => rule.to_string(),
        Some(Err(trouble)) => format!("{trouble:?}"),
        None => "nothing".to_owned(),
    };
    for (text, expected) in [
        ("tomorrow 10", "Sun 10:00"),
        ("tomorrow at 10.", "Sun 10:00"),
        ("friday 14:30", "Fri 14:30"),
        ("monday 5", "DayOrHour"),
        ("every weekday at 8", "every weekday at 08:00"),
        ("tomorrow or so", "nothing"),
        ("tomorrow 10 or 11", "nothing"),
        ("call Anna tomorrow", "nothing"),
        ("", "nothing"),
    ] {
        assert_eq!(read(text), expected, "{text:?}");
    }
}

#[test]
fn a_day_alone_may_be_today_whatever_the_time() {
    let morning = local(berlin(), "2026-11-28 10:40");
    let read = |text| match parse_only_day(text, morning) {
        Some(Ok(day)) => day.to_string(),
        Some(Err(trouble)) => format!("{trouble:?}").split('(').next().unwrap_or_default().to_owned(),
        None => "nothing".to_owned(),
    };
    for (text, expected) in [
        ("2026-11-28", "2026-11-28"),
        ("28 November", "2026-11-28"),
        ("the 28th", "2026-11-28"),
        ("today at 4", "2026-11-28"),
        ("today", "2026-11-28"),
        ("today at 5", "2026-11-28"),
        ("by Friday", "2026-12-04"),
        ("tomorrow", "2026-11-29"),
        ("in 3 days", "2026-12-01"),
        ("in 20 hours", "2026-11-29"),
        ("Saturday", "Either"),
        ("2026-11-27", "Past"),
        ("30 February", "NoSuchDay"),
        ("every day", "Unsupported"),
        ("soonish", "nothing"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}
#[test]
fn recurrences_with_ends_and_rare_days() {
    check_all(
        saturday(),
        &[
            ("every day at 9 for 5 days", "every day at 09:00, until Thu 26 November 2026"),
            ("every day at 9 three times", "every day at 09:00, until Tue 24 November 2026"),
            ("every monday at 9, 4 times", "every Monday at 09:00, until Mon 14 December 2026"),
            ("every weekday at 9 until friday", "every weekday at 09:00, until Fri 27 November 2026"),
            ("every mother's day", "every year on the 2nd Sunday of May at 09:00"),
            ("every thanksgiving at noon", "every year on the 4th Thursday of November at 12:00"),
            ("every second sunday of may at 10", "every year on the 2nd Sunday of May at 10:00"),
            ("the first monday of march every year", "every year on the 1st Monday of March at 09:00"),
            ("every 30 minutes between 9 and 10", "every day at 09:00, 09:30 and 10:00"),
            ("every 3 hours from 9am until midnight", "every day at 09:00, 12:00, 15:00, 18:00 and 21:00"),
            ("every 2 hours from 10 to 2", "every day at 10:00, 12:00 and 14:00"),
            ("every day at 9 berlin time", "every day at 09:00"),
            ("every day at 9 london time", "Unsupported"),
            ("every day at 9 or 10", "Unsupported"),
            ("every 20 minutes 3 times", "Unsupported"),
            ("every year on the 31st of june", "NoSuchDay"),
        ],
    );
}
