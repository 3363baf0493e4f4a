//! Small pieces shared by several views. Pure.

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use maud::{Markup, html};

use reveille_account::provenance::ProvenanceError;
use reveille_base::{
    approval_text::escape_hidden,
    words::{format_count, format_spoken_day, format_spoken_time, one_line, truncate_text},
    zone::Tz,
};
use reveille_memory::changes::ChangedLine;
use reveille_store::names_others;

use super::{error::PageError, site::PageContext};

/// Maximum characters and lines of a text that is shown expanded.
const OPEN_CHARS: usize = 400;
const OPEN_LINES: usize = 8;
/// Characters shown of a collapsed text.
const HEAD_CHARS: usize = 100;

/// Maximum changed lines shown of a document.
const MAX_CHANGED_LINES: usize = 300;

/// Renders a moment as people say it. Its exact local time is the title.
pub(super) fn render_moment(at: DateTime<Utc>, now: DateTime<Utc>, tz: Tz) -> Markup {
    let exact = at.with_timezone(&tz).format("%A %-d %B %Y, %H:%M:%S").to_string();
    html! {
        time datetime=(at.to_rfc3339_opts(SecondsFormat::Millis, true)) title=(exact) { (format_spoken_time(at, now, tz)) }
    }
}

/// Renders a day as people say it. Its weekday and date are the title.
pub(super) fn render_day(day: NaiveDate, today: NaiveDate) -> Markup {
    html! { time datetime=(day) title=(day.format("%A %-d %B %Y")) { (format_spoken_day(day, today)) } }
}

/// Cleans a text for display. Invisible characters are spelled out first, so that none is lost.
pub(super) fn escape_and_clean(desk: &PageContext<'_>, text: &str) -> String {
    desk.clean_text(&escape_hidden(text))
}

/// Names the other authors of a text, if any.
pub(super) fn render_taint_badge(taint: Option<&str>) -> Markup {
    html! {
        @if let Some(taint) = taint.filter(|taint| names_others(taint)) {
            span .badge .warn { "involves untrusted text: " (taint) }
        }
    }
}

/// Marks a text as possibly written by others.
pub(super) fn render_untrusted_badge() -> Markup {
    html! { span .badge .warn { "involves untrusted text" } }
}

/// Renders a text exactly; a long one is collapsed, with its beginning as the title.
pub(super) fn render_exact(what: &str, text: &str) -> Markup {
    let is_long = text.chars().count() > OPEN_CHARS || text.lines().count() > OPEN_LINES;
    html! {
        @if is_long {
            details {
                summary { (what) ": " code { (truncate_text(&one_line(text), HEAD_CHARS)) } }
                pre { (text) }
            }
        } @else {
            p .meta { (what) ":" }
            pre { (text) }
        }
    }
}

/// A refused change by the person.
impl From<ProvenanceError> for PageError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Repo(error) => Self::Repo(error),
            error => Self::Refused(error.to_string()),
        }
    }
}

/// Renders a moment in the person's time zone.
pub(super) fn render_time(desk: &PageContext<'_>, at: DateTime<Utc>) -> Markup {
    render_moment(at, desk.now, desk.config.timezone)
}

/// Builds an address with a query.
pub(super) fn build_address(path: &str, asked: &[(&str, &str)]) -> String {
    let asked: Vec<String> = asked.iter().map(|(name, value)| format!("{name}={}", encode_percent(value))).collect();
    if asked.is_empty() { path.to_owned() } else { format!("{path}?{}", asked.join("&")) }
}

/// Percent-encodes a text.
pub(super) fn encode_percent(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Links to a wake's page.
pub(super) fn wake_link(wake_id: &str, text: &str) -> Markup {
    html! { a href={ "/wakes/" (encode_percent(wake_id)) } { (text) } }
}

/// Renders the outcome of the person's last action.
pub(super) fn render_outcome(text: &Markup) -> Markup {
    html! { p .note.ok role="status" { (text) } }
}

/// Renders added and removed lines with their sections.
pub(super) fn changed_lines(desk: &PageContext<'_>, lines: &[ChangedLine]) -> Markup {
    let shown = lines.get(..MAX_CHANGED_LINES).unwrap_or(lines);
    let mut section: Option<&str> = None;
    html! {
        @if lines.is_empty() {
            p .meta { "Nothing changed except spaces or notes of origin." }
        } @else {
            div .scroll tabindex="0" role="region" aria-label="Changed lines" {
                pre .diff {
                    @for line in shown {
                        @if section.replace(&line.section) != Some(&line.section) && !line.section.is_empty() {
                            span .at { (desk.clean_text(&escape_hidden(&line.section))) } "\n"
                        }
                        @if line.is_added {
                            ins .add { "+ " (desk.clean_text(&escape_hidden(&line.text))) }
                        } @else {
                            del .del { "- " (desk.clean_text(&escape_hidden(&line.text))) }
                        }
                        "\n"
                    }
                }
            }
            @if shown.len() < lines.len() {
                p .meta { (format_count(lines.len() - shown.len(), "line")) " more." }
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
            build_address("/memory/file", &[("path", "memory/Müll &#?.md"), ("a", "b")]),
            "/memory/file?path=memory%2FM%C3%BCll%20%26%23%3F.md&a=b"
        );
        assert_eq!(build_address("/memory", &[]), "/memory");
    }
}
