//! The search results for a wake's reasons, in its opening: facts, log entries, old messages. Pure; `run/recall` runs the search.

use chrono::NaiveDate;

use crate::decide::{
    brief::text::{clip, escape, escape_attribute},
    tokens::TokenRate,
};

/// The maximum size of all results, in tokens.
const RECALLED_TOKENS: u64 = 4_000;
/// The maximum length of each result, in characters.
const MAX_CHARS: usize = 1_200;

/// A search result for a wake's reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recollection {
    /// The document's path in the repository, or `messages/<id>` or `answers/<id>`.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The text.
    pub text: String,
    /// The heading above it.
    pub heading: String,
    /// The speaker.
    pub speaker: String,
    /// The date.
    pub date: Option<NaiveDate>,
    /// The wake that wrote it, and the message behind it.
    pub origin: (Option<String>, Option<i64>),
    /// True if it may contain untrusted text.
    pub is_of_others: bool,
}

/// Renders the results that fit, best first. `is_shown` identifies those shown elsewhere. `None` if no result remains.
pub(super) fn render_recollections(
    found: &[Recollection],
    rate: &TokenRate,
    is_shown: impl Fn(&str) -> bool,
) -> Option<String> {
    let mut room = rate.count_fitting_bytes(RECALLED_TOKENS);
    let mut text = String::from("<recalled note=\"what fits, the best first; look_up finds more\">");
    let mut is_empty = true;
    for one in found.iter().filter(|one| !is_shown(&one.path)) {
        let element = render_recollection(one);
        if element.len() > room {
            break;
        }
        room -= element.len();
        is_empty = false;
        text.push_str(&element);
    }
    text.push_str("\n</recalled>");
    (!is_empty).then_some(text)
}

fn render_recollection(one: &Recollection) -> String {
    let is_said = one.origin.1.is_some_and(|id| one.path.ends_with(&format!("/{id}")));
    let at = if is_said { one.path.clone() } else { format!("{}:{}", one.path, one.line) };
    let mut text = format!("\n<found at=\"{}\"", escape_attribute(&at));
    if let Some(date) = one.date {
        text.push_str(&format!(" date=\"{date}\""));
    }
    if one.is_of_others {
        // Speaker and heading are withheld too, because they may be untrusted text.
        let length = one.text.chars().count();
        let reads = if is_said { "read_exchange" } else { "look_up" };
        return text
            + &format!(" withheld=\"{length} characters, which may contain untrusted text; {reads} shows them\"/>");
    }
    let (wake, message) = &one.origin;
    let message = message.filter(|_| !is_said).map(|id| id.to_string());
    let named = [
        ("by", Some(&one.speaker)),
        ("under", Some(&one.heading)),
        ("wake", wake.as_ref()),
        ("message", message.as_ref()),
    ];
    for (name, value) in named {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.push_str(&format!(" {name}=\"{}\"", escape_attribute(value)));
        }
    }
    text + &format!(">\n{}\n</found>", escape(&clip(one.text.trim(), MAX_CHARS)))
}
