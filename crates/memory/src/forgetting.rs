//! Removes given words from a document: every passage with them goes, and nothing else changes.
//!
//! A list item is removed whole, with its further lines, and so is a task with the words in its title. Of other text, the lines with the
//! words go, or the whole paragraph if the words span a line break. A heading with the words keeps its place with [`FORGOTTEN`] as its
//! title, because the text below still belongs there.

use std::ops::Range;

use reveille_base::words;

use super::{
    DocKind,
    markdown::find_range,
    sections::{Document, Part},
    text::{is_blank, slice, split_lines},
};

/// The mask that replaces forgotten words.
pub const FORGOTTEN: &str = "[forgotten]";
/// The minimum number of characters to search for, without white space: fewer match everywhere.
pub const MIN_CHARS: usize = 3;

/// Words to search for, ignoring case and the kind of white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtWords(String);

impl SoughtWords {
    /// Folds the words for searching. `None` if they are too short to search for.
    pub fn new(words: &str) -> Option<Self> {
        let folded = fold_line(words);
        (folded.chars().filter(|c| !c.is_whitespace()).count() >= MIN_CHARS).then_some(Self(folded))
    }

    /// Returns whether a text contains the words.
    pub fn is_found_in(&self, text: &str) -> bool {
        fold_line(text).contains(&self.0)
    }

    /// Returns the text with every occurrence replaced by [`FORGOTTEN`]. `None` if there is no occurrence.
    pub fn mask(&self, text: &str) -> Option<String> {
        if !self.is_found_in(text) {
            return None;
        }
        // The source bytes of each character of the folded text; a run of white space is one character.
        let mut letters: Vec<(char, Range<usize>)> = Vec::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            let end = at + c.len_utf8();
            match letters.last_mut() {
                Some((' ', range)) if c.is_whitespace() => range.end = end,
                _ if c.is_whitespace() => letters.push((' ', at..end)),
                _ => letters.extend(c.to_lowercase().map(|lower| (lower, at..end))),
            }
        }
        let sought: Vec<char> = self.0.chars().collect();
        let (mut masked, mut kept_from, mut at) = (String::with_capacity(text.len()), 0, 0);
        while let Some(found) = letters.get(at..at + sought.len()) {
            let (Some((_, first)), Some((_, last))) = (found.first(), found.last()) else { break };
            if first.start >= kept_from && found.iter().map(|(letter, _)| letter).eq(&sought) {
                masked.push_str(slice(text, kept_from..first.start));
                masked.push_str(FORGOTTEN);
                kept_from = last.end;
                at += sought.len();
            } else {
                at += 1;
            }
        }
        masked.push_str(slice(text, kept_from..text.len()));
        Some(masked)
    }

    /// Returns whether a JSON text contains the words in any of its strings, including nested JSON and HTML-escaped strings. Invalid JSON
    /// is searched as plain text.
    pub fn are_in_json(&self, json: &str) -> bool {
        match serde_json::from_str::<serde_json::Value>(json) {
            Ok(value) => self.are_in_value(&value),
            Err(_) => self.is_found_in(json),
        }
    }

    fn are_in_value(&self, value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::String(text) => {
                let is_json = text.starts_with(['{', '[']);
                let is_escaped = text.contains('&');
                self.is_found_in(text)
                    || is_json && self.are_in_json(text)
                    || is_escaped
                        && self.is_found_in(&text.replace("&lt;", "<").replace("&quot;", "\"").replace("&amp;", "&"))
            }
            serde_json::Value::Array(items) => items.iter().any(|item| self.are_in_value(item)),
            serde_json::Value::Object(fields) => {
                fields.iter().any(|(name, value)| self.is_found_in(name) || self.are_in_value(value))
            }
            _ => false,
        }
    }
}

fn fold_line(text: &str) -> String {
    words::one_line(text).to_lowercase()
}

/// A document after the words were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutWords {
    /// The new text.
    pub text: String,
    /// The removed or changed lines with their numbers in the old text, counted from 1.
    pub lines: Vec<(usize, String)>,
}

/// Removes the words. `None` if the document doesn't contain them.
pub fn remove_words(kind: DocKind, text: &str, sought: &SoughtWords) -> Option<WithoutWords> {
    if !sought.is_found_in(text) {
        return None;
    }
    let document = Document::split(text);
    let mut gone: Vec<Range<usize>> = Vec::new();
    for part in &document.parts {
        if kind == DocKind::Tasks && part.level == 2 && sought.is_found_in(&part.title) {
            gone.push(part.range.clone());
            continue;
        }
        gone.extend(part.items.iter().filter(|item| sought.is_found_in(document.slice(item))).cloned());
        gone.extend(find_passages(&document, part, sought));
    }
    gone.sort_by_key(|range| range.start);
    let (mut new, mut taken) = (String::with_capacity(text.len()), Vec::new());
    let mut at = 0;
    for (nth, line) in (1..).zip(split_lines(text)) {
        let range = at..at + line.len();
        at = range.end;
        if find_range(&gone, range.start).is_some_and(|gone| range.end <= gone.end) {
            taken.push((nth, line.trim_end().to_owned()));
        } else if document.is_heading(&range) && sought.is_found_in(line) {
            taken.push((nth, line.trim_end().to_owned()));
            let marks: String = line.chars().take_while(|c| matches!(c, '#' | ' ' | '\u{feff}')).collect();
            let end = slice(line, line.trim_end().len()..line.len());
            new.push_str(&format!("{}{FORGOTTEN}{end}", if marks.ends_with(' ') { marks } else { marks + " " }));
        } else {
            new.push_str(line);
        }
    }
    taken.retain(|(_, line)| !is_blank(line));
    Some(WithoutWords { text: new, lines: taken })
}

/// Returns the passages of a part outside its items: lines with the words, and paragraphs with the words across a line break.
fn find_passages(document: &Document<'_>, part: &Part, sought: &SoughtWords) -> Vec<Range<usize>> {
    let (mut found, mut paragraph) = (Vec::new(), Vec::<Range<usize>>::new());
    let mut settle = |paragraph: &mut Vec<Range<usize>>| {
        let (Some(first), Some(last)) = (paragraph.first(), paragraph.last()) else { return };
        let whole = first.start..last.end;
        if sought.is_found_in(document.slice(&whole)) {
            let before = found.len();
            found.extend(paragraph.iter().filter(|line| sought.is_found_in(document.slice(line))).cloned());
            if found.len() == before {
                found.push(whole);
            }
        }
        paragraph.clear();
    };
    let mut at = part.body_start;
    for line in split_lines(document.slice(&(part.body_start..part.range.end))) {
        let range = at..at + line.len();
        at = range.end;
        let is_item = find_range(&part.items, range.start).is_some();
        if is_item || is_blank(line) || document.is_heading(&range) {
            settle(&mut paragraph);
        } else {
            paragraph.push(range);
        }
    }
    settle(&mut paragraph);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    fn gone(kind: DocKind, text: &str, words: &str) -> (String, Vec<usize>) {
        let without = remove_words(kind, text, &SoughtWords::new(words).unwrap()).unwrap();
        (without.text, without.lines.iter().map(|(line, _)| *line).collect())
    }

    #[test]
    fn a_fact_goes_whole_and_its_neighbours_keep_every_byte() {
        let text = "# Facts\n\n## Home\n- the WiFi  code is 1234 <!-- wake 1 -->\n  and more\n- other\r\n\n## Wifi code\n- x\n";
        let (new, lines) = gone(DocKind::Facts, text, "wifi code");
        assert_eq!(new, "# Facts\n\n## Home\n- other\r\n\n## [forgotten]\n- x\n");
        assert_eq!(lines, [4, 5, 8]);
    }

    #[test]
    fn masked_words_leave_every_other_byte() {
        let masked = |text: &str| SoughtWords::new("WiFi code").unwrap().mask(text);
        assert_eq!(masked("the wifi \n CODE is\r\nWiFi code!").unwrap(), "the [forgotten] is\r\n[forgotten]!");
        assert_eq!(masked("wifi codes İ").unwrap(), "[forgotten]s İ");
        assert_eq!(masked("wifi"), None);
    }

    #[test]
    fn a_task_that_is_called_so_goes_whole_and_of_another_only_its_lines() {
        let text =
            "# Active\n\n## Buy the ring\n- status: active\n\nnotes\n\n## Party\n- next: show the ring\n\nplain\n";
        assert_eq!(
            gone(DocKind::Tasks, text, "the ring"),
            ("# Active\n\n## Party\n\nplain\n".to_owned(), vec![3, 4, 6, 9])
        );
    }

    #[test]
    fn only_headings_of_markdown_keep_their_place() {
        let text = "\u{feff}### The secret\n```\n# the secret of this\nrun\n```\n";
        let (new, lines) = gone(DocKind::Text, text, "the secret");
        assert_eq!((new.as_str(), lines), ("\u{feff}### [forgotten]\n```\nrun\n```\n", vec![1, 3]));
    }

    #[test]
    fn of_text_the_lines_go_and_a_paragraph_where_the_words_run_over_a_lines_end() {
        let text = "one\nthe secret is here\nthree\n\nfour the\nsecret five\n\nsix\n";
        assert_eq!(gone(DocKind::Text, text, "The Secret"), ("one\nthree\n\n\nsix\n".to_owned(), vec![2, 5, 6]));
        assert_eq!(remove_words(DocKind::Text, text, &SoughtWords::new("nothing like it").unwrap()), None);
    }

    #[test]
    fn words_are_found_in_json_however_deep() {
        let sought = SoughtWords::new("a \"b\" <c>\nd").unwrap();
        let inner = serde_json::json!({"text": "x a \"b\" &lt;c>\n d"}).to_string();
        let outer = serde_json::json!({"raw": [inner, 7]}).to_string();
        assert!(sought.are_in_json(&outer) && sought.are_in_json("no json: A \"B\" <C> D"));
        assert!(!sought.are_in_json(r#"{"raw":"a b c d"}"#));
        assert_eq!((SoughtWords::new(" a b "), SoughtWords::new("")), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_forgotten_is_gone_and_other_lines_stay(text in document(), canary in "[a-z]{12}", at in 0..24_usize) {
            prop_assume!(!text.contains(&canary));
            let mut all: Vec<&str> = split_lines(&text).collect();
            let fact = format!("- {canary} is so\n");
            all.insert(at.min(all.len()), &fact);
            let with = all.concat();
            for kind in [DocKind::Facts, DocKind::Tasks, DocKind::Log, DocKind::Text] {
                let sought = SoughtWords::new(&canary).unwrap();
                let found = remove_words(kind, &with, &sought).unwrap();
                prop_assert!(!sought.is_found_in(&found.text), "{:?}", found.text);
                prop_assert!(with.len() >= found.text.len());
            }
        }
    }
}
