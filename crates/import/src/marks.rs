//! ChatGPT's marks in texts, which cite a source, name a thing or show a picture. ChatGPT hides them, but elsewhere they are noise. The
//! source's URL replaces a mark if the export has it.

use serde_json::Value;

use reveille_base::words::first_bytes;

use super::stores::{find_list, find_text};

const BEGIN: char = '\u{e200}';
const END: char = '\u{e201}';
const BETWEEN: char = '\u{e202}';
/// Private characters used only by such marks.
const MARKS: std::ops::RangeInclusive<char> = '\u{e200}'..='\u{e20f}';
/// The maximum length of a mark in brackets, in bytes.
const MAX_BRACKET_BYTES: usize = 400;
/// The maximum number of sources per message.
const MAX_SOURCES: usize = 1_000;

/// A source cited in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CitedSource {
    /// The mark in the text, or its beginning.
    mark: String,
    /// The source's URLs.
    addresses: Vec<String>,
}

/// Returns the sources named in a message's metadata.
pub(super) fn find_cited_sources(metadata: &Value) -> Vec<CitedSource> {
    let mut sources = Vec::new();
    for reference in find_list(metadata, &["content_references"]) {
        let Some(mark) = reference.get("matched_text").and_then(Value::as_str) else { continue };
        let lists = ["items", "sources", "fallback_items"].map(|name| find_list(reference, &[name]));
        let mut addresses: Vec<String> = Vec::new();
        for place in std::iter::once(reference).chain(lists.into_iter().flatten()) {
            addresses.extend(find_text(place, &["url"]).filter(|url| is_address(url)).map(str::to_owned));
        }
        addresses.dedup();
        if !addresses.is_empty() && !mark.trim().is_empty() {
            sources.push(CitedSource { mark: mark.to_owned(), addresses });
        }
    }
    for citation in find_list(metadata, &["citations"]) {
        let Some(source) = citation.get("metadata") else { continue };
        let number = source.pointer("/extra/cited_message_idx").and_then(Value::as_u64);
        if let (Some(number), Some(url)) = (number, find_text(source, &["url"]).filter(|url| is_address(url))) {
            sources.push(CitedSource { mark: format!("【{number}†"), addresses: vec![url.to_owned()] });
        }
    }
    sources.truncate(MAX_SOURCES);
    sources
}

/// Returns the beginning of a text within which a bracketed mark must end.
fn bracket_window(text: &str) -> &str {
    first_bytes(text, MAX_BRACKET_BYTES)
}

fn is_address(url: &str) -> bool {
    (url.starts_with("https://") || url.starts_with("http://")) && !url.contains(char::is_whitespace)
}

/// Replaces marks with the URLs of known sources, and removes the others.
pub(super) fn replace_marks(text: &str, sources: &[CitedSource]) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, replacement) = match read_mark(rest, first, sources) {
            Some(mark) => mark,
            None => {
                plain.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            }
        };
        rest = rest.get(length..).unwrap_or_default();
        if replacement.is_empty() {
            // Also remove the blank before a deleted mark if another blank or a punctuation mark follows.
            let needs_no_blank = rest.chars().next().is_none_or(|c| c.is_whitespace() || ".,;:!?)".contains(c));
            if needs_no_blank && plain.ends_with(' ') && !plain.ends_with("\n ") {
                plain.pop();
            }
        } else {
            let has_blank = plain.is_empty() || plain.ends_with(char::is_whitespace);
            plain.push_str(if has_blank { replacement.trim_start() } else { &replacement });
        }
    }
    plain
}

/// Returns the length of the mark at the beginning of a text, and its replacement. `None` without a mark.
fn read_mark(text: &str, first: char, sources: &[CitedSource]) -> Option<(usize, String)> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| text.starts_with(beginning));
    match first {
        BEGIN => Some(read_private_mark(text, sources)),
        first if MARKS.contains(&first) => Some((first.len_utf8(), String::new())),
        '【' => {
            let inner = bracket_window(text).strip_prefix('【')?.split_once('】').map(|(inner, _)| inner)?;
            let is_numbered = inner.starts_with(|c: char| c.is_ascii_digit()) && inner.contains('†');
            let is_mark = is_numbered || inner.starts_with("oaicite:");
            let length = inner.len() + '【'.len_utf8() + '】'.len_utf8();
            is_mark.then(|| (length, format_addresses(text.get(..length).unwrap_or_default(), sources)))
        }
        ':' if begins(&[":contentReference[oaicite:"]) => {
            let near = bracket_window(text);
            let length = near.find(']')? + 1;
            let index = near.get(length..)?.strip_prefix('{').and_then(|index| index.find('}')).map_or(0, |at| at + 2);
            Some((length + index, String::new()))
        }
        '[' if begins(&["[oai_citation:", "[oai_citation_attribution:"]) => {
            let (head, _) = bracket_window(text).split_once('‡')?;
            let is_mark = !head.contains([']', '\n']);
            is_mark.then(|| (head.len() + '‡'.len_utf8(), "[".to_owned()))
        }
        // A mark that has lost its private characters, as in `citeturn0search3`.
        'c' | 'f' if begins(&["citeturn", "fileciteturn"]) => {
            let mut length = text.find("turn")?;
            while let Some(turn) = text.get(length..).and_then(measure_turn) {
                length += turn;
            }
            text.get(..length)?.ends_with(|c: char| c.is_ascii_digit()).then(|| (length, String::new()))
        }
        _ => None,
    }
}

/// Measures a source's number such as `turn0search3` at the beginning of a text, in bytes.
fn measure_turn(text: &str) -> Option<usize> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = text.strip_prefix("turn")?;
    let turn = digits(rest);
    let kind = rest.get(turn..)?.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let kind_length = rest.len() - turn - kind.len();
    let number = digits(kind);
    (turn > 0 && kind_length > 0 && number > 0).then_some("turn".len() + turn + kind_length + number)
}

/// Reads a mark between private characters, with a result like [`read_mark`]'s. An unclosed mark ends at the next white space.
fn read_private_mark(text: &str, sources: &[CitedSource]) -> (usize, String) {
    let after = text.strip_prefix(BEGIN).unwrap_or_default();
    let inner = match after.find([BEGIN, END]) {
        Some(end) if after.get(end..).is_some_and(|rest| rest.starts_with(END)) => after.get(..end).unwrap_or_default(),
        _ => {
            let word = after.split(|c: char| c.is_whitespace() || c == BEGIN).next().unwrap_or_default();
            return (BEGIN.len_utf8() + word.len(), String::new());
        }
    };
    let length = BEGIN.len_utf8() + inner.len() + END.len_utf8();
    let mut values = inner.split(BETWEEN);
    let kind = values.next().unwrap_or_default();
    let replacement = match (kind, values.next()) {
        // The entity is a JSON list of its kind, its name and a number.
        ("entity", Some(entity)) => {
            let entity: Value = serde_json::from_str(entity).unwrap_or_default();
            entity.get(1).and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        ("url" | "link", Some(label)) => {
            let addresses = format_addresses(text.get(..length).unwrap_or_default(), sources);
            format!("{label}{addresses}")
        }
        _ => format_addresses(text.get(..length).unwrap_or_default(), sources),
    };
    (length, replacement)
}

/// Returns ` (https://…)` for a mark with a known source.
fn format_addresses(mark: &str, sources: &[CitedSource]) -> String {
    let cited = sources
        .iter()
        .find(|source| source.mark == mark)
        .or_else(|| sources.iter().find(|source| source.mark.ends_with('†') && mark.starts_with(&source.mark)));
    cited.map(|source| format!(" ({})", source.addresses.join(", "))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_removed_or_replaced_by_addresses() {
        let metadata = json!({
            "content_references": [
                {"matched_text": "\u{e200}cite\u{e202}turn0search1\u{e201}", "items": [{"url": "https://example.org/a"}, {"url": "https://example.org/b"}]},
                {"matched_text": "\u{e200}cite\u{e202}turn0search2\u{e201}", "items": [{"url": "javascript:alert(1)"}, {"url": null}]},
                {"matched_text": " ", "url": "https://example.org/footnote"},
                {"matched_text": null}, 7, null,
            ],
            "citations": [{"metadata": {"url": "https://example.org/twelve", "extra": {"cited_message_idx": 12}}}, {"metadata": null}],
        });
        let sources = find_cited_sources(&metadata);
        for (name, text, expected) in [
            ("no marks", "Plain. 【日本】 a【1】", "Plain. 【日本】 a【1】"),
            ("without a source", "Rye \u{e200}cite\u{e202}turn0search0\u{e202}turn0news4\u{e201}.", "Rye."),
            (
                "with its addresses",
                "Rye\u{e200}cite\u{e202}turn0search1\u{e201}.",
                "Rye (https://example.org/a, https://example.org/b).",
            ),
            (
                "with its addresses, after a blank",
                "Rye \u{e200}cite\u{e202}turn0search1\u{e201}.",
                "Rye (https://example.org/a, https://example.org/b).",
            ),
            ("an invalid address", "Rye\u{e200}cite\u{e202}turn0search2\u{e201} x", "Rye x"),
            ("a file", "Rye \u{e200}filecite\u{e202}turn0file0\u{e202}L1-L2\u{e201}", "Rye"),
            ("a name", "By \u{e200}entity\u{e202}[\"people\", \"Ann Lee\", 0]\u{e201}, 1999", "By Ann Lee, 1999"),
            ("an unreadable name", "By \u{e200}entity\u{e202}{broken\u{e201}, 1999", "By, 1999"),
            ("a label", "See \u{e200}url\u{e202}the page\u{e202}turn0search9\u{e201}.", "See the page."),
            ("pictures", "\u{e200}image_group\u{e202}{\"query\": [\"a cat\"]}\u{e201}\nCats", "\nCats"),
            ("emphasis", "a \u{e203}b\u{e204} c", "a b c"),
            ("never closed", "a \u{e200}cite\u{e202}turn0search0 and more", "a and more"),
            ("one within another", "a \u{e200}cite\u{e202}x\u{e200}cite\u{e202}y\u{e201} b", "a b"),
            ("a number", "Rye【3†source】.", "Rye."),
            ("a number with its address", "Rye【12†L3-L9】.", "Rye (https://example.org/twelve)."),
            ("a file's number", "Rye【4:2†flour.pdf】 x", "Rye x"),
            ("an older one", "Rye :contentReference[oaicite:0]{index=0}.", "Rye."),
            ("one in brackets", "Rye【oaicite:1】", "Rye"),
            (
                "a link",
                "Rye ([oai_citation:0‡example.org](https://example.org))",
                "Rye ([example.org](https://example.org))",
            ),
            (
                "without its private characters",
                "Rye citeturn0search3turn1news12 x, citeturned, cite",
                "Rye x, citeturned, cite",
            ),
        ] {
            assert_eq!(replace_marks(text, &sources), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn plain_text_stays_unchanged_and_no_mark_is_left(text in "[a-z 【】†:\\[\\]{}0-9\u{e200}-\u{e204}]{0,60}", plain in "[a-z .\\n]{0,40}") {
            let bare = replace_marks(&text, &[]);
            prop_assert!(!bare.contains(|c| MARKS.contains(&c)), "{}", bare);
            let kept = replace_marks(&format!("{plain}|"), &[]);
            prop_assert_eq!(kept, format!("{plain}|"));
        }
    }
}
