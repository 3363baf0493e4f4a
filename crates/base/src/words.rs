//! Formats times, counts, sizes and lists for people, and shortens text.

use std::path::Path;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use unicode_segmentation::GraphemeCursor;

pub use crate::disk::format_size;

use crate::{
    types::{Aim, Figure, Measured, StatedEffect},
    zone::Tz,
};

/// The number of named items in a list; the rest is counted.
const MAX_NAMED: usize = 5;

/// The first line of a message that repeats an earlier one, because the person wants another answer.
pub const SENT_AGAIN: &str = "[sent again]";

/// Capitalizes the first letter.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(char::to_uppercase).into_iter().flatten().chain(letters).collect()
}

/// Formats a relative time: `3 min ago`, `in 2 h`.
pub fn format_relative_time(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let past = now.signed_duration_since(at);
    if past >= TimeDelta::zero() {
        format!("{} ago", format_duration(past))
    } else {
        format!("in {}", format_duration(-past))
    }
}

/// Formats a duration: `40 s`, `3 min`, `2 h`, `5 days`.
pub fn format_duration(span: TimeDelta) -> String {
    match span.num_seconds() {
        s @ ..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    }
}

/// Formats an amount: `$0.0042` below a dollar, `$12.34` from a dollar on.
pub fn format_usd(usd: f64) -> String {
    // The sum of nothing is -0.
    let usd = usd + 0.0;
    if usd == 0.0 || usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// Formats the intended effect of a change of orders: `fewer requests to a model each time`.
pub fn format_stated_effect(effect: StatedEffect) -> String {
    let (less, more, of) = match effect.figure {
        Figure::Rounds => ("fewer", "more", "requests to a model each time"),
        Figure::Cost => ("less", "more", "money spent each time"),
        Figure::Questions => ("fewer", "more", "questions to you"),
        Figure::TasksDone => ("fewer", "more", "tasks finished"),
    };
    format!("{} {of}", if effect.aim == Aim::Less { less } else { more })
}

/// Formats a measured figure: `4.2 requests to a model each time (31 answers)`. `job` names the counted runs; without a job, answers.
pub fn format_figure(figure: Figure, job: Option<&str>, measured: Measured) -> String {
    let Measured { total, pieces } = measured;
    let work = match job {
        Some(job) => format!("{} of the job {job}", format_count(pieces as usize, "run")),
        None => format_count(pieces as usize, "answer"),
    };
    let each = total / f64::from(pieces.max(1));
    match figure {
        Figure::Rounds | Figure::Cost if pieces == 0 => format!("nothing to count ({work})"),
        Figure::Rounds => format!("{each:.1} requests to a model each time ({work})"),
        Figure::Cost => format!("{} each time ({work})", format_usd(each)),
        Figure::Questions if total == 1.0 => format!("1 question to you ({work})"),
        Figure::Questions => format!("{total:.0} questions to you ({work})"),
        Figure::TasksDone if total == 1.0 => "1 task finished".to_owned(),
        Figure::TasksDone => format!("{total:.0} tasks finished"),
    }
}

/// Formats a large number: `9999`, `123 k`, `12 M`.
pub fn format_large_number(n: u64) -> String {
    match n {
        ..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{} k", n / 1_000),
        _ => format!("{} M", n / 1_000_000),
    }
}

/// Formats a local time: `Sat 2026-11-21 14:03`.
pub fn format_local_time(at: DateTime<Utc>, tz: Tz) -> String {
    at.with_timezone(&tz).format("%a %Y-%m-%d %H:%M").to_string()
}

/// Formats a local time as `today 14:03`, else like [`format_local_time`].
pub fn format_near_time(at: DateTime<Utc>, now: DateTime<Utc>, tz: Tz) -> String {
    let is_today = at.with_timezone(&tz).date_naive() == now.with_timezone(&tz).date_naive();
    if is_today { at.with_timezone(&tz).format("today %H:%M").to_string() } else { format_local_time(at, tz) }
}

/// Formats a day as people say it: `today`, `tomorrow`, `Friday` within a week, else `12 March`, with its year unless that is this year.
pub fn format_spoken_day(day: NaiveDate, today: NaiveDate) -> String {
    match day.signed_duration_since(today).num_days() {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        2..=6 => day.format("%A").to_string(),
        _ if day.year() == today.year() => day.format("%-d %B").to_string(),
        _ => day.format("%-d %B %Y").to_string(),
    }
}

/// Formats a moment as people say it: `tomorrow 08:00`, `12 March 08:00`.
pub fn format_spoken_time(at: DateTime<Utc>, now: DateTime<Utc>, tz: Tz) -> String {
    let (wall, today) = (at.with_timezone(&tz).naive_local(), now.with_timezone(&tz).date_naive());
    format!("{} {}", format_spoken_day(wall.date(), today), wall.format("%H:%M"))
}

/// Formats a local time without its year: `Sat 21 Nov 14:03`.
pub fn day_and_time(wall: NaiveDateTime) -> String {
    wall.format("%a %-d %b %H:%M").to_string()
}

/// Formats an instant like [`day_and_time`] in the person's time zone.
pub fn local_day_and_time(at: DateTime<Utc>, tz: Tz) -> String {
    day_and_time(at.with_timezone(&tz).naive_local())
}

/// Formats a count with its noun: `1 message`, `2 messages`, `3 commits by a person`.
pub fn format_count(n: usize, what: &str) -> String {
    match (n, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (n, Some((noun, rest))) => format!("{n} {noun}s {rest}"),
        (n, None) => format!("{n} {what}s"),
    }
}

/// Joins a text into one line.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The first `max_chars` characters, or fewer to keep a grapheme whole.
pub fn first_chars(text: &str, max_chars: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(max_chars) else { return text };
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        return text.get(..end).unwrap_or_default();
    }
    // Cut a grapheme that alone is longer than the limit.
    let before = cursor.prev_boundary(text, 0).ok().flatten().filter(|before| *before > 0);
    text.get(..before.unwrap_or(end)).unwrap_or_default()
}

/// The first `max_bytes` bytes, or fewer to keep a character whole. Meant for programs; people see [`first_chars`].
pub fn first_bytes(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}

/// The last `max_chars` characters.
pub fn last_chars(text: &str, max_chars: usize) -> &str {
    let before = text.chars().count().saturating_sub(max_chars);
    let at = text.char_indices().nth(before).map_or(text.len(), |(at, _)| at);
    text.get(at..).unwrap_or_default()
}

/// Shortens to `max_chars` characters, with a final `…` if anything was cut off.
pub fn truncate_text(text: &str, max_chars: usize) -> String {
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    format!("{}…", first_chars(text, max_chars.saturating_sub(1)).trim_end())
}

/// Cuts to `max_chars` characters and appends `ending` if anything was cut off.
pub fn cut_text(text: &str, max_chars: usize, ending: &str) -> String {
    let kept = first_chars(text, max_chars);
    if kept.len() < text.len() { format!("{kept}{ending}") } else { text.to_owned() }
}

/// Makes a file or branch name from the ASCII letters and digits of a text: `renew-the-passport`. Empty if the text has none.
pub fn make_slug(text: &str, max_chars: usize) -> String {
    let plain: String = text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    first_chars(&words.join("-"), max_chars).trim_matches('-').to_owned()
}

/// Lists the first items and counts the others.
pub fn format_list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut items = items.into_iter();
    let named: Vec<String> = items.by_ref().take(MAX_NAMED).map(|item| item.as_ref().to_owned()).collect();
    match items.count() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Quotes a path for a shell.
pub fn quote_for_shell(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Joins alternatives: `a`, `a or b`, `a, b or c`.
pub fn join_alternatives(items: &[impl AsRef<str>]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The edit distance of two words: letters changed, added or removed.
pub fn count_edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut above = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, up) in b.chars().zip(row.iter().skip(1)) {
            left = (above + usize::from(from != to)).min(up + 1).min(left + 1);
            above = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_largest_fitting_unit() {
        let of = |s| format_duration(TimeDelta::seconds(s));
        assert_eq!([of(0), of(59), of(60), of(7_200), of(172_800)], ["0 s", "59 s", "1 min", "2 h", "2 days"]);
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        assert_eq!(format_relative_time(now - TimeDelta::minutes(3), now), "3 min ago");
        assert_eq!(format_relative_time(now + TimeDelta::hours(2), now), "in 2 h");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quote_for_shell(Path::new("/home/a/b-c_1.env")), "/home/a/b-c_1.env");
        assert_eq!(quote_for_shell(Path::new("/home/Ann's $HOME/x")), r"'/home/Ann'\''s $HOME/x'");
    }

    #[test]
    fn times_are_told_on_the_persons_wall() {
        let at = DateTime::from_timestamp(1_795_266_180, 0).unwrap();
        let berlin = Tz::of("Europe/Berlin");
        assert_eq!(format_local_time(at, berlin), "Sat 2026-11-21 14:03");
        assert_eq!(local_day_and_time(at, berlin), "Sat 21 Nov 14:03");
    }

    #[test]
    fn days_and_times_are_said_as_people_say_them() {
        let today = NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
        let said = |days: i64| format_spoken_day(today + TimeDelta::days(days), today);
        assert_eq!([said(-2), said(-1), said(0), said(1)], ["19 November", "yesterday", "today", "tomorrow"]);
        assert_eq!([said(2), said(6), said(7), said(60)], ["Monday", "Friday", "28 November", "20 January 2027"]);
        // Around midnight the day is the wall's, not UTC's.
        let berlin = Tz::of("Europe/Berlin");
        let at = |text: &str| crate::clock::parse_time(text).unwrap();
        let now = at("2026-11-21T22:30:00Z");
        assert_eq!(format_spoken_time(at("2026-11-21T23:05:00Z"), now, berlin), "tomorrow 00:05");
        assert_eq!(format_spoken_time(at("2027-03-12T07:00:00Z"), now, berlin), "12 March 2027 08:00");
    }

    #[test]
    fn the_noun_is_made_plural_and_not_what_follows_it() {
        let of = |n| format_count(n, "commit by a person");
        assert_eq!([of(0), of(1), of(2)], ["0 commits by a person", "1 commit by a person", "2 commits by a person"]);
        assert_eq!([format_count(1, "message"), format_count(2, "message")], ["1 message", "2 messages"]);
    }

    #[test]
    fn what_is_cut_off_ends_in_a_mark_within_its_bound() {
        assert_eq!(["four", "fives", "a longer one"].map(|text| truncate_text(text, 4)), ["four", "fiv…", "a l…"]);
        assert_eq!(truncate_text("one two", 5), "one…", "no space stands before the mark");
        assert_eq!(one_line(" two\n  lines\t"), "two lines");
        assert_eq!([cut_text("four", 4, "… (cut)"), cut_text("fives", 4, "… (cut)")], ["four", "five… (cut)"]);
    }

    #[test]
    fn no_sign_is_cut_apart() {
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(first_chars(&format!("a{family}b"), 3), "a");
        assert_eq!(first_chars(&format!("a{family}b"), 6), format!("a{family}"));
        assert_eq!(truncate_text("cafe\u{301} au lait", 5), "caf…");
        assert_eq!(first_chars(family, 3).chars().count(), 3, "one that fits nowhere is cut");
        assert_eq!([first_chars("abc", 0), first_chars("abc", 3), first_chars("", 2)], ["", "abc", ""]);
        assert_eq!([first_bytes("aé", 2), first_bytes("aé", 3), first_bytes("aé", 9)], ["a", "aé", "aé"]);
    }

    #[test]
    fn a_slug_is_plain_words_with_dashes() {
        assert_eq!(make_slug(" Renew the *Passport*! ", 40), "renew-the-passport");
        assert_eq!([make_slug("renew the", 6), make_slug("renew the", 5), make_slug("…", 9)], ["renew", "renew", ""]);
    }

    #[test]
    fn a_long_list_names_some_and_counts_the_rest() {
        assert_eq!(format_list(["a", "b"]), "a, b");
        assert_eq!(format_list(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
        assert_eq!(format_list(Vec::<String>::new()), "");
    }
}
