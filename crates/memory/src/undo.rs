//! Undoes a wake's changes in a document, and keeps later changes.
//!
//! Undo is a reversed merge by section: the base is the state after the wake, one side is the present state, and the other is the state
//! before the wake. If both differ from the base, the present state wins.

use std::collections::BTreeMap;

use super::{
    DocKind, merge,
    sections::Document,
    text::{is_blank, split_lines},
};

/// A document without a wake's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverted {
    /// The text; `None` if the file should not exist.
    pub text: Option<String>,
    /// The titles of sections blocked by a later edit; empty for text above the first heading and for the whole file.
    pub contested: Vec<String>,
}

/// Undoes the change from `before` to `after` in a document that now reads `now`. `None` stands for a missing file.
pub fn revert(kind: DocKind, after: Option<&str>, before: Option<&str>, now: Option<&str>) -> Reverted {
    if now == after {
        return Reverted { text: before.map(str::to_owned), contested: Vec::new() };
    }
    let Some(now) = now else {
        // The file was deleted since. If the wake created it, the undo is already complete.
        let contested = before.map(|_| String::new()).into_iter().collect();
        return Reverted { text: None, contested };
    };
    let (after, was) = (after.unwrap_or_default(), before.unwrap_or_default());
    let text = merge::merge_unmarked(kind, after, now, was);
    let contested = find_contested_sections(after, was, now, &text);
    let is_gone = before.is_none() && text.lines().all(is_blank);
    Reverted { text: (!is_gone).then_some(text), contested }
}

/// Returns the sections changed by the wake that a later edit kept from being restored.
fn find_contested_sections(after: &str, before: &str, now: &str, text: &str) -> Vec<String> {
    let [after, before, now, text] = [after, before, now, text].map(collect_sections);
    let mut titles = Vec::new();
    for title in before.keys().chain(after.keys().filter(|title| !before.contains_key(*title))) {
        let of = |sections: &Sections<'_>| sections.get(title).cloned().unwrap_or_default();
        let (after, before, now, text) = (of(&after), of(&before), of(&now), of(&text));
        let minus = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|line| !those.contains(line)).cloned().collect()
        };
        let (added, taken_out) = (minus(&after, &before), minus(&before, &after));
        let is_rewritten =
            added.iter().any(|line| !now.contains(line)) && !minus(&minus(&now, &after), &before).is_empty();
        let is_not_back = taken_out.iter().any(|line| !text.contains(line));
        let is_left = added.iter().any(|line| text.contains(line));
        if is_rewritten || is_not_back || is_left {
            titles.push(title.clone());
        }
    }
    titles
}

type Sections<'a> = BTreeMap<String, Vec<String>>;

/// Returns the non-blank lines by heading.
fn collect_sections(text: &str) -> Sections<'_> {
    let document = Document::split(text);
    let mut sections = Sections::new();
    for part in &document.parts {
        let own = split_lines(document.slice(&(part.body_start..part.range.end)))
            .map(|line| line.trim_end().to_owned())
            .filter(|line| !is_blank(line));
        sections.entry(part.title.clone()).or_default().extend(own);
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocKind::{Facts, Tasks, Text};

    fn text(kind: DocKind, after: &str, before: &str, now: &str) -> (String, Vec<String>) {
        let reverted = revert(kind, Some(after), Some(before), Some(now));
        (reverted.text.unwrap(), reverted.contested)
    }

    #[test]
    fn without_later_edits_it_is_as_it_was() {
        assert_eq!(text(Facts, "## A\n- x\n", "## A\n", "## A\n- x\n"), ("## A\n".to_owned(), vec![]));
        let made = revert(Text, Some("x\n"), None, Some("x\n"));
        assert_eq!(made, Reverted { text: None, contested: vec![] });
        let gone = revert(Text, None, Some("x\n"), None);
        assert_eq!(gone, Reverted { text: Some("x\n".to_owned()), contested: vec![] });
    }

    #[test]
    fn later_edits_stay() {
        let (before, after) = ("## A\n- x\n\n## B\n- y\n", "## A\n- x\n- wake\n\n## B\n- y\n");
        let (reverted, contested) = text(Facts, after, before, "## A\n- x\n- wake\n- later\n\n## B\n- y\n- too\n");
        assert_eq!((reverted.as_str(), contested), ("## A\n- x\n- later\n\n## B\n- y\n- too\n", vec![]));
    }

    #[test]
    fn of_a_section_that_the_wake_began_what_was_added_since_stays() {
        let (before, after) = ("# Memory\n", "# Memory\n\n## Notes\n- x\n");
        assert_eq!(
            text(Facts, after, before, "# Memory\n\n## Notes\n- x\n- later\n"),
            ("# Memory\n\n## Notes\n- later\n".to_owned(), vec![])
        );
        let begun = "# Tasks\n\n## Report\n- status: active\n";
        let (now, told) = text(Tasks, begun, "# Tasks\n", "# Tasks\n\n## Report\n- status: done\n");
        assert_eq!((now.as_str(), told), ("# Tasks\n\n## Report\n- status: done\n", vec!["Report".to_owned()]));
    }

    #[test]
    fn where_the_same_was_changed_again_that_stays_and_is_told() {
        let (before, after) = ("## A\n- status: active\n", "## A\n- status: done\n");
        let now = "## A\n- status: waiting\n";
        assert_eq!(text(Tasks, after, before, now), (now.to_owned(), vec!["A".to_owned()]));
        let (before, after) = ("## A\n- x\n", "## A\n- x\n- tea is green\n");
        let now = "## A\n- x\n- tea is black\n";
        assert_eq!(text(Facts, after, before, now), (now.to_owned(), vec!["A".to_owned()]));
        // Nothing of the wake is left there: that it was deleted is what was wanted.
        assert_eq!(text(Facts, after, before, before), (before.to_owned(), vec![]));
        let now = "rewritten by a later wake\n";
        assert_eq!(text(Text, "by the wake\n", "as it was\n", now), (now.to_owned(), vec![String::new()]));
    }

    #[test]
    fn a_section_that_was_deleted_since_stays_so() {
        let (before, after) = ("## A\n- x\n\n## B\n- y\n", "## A\n- z\n\n## B\n- y\n");
        assert_eq!(text(Facts, after, before, "## B\n- y\n"), ("## B\n- y\n".to_owned(), vec!["A".to_owned()]));
        let deleted = revert(Text, Some("b\n"), Some("a\n"), None);
        assert_eq!(deleted, Reverted { text: None, contested: vec![String::new()] });
        let made = revert(Text, Some("b\n"), None, Some("b\nmore\n"));
        assert_eq!(made, Reverted { text: Some("more\n".to_owned()), contested: vec![] });
    }
}
