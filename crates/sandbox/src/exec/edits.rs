//! Text edits as values, and the history for undoing a cycle's edits.

use std::{collections::VecDeque, ops::RangeInclusive, path::PathBuf};

use reveille_base::words::cut_text;

/// Maximum number of undo steps.
const MAX_STEPS: usize = 50;
/// Maximum bytes of text kept for undo; the oldest steps are dropped.
const MAX_KEPT_BYTES: usize = 16 << 20;
/// Maximum characters shown of one line.
pub const MAX_LINE_CHARS: usize = 2_000;
/// Maximum number of places named for an ambiguous text.
const MAX_NAMED: usize = 10;

/// A finished edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file's absolute path.
    pub path: PathBuf,
    /// The text before; `None` for a new file.
    pub before: Option<String>,
    /// The text afterwards.
    pub after: String,
}

impl Edit {
    fn count_bytes(&self) -> usize {
        self.after.len() + self.before.as_ref().map_or(0, String::len)
    }
}

/// The edits of one cycle, latest last.
#[derive(Debug, Default)]
pub struct Edits {
    steps: VecDeque<Edit>,
}

impl Edits {
    /// Records an edit.
    pub fn push(&mut self, edit: Edit) {
        self.steps.push_back(edit);
        let mut bytes: usize = self.steps.iter().map(Edit::count_bytes).sum();
        while self.steps.len() > MAX_STEPS || bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.steps.pop_front() else { return };
            bytes -= oldest.count_bytes();
        }
    }

    /// Returns the last edit of a file that hasn't been undone.
    pub fn find_last(&self, path: &std::path::Path) -> Option<&Edit> {
        self.steps.iter().rev().find(|edit| edit.path == path)
    }

    /// Drops the last edit of a file after it was undone.
    pub fn pop(&mut self, path: &std::path::Path) {
        if let Some(at) = self.steps.iter().rposition(|edit| edit.path == path) {
            self.steps.remove(at);
        }
    }
}

/// Replaces `old`, which must occur exactly once. Returns the new text and the line of the replacement, from 1.
///
/// # Errors
/// A sentence for the model.
pub fn replace_once(text: &str, old: &str, new: &str) -> Result<(String, usize), String> {
    if old.is_empty() {
        return Err("old_str is empty: give the text to replace.".to_owned());
    }
    // Lines are shown to the model without the carriage return of Windows.
    if text.contains("\r\n") && !old.contains('\r') && !text.contains(old) {
        let windows = |part: &str| part.replace('\n', "\r\n");
        return replace_exactly(text, &windows(old), &if new.contains('\r') { new.to_owned() } else { windows(new) });
    }
    replace_exactly(text, old, new)
}

fn replace_exactly(text: &str, old: &str, new: &str) -> Result<(String, usize), String> {
    let found = find_places(text, old);
    match found.as_slice() {
        [] => Err("old_str isn't in the file exactly as given, spaces and line ends included.".to_owned()),
        [at] => {
            let before = text.get(..*at).unwrap_or_default();
            let after = text.get(at + old.len()..).unwrap_or_default();
            Ok((format!("{before}{new}{after}"), find_line_number(text, *at)))
        }
        several => {
            let lines: Vec<_> =
                several.iter().take(MAX_NAMED).map(|at| find_line_number(text, *at).to_string()).collect();
            let more = if several.len() > MAX_NAMED { " and further on" } else { "" };
            Err(format!(
                "old_str occurs more than once, in lines {}{more}. Include more of the text around it.",
                lines.join(", ")
            ))
        }
    }
}

/// Finds the offsets of a part in a text, including overlapping ones, because each could be meant. Stops at one more than are named.
fn find_places(text: &str, part: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(part)) {
        found.push(from + at);
        if found.len() > MAX_NAMED {
            break;
        }
        from += at + part.chars().next().map_or(1, char::len_utf8);
    }
    found
}

fn find_line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Inserts `new` as lines of their own after line `after`; 0 is the beginning.
///
/// # Errors
/// A sentence for the model.
pub fn insert_lines(text: &str, after: usize, new: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some((above, below)) = lines.split_at_checked(after) else {
        return Err(format!("insert_line is {after}, and the file has {}.", format_line_count(lines.len())));
    };
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut whole = above.concat();
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push_str(end);
    }
    if end == "\r\n" && !new.contains('\r') {
        whole.push_str(&new.replace('\n', end));
    } else {
        whole.push_str(new);
    }
    // A file whose last line is unterminated stays so.
    let is_left_open = below.is_empty() && !text.is_empty() && !text.ends_with('\n');
    if !(new.is_empty() || new.ends_with('\n') || is_left_open) {
        whole.push_str(end);
    }
    whole.extend(below.iter().copied());
    Ok(whole)
}

/// Returns the lines of a range with their numbers, as many as fit into `max_bytes`, and how to go on.
///
/// # Errors
/// A sentence for the model if the range isn't in the text.
pub fn number_lines(text: &str, range: Option<[i64; 2]>, max_bytes: usize) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return Ok("(The file is empty.)".to_owned());
    }
    let wanted = check_range(range, lines.len())?;
    let (first, last) = (*wanted.start(), *wanted.end());
    let mut shown = String::new();
    for (number, line) in (1..).zip(&lines).skip(first - 1).take(last + 1 - first) {
        let line = format!("{number:>6}\t{}\n", shorten_line(line));
        if shown.len() + line.len() > max_bytes {
            let end = number - 1;
            shown.push_str(&format!(
                "(Lines {first} to {end} of {}; go on with view_range [{number}, -1].)",
                lines.len()
            ));
            return Ok(shown);
        }
        shown.push_str(&line);
    }
    if (first, last) != (1, lines.len()) {
        shown.push_str(&format!("(Lines {first} to {last} of {}.)", lines.len()));
    }
    Ok(shown.trim_end_matches('\n').to_owned())
}

fn check_range(range: Option<[i64; 2]>, total: usize) -> Result<RangeInclusive<usize>, String> {
    let Some([first, last]) = range else { return Ok(1..=total) };
    let wrong = || format!("view_range is [{first}, {last}], and the file has {}.", format_line_count(total));
    let first = usize::try_from(first).ok().filter(|first| (1..=total).contains(first)).ok_or_else(wrong)?;
    let last = match last {
        -1 => total,
        last => usize::try_from(last).ok().filter(|last| *last >= first).ok_or_else(wrong)?.min(total),
    };
    Ok(first..=last)
}

/// Shortens a line for display.
pub fn shorten_line(line: &str) -> String {
    cut_text(line, MAX_LINE_CHARS, "… (the line is cut)")
}

fn format_line_count(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_stands_once_is_replaced_and_nothing_else() {
        assert_eq!(replace_once("a\nb\nc\n", "b\n", ""), Ok(("a\nc\n".to_owned(), 2)));
        assert_eq!(replace_once("grün und rot", "grün", "blau"), Ok(("blau und rot".to_owned(), 1)));
        assert!(replace_once("a\nb", "c", "d").unwrap_err().contains("isn't in the file exactly as given"));
        assert!(replace_once("x\ny\nx\n", "x", "d").unwrap_err().contains("in lines 1, 3."));
        assert!(replace_once("aaa", "aa", "b").unwrap_err().contains("more than once"), "overlapping places are two");
        assert!(replace_once("üüü", "üü", "b").unwrap_err().contains("more than once"));
        assert!(replace_once("a", "", "b").unwrap_err().contains("empty"));
        assert!(replace_once(&"x\n".repeat(50), "x", "").unwrap_err().contains("and further on"));
    }

    #[test]
    fn windows_line_ends_are_kept_by_those_who_cannot_see_them() {
        assert_eq!(replace_once("a\r\nb\r\n", "a\nb", "c\nd"), Ok(("c\r\nd\r\n".to_owned(), 1)));
        assert_eq!(insert_lines("a\r\nb\r\n", 1, "x\ny").unwrap(), "a\r\nx\r\ny\r\nb\r\n");
    }

    #[test]
    fn lines_are_inserted_as_lines() {
        for (text, after, new, whole) in [
            ("a\nb\n", 0, "x", "x\na\nb\n"),
            ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
            ("a\nb\n", 2, "x", "a\nb\nx\n"),
            ("a\nb", 2, "x", "a\nb\nx"),
            ("", 0, "x", "x\n"),
        ] {
            assert_eq!(insert_lines(text, after, new).as_deref(), Ok(whole), "{text:?} {after}");
        }
        assert_eq!(insert_lines("a\n", 2, "x"), Err("insert_line is 2, and the file has 1 line.".to_owned()));
    }

    #[test]
    fn lines_are_shown_with_numbers_and_within_bounds() {
        let text = (1..=100).map(|n| format!("line {n}\n")).collect::<String>();
        assert_eq!(number_lines("a\nb", None, 100).as_deref(), Ok("     1\ta\n     2\tb"));
        assert_eq!(number_lines("", None, 100).as_deref(), Ok("(The file is empty.)"));
        assert_eq!(
            number_lines(&text, Some([99, -1]), 1000).as_deref(),
            Ok("    99\tline 99\n   100\tline 100\n(Lines 99 to 100 of 100.)")
        );
        assert!(
            number_lines(&text, None, 50).unwrap().ends_with("(Lines 1 to 3 of 100; go on with view_range [4, -1].)")
        );
        assert!(number_lines(&"x".repeat(5000), None, 10_000).unwrap().ends_with("xx… (the line is cut)"));
        for range in [[0, 5], [101, 102], [5, 4], [-1, -1], [i64::MIN, i64::MAX]] {
            assert!(number_lines(&text, Some(range), 1000).unwrap_err().contains("100 lines"), "{range:?}");
        }
    }

    #[test]
    fn steps_back_are_kept_by_file_and_bounded() {
        let edit = |path: &str, n: usize| Edit { path: path.into(), before: None, after: n.to_string() };
        let mut edits = Edits::default();
        (0..MAX_STEPS + 5).for_each(|n| edits.push(edit("/a", n)));
        edits.push(edit("/b", 0));
        assert_eq!((edits.steps.len(), edits.steps[0].after.as_str()), (MAX_STEPS, "6"));
        assert_eq!(edits.find_last("/a".as_ref()).unwrap().after, (MAX_STEPS + 4).to_string());
        edits.pop("/a".as_ref());
        assert_eq!(edits.find_last("/a".as_ref()).unwrap().after, (MAX_STEPS + 3).to_string());
        edits.push(Edit { path: "/c".into(), before: None, after: "x".repeat(MAX_KEPT_BYTES) });
        assert!(edits.find_last("/a".as_ref()).is_none() && edits.find_last("/c".as_ref()).is_some());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[aü\r\n]{0,40}", part in "[aü\r\n]{0,3}", new in "[b\n]{0,3}", line in 0..45_usize) {
            if let Ok((whole, _)) = replace_once(&text, &part, &new) {
                prop_assert_eq!(text.matches('b').count() + new.matches('b').count(), whole.matches('b').count());
            }
            if let Ok(whole) = insert_lines(&text, line, &new) {
                prop_assert!(whole.len() >= text.len() + new.len());
            }
            let range = Some([i64::try_from(line).unwrap(), -1]);
            number_lines(&text, range, 30).ok();
        }
    }
}
