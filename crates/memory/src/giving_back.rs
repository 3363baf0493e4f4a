//! Restores lines from an older version of a document, each under its former heading.

use std::collections::HashSet;

use super::{
    DocKind,
    forgetting::SoughtWords,
    markdown::find_range,
    sections::Document,
    text::{is_blank, split_lines},
};
use crate::merge::merge_unmarked;

/// A document with restored lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredLines {
    /// The new text.
    pub text: String,
    /// The restored lines.
    pub lines: Vec<String>,
}

/// Restores the lines of `old` that contain the words and are missing from `now`; items are restored whole. The rest of `now` stays.
pub fn restore_lines(kind: DocKind, old: &str, now: &str, sought: &SoughtWords) -> RestoredLines {
    let document = Document::split(old);
    let known: HashSet<&str> = split_lines(now).map(str::trim_end).collect();
    let has = |line: &str| known.contains(line.trim_end());
    // A missing heading comes back together with its content.
    let is_lost_heading = |line: &str, start: usize| {
        let part = document.parts.get(document.parts.partition_point(|part| part.range.end <= start));
        let part = part.filter(|part| part.level > 0 && part.range.start == start);
        !has(line) && part.is_some_and(|part| sought.is_found_in(document.slice(&part.range)))
    };
    let items: Vec<_> = document.parts.iter().flat_map(|part| part.items.iter().cloned()).collect();
    let matching_items: Vec<_> =
        items.iter().filter(|item| sought.is_found_in(document.slice(item))).cloned().collect();
    let (mut base, mut restored) = (String::with_capacity(old.len()), Vec::new());
    let mut at = 0;
    for line in split_lines(old) {
        let start = at;
        at += line.len();
        if is_lost_heading(line, start) {
            continue;
        }
        let is_match = find_range(&matching_items, start).is_some()
            || find_range(&items, start).is_none() && sought.is_found_in(line);
        if is_match && !is_blank(line) && !has(line) {
            restored.push(line.trim_end().to_owned());
        } else {
            base.push_str(line);
        }
    }
    if restored.is_empty() {
        return RestoredLines { text: now.to_owned(), lines: restored };
    }
    // Compared with `base`, `old` adds exactly these lines, and the merge adds them to `now`.
    RestoredLines { text: merge_unmarked(kind, &base, now, old), lines: restored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_under_their_heading_and_all_else_stays() {
        let old = "# Facts\n\n## Home\n- the wifi code is 1234 <!-- wake 1 -->\n  twice\n- a\n\n## Work\n- b\n";
        let now = "# Facts\n\n## Home\n- a changed\n\n## Work\n- b\n- c\n";
        let given = restore_lines(DocKind::Facts, old, now, &SoughtWords::new("wifi").unwrap());
        assert_eq!(given.lines, ["- the wifi code is 1234 <!-- wake 1 -->", "  twice"]);
        let home = given.text.split("## Home").nth(1).unwrap().split("##").next().unwrap();
        assert!(home.contains("- the wifi code is 1234 <!-- wake 1 -->\n  twice\n"), "{}", given.text);
        assert!(home.contains("- a changed\n") && given.text.contains("- b\n- c\n"), "{}", given.text);
        assert!(!given.text.contains("- a\n"), "{}", given.text);
        let again = restore_lines(DocKind::Facts, old, &given.text, &SoughtWords::new("wifi").unwrap());
        assert_eq!((again.lines.len(), again.text), (0, given.text));
    }

    #[test]
    fn a_line_whose_section_is_gone_is_restored_with_its_heading() {
        let (old, now) = ("## Home\n- wifi 1234\n", "## Work\n- b\n");
        let given = restore_lines(DocKind::Facts, old, now, &SoughtWords::new("wifi").unwrap());
        assert!(given.text.contains("## Home\n- wifi 1234\n") && given.text.contains("- b\n"), "{}", given.text);
    }
}
