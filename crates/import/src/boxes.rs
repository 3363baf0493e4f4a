//! Checkbox tasks in Markdown, `- [ ] Paint the shed`. Examples in code blocks, quotations, comments and front matter don't count.

use std::ops::Range;

use chrono::NaiveDate;

use reveille_base::words;
use reveille_memory::{
    markdown::{BlockKind, MarkdownBlock, find_range, read_blocks, strip_bullet},
    sections::front_matter_length,
};

/// The maximum length of a task's due time, in characters.
const MAX_DUE_CHARS: usize = 40;

/// A task behind a checkbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskBox {
    pub(super) title: String,
    /// The due time, as written.
    pub(super) due: Option<String>,
    pub(super) state: BoxState,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoxState {
    /// To be done, possibly begun or postponed.
    Open,
    /// Done.
    Ticked,
    /// Abandoned.
    Cancelled,
}

/// Returns the checkboxes of a text, and whether it contains anything besides them and headings.
pub(super) fn read_boxes(text: &str) -> (Vec<TaskBox>, bool) {
    let skipped = front_matter_length(text);
    let body = text.get(skipped..).unwrap_or_default();
    let (mut items, mut code, mut headings) = (Vec::new(), Vec::new(), Vec::new());
    for MarkdownBlock { kind, range, depth, is_quoted } in read_blocks(body, 0) {
        match kind {
            BlockKind::Item if !is_quoted => items.push(range.start),
            BlockKind::Fence { .. } | BlockKind::Code => code.push(range),
            BlockKind::Heading(_) | BlockKind::Underlined(_) if depth == 0 => headings.push(range),
            _ => {}
        }
    }
    for (opening, closing) in [("<!--", "-->"), ("%%", "%%")] {
        let hidden = find_comments(body, &code, opening, closing);
        items.retain(|item| find_range(&hidden, *item).is_none());
    }
    let (mut boxes, mut lines) = (Vec::new(), Vec::new());
    for item in items {
        let line = body.get(item..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        if let Some(task) = read_box(line) {
            lines.push(item);
            boxes.push(task);
        }
    }
    let mut at = 0;
    let mut lines = lines.into_iter().peekable();
    let has_more = body.split_inclusive('\n').any(|line| {
        at += line.len();
        let mut is_box = false;
        while lines.next_if(|item| *item < at).is_some() {
            is_box = true;
        }
        !line.trim().is_empty() && find_range(&headings, at - line.trim_start().len()).is_none() && !is_box
    });
    (boxes, has_more || skipped > 0)
}

/// Returns the comments of a text outside code; unclosed ones hide nothing. Searches for the marks itself: the Markdown parser ends a
/// comment within a line if a list begins, and doesn't know `%%`.
fn find_comments(text: &str, code: &[Range<usize>], opening: &str, closing: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find(opening)).map(|start| at + start) {
        at = start + opening.len();
        if find_range(code, start).is_some() {
            continue;
        }
        let Some(end) = text.get(at..).and_then(|rest| rest.find(closing)) else { break };
        at += end + closing.len();
        found.push(start..at);
    }
    found
}

/// Parses the first line of a list item.
fn read_box(line: &str) -> Option<TaskBox> {
    let mut rest = strip_bullet(line.trim())?.strip_prefix('[')?.chars();
    let mark = rest.next()?;
    let title = rest.as_str().strip_prefix(']')?;
    if !title.starts_with(char::is_whitespace) || !title.chars().any(char::is_alphanumeric) {
        return None;
    }
    let title = title.trim();
    let says = |words: &[&str]| words.iter().any(|word| title.contains(word));
    let state = match mark {
        'x' | 'X' | '✓' | '✔' => BoxState::Ticked,
        '-' | '~' => BoxState::Cancelled,
        // Other custom marks have unknown meanings: `[i]` and `[1]` aren't tasks.
        ' ' | '\u{a0}' | '/' | '>' | '<' | '!' | '?' | '*' => match () {
            () if says(&["✅", "[completion::", "(completion::", "@done"]) => BoxState::Ticked,
            () if says(&["❌", "[cancelled::", "(cancelled::", "@cancelled"]) => BoxState::Cancelled,
            () if title.len() > 4 && title.starts_with("~~") && title.ends_with("~~") => BoxState::Cancelled,
            () => BoxState::Open,
        },
        _ => return None,
    };
    let (title, due) = split_due(title);
    Some(TaskBox { title, due, state })
}

/// Splits a title into the bare title and its due time.
fn split_due(title: &str) -> (String, Option<String>) {
    let found = [("📅", ""), ("📆", ""), ("🗓", ""), ("[due::", "]"), ("(due::", ")"), ("@due(", ")"), ("@{", "}")]
        .into_iter()
        .chain([("DEADLINE: <", ">"), ("due::", ""), ("due:", "")])
        .find_map(|(opening, closing)| find_due(title, opening, closing));
    let Some((range, due)) = found else { return (title.to_owned(), None) };
    let around = [title.get(..range.start), title.get(range.end..)].map(Option::unwrap_or_default);
    let bare = words::one_line(&around.join(" "));
    let bare = if bare.chars().any(char::is_alphanumeric) { bare } else { title.to_owned() };
    (bare, Some(due))
}

/// Returns the range of a due time in a title, and the time. Without a closing mark the time must begin with a date.
fn find_due(title: &str, opening: &str, closing: &str) -> Option<(Range<usize>, String)> {
    let start = title.find(opening)?;
    let after = title.get(start + opening.len()..)?;
    let value = after.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{fe0f}');
    let skipped = start + opening.len() + after.len() - value.len();
    if closing.is_empty() {
        let date = value.get(..10).filter(|date| is_date(date))?;
        let time = value.get(10..16).filter(|time| is_time(time)).unwrap_or_default();
        return Some((start..skipped + 10 + time.len(), format!("{date}{time}")));
    }
    let (due, _) = value.split_once(closing)?;
    let is_due = !due.trim().is_empty() && due.chars().count() <= MAX_DUE_CHARS;
    is_due.then(|| (start..skipped + due.len() + closing.len(), due.trim().trim_matches(['[', ']']).to_owned()))
}

fn is_date(text: &str) -> bool {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// Returns whether a text is a time such as ` 14:00` or `T14:00`.
fn is_time(text: &str) -> bool {
    text.starts_with([' ', 'T'])
        && chrono::NaiveTime::parse_from_str(text.get(1..).unwrap_or_default(), "%H:%M").is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boxes_are_tasks_and_examples_are_none() {
        for (name, text, expected) in [
            ("a box", "- [ ] Paint", "open Paint"),
            ("other bullets", "* [ ] Paint\n\n+ [ ] Oil", "open Paint; open Oil"),
            ("numbers", "1. [ ] Paint\n2. [x] Oil\n\n10) [ ] Sand", "open Paint; ticked Oil; open Sand"),
            ("ticked", "- [x] Paint\n- [X] Oil", "ticked Paint; ticked Oil"),
            (
                "given up",
                "- [-] Paint\n- [ ] ~~Oil~~\n- [ ] Sand ❌ 2026-01-02",
                "cancelled Paint; cancelled ~~Oil~~; cancelled Sand ❌ 2026-01-02",
            ),
            ("begun, put off, important", "- [/] Paint\n- [>] Oil\n- [!] Sand", "open Paint; open Oil; open Sand"),
            ("no tasks", "- [i] Info\n- [1] Smith\n- [x](https://example.org) a link\n- [] Paint\n- [ ]\n- [ ]Oil", ""),
            ("nested", "- [ ] Boat\n  - [ ] Paint\n\t- [x] Oil", "open Boat; open Paint; ticked Oil"),
            ("below plain items", "- Boat\n    - [ ] Paint", "open Paint"),
            ("Windows' line ends", "- [ ] Paint\r\n- [ ] Oil\r\n", "open Paint; open Oil"),
            ("in a fence", "```\n- [ ] example\n```\n- [ ] Paint", "open Paint"),
            ("in a fence with a language", "~~~md\n- [ ] example\n~~~", ""),
            (
                "in a fence in an item",
                "1. Generate:\n\n   ```markdown\n   ## Test plan\n   - [ ] example\n   ```\n\n- [x] Done",
                "ticked Done",
            ),
            ("in a longer fence", "````\n```\n- [ ] example\n```\n- [ ] example\n````", ""),
            ("in a fence that isn't closed", "- [ ] Paint\n```\n- [ ] example", "open Paint"),
            ("in indented code", "# Format\n\n    - [ ] example\n\n- [ ] Paint", "open Paint"),
            ("in a code span", "Write `- [ ] example` so", ""),
            ("in a comment", "<!--\n- [ ] example\n\n- [ ] another\n-->\n- [ ] Paint", "open Paint"),
            ("in a comment within a line", "Text <!-- see\n- [ ] example\n--> and\n\n- [ ] Paint", "open Paint"),
            ("in Obsidian's comment", "%%\n- [ ] example\n%%\n\n- [ ] Paint", "open Paint"),
            ("in a quotation", "> - [ ] example\n\n- [ ] Paint", "open Paint"),
            ("in the front matter", "---\ntasks:\n- [ ] example\n---\n- [ ] Paint", "open Paint"),
            ("between two rules", "# A\n\n---\n- [ ] Paint\n\n---\n", "open Paint"),
            ("due, by an emoji", "- [ ] Paint ⏫ 📅 2026-11-30", "open Paint ⏫ until 2026-11-30"),
            ("due, with a time", "- [ ] 📅 2026-11-30 14:00 Paint", "open Paint until 2026-11-30 14:00"),
            (
                "due, by a field",
                "- [ ] Paint [due:: 2026-11-30] now\n- [ ] Oil (due:: 2026-12-01)",
                "open Paint now until 2026-11-30; open Oil until 2026-12-01",
            ),
            (
                "due, bare",
                "- [ ] Paint due:: 2026-11-30\n- [ ] Oil due:2026-12-01",
                "open Paint until 2026-11-30; open Oil until 2026-12-01",
            ),
            (
                "due, by a tag",
                "- [ ] Paint @due(2026-11-30)\n- [ ] Oil @{2026-12-01}",
                "open Paint until 2026-11-30; open Oil until 2026-12-01",
            ),
            ("due, in words that are none", "- [ ] Rent is due: pay it", "open Rent is due: pay it"),
            (
                "done, by its date",
                "- [ ] Paint ✅ 2026-01-02\n- [ ] Oil [completion:: 2026-01-02]",
                "ticked Paint ✅ 2026-01-02; ticked Oil [completion:: 2026-01-02]",
            ),
        ] {
            let shown = read_boxes(text).0.into_iter().map(|task| {
                let due = task.due.map(|due| format!(" until {due}")).unwrap_or_default();
                format!("{} {}{due}", format!("{:?}", task.state).to_lowercase(), task.title)
            });
            assert_eq!(shown.collect::<Vec<_>>().join("; "), expected, "{name}");
        }
    }

    #[test]
    fn content_besides_checkboxes_is_noticed() {
        for (text, has_more) in [
            ("# Tasks\n\n- [ ] Paint\n  - [x] Oil\n", false),
            ("- [ ] Paint\n  with a brush", true),
            ("- [ ] Paint\n```\n- [ ] example\n```", true),
            ("---\na: 1\n---\n- [ ] Paint", true),
            ("Tasks\n=====\n\n  ## Home\r\n- [ ] Paint", false),
            ("#garden\n\n- [ ] Paint", true),
            ("```\n# Paint\n```\n- [ ] Paint", true),
        ] {
            assert_eq!(read_boxes(text).1, has_more, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>(), marked in "[-*\\[\\]x \\n`>%<!📅0-9due:@()~]{0,80}") {
            read_boxes(&text);
            read_boxes(&marked);
        }
    }
}
