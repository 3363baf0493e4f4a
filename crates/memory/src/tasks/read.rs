//! Parses a section as a task: the key lines directly under its heading, then free text.

use std::ops::Range;

use reveille_base::schedule::Missed;

use super::{Key, MAX_KEY_CHARS, Task};
use crate::{
    Problem,
    sections::{Document, Part},
    text::{escape_start, is_blank, line_start, slice, split_comment, split_lines},
};

/// One task's bytes, cut into the units of a merge; concatenated they are the task.
pub(crate) struct RawTask<'a> {
    pub(crate) heading: &'a str,
    pub(crate) keys: Vec<RawKey<'a>>,
    pub(crate) rest: &'a str,
}

/// A key's lines, with preceding blank lines.
pub(crate) struct RawKey<'a> {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) raw: &'a str,
}

/// Splits the bytes of one task. A text without a heading becomes the rest.
pub(crate) fn raw_task(text: &str) -> RawTask<'_> {
    let document = Document::split(text);
    let Some(part) = document.sections().next() else {
        return RawTask { heading: "", keys: Vec::new(), rest: text };
    };
    let task = read_task(&document, part, &mut Vec::new());
    let mut at = part.body_start;
    let mut keys = Vec::new();
    for key in task.keys {
        let raw = slice(text, at..key.range.end);
        at = key.range.end;
        keys.push(RawKey { name: key.name.to_lowercase(), value: key.value, raw });
    }
    RawTask { heading: slice(text, 0..part.body_start), keys, rest: slice(text, at..text.len()) }
}

/// Parses one section as a task.
pub(super) fn read_task(document: &Document<'_>, part: &Part, problems: &mut Vec<Problem>) -> Task {
    let mut keys: Vec<Key> = Vec::new();
    let mut keys_end = part.body_start;
    for item in &part.items {
        let gap = document.slice(&(keys_end..item.start));
        let Some(key) = is_blank(gap).then(|| read_key(document, item)).flatten() else {
            break;
        };
        if keys.iter().any(|other| other.name.eq_ignore_ascii_case(&key.name)) {
            let what = format!("`{}` is given twice; the first one counts", key.name);
            problems.push(Problem::new(key.line, what));
        }
        keys_end = key.range.end;
        keys.push(key);
    }
    let mut task = Task {
        title: part.title.clone(),
        line: part.line,
        keys,
        touched: None,
        missed: Missed::default(),
        body: body_text(document.slice(&(keys_end..part.range.end))),
        range: part.range.clone(),
        keys_end,
    };
    if let Some(touched) = task.find_key("touched") {
        let day = touched.value.split_whitespace().next().and_then(|day| day.parse().ok());
        if day.is_none() {
            let what = format!("`touched: {}` isn't a date; write it as 2026-11-20", touched.value);
            problems.push(Problem::new(touched.line, what));
        }
        task.touched = day;
    }
    if let Some(missed) = task.find_key("missed") {
        let policy = Missed::parse(&missed.value);
        if policy.is_none() {
            let what = format!(
                "`missed: {}` isn't `run`, `skip` or `tell`; it counts as `{}`",
                missed.value,
                Missed::default().name()
            );
            problems.push(Problem::new(missed.line, what));
        }
        task.missed = policy.unwrap_or_default();
    }
    task
}

fn body_text(raw: &str) -> String {
    let end = raw.trim_end().len();
    let first = raw.len() - raw.trim_start().len();
    slice(raw, line_start(raw, first.min(end))..end).to_owned()
}

/// Parses a bullet item as a key, if it has that shape.
fn read_key(document: &Document<'_>, item: &Range<usize>) -> Option<Key> {
    let raw = document.slice(item);
    let first = split_lines(raw).next()?;
    let marked = first.trim_start();
    let name_and_value = marked.strip_prefix(['-', '*', '+'])?.trim_start();
    let (name, value) = name_and_value.split_once(':')?;
    if !is_key(name) || !(value.is_empty() || value.starts_with(char::is_whitespace)) {
        return None;
    }
    let value_start =
        first.len() - value.trim_start().len().max(value.len() - value.trim_end_matches(['\n', '\r']).len());
    let (shown, _) = split_comment(slice(first, value_start..first.len()));
    let mut value_end = value_start + shown.len();
    let mut words = vec![shown.to_owned()];
    let (mut end, mut continues) = (first.len(), split_comment(first).1.is_none());
    for line in split_lines(raw).skip(1).take_while(|line| is_blank(line) || line.starts_with([' ', '\t'])) {
        let text = line.trim();
        continues &= !is_blank(line) && escape_start(text) == text;
        if continues {
            let (shown, comment) = split_comment(line);
            value_end = end + shown.len();
            continues = comment.is_none();
            words.push(shown.trim_start().to_owned());
        }
        end += line.len();
    }
    let kept = slice(raw, 0..end).trim_end_matches([' ', '\t', '\n', '\r']).len();
    let end = kept + split_lines(slice(raw, kept..end)).next().map_or(0, str::len);
    Some(Key {
        name: name.to_owned(),
        value: words.join(" ").trim().to_owned(),
        line: document.line_number(item.start),
        range: item.start..item.start + end,
        value_range: item.start + value_start..item.start + value_end,
    })
}

/// Returns whether an item has the shape of a key, regardless of its place.
pub(super) fn is_key_item(document: &Document<'_>, item: &Range<usize>) -> bool {
    read_key(document, item).is_some()
}

/// Returns whether a word can be a key.
pub(super) fn is_key(name: &str) -> bool {
    name.len() <= MAX_KEY_CHARS
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}
