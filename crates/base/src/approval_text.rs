//! The text of an approval question: complete, with hidden and reordering characters written out.
//!
//! Chat message, attached file and terminal show the same text and the same hash, so that the person knows which bytes they
//! approve. Does no I/O.

use std::borrow::Cow;

use crate::{random::format_hex, types::BoundFiles};

mod described;

pub use described::{Described, QuestionPart, WishPiece, describe_action, render_inline_code};

/// The tool that proposes a change of the standing orders.
pub const PROPOSE_CHANGE: &str = "propose_change";
/// The number of unchanged lines that a diff shows before and after a change.
const CONTEXT_LINES: usize = 3;

/// The detail in which the files of an action are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileDetail {
    /// Path and text.
    Text,
    /// Path, text, size and hash.
    TextAndDigest,
}

/// Lists the files that an action names or runs, with their full text where possible. `line` formats one line.
fn render_file_lines(bound: &BoundFiles, detail: FileDetail, line: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for file in &bound.files {
        let path = escape_hidden(&file.path.to_string_lossy()).replace('`', "'");
        let verb = if file.is_run { "It runs" } else { "It names" };
        let digest = if detail == FileDetail::TextAndDigest {
            format!(", {} bytes with the SHA-256 {}", file.bytes, file.sha256)
        } else {
            String::new()
        };
        text.push_str(&format!("\n{verb} {}{digest}", line(&path)));
        match &file.text {
            Some(content) => {
                text.push_str(":\n");
                let shown = escape_hidden(content);
                text.extend(
                    shown
                        .lines()
                        .map(|shown| format!("{}\n", if shown.is_empty() { String::new() } else { line(shown) })),
                );
            }
            None => text.push_str(&format!(" ({} bytes), which can't be shown here.\n", file.bytes)),
        }
    }
    if bound.beside.is_some() {
        text.push_str("The files that it loads from my scratch folder must not change before you allow it.\n");
    }
    text
}

/// Lists the files of an action as Markdown with wrapping lines.
pub fn render_files(bound: &BoundFiles) -> String {
    render_file_lines(bound, FileDetail::Text, render_inline_code)
}

/// Lists the files of an action as plain text.
pub fn render_files_plain(bound: &BoundFiles) -> String {
    render_file_lines(bound, FileDetail::Text, |line| format!("    {line}"))
}

/// Renders edits as a diff; `None` if an edit has keys besides `path`, `old` and `new`, which the person must see.
fn render_edits(edits: &serde_json::Value) -> Option<String> {
    let mut text = Vec::new();
    for edit in edits.as_array()? {
        let edit = edit.as_object()?;
        let (path, new) = (edit.get("path")?.as_str()?, edit.get("new")?.as_str()?);
        let old = match edit.get("old") {
            None | Some(serde_json::Value::Null) => "",
            Some(old) => old.as_str()?,
        };
        if edit.keys().any(|key| !["path", "old", "new"].contains(&key.as_str())) {
            return None;
        }
        text.push(format!("{} {path}", if old.is_empty() { "+++" } else { "***" }));
        text.extend(changed_lines(old, new));
    }
    Some(text.join("\n"))
}

/// Renders the removed lines with `-` and the added lines with `+`, within their context.
fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let left = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(left).take_while(|(one, other)| one == other).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let marked = |mark: &'static str, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    };
    let above = old.get(before.saturating_sub(CONTEXT_LINES)..before).unwrap_or_default();
    let below = old.get(old_end..(old_end + CONTEXT_LINES).min(old.len())).unwrap_or_default();
    [
        marked("  ", above),
        marked("- ", old.get(before..old_end).unwrap_or_default()),
        marked("+ ", new.get(before..new_end).unwrap_or_default()),
        marked("  ", below),
    ]
    .concat()
}

/// Renders a code block whose fence can't occur in the text.
pub fn render_code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

/// Writes out each character that a screen hides or that reorders others.
pub fn escape_hidden(text: &str) -> String {
    // fault: screen-doesnt-show-asked
    text.chars().flat_map(|c| if is_hidden(c) { c.escape_unicode().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// Returns true for control characters except newline and tab, for zero-width, joining and reordering characters (Unicode's `Cf` and
/// the variation selectors, as far as in use), and for unusual spaces.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}'
        | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' => true,
        '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Returns true if a hidden character is normal after `before`: a space, or a joiner of letters or emoji.
fn is_normal_hidden(before: char, c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{202f}' | '\u{3000}')
        || matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0f}') && !before.is_ascii()
}

/// Pairs each character of a text with a flag: true if it is hidden and ordinary words don't need it.
fn flag_misplaced(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    text.chars().scan(' ', |before, c| {
        let is_misplaced = is_hidden(c) && !is_normal_hidden(*before, c);
        *before = c;
        Some((c, is_misplaced))
    })
}

/// Returns true if a text has hidden characters that ordinary words don't need.
pub fn has_misplaced_hidden(text: &str) -> bool {
    flag_misplaced(text).any(|(_, is_misplaced)| is_misplaced)
}

/// Removes hidden characters that ordinary words don't need; unusual spaces become plain ones.
pub fn remove_hidden(text: &str) -> Cow<'_, str> {
    if !has_misplaced_hidden(text) {
        return Cow::Borrowed(text);
    }
    let kept = flag_misplaced(text).filter_map(|(c, is_misplaced)| match is_misplaced {
        true => c.is_whitespace().then_some(' '),
        false => Some(c),
    });
    Cow::Owned(kept.collect())
}

/// The SHA-256 of an action: of exactly the bytes that an approval allows.
pub fn hash_action(action: &str) -> String {
    format_hex(ring::digest::digest(&ring::digest::SHA256, action.as_bytes()).as_ref())
}

/// Renders the file that is attached to question `id` when the action or its files don't fit in a message.
pub fn render_question_file(
    id: i64,
    (tool, arguments): (&str, &str),
    bound: &BoundFiles,
    reasons: &[String],
) -> String {
    let described = describe_action(tool, arguments);
    let files = render_file_lines(bound, FileDetail::TextAndDigest, |line| format!("    {line}"));
    let files_clause = if bound.is_empty() { "" } else { ", and the files that it names as they are above" };
    format!(
        "Question {id}: {}\n\n{}{files}\nWhy I ask: {}\n\nA yes allows exactly {} bytes, once{files_clause}. Their SHA-256 is\n{}\nAbove, they \
         are made readable: characters that a screen would hide or reorder are spelled out, as in \\u{{200b}}. On my machine,\n  wake \
         approvals bytes {id} | sha256sum\nprints the same number (on a Mac: shasum -a 256).\n",
        described.plain_sentence(),
        // fault: long-actions-file-hides
        described.render_plain(),
        escape_hidden(&reasons.join(" ")),
        // fault end: long-actions-file-hides
        arguments.len(),
        // fault: hash-how-action-shown
        hash_action(arguments),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_characters_that_a_screen_hides_except_those_that_words_need() {
        let smuggled: String = "hi".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        let hidden = format!("a\u{2061}b{smuggled}c\u{202e}d\u{200d}e\u{2028}f\u{2003}g\0h");
        assert_eq!(remove_hidden(&hidden), "abcde f gh");
        let seen = "می‌خواهم 👩‍🚀 ❤️ naïve\u{a0}! 日本語\u{3000}x\n\ty";
        assert_eq!(remove_hidden(seen), seen);
        assert!(has_misplaced_hidden(&hidden) && !has_misplaced_hidden(seen));
    }

    #[test]
    fn hidden_characters_of_an_action_are_written_out() {
        for (hidden, written) in [
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("a\u{1b}[2Kb", "a\\u{1b}[2Kb"),
            ("a\rb", "a\\u{d}b"),
            ("a\u{e0041}b", "a\\u{e0041}b"),
            ("a\u{a0}b", "a\\u{a0}b"),
        ] {
            let asked = serde_json::json!({ "command": hidden }).to_string();
            for text in [
                describe_action("shell", &asked).render_wrapped(),
                render_question_file(1, ("shell", &asked), &BoundFiles::default(), &[format!("Why {hidden}")]),
            ] {
                assert!(text.contains(written) && !text.contains(hidden), "{written}: {text}");
            }
        }
        let line = describe_action("bash", &serde_json::json!({"command": "a ``b`"}).to_string()).render_wrapped();
        assert_eq!(line, "``` a ``b` ```\n");
    }

    #[test]
    fn edits_are_shown_as_removed_and_added_lines() {
        let edits = serde_json::json!({"title": "Be brief", "edits": [
            {"path": "claude.md", "old": "# Style\nBe kind.\nBe long.\nEnd.", "new": "# Style\nBe kind.\nBe brief.\nTwo lines.\nEnd."},
            {"path": "skills/x/SKILL.md", "new": "---\nname: x\n---"},
        ]});
        insta::assert_snapshot!(describe_action("propose_change", &edits.to_string()).render_wrapped(), @r"
        `*** claude.md`
        `   # Style `
        `   Be kind. `
        `- Be long.`
        `+ Be brief.`
        `+ Two lines.`
        `   End. `
        `+++ skills/x/SKILL.md`
        `+ ---`
        `+ name: x`
        `+ ---`
        ");
        // An unknown field of an edit is shown too.
        let odd = serde_json::json!({"edits": [{"path": "a", "new": "b", "also": "c"}]}).to_string();
        assert!(describe_action("propose_change", &odd).render_plain().contains("also"));
        // Arguments of another tool are shown unchanged.
        assert!(describe_action("mcp__x__edit", &edits.to_string()).render_plain().contains("\"old\":"));
        assert_eq!(changed_lines("a\na", "a"), ["  a", "- a"]);
        assert_eq!(changed_lines("a", "a\na"), ["  a", "+ a"]);
    }

    #[test]
    fn an_action_that_isnt_an_object_is_shown_unchanged() {
        let described = describe_action("x", "[1,2");
        assert_eq!(
            (described.sentence(), described.render_plain()),
            ("May I use `x` with this?".to_owned(), "    [1,2\n".to_owned())
        );
    }

    #[test]
    fn the_hash_covers_the_bytes_of_the_action_rather_than_the_shown_text() {
        assert_eq!(hash_action("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let (one, other) = (r#"{"command":"ls"}"#, r#"{ "command":"ls"}"#);
        assert_eq!(describe_action("shell", one), describe_action("shell", other));
        let attached = |action: &str| render_question_file(3, ("shell", action), &BoundFiles::default(), &[]);
        assert!(attached(one).contains(&hash_action(one)) && !attached(other).contains(&hash_action(one)));
        assert!(attached(one).contains("wake approvals bytes 3 | sha256sum"));
    }
}
