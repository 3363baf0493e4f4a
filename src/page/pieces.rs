//! Small parts that several views are made of.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{error::PageError, site::PageDesk};
use crate::{clock::rfc3339, memory::changes::ChangedLine, provenance::ProvenanceError, words};

/// Changed lines that are shown of one document.
const MAX_CHANGED_LINES: usize = 300;

/// A person's hand that wasn't let.
impl From<ProvenanceError> for PageError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Repo(error) => Self::Repo(error),
            error => Self::Refused(error.to_string()),
        }
    }
}

/// A time on the person's wall, with the day when it isn't today.
pub(super) fn time(desk: &PageDesk<'_>, at: DateTime<Utc>) -> Markup {
    html! { time datetime=(rfc3339(at)) { (words::when(at, desk.now, desk.config.timezone)) } }
}

/// A path of the page with what is asked of it.
pub(super) fn address(path: &str, asked: &[(&str, &str)]) -> String {
    let asked: Vec<String> = asked.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
    if asked.is_empty() { path.to_owned() } else { format!("{path}?{}", asked.join("&")) }
}

/// A text as a part of an address.
pub(super) fn percent(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The way to what a wake did.
pub(super) fn wake_link(wake_id: &str, text: &str) -> Markup {
    html! { a href={ "/wakes/" (percent(wake_id)) } { (text) } }
}

/// That others may have written some of it.
pub(super) fn of_others(taint: Option<&str>) -> Markup {
    html! {
        span .badge.warn { "others had a word in it" }
        @if let Some(taint) = taint { span .meta { " " (taint) } }
    }
}

/// What happened to what the person has just done.
pub(super) fn done(text: &Markup) -> Markup {
    html! { p .note.ok role="status" { (text) } }
}

/// The lines that came and went, with their sections.
pub(super) fn changed_lines(desk: &PageDesk<'_>, lines: &[ChangedLine]) -> Markup {
    let shown = lines.get(..MAX_CHANGED_LINES).unwrap_or(lines);
    let mut section: Option<&str> = None;
    html! {
        @if lines.is_empty() {
            p .meta { "No line differs but in blanks or notes of origin." }
        } @else {
            div .scroll tabindex="0" role="region" aria-label="Changed lines" {
                pre .diff {
                    @for line in shown {
                        @if section.replace(&line.section) != Some(&line.section) && !line.section.is_empty() {
                            span .at { (desk.shown(&line.section)) } "\n"
                        }
                        @if line.is_added {
                            ins .add { "+ " (desk.shown(&line.text)) }
                        } @else {
                            del .del { "- " (desk.shown(&line.text)) }
                        }
                        "\n"
                    }
                }
            }
            @if shown.len() < lines.len() {
                p .meta { (words::count(lines.len() - shown.len(), "line")) " more." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_any_text() {
        assert_eq!(
            address("/memory/file", &[("path", "memory/Müll &#?.md"), ("a", "b")]),
            "/memory/file?path=memory%2FM%C3%BCll%20%26%23%3F.md&a=b"
        );
        assert_eq!(address("/memory", &[]), "/memory");
    }
}
