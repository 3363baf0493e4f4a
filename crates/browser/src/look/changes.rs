//! What is different between two looks.

use imara_diff::{Algorithm, Diff, InternedInput};

/// The differences between two lists of lines; `None` if so much changed that the whole is better.
pub(crate) fn describe_changes(before: &[String], after: &[String]) -> Option<Vec<String>> {
    // Each line ends alike, so that the last one compares equal elsewhere.
    let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (old, new) = (join(before), join(after));
    let input = InternedInput::new(old.as_str(), new.as_str());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let mut changes = Vec::new();
    for hunk in diff.hunks() {
        let range = |range: std::ops::Range<u32>| range.start as usize..range.end as usize;
        let removed = before.get(range(hunk.before.clone())).unwrap_or_default();
        let added = after.get(range(hunk.after.clone())).unwrap_or_default();
        let added_references: Vec<&str> = added.iter().filter_map(|line| reference_of(line)).collect();
        // A changed line of the same element is shown once, as it is now.
        let is_changed = |line: &&String| reference_of(line).is_some_and(|it| added_references.contains(&it));
        let removed_references: Vec<&str> = removed.iter().filter_map(|line| reference_of(line)).collect();
        changes.extend(removed.iter().filter(|line| !is_changed(line)).map(|line| format!("- {}", line.trim_start())));
        for line in added {
            let sign = if reference_of(line).is_some_and(|it| removed_references.contains(&it)) { '~' } else { '+' };
            changes.push(format!("{sign} {}", line.trim_start()));
        }
    }
    let length = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    (length(&changes) * 10 <= length(after).max(400) * 7).then_some(changes)
}

fn reference_of(line: &str) -> Option<&str> {
    Some(line.trim_start().strip_prefix('[')?.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn changes_are_lines_added_removed_and_changed() {
        let before = lines("# Shop\n[r1] button \"Buy\"\n [r2] textbox \"Name\"\nold text\nend");
        let after = lines("# Shop\n[r1] button \"Buy\" disabled\n [r2] textbox \"Name\"\nend\n[r3] link \"More\"");
        let changes = describe_changes(&before, &after).unwrap();
        assert_eq!(changes, ["~ [r1] button \"Buy\" disabled", "- old text", "+ [r3] link \"More\""]);
        assert_eq!(describe_changes(&after, &after), Some(Vec::new()));
    }

    #[test]
    fn another_page_is_shown_whole() {
        let many = |word: &str| (0..50).map(|n| format!("{word} line {n} with some text")).collect::<Vec<_>>();
        assert_eq!(describe_changes(&many("a"), &many("b")), None);
    }
}
