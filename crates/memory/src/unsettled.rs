//! Conflicts left to the person: their own differing edits in two places, and facts that contradict each other. Both versions stay in the
//! text, each line marked with its conflict and version, until the person deletes one. A version without its counterpart is settled, and
//! its mark is ignored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    Problem,
    text::{split_comment, split_lines},
};

const BEGIN: &str = "<!-- unsettled ";
const END: &str = " -->";

/// The version that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// The first place's version.
    A,
    /// The other place's version.
    B,
    /// A version whose counterpart was deleted in the other place.
    Alone,
    /// A line that contradicts an unmarked line of the person.
    Disputed,
    /// One of two contradicting facts; its counterpart has the same version.
    Doubted,
}

impl Version {
    const ALL: [Self; 5] = [Self::A, Self::B, Self::Alone, Self::Disputed, Self::Doubted];

    fn describe(self) -> &'static str {
        match self {
            Self::A => "version A of two",
            Self::B => "version B of two",
            Self::Alone => "changed here, deleted elsewhere",
            Self::Disputed => "contradicts what you wrote",
            Self::Doubted => "contradicts another fact",
        }
    }
}

/// A mark: the conflict's number, and the version.
pub(super) type Mark = (usize, Version);

/// An open conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// The number shared by all its marks.
    pub number: usize,
    /// The lines of both versions, counted from 1.
    pub lines: Vec<usize>,
    /// The text of these lines.
    pub text: String,
}

impl Unsettled {
    /// Returns whether this is a contradiction between facts, settled by a question, rather than a merge of two edits.
    pub fn is_contradiction(&self) -> bool {
        [Version::Disputed, Version::Doubted].iter().any(|version| self.text.contains(version.describe()))
    }

    /// Returns the message for the person, with the way to settle the conflict.
    pub fn problem(&self) -> Problem {
        let first = self.lines.first().copied().unwrap_or_default();
        Problem::new(
            first,
            format!("not settled: {}; delete the wrong line, or the mark of the right one", self.describe_line(first)),
        )
    }

    /// Describes the conflict from the point of view of one of its lines.
    pub fn describe_line(&self, line: usize) -> String {
        let others: Vec<String> = self.lines.iter().filter(|other| **other != line).map(usize::to_string).collect();
        match others.as_slice() {
            [] if self.text.contains(Version::Disputed.describe()) => "it contradicts what you wrote".to_owned(),
            [] => "changed in one place and deleted in another".to_owned(),
            [other] => format!("line {other} contradicts it"),
            others => format!("changed in two places, and lines {} contradict it", others.join(", ")),
        }
    }
}

/// Returns the open conflicts of a text, in order.
pub fn find_conflicts(text: &str) -> Vec<Unsettled> {
    let mut found: BTreeMap<usize, (BTreeSet<Version>, Unsettled)> = BTreeMap::new();
    for (at, line) in split_lines(text).enumerate() {
        if let Some((_, (number, version))) = find_mark(line) {
            let empty = || (BTreeSet::new(), Unsettled { number, lines: Vec::new(), text: String::new() });
            let (versions, conflict) = found.entry(number).or_insert_with(empty);
            versions.insert(version);
            conflict.lines.push(at + 1);
            conflict.text.push_str(line);
        }
    }
    let is_open = |versions: &BTreeSet<Version>, lines: usize| {
        versions.contains(&Version::Alone)
            || versions.contains(&Version::Disputed)
            || versions.contains(&Version::Doubted) && lines > 1
            || versions.contains(&Version::A) && versions.contains(&Version::B)
    };
    let open = found.into_values().filter(|(versions, conflict)| is_open(versions, conflict.lines.len()));
    let mut open: Vec<Unsettled> = open.map(|(_, conflict)| conflict).collect();
    open.sort_by_key(|conflict| conflict.lines.first().copied());
    open
}

/// Returns the first number above all marks in these texts.
pub(super) fn next_number(texts: &[&str]) -> usize {
    let numbers = texts.iter().flat_map(|text| split_lines(text)).filter_map(|line| Some(find_mark(line)?.1.0));
    numbers.max().unwrap_or_default().saturating_add(1)
}

/// Adds a mark to the unit's last non-blank line, before the origin comment.
pub(super) fn add_mark(unit: &str, (number, version): Mark) -> String {
    let body = remove_marks(unit);
    let end = body.trim_end().len();
    let (kept, blank) = body.split_at_checked(end).unwrap_or((&body, ""));
    let start = kept.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let (before, last) = kept.split_at_checked(start).unwrap_or(("", kept));
    let (text, comment) = split_comment(last);
    let origin = comment.map(|_| last.get(text.len()..).unwrap_or_default().trim()).unwrap_or_default();
    let mark = format!("{BEGIN}{number}: {}{END}", version.describe());
    let shown = [text, &mark, origin].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    format!("{before}{shown}{blank}")
}

/// Removes all marks from a text.
pub(super) fn remove_marks(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    while let Some((range, _)) = find_mark(&text) {
        let (before, after) = (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
        text = Cow::Owned(format!("{}{after}", before.trim_end_matches(' ')));
    }
    text
}

fn find_mark(line: &str) -> Option<(Range<usize>, Mark)> {
    line.match_indices(BEGIN).find_map(|(start, _)| {
        let rest = line.get(start + BEGIN.len()..)?;
        let (inside, _) = rest.split_once(END)?;
        let (number, words) = inside.split_once(": ")?;
        let version = Version::ALL.into_iter().find(|version| version.describe() == words)?;
        Some((start..start + BEGIN.len() + inside.len() + END.len(), (number.parse().ok()?, version)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(unit: &str, version: Version) -> String {
        add_mark(unit, (3, version))
    }

    #[test]
    fn a_mark_precedes_the_origin_and_can_be_removed() {
        let a = mark("- tea <!-- wake 1 message 2 -->\n", Version::A);
        assert_eq!(a, "- tea <!-- unsettled 3: version A of two --> <!-- wake 1 message 2 -->\n");
        assert_eq!(remove_marks(&a), "- tea <!-- wake 1 message 2 -->\n");
        let b = mark("- green\n  tea\r\n", Version::B);
        assert_eq!(b, "- green\n  tea <!-- unsettled 3: version B of two -->\r\n");
        assert_eq!(remove_marks(&b), "- green\n  tea\r\n");
        assert_eq!(mark(&b, Version::B), b);
        assert_eq!(next_number(&["x", &b]), 4);
        assert_eq!(next_number(&["- x <!-- unsettled 7: by nobody -->"]), 1);
    }

    #[test]
    fn only_versions_with_a_counterpart_are_conflicts() {
        let (a, b, alone) = ("- a\n", "- b\n", "- c\n");
        let [a, b] = [mark(a, Version::A), mark(b, Version::B)];
        let lines = |text: &str| find_conflicts(text).into_iter().map(|conflict| conflict.lines).collect::<Vec<_>>();
        assert_eq!(lines(&format!("- x\n{a}{b}")), [[2, 3]]);
        assert_eq!(lines(&format!("{a}- x\n{a}")), Vec::<Vec<usize>>::new());
        assert_eq!(lines(&format!("{a}{}", add_mark("- b\n", (4, Version::B)))), Vec::<Vec<usize>>::new());
        assert_eq!(lines(&mark(alone, Version::Alone)), [[1]]);
        let [one, other] = ["- d\n", "- e\n"].map(|line| mark(line, Version::Doubted));
        assert_eq!(lines(&format!("{one}- x\n{other}")), [[1, 3]]);
        assert_eq!(lines(&one), Vec::<Vec<usize>>::new());
        let found = |text: &str| find_conflicts(text).iter().map(Unsettled::is_contradiction).collect::<Vec<_>>();
        assert_eq!((found(&format!("{one}{other}")), found(&format!("{a}{b}"))), (vec![true], vec![false]));
    }
}
