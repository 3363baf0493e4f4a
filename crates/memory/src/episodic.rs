//! Episodic memory: the append-only log of `## 2026-11-21` days with `- 14:03 …` entries. An HTML comment at the end of an entry's first
//! line names its wake.
//!
//! Appending also works on a damaged log, so that no event is lost. A log that grows too long moves its oldest days to monthly files under
//! [`super::ARCHIVE_DIR`], byte for byte.

use chrono::{Datelike as _, NaiveDate, NaiveTime};

use super::{
    ARCHIVE_DIR, Problem,
    sections::{Document, Part, Spacing},
    text::{
        detect_line_ending, ends_line, escape_start, format_comment, is_blank, one_line, slice, split_comment,
        split_lines,
    },
};

/// The number of lines above which the oldest days are archived.
pub const MAX_LOG_LINES: usize = 2_000;
/// The maximum length of one line of an entry, in characters.
pub const MAX_ENTRY_LINE_CHARS: usize = 1_000;
/// The maximum number of lines of an entry. If it has more, the last line kept says how many were left out.
pub const MAX_ENTRY_LINES: usize = 40;
/// The beginning of an undo receipt: `Undid the wake …`, or a person's action.
pub const UNDID: &str = "Undid ";
/// The maximum length of a wake's id, in characters.
const MAX_WAKE_CHARS: usize = 80;

/// The days of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The days in document order.
    pub days: Vec<Day>,
}

/// One `## 2026-11-21` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// The date.
    pub date: NaiveDate,
    /// The heading's line, counted from 1.
    pub line: usize,
    /// The entries in order.
    pub entries: Vec<EpisodicEntry>,
}

/// One `- 14:03 …` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodicEntry {
    /// The local time of day; a person's own line may lack one.
    pub time: Option<NaiveTime>,
    /// The entry's lines without indent, time and comment.
    pub text: String,
    /// The inside of the comment, such as `wake 20261121T140302Z-812`.
    pub wake: Option<String>,
    /// The entry's line, counted from 1.
    pub line: usize,
}

/// Returns a log for word search. Blanks the entries of undone wakes, the entries that record an undo, and quoted answers, which the search
/// finds at their source. All lines keep their numbers. An entry is taken to begin with `- `, as wakes write it: after a line that a person
/// damaged, a Markdown parser would take entries for text or code.
pub fn without_undone(text: &str) -> String {
    let of_wake = |line: &str| {
        let (_, rest) = line.strip_prefix("- ")?.split_once("<!-- wake ")?;
        rest.split(' ').next().map(str::to_owned)
    };
    let (mut undone, mut wake) = (std::collections::BTreeSet::new(), None);
    for line in text.lines() {
        wake = if line.starts_with("- ") { of_wake(line) } else { wake };
        if let Some(what) = line.trim_start().strip_prefix(UNDID) {
            undone.extend(what.strip_prefix("the wake ").map(|id| id.trim().to_owned()));
            undone.extend(wake.clone());
        }
    }
    let mut is_hidden = false;
    let kept = text.split_inclusive('\n').map(|line| {
        if line.starts_with("- ") {
            is_hidden = of_wake(line).is_some_and(|wake| undone.contains(&wake));
        } else if !line.starts_with([' ', '\t']) {
            is_hidden = false;
        }
        let item = line.trim_start();
        // An entry may begin with the quotation, after its time.
        let item = item.strip_prefix("- ").and_then(|entry| entry.split_once(' ')).map_or(item, |(_, what)| what);
        let is_quote = item.strip_prefix("Answered ").is_some_and(|rest| rest.contains(": "));
        if is_hidden || is_quote { "\n" } else { line }
    });
    kept.collect()
}

impl Log {
    /// Parses a log. Sections that aren't days stay in the text and are reported.
    pub fn parse(text: &str) -> (Self, Vec<Problem>) {
        let document = Document::split(text);
        let mut problems = document.find_problems();
        let mut days: Vec<Day> = Vec::new();
        for part in document.sections() {
            let Some(date) = part_date(part) else {
                problems.push(Problem::new(part.line, format!("“{}” isn't a day; write it as 2026-11-21", part.title)));
                continue;
            };
            let entries = part.items.iter().map(|item| read_entry(&document, item.clone())).collect();
            days.push(Day { date, line: part.line, entries });
        }
        problems.sort_by_key(|problem| problem.line);
        (Self { days }, problems)
    }
}

/// Returns the day of a section, if its title begins with one.
pub(super) fn part_date(part: &Part) -> Option<NaiveDate> {
    if part.level != 2 {
        return None;
    }
    part.title.split_whitespace().next().and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok())
}

fn read_entry(document: &Document<'_>, item: std::ops::Range<usize>) -> EpisodicEntry {
    let raw = document.slice(&item);
    let (first, _) = split_comment(split_lines(raw).next().unwrap_or_default());
    let wake = split_comment(split_lines(raw).next().unwrap_or_default()).1.map(str::to_owned);
    let first = first.trim_start().trim_start_matches(['-', '*', '+']).trim();
    let time = entry_time(raw);
    let rest_of_first = if time.is_some() { slice(first, 5..first.len()).trim_start() } else { first };
    let rest = split_lines(raw).skip(1).map(str::trim);
    let text = std::iter::once(rest_of_first).chain(rest).collect::<Vec<_>>().join("\n");
    EpisodicEntry { time, text: text.trim().to_owned(), wake, line: document.line_number(item.start) }
}

/// Parses the time at the start of an entry's raw text.
pub(super) fn entry_time(raw: &str) -> Option<NaiveTime> {
    let first = raw.trim_start().trim_start_matches(['-', '*', '+']).trim_start();
    let stamp = first.get(0..5)?;
    let is_separate = !first.get(5..6).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
    NaiveTime::parse_from_str(stamp, "%H:%M").ok().filter(|_| is_separate)
}

/// Appends an entry of one or more lines to its day, creating the day if needed.
pub fn append_entry(text: &str, date: NaiveDate, time: NaiveTime, entry: &[&str], wake_id: &str) -> String {
    insert_entry(text, date, Some(time), entry, wake_id)
}

/// Appends an entry about a whole day, without a time.
pub(super) fn append_untimed_entry(text: &str, date: NaiveDate, entry: &[&str], wake_id: &str) -> String {
    insert_entry(text, date, None, entry, wake_id)
}

fn insert_entry(text: &str, date: NaiveDate, time: Option<NaiveTime>, entry: &[&str], wake_id: &str) -> String {
    let document = Document::split(text);
    let eol = detect_line_ending(text);
    let block = entry_block(time, entry, wake_id, eol);
    if let Some(day) = document.sections().rfind(|part| part_date(part) == Some(date)) {
        let at = document.content_end(day).max(day.body_start);
        return document.insert(day, at, &block, Spacing::Tight);
    }
    let section = format!("## {date}{eol}{block}");
    let later = document.parts.iter().rposition(|part| part_date(part).is_some_and(|other| other < date));
    let later =
        later.map_or_else(|| document.parts.iter().position(|part| part_date(part).is_some()), |at| Some(at + 1));
    match later.and_then(|at| Some((document.parts.get(at.checked_sub(1)?)?, document.parts.get(at)?))) {
        Some((before, next)) => document.insert(before, next.range.start, &section, Spacing::BlankLine),
        None => document.append(&section),
    }
}

fn entry_block(time: Option<NaiveTime>, entry: &[&str], wake_id: &str, eol: &str) -> String {
    let all = entry.iter().flat_map(|text| text.lines()).map(|line| one_line(line, MAX_ENTRY_LINE_CHARS));
    let mut shown: Vec<String> = all.filter(|line| !line.is_empty()).collect();
    if shown.len() > MAX_ENTRY_LINES {
        let left_out = shown.len() - (MAX_ENTRY_LINES - 1);
        shown.truncate(MAX_ENTRY_LINES - 1);
        shown.push(format!("(and {left_out} more lines)"));
    }
    let mut shown = shown.into_iter();
    let first = shown.next().unwrap_or_default();
    let wake = format_comment(&format!("wake {wake_id}"), MAX_WAKE_CHARS);
    let time = time.map(|time| time.format("%H:%M ").to_string()).unwrap_or_default();
    let mut block = format!("- {time}{first}{}{wake}{eol}", if first.is_empty() { "" } else { " " });
    for line in shown {
        let line = if line.starts_with("- ") { line } else { escape_start(&line) };
        block.push_str(&format!("  {line}{eol}"));
    }
    block
}

/// Moves the oldest days out of a log of more than `max_lines` lines, until the log fits or only the newest day is left. Returns the new
/// text, and per archive file (a path in the repository) the text to append with [`append_days`]. `None` if there is nothing to move.
pub fn archive(text: &str, max_lines: usize) -> Option<(String, Vec<(String, String)>)> {
    let mut left = split_lines(text).count();
    if left <= max_lines {
        return None;
    }
    let document = Document::split(text);
    let mut days: Vec<(NaiveDate, usize)> =
        document.parts.iter().enumerate().filter_map(|(at, part)| Some((part_date(part)?, at))).collect();
    days.sort_unstable();
    let (newest, _) = *days.last()?;
    let mut moved = vec![false; document.parts.len()];
    let mut files: Vec<(String, String)> = Vec::new();
    for day in days.chunk_by(|(day, _), (next, _)| day == next) {
        let Some((date, _)) = day.first().filter(|(date, _)| *date != newest && left > max_lines) else {
            break;
        };
        let path = format!("{ARCHIVE_DIR}/{:04}-{:02}.md", date.year(), date.month());
        for part in day.iter().filter_map(|(_, at)| document.parts.get(*at)) {
            let bytes = document.slice(&part.range);
            left -= split_lines(bytes).count();
            match files.last_mut().filter(|(last, _)| *last == path) {
                Some((_, taken)) => *taken = append_days(taken, bytes),
                None => files.push((path.clone(), bytes.to_owned())),
            }
        }
        day.iter().filter_map(|(_, at)| moved.get_mut(*at).map(|slot| *slot = true)).for_each(drop);
    }
    let kept = document.parts.iter().zip(&moved).filter(|(_, moved)| !**moved);
    let new = kept.map(|(part, _)| document.slice(&part.range)).collect();
    (!files.is_empty()).then_some((new, files))
}

/// Appends days to an archive file's text.
pub fn append_days(existing: &str, days: &str) -> String {
    Document::split(existing).append(days)
}

/// Returns the last `max_lines` lines of a log, without trailing blank lines. If the cut falls within a day, the day's heading comes first.
pub fn take_recent_lines(text: &str, max_lines: usize) -> String {
    let document = Document::split(text);
    let all: Vec<&str> = split_lines(text).collect();
    let end = all.iter().rposition(|line| !is_blank(line)).map_or(0, |last| last + 1);
    let start = end.saturating_sub(max_lines);
    let at = all.iter().take(start).map(|line| line.len()).sum::<usize>();
    let mut shown = String::new();
    if let Some(day) = document.sections().find(|part| part.range.contains(&at) && at > part.range.start && start < end)
    {
        shown.push_str(slice(text, day.range.start..day.body_start).trim_end());
        shown.push_str(detect_line_ending(text));
    }
    shown.extend(all.iter().take(end).skip(start).copied());
    if !ends_line(&shown) {
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    const WAKE: &str = "20261121T140302Z-812";
    const TEXT: &str = "# Log\n\n## 2026-11-20\n- 09:10 woke <!-- wake 1 -->\n\n## 2026-11-21\n- 08:00 answered Anna <!-- wake 2 -->\n  with a list\n";

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    fn at(hour: u32, minute: u32) -> NaiveTime {
        NaiveTime::from_hms_opt(hour, minute, 59).unwrap()
    }

    #[test]
    fn undone_entries_are_left_out_of_the_searched_text() {
        let log = "## 2026-11-28\n\
            - 14:48 Woke. <!-- wake A-1 own -->\n  Remembered “cats purr”\n  Answered 1 message: Remembered: cats purr\n\
            - 14:49 Woke. <!-- wake A-2 own -->\n  Remembered “dogs bark”\n\
            - 14:50 Woke for undo A-2. <!-- wake A-3 own -->\n  Undid the wake A-2\n  Took back its changes\n\
            - 14:51 by hand\n";
        let shown = without_undone(log);
        assert_eq!(shown.lines().count(), log.lines().count());
        let shown: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            shown,
            ["## 2026-11-28", "- 14:48 Woke. <!-- wake A-1 own -->", "  Remembered “cats purr”", "- 14:51 by hand"]
        );
    }

    #[test]
    fn a_log_is_parsed_into_days_and_entries() {
        let (log, problems) = Log::parse(&format!("{TEXT}- no time\n## Someday\n- x\n"));
        assert_eq!(problems.len(), 1);
        assert_snapshot!(problems[0], @"line 10: “Someday” isn't a day; write it as 2026-11-21");
        assert_eq!(log.days.iter().map(|day| (day.date, day.line)).collect::<Vec<_>>(), [(day(20), 3), (day(21), 6)]);
        let read: Vec<_> =
            log.days[1].entries.iter().map(|entry| (entry.time.is_some(), entry.text.as_str(), entry.line)).collect();
        assert_eq!(read, [(true, "answered Anna\nwith a list", 7), (false, "no time", 9)]);
        assert_eq!(log.days[0].entries[0].wake.as_deref(), Some("wake 1"));
    }

    #[test]
    fn an_entry_goes_to_its_day() {
        let text = append_entry(
            TEXT,
            day(21),
            at(14, 3),
            &["planned the trip\n## no heading", "- a step", "```", "x --> y"],
            WAKE,
        );
        assert_snapshot!(text.strip_prefix(TEXT).unwrap(), @r"
        - 14:03 planned the trip <!-- wake 20261121T140302Z-812 -->
          \## no heading
          - a step
          \```
          x -- > y
        ");
        let text = append_entry(TEXT, day(20), at(9, 0), &["x"], "1");
        assert_eq!(text, TEXT.replace("woke <!-- wake 1 -->\n", "woke <!-- wake 1 -->\n- 09:00 x <!-- wake 1 -->\n"));
        assert_eq!(
            append_entry(TEXT, day(22), at(0, 5), &["x"], "1"),
            format!("{TEXT}\n## 2026-11-22\n- 00:05 x <!-- wake 1 -->\n")
        );
        let text = append_entry(TEXT, day(19), at(0, 5), &["x"], "1");
        assert_eq!(text, TEXT.replace("## 2026-11-20", "## 2026-11-19\n- 00:05 x <!-- wake 1 -->\n\n## 2026-11-20"));
        assert_eq!(append_entry("", day(22), at(0, 5), &[], "1"), "## 2026-11-22\n- 00:05 <!-- wake 1 -->\n");
    }

    #[test]
    fn entries_are_appended_to_a_damaged_log_too() {
        let text = append_entry("## 2026-11-21\n```\n- 08:00 x", day(21), at(9, 0), &["y"], "1");
        assert_eq!(text, "## 2026-11-21\n```\n- 08:00 x\n```\n- 09:00 y <!-- wake 1 -->\n");
        let text = append_entry("rubbish <!--\r\n\r\n<!-- open", day(21), at(9, 0), &["y"], "1");
        assert_eq!(text, "rubbish <!--\r\n\r\n<!-- open\r\n-->\r\n\r\n## 2026-11-21\r\n- 09:00 y <!-- wake 1 -->\r\n");
        assert_eq!(Log::parse(&text).0.days.len(), 1);
    }

    #[test]
    fn long_entries_are_bounded() {
        let many: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let text = append_entry("", day(21), at(9, 0), &many, "1");
        assert_eq!(text.lines().count(), 1 + MAX_ENTRY_LINES);
        assert!(text.ends_with("  line 38\n  (and 61 more lines)\n"), "{text}");
    }

    #[test]
    fn the_oldest_days_are_archived() {
        let old = "# Log\n\n## 2026-10-31\n- a\n\n## 2026-11-02\n- c\n\n## Notes\n- n\n\n## 2026-11-01\n- b\n\n## 2026-11-03\n- d\n- e";
        assert_eq!(archive(old, 17), None);
        let (new, files) = archive(old, 9).unwrap();
        assert_eq!(new, "# Log\n\n## Notes\n- n\n\n## 2026-11-03\n- d\n- e");
        assert_eq!(
            files,
            [
                ("memory/agent-memory/archive/2026-10.md".to_owned(), "## 2026-10-31\n- a\n\n".to_owned()),
                (
                    "memory/agent-memory/archive/2026-11.md".to_owned(),
                    "## 2026-11-01\n- b\n\n## 2026-11-02\n- c\n\n".to_owned()
                ),
            ]
        );
        assert_eq!(archive(&new, 1), None);
        assert_eq!(append_days("## 2026-10-30\n- z", &files[0].1), "## 2026-10-30\n- z\n\n## 2026-10-31\n- a\n\n");
    }

    #[test]
    fn recent_lines_come_with_their_day() {
        assert_eq!(take_recent_lines(TEXT, 1), "## 2026-11-21\n  with a list\n");
        assert_eq!(take_recent_lines(TEXT, 3), "## 2026-11-21\n- 08:00 answered Anna <!-- wake 2 -->\n  with a list\n");
        assert_eq!(take_recent_lines(TEXT, 99), TEXT);
        assert_eq!(take_recent_lines(TEXT, 0), "");
        assert_eq!(take_recent_lines("", 5), "");
    }

    proptest! {
        #[test]
        fn an_entry_is_always_read_back(text in document(), entry in ".{0,40}", date in 18_u32..24) {
            let new = append_entry(&text, day(date), at(14, 3), &[&entry], WAKE);
            let (before, after) = (Log::parse(&text).0, Log::parse(&new).0);
            let count = |log: &Log| log.days.iter().map(|day| day.entries.len()).sum::<usize>();
            prop_assert_eq!(count(&after), count(&before) + 1, "{:?}", new);
            let ours = after.days.iter().rfind(|other| other.date == day(date)).unwrap().entries.last().unwrap();
            prop_assert_eq!(ours.text.trim(), one_line(&entry, MAX_ENTRY_LINE_CHARS), "{:?}", new);
            prop_assert_eq!(ours.wake.clone(), Some(format!("wake {WAKE}")));
            let mut rest = new.as_str();
            for line in split_lines(text.trim_start_matches('\u{feff}')).map(str::trim).filter(|line| !line.is_empty()) {
                let found = rest.find(line);
                prop_assert!(found.is_some(), "{:?} lost from {:?}", line, new);
                rest = slice(rest, found.unwrap_or(0) + line.len()..rest.len());
            }
        }

        #[test]
        fn archiving_loses_no_byte(text in document(), max in 0_usize..10) {
            if let Some((new, files)) = archive(&text, max) {
                let together: usize = new.len() + files.iter().map(|(_, days)| days.len()).sum::<usize>();
                prop_assert!(together >= text.len());
                let newest = |text: &str| Log::parse(text).0.days.iter().map(|day| day.date).max();
                prop_assert_eq!(newest(&new), newest(&text));
                for line in split_lines(text.trim_start_matches('\u{feff}')).map(str::trim) {
                    prop_assert!(new.contains(line) || files.iter().any(|(_, days)| days.contains(line)));
                }
            }
            let _recent = take_recent_lines(&text, max);
        }
    }
}
