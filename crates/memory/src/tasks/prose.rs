//! Finds text in a task list that has no heading of its own. It stays unchanged and is reported, to keep it from being overlooked.

use super::{TaskList, read::is_key_item};
use crate::{
    sections::{Document, Part},
    text::{is_blank, one_line, split_comment, split_lines},
};

/// The maximum length reported, in characters.
const MAX_CHARS: usize = 80;
/// The number of words in a plain line that may be meant as a task; longer lines are notes to the task above.
const TASK_WORDS: std::ops::RangeInclusive<usize> = 2..=8;

/// A line that reads like a task but isn't one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prose {
    /// The line number, counted from 1.
    pub line: usize,
    /// The text.
    pub text: String,
}

impl TaskList {
    /// Returns the text above the first heading, list items under a task that aren't keys, and short lines directly after a task's keys.
    /// Text after a blank line is a note to its task.
    pub fn find_unheaded_lines(&self) -> Vec<Prose> {
        let document = Document::split(&self.text);
        let mut found = Vec::new();
        for part in &document.parts {
            let task = self.tasks.iter().find(|task| part.level == 2 && task.line == part.line);
            let from = task.map_or(part.body_start, |task| task.keys_end);
            // In a part with a code fence, any line may belong to quoted code.
            if !document.has_fence(part) {
                collect_items(&document, part, from, &mut found);
                collect_lines(&document, part, from, &mut found);
            }
        }
        found.sort_by_key(|prose| prose.line);
        found
    }
}

fn collect_items(document: &Document<'_>, part: &Part, from: usize, found: &mut Vec<Prose>) {
    for item in part.items.iter().filter(|item| item.start >= from && !is_key_item(document, item)) {
        let first = split_lines(document.slice(item)).next().unwrap_or_default();
        let marked = split_comment(first).0.trim().trim_start_matches(['-', '*', '+']).trim();
        // A ticked item is done.
        if !marked.to_lowercase().starts_with("[x]") {
            add_prose(document, item.start, marked.trim_start_matches("[ ]"), found);
        }
    }
}

fn collect_lines(document: &Document<'_>, part: &Part, from: usize, found: &mut Vec<Prose>) {
    let is_task = part.level == 2;
    let mut at = from;
    for line in split_lines(document.slice(&(from..part.range.end))) {
        let start = at;
        at += line.len();
        let is_item = part.items.iter().any(|item| item.start >= from && item.contains(&start));
        let text = line.trim();
        if is_item || is_blank(line) || document.is_comment(&(start..at)) || !text.starts_with(char::is_alphanumeric) {
            continue;
        }
        let follows_keys = start == from && from > part.body_start;
        let is_short = TASK_WORDS.contains(&text.split_whitespace().count());
        let is_sentence = text.ends_with(['.', '!', '?', ':', ';', ',', '…']);
        if !is_task || (follows_keys && is_short && !is_sentence) {
            add_prose(document, start, text, found);
        }
    }
}

fn add_prose(document: &Document<'_>, at: usize, text: &str, found: &mut Vec<Prose>) {
    let text = one_line(text, MAX_CHARS);
    if text.chars().any(char::is_alphanumeric) {
        found.push(Prose { line: document.line_number(at), text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(text: &str) -> Vec<(usize, String)> {
        TaskList::parse(text).0.find_unheaded_lines().into_iter().map(|prose| (prose.line, prose.text)).collect()
    }

    #[test]
    fn text_without_a_heading_is_found_with_its_line_number() {
        let text = "# Active tasks\n\n<!-- At most seven. -->\n\nfix the gate\n\n## Call Bob\n- status: active\n- buy paint\n- [ ] sand \
                    the door\n- [x] sweep\n\nA note: he is away until Monday.\n\nask his sister\n\n## Sail\n- status: \
                    active\nbook the ferry\n";
        let found = prose(text);
        let shown: Vec<(usize, &str)> = found.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(shown, [(5, "fix the gate"), (9, "buy paint"), (10, "sand the door"), (19, "book the ferry")]);
        assert_eq!(prose("## A\n- status: active\n- note the ~~~ in it\n"), [(3, "note the ~~~ in it".to_owned())]);
    }

    #[test]
    fn keys_notes_code_and_comments_are_not_reported() {
        for text in [
            "# Active tasks\n\n<!-- At most\n     seven. -->\n",
            "## A\n- status: active\n- next: call\n\nA sentence about it.\n",
            "## A\n\n- status: active\n- mood: hopeful\n\noat\n",
            "## A\n\n```\nbuy paint\n```\n",
            "# A\n\n~~~\nbuy paint\n~~~\n",
            "",
        ] {
            assert_eq!(prose(text), [], "{text:?}");
        }
    }
}
