//! Small pieces that several views are made of. Pure.

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};

use crate::{
    words::{one_line, shortened, when},
    zone::Tz,
};

/// A text is shown open up to so many characters, and so many lines; a longer one is opened by the person.
const OPEN_CHARS: usize = 400;
const OPEN_LINES: usize = 8;
/// How much of a longer one is shown before it is opened, in characters.
const HEAD_CHARS: usize = 100;

/// A moment on the person's wall, with the day where it isn't today.
pub(super) fn moment(at: DateTime<Utc>, now: DateTime<Utc>, tz: Tz) -> Markup {
    html! { time datetime=(at.to_rfc3339_opts(SecondsFormat::Millis, true)) { (when(at, now, tz)) } }
}

/// Names whose words a text may hold besides the person's.
pub(super) fn others_in(taint: Option<&str>) -> Markup {
    html! {
        @if let Some(taint) = taint {
            span .badge .warn { "others had a word in it: " (taint) }
        }
    }
}

/// A text to the letter. A long one is closed at first, and says how it begins.
pub(super) fn exactly(what: &str, text: &str) -> Markup {
    let is_long = text.chars().count() > OPEN_CHARS || text.lines().count() > OPEN_LINES;
    html! {
        @if is_long {
            details {
                summary { (what) ": " code { (shortened(&one_line(text), HEAD_CHARS)) } }
                pre { (text) }
            }
        } @else {
            p .meta { (what) ":" }
            pre { (text) }
        }
    }
}
