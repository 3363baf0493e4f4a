//! The differences between two versions of a document, by line and by section, for people.

use imara_diff::{Algorithm, Diff, InternedInput};

use super::{
    sections::Document,
    text::{is_blank, split_comment, split_lines},
};

/// A line present in only one of the two versions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangedLine {
    /// The heading above the line; empty above the first heading.
    pub section: String,
    /// Whether the line was added rather than removed.
    pub is_added: bool,
    /// The line number in the version that has the line, counted from 1.
    pub line: usize,
    /// The text without the origin comment at its end.
    pub text: String,
}

/// Returns the differing lines of two texts, verbatim: whether each was added, and its text. Ignores blank lines.
pub fn diff_lines<'a>(old: &'a str, new: &'a str) -> Vec<(bool, &'a str)> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (split_lines(old).map(str::trim_end).collect(), split_lines(new).map(str::trim_end).collect());
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut found = Vec::new();
    for hunk in Diff::compute(Algorithm::Histogram, &input).hunks() {
        let gone = before.get(hunk.before.start as usize..hunk.before.end as usize).unwrap_or_default();
        let come = after.get(hunk.after.start as usize..hunk.after.end as usize).unwrap_or_default();
        found.extend(gone.iter().map(|line| (false, *line)).chain(come.iter().map(|line| (true, *line))));
    }
    found.retain(|(_, line)| !is_blank(line));
    found
}

/// The place of a change with its surroundings, for orientation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePlace<'a> {
    /// The first changed line, counted from 1 in the old text.
    pub line: usize,
    /// The last non-blank line before the change.
    pub above: Option<&'a str>,
    /// The first non-blank line after the change.
    pub below: Option<&'a str>,
}

/// Returns the places where two texts differ, in order.
pub fn find_change_places<'a>(old: &'a str, new: &'a str) -> Vec<ChangePlace<'a>> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (split_lines(old).map(str::trim_end).collect(), split_lines(new).map(str::trim_end).collect());
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let is_shown = |line: &&&str| !is_blank(line);
    Diff::compute(Algorithm::Histogram, &input)
        .hunks()
        .map(|hunk| {
            let (begin, end) = (hunk.before.start as usize, hunk.before.end as usize);
            let above = before.get(..begin).unwrap_or_default().iter().rfind(is_shown).copied();
            let below = before.get(end..).unwrap_or_default().iter().find(is_shown).copied();
            ChangePlace { line: begin + 1, above, below }
        })
        .collect()
}

/// Returns the differing lines in order, each removal before its replacement. Ignores blank lines.
pub fn list_changed_lines(old: &str, new: &str) -> Vec<ChangedLine> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (split_lines(old).map(str::trim_end).collect(), split_lines(new).map(str::trim_end).collect());
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let (was, is) = (Sections::parse(old), Sections::parse(new));
    let mut found = Vec::new();
    for hunk in Diff::compute(Algorithm::Histogram, &input).hunks() {
        let gone = (hunk.before.start..hunk.before.end).map(|at| (false, at as usize, &before, &was));
        let come = (hunk.after.start..hunk.after.end).map(|at| (true, at as usize, &after, &is));
        for (is_added, at, lines, sections) in gone.chain(come) {
            let text = lines.get(at).copied().unwrap_or_default();
            if !is_blank(text) {
                let (text, line) = (split_comment(text).0.to_owned(), at + 1);
                found.push(ChangedLine { section: sections.find_title(line).to_owned(), is_added, line, text });
            }
        }
    }
    found
}

/// The first line and the title of each section.
struct Sections(Vec<(usize, String)>);

impl Sections {
    fn parse(text: &str) -> Self {
        Self(Document::split(text).parts.iter().map(|part| (part.line, part.title.clone())).collect())
    }

    fn find_title(&self, line: usize) -> &str {
        self.0.iter().rev().find(|(first, _)| *first <= line).map_or("", |(_, title)| title)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    #[test]
    fn a_change_is_told_with_its_section_and_without_its_origin() {
        let old = "# Facts\n\n## Home\n- a <!-- wake 1 -->\n- b\n\n## Work\n- c\n";
        let new =
            "# Facts\n\n## Home\n- a <!-- wake 1 -->\n- d <!-- wake 2 message 7 -->\n\n## Work\n- c\n\n## New\n- e\n";
        let told: Vec<_> = list_changed_lines(old, new)
            .into_iter()
            .map(|line| {
                format!("{}:{}{} {}", line.section, if line.is_added { "+" } else { "-" }, line.line, line.text)
            })
            .collect();
        assert_eq!(told, ["Home:-5 - b", "Home:+5 - d", "New:+10 ## New", "New:+11 - e"]);
        assert_eq!(list_changed_lines(old, old), []);
    }

    proptest! {
        #[test]
        fn what_is_told_accounts_for_every_line(old in document(), new in document()) {
            let count = |text: &str| split_lines(text).filter(|line| !is_blank(line)).count() as isize;
            let told = list_changed_lines(&old, &new);
            let came = told.iter().filter(|line| line.is_added).count() as isize;
            prop_assert_eq!(count(&new) - count(&old), came - (told.len() as isize - came));
        }
    }

    #[test]
    fn a_change_is_placed_by_the_lines_around_it() {
        let (old, new) = ("# A\n\none\ntwo\n\nthree\n", "# A\n\none\n2\n\nthree\nfour\n");
        let place = |line, above, below| ChangePlace { line, above, below };
        assert_eq!(find_change_places(old, new), [place(4, Some("one"), Some("three")), place(7, Some("three"), None)]);
        assert_eq!(find_change_places("", "new\n"), [place(1, None, None)]);
        assert_eq!(find_change_places(old, old), []);
    }
}
