//! Reads the newest lines of all programs. Each program's files are in order; lines are merged by time.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
};

use chrono::{DateTime, Utc};

use super::{LOGGED, LoggedLine, MAX_FILE_BYTES, MAX_LINE_BYTES, list_files};

/// The maximum number of bytes read of one file, in case rotation failed.
const MAX_READ_BYTES: u64 = 2 * MAX_FILE_BYTES;

/// A filter for log lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Only lines of this program.
    pub program: Option<String>,
    /// Only lines from this time on.
    pub since: Option<DateTime<Utc>>,
    /// Only lines that contain this text, ignoring case.
    pub grep: Option<String>,
}

impl LogFilter {
    /// Returns true if a line passes the filter.
    pub fn is_match(&self, line: &LoggedLine) -> bool {
        self.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| line.text.to_lowercase().contains(&grep.to_lowercase()))
    }

    /// The programs that pass the filter.
    pub(super) fn list_programs(&self) -> impl Iterator<Item = &'static str> {
        LOGGED.into_iter().filter(|program| self.program.as_deref().is_none_or(|wanted| wanted == *program))
    }
}

/// The newest lines that pass the filter, at most `most`, oldest first. Unreadable files are skipped.
pub fn read_newest(dir: &Path, filter: &LogFilter, most: usize) -> Vec<LoggedLine> {
    let mut all: Vec<LoggedLine> =
        filter.list_programs().flat_map(|program| read_program(dir, program, filter, most)).collect();
    // The sort is stable: lines of the same moment keep the order of their file.
    all.sort_by_key(|line| line.at);
    all.split_off(all.len().saturating_sub(most))
}

fn read_program(dir: &Path, program: &str, filter: &LogFilter, most: usize) -> VecDeque<LoggedLine> {
    let mut kept = VecDeque::new();
    for path in list_files(dir, program) {
        let (mut lines, mut first) = (VecDeque::new(), None);
        for_each_line(&path, |line| {
            first.get_or_insert(line.at);
            if filter.is_match(&line) {
                lines.push_back(line);
                if lines.len() > most - kept.len() {
                    lines.pop_front();
                }
            }
        });
        lines.append(&mut kept);
        kept = lines;
        let is_before = filter.since.zip(first).is_some_and(|(since, first)| first < since);
        if kept.len() >= most || is_before {
            break;
        }
    }
    kept
}

fn for_each_line(path: &Path, mut take: impl FnMut(LoggedLine)) {
    let Ok(file) = File::open(path) else { return };
    let mut reader = BufReader::new(file.take(MAX_READ_BYTES));
    let (mut bytes, mut last) = (Vec::new(), DateTime::<Utc>::MIN_UTC);
    while let Ok(1..) = reader.read_until(b'\n', &mut bytes) {
        let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(2 * MAX_LINE_BYTES)).unwrap_or_default());
        let line = LoggedLine::parse(text.trim_end_matches('\n'), last);
        last = line.at;
        take(line);
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::clock::parse_time;

    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &[&str]| fs::write(dir.path().join(name), lines.join("\n") + "\n").unwrap();
        write("wake.log.2", &["2026-11-21T08:00:00Z oldest", "2026-11-21T09:00:00Z old"]);
        write("wake.log.1", &["2026-11-21T10:00:00Z Tea", "2026-11-21T11:00:00Z tea again", "without a time"]);
        write("wake.log", &["2026-11-21T12:00:00Z newest"]);
        write("bot.log", &["2026-11-21T10:30:00Z bot", "2026-11-21T11:30:00Z bot hears tea"]);
        write("other.log", &["2026-11-21T12:30:00Z another's"]);
        dir
    }

    fn texts(dir: &Path, filter: &LogFilter, most: usize) -> Vec<String> {
        let word = |line: LoggedLine| {
            line.text.trim_start_matches(|c: char| c.is_ascii_digit() || "-:TZ".contains(c)).trim().to_owned()
        };
        read_newest(dir, filter, most).into_iter().map(word).collect()
    }

    #[test]
    fn the_newest_lines_of_all_programs_are_merged_by_time() {
        let dir = place();
        let all = LogFilter::default();
        assert_eq!(texts(dir.path(), &all, 3), ["without a time", "bot hears tea", "newest"]);
        let every = ["oldest", "old", "Tea", "bot", "tea again", "without a time", "bot hears tea", "newest"];
        assert_eq!(texts(dir.path(), &all, 100), every);
        assert_eq!(texts(dir.path(), &all, 6), every[2..]);
    }

    #[test]
    fn a_filter_goes_back_as_far_as_it_has_to() {
        let dir = place();
        let tea = LogFilter { grep: Some("TEA".to_owned()), ..LogFilter::default() };
        assert_eq!(texts(dir.path(), &tea, 2), ["tea again", "bot hears tea"]);
        let since = LogFilter { since: parse_time("2026-11-21T11:00:00Z"), ..LogFilter::default() };
        assert_eq!(texts(dir.path(), &since, 100), ["tea again", "without a time", "bot hears tea", "newest"]);
        let bot = LogFilter { program: Some("bot".to_owned()), ..LogFilter::default() };
        assert_eq!(texts(dir.path(), &bot, 100), ["bot", "bot hears tea"]);
        assert!(texts(&dir.path().join("missing"), &bot, 100).is_empty());
    }
}
