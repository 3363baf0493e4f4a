//! Renders a commit's changes as HTML, file by file. Each line is marked by a sign and an element, so that colour isn't needed.

use maud::{Markup, html};

use reveille_base::approval_text::escape_hidden;

/// Files shown expanded; later ones are collapsed.
const OPEN_FILES: usize = 6;

/// The kind of a diff line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Added,
    Removed,
    Place,
    Same,
}

/// A file's part of a diff.
#[derive(Debug, PartialEq, Eq)]
struct FileDiff<'a> {
    path: &'a str,
    lines: Vec<(LineKind, &'a str)>,
}

/// Cuts `a/PATH b/PATH` in the middle: without a rename, both sides have the same name, which may hold a ` b/` itself.
fn path_of_both(paths: &str) -> &str {
    let path = paths.len().checked_sub("a/ b/".len()).and_then(|both| paths.get("a/".len()..both / 2 + "a/".len()));
    path.filter(|path| paths == format!("a/{path} b/{path}")).unwrap_or(paths)
}

/// Parses the output of `git diff`. Git's own header of a file, before the first `@@`, is left out, except the note on a binary file.
fn parse_diff(diff: &str) -> Vec<FileDiff<'_>> {
    let mut files: Vec<FileDiff<'_>> = Vec::new();
    let mut is_in_lines = false;
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            files.push(FileDiff { path: path_of_both(paths), lines: Vec::new() });
            is_in_lines = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("@@") {
            is_in_lines = true;
            file.lines.push((LineKind::Place, line));
        } else if is_in_lines {
            let kind = match line.as_bytes().first() {
                Some(b'+') => LineKind::Added,
                Some(b'-') => LineKind::Removed,
                _ => LineKind::Same,
            };
            file.lines.push((kind, line));
        } else if line.starts_with("Binary files") {
            file.lines.push((LineKind::Same, line));
        }
    }
    files
}

/// Renders the changes, each file under a third-level heading.
pub(super) fn render_changes(diff: &str) -> Markup {
    let files = parse_diff(diff);
    html! {
        @for (at, file) in files.iter().enumerate() {
            details .diff open[at < OPEN_FILES] {
                summary { h3 { (escape_hidden(file.path)) } " " span .meta { (format_counts(file)) } }
                div .scroll tabindex="0" role="group" aria-label={ "Changes of " (escape_hidden(file.path)) } {
                    pre { @for (kind, line) in &file.lines { (shown_line(*kind, line)) "\n" } }
                }
            }
        }
    }
}

fn shown_line(kind: LineKind, line: &str) -> Markup {
    let line = escape_hidden(line);
    html! {
        @match kind {
            LineKind::Added => ins { (line) },
            LineKind::Removed => del { (line) },
            LineKind::Place => span .place { (line) },
            LineKind::Same => (line),
        }
    }
}

fn format_counts(file: &FileDiff<'_>) -> String {
    let of = |kind| file.lines.iter().filter(|(this, _)| *this == kind).count();
    format!("{} added, {} removed", of(LineKind::Added), of(LineKind::Removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/memory/a.md b/memory/a.md\nindex 1..2 100644\n--- a/memory/a.md\n+++ b/memory/a.md\n@@ -1,2 +1,2 @@\n Same\n--- a rule\n+<script>\n\\ No newline at end of file\ndiff --git a/b b/b\nnew file mode 100644\nBinary files /dev/null and b/b differ\n";

    #[test]
    fn a_diff_is_read_file_by_file_and_line_by_line() {
        let found = parse_diff(DIFF);
        assert_eq!(found.iter().map(|file| file.path).collect::<Vec<_>>(), ["memory/a.md", "b"]);
        let kinds: Vec<LineKind> = found[0].lines.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [LineKind::Place, LineKind::Same, LineKind::Removed, LineKind::Added, LineKind::Same]);
        assert_eq!(format_counts(&found[0]), "1 added, 1 removed");
        assert_eq!(found[1].lines.len(), 1, "{found:?}");
        assert_eq!(parse_diff("cut off\n+x"), []);
        let odd = "diff --git a/plan b/x.md b/plan b/x.md\n--- a/plan b/x.md\n@@ -1 +1 @@\n-a\n";
        assert_eq!(parse_diff(odd)[0].path, "plan b/x.md");
    }

    #[test]
    fn lines_are_marked_by_their_sign_and_their_element() {
        let html = render_changes(DIFF).into_string();
        assert!(html.contains("<del>--- a rule</del>\n<ins>+&lt;script&gt;</ins>\n"), "{html}");
        assert!(html.contains("<h3>memory/a.md</h3>") && !html.contains("+++ b/"), "{html}");
    }
}
