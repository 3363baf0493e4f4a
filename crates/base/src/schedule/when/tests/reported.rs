//! Times people reported as misread, each with the correct reading. A new report is one line.

use super::*;

#[test]
fn reported_times_are_right() {
    check_all(
        saturday(),
        &[
            ("tomorrow at 3pm EST", "Sun 2026-11-22 21:00"),
            ("2026-12-05T10:00Z", "Sat 2026-12-05 11:00"),
            ("2026-12-05T10:00:30+05:30", "Sat 2026-12-05 05:30"),
            ("20261224T180000Z", "Thu 2026-12-24 19:00"),
            ("2026-W49-5 at 10", "Fri 2026-12-04 10:00"),
            ("on 25.12.26 at 9", "Fri 2026-12-25 09:00"),
            ("tomorrow at 12 midnight", "2026-11-22 00:00 or 2026-11-23 00:00"),
            ("tomorrow 12 noon", "Sun 2026-11-22 12:00"),
            ("tomorrow at half nine", "Sun 2026-11-22 09:30"),
            ("in 1h30", "Sat 2026-11-21 15:30"),
            ("in 1:30 hours", "Sat 2026-11-21 15:30"),
            ("every Mon-Fri at 8", "every weekday at 08:00"),
            ("every Tue/Thu at 7", "every Tuesday and Thursday at 07:00"),
            ("every alternate Tuesday", "every other Tuesday at 09:00"),
            ("on the 1st and 15th of every month", "every month on the 1st and 15th at 09:00"),
            ("on Sunday 6th at 10", "Sun 2026-12-06 10:00"),
            ("tomorrow 10", "Sun 2026-11-22 10:00"),
            ("tomorrow 1430", "Sun 2026-11-22 14:30"),
            ("twice daily", "NeedsTimes"),
            ("every hour and a half", "every 90 minutes"),
            ("every day at 8 for the next 10 days", "every day at 08:00, until Tue 1 December 2026"),
            ("every 2 hours on weekdays", "NeedsHours"),
            ("every 2 hours from 9 to 17 on weekdays", "every weekday at 09:00, 11:00, 13:00, 15:00 and 17:00"),
            ("Friday night at 1am", "Sat 2026-11-28 01:00"),
            ("15 to noon", "Sun 2026-11-22 11:45"),
            ("Thu at 8 GMT", "Thu 2026-11-26 09:00"),
            ("first tuesday in october", "Tue 2027-10-05 09:00"),
            ("tomorrow at 9am UTC+2", "Sun 2026-11-22 08:00"),
            ("tomorrow at 9 Tokyo time", "Sun 2026-11-22 01:00"),
            ("tomorrow at 9 IST", "UnsureZone"),
            ("a week on Friday", "Fri 2026-12-04 09:00"),
            ("Friday after next", "Fri 2026-12-04 09:00"),
            ("the second to last day of the month", "Sun 2026-11-29 09:00"),
            ("on Easter Monday at 10", "Mon 2027-03-29 10:00"),
            ("every Easter", "every Easter Sunday at 09:00"),
            ("every day at 8 and 18", "every day at 08:00 and 18:00"),
            ("on Monday and Thursday at 7", "on Mon 23 November 2026 and Thu 26 November 2026 at 07:00"),
            ("every weekday at 8 except Wednesday", "every weekday at 08:00, except on Wednesdays"),
            ("from Monday every day at 9", "every day at 09:00, from Mon 23 November 2026"),
            ("on the last workday of every month", "every month on the last working day at 09:00"),
            ("every third Thursday", "TwoRhythms"),
            ("biweekly", "TwoRhythms"),
            ("on the 5th and 12th at 8", "on Sat 5 December 2026 and Sat 12 December 2026 at 08:00"),
            ("tomorrow and Monday at 10", "on Sun 22 November 2026 and Mon 23 November 2026 at 10:00"),
            ("the Friday after next", "Fri 2026-12-04 09:00"),
            ("every weekend", "WhichDays"),
            ("every quarter day", "Unsupported"),
            ("half an hour before midnight", "Sat 2026-11-21 23:30"),
            ("3 days after 12 January", "Fri 2027-01-15 09:00"),
            ("the day before Christmas at 9", "Thu 2026-12-24 09:00"),
            ("tomorrow at 5", "2026-11-22 05:00 or 2026-11-22 17:00"),
            ("every day at 5", "EitherTime(05:00:00, 17:00:00)"),
            ("tomorrow early in the morning", "NeedsTime"),
            ("tomorrow or Friday", "Unsupported"),
            ("1st week of October on Friday", "Unsupported | 1st week of October"),
        ],
    );
}

#[test]
fn reported_times_at_night_are_right() {
    let night = local(berlin(), "2026-11-21 00:30");
    check_all(night, &[("tonight at 2", "Sat 2026-11-21 02:00"), ("tonight at 8", "Sat 2026-11-21 20:00")]);
    check_all(local(berlin(), "2026-11-21 23:28"), &[("at 11:30", "Sat 2026-11-21 23:30")]);
}

/// Words that don't describe a time stay in the reminder's text.
#[test]
fn reported_texts_keep_their_words() {
    check_all(
        saturday(),
        &[
            ("at 9 to book the 7:30 train", "Sun 2026-11-22 09:00 | to book the 7:30 train"),
            ("at 9 to call May", "Sun 2026-11-22 09:00 | to call May"),
            ("tomorrow to buy the Sunday Times", "Sun 2026-11-22 09:00 | to buy the Sunday Times"),
            ("tomorrow to buy Christmas presents", "Sun 2026-11-22 09:00 | to buy Christmas presents"),
            ("buy Christmas presents", "nothing"),
            ("15 minutes before the meeting", "nothing"),
            ("the day before the dentist", "nothing"),
            ("tomorrow to call Anna at 5", "2026-11-22 05:00 or 2026-11-22 17:00 | to call Anna at 5"),
        ],
    );
}

/// While New York is on daylight saving time, "EST" is ambiguous.
#[test]
fn a_winter_zone_name_is_ambiguous_in_summer() {
    let july = local(berlin(), "2026-07-21 14:00");
    check_all(
        july,
        &[
            ("tomorrow at 3pm EST", "2026-07-22 21:00 or 2026-07-22 22:00"),
            ("tomorrow at 3pm EDT", "Wed 2026-07-22 21:00"),
            ("tomorrow at 3pm New York time", "Wed 2026-07-22 21:00"),
        ],
    );
}
