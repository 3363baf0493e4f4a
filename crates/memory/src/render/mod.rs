//! Renders Markdown from models as messages accepted by Telegram, without any I/O.
//!
//! The Markdown is parsed once into plain text with formatting spans over it (`styled`). The text is cut into parts at a reader's natural
//! pauses (`split`). Each part's HTML is written from the spans that reach into it. A part also carries its unformatted text, for an answer
//! that arrives even if Telegram refuses the formatting.

mod addresses;
mod blocks;
mod rich;
mod split;
mod styled;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod wrap;
mod writer;

use std::ops::Range;

pub use rich::{RichMessage, mark_rich_repeat, render_rich};
use styled::Styled;
pub use terminal::{Looks, render_terminal, without_escapes};
pub use wrap::wrap_text;

/// The maximum length of a Telegram message, in visible UTF-16 code units.
pub const MESSAGE_UNITS_MAX: usize = 4096;

/// The maximum length of a Telegram file caption, in the same units.
pub const CAPTION_UNITS_MAX: usize = 1024;

/// The note appended by [`render_beginning`].
const WHOLE_IN_FILE: &str = "… The whole answer is in the file.";

/// The note appended by [`with_repeat_mark`].
const REPEAT_MARK: &str = "↻ This may be a repeat: the first try wasn't confirmed.";

/// The note appended by [`with_topic_mark`].
const TOPIC_MARK: &str = "↪ Its topic is closed or gone.";

/// The maximum length of a part in UTF-16 code units. Every part leaves room for [`REPEAT_MARK`] and [`TOPIC_MARK`].
const PART_UNITS_MAX: usize = MESSAGE_UNITS_MAX - MARKS_UNITS;

/// The length of both marks in UTF-16 code units, each with the two line breaks before it, rounded up.
const MARKS_UNITS: usize = 96;

/// The rendered text of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPart {
    /// Balanced HTML with only Telegram's tags, at most [`MESSAGE_UNITS_MAX`] visible units.
    pub html: String,
    /// The same text without formatting, at most [`MESSAGE_UNITS_MAX`] units. Links' addresses follow their labels if there is room.
    pub plain: String,
}

/// The rendering of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Clickable links for schemes supported by Telegram: http, https, tg, mailto. Others as [`Links::AsText`].
    Clickable,
    /// Links as `label (address)`, with all addresses as code to keep clients from linking them; the reader sees each target. In
    /// [`RenderedPart::plain`], which has no code, the dots of addresses become `·`.
    AsText,
}

/// Renders Markdown with clickable links. Returns no parts for blank text.
pub fn render(markdown: &str) -> Vec<RenderedPart> {
    render_with_links(markdown, Links::Clickable)
}

/// Renders Markdown with the chosen link style. Any input renders; unknown syntax appears as plain text.
pub fn render_with_links(markdown: &str, links: Links) -> Vec<RenderedPart> {
    let styled = style_markdown(markdown, links);
    split::cut_parts(&styled, PART_UNITS_MAX)
        .into_iter()
        .map(|cut| RenderedPart {
            html: styled.render_html(&cut),
            plain: render_plain(&styled, &cut, links, PART_UNITS_MAX),
        })
        .collect()
}

/// Renders the beginning of a long text, as the caption of a file with the whole text. `None` if nothing would be visible.
pub fn render_beginning(markdown: &str, links: Links) -> Option<RenderedPart> {
    let styled = style_markdown(markdown, links);
    // The note follows after two line breaks.
    let units_max = CAPTION_UNITS_MAX - MARKS_UNITS - split::count_units(WHOLE_IN_FILE) - 2;
    let cut = split::cut_parts(&styled, units_max).into_iter().next()?;
    let (html, plain) = (styled.render_html(&cut), render_plain(&styled, &cut, links, units_max));
    Some(RenderedPart {
        html: format!("{html}\n\n<i>{WHOLE_IN_FILE}</i>"),
        plain: format!("{plain}\n\n{WHOLE_IN_FILE}"),
    })
}

/// Returns the beginning of an unformatted text, as the caption of a file with the whole text.
pub fn render_plain_beginning(plain: &str) -> String {
    // The note follows after two line breaks.
    let units_max = CAPTION_UNITS_MAX - MARKS_UNITS - split::count_units(WHOLE_IN_FILE) - 2;
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= units_max
    };
    let beginning: String = plain.chars().take_while(fits).collect();
    format!("{}\n\n{WHOLE_IN_FILE}", beginning.trim_end())
}

fn style_markdown(markdown: &str, links: Links) -> Styled {
    let styled = blocks::parse_markdown(markdown, links);
    match links {
        Links::Clickable => styled,
        Links::AsText => addresses::as_code(styled),
    }
}

fn render_plain(styled: &Styled, cut: &Range<usize>, links: Links, units_max: usize) -> String {
    match links {
        Links::Clickable => {
            let with_addresses = styled.plain_with_addresses(cut);
            let fits = split::count_units(&with_addresses) <= units_max;
            if fits { with_addresses } else { styled.visible_text(cut).to_owned() }
        }
        Links::AsText => addresses::defang_addresses(styled.visible_text(cut)),
    }
}

/// Renders a short text verbatim, without formatting or links: the dots of addresses become `·`.
pub fn render_verbatim(text: &str) -> RenderedPart {
    // fault: step-plan-link-worked
    let text = addresses::defang_addresses(text);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    RenderedPart { html: escaped, plain: text }
}

/// Appends a note that the part may be a repeat, for resending a part that may have arrived. Every part made here has room for the note; a
/// longer part is returned unchanged.
pub fn with_repeat_mark(part: &RenderedPart) -> RenderedPart {
    with_mark(part, REPEAT_MARK)
}

/// Appends a note that the part's topic is closed or gone, like [`with_repeat_mark`].
pub fn with_topic_mark(part: &RenderedPart) -> RenderedPart {
    with_mark(part, TOPIC_MARK)
}

fn with_mark(part: &RenderedPart, mark: &str) -> RenderedPart {
    let marked =
        RenderedPart { html: format!("{}\n\n<i>{mark}</i>", part.html), plain: format!("{}\n\n{mark}", part.plain) };
    let longest = split::count_units(&marked.plain).max(visible_units(&marked.html));
    if longest <= MESSAGE_UNITS_MAX { marked } else { part.clone() }
}

/// Returns the length of HTML made here as Telegram counts it: no tags, and each entity as a single character.
pub fn visible_units(html: &str) -> usize {
    let mut units = 0;
    let mut hidden_until = None;
    for c in html.chars() {
        match (hidden_until, c) {
            (Some(end), c) if c == end => {
                units += usize::from(end == ';');
                hidden_until = None;
            }
            (Some(_), _) => {}
            (None, '<') => hidden_until = Some('>'),
            (None, '&') => hidden_until = Some(';'),
            (None, c) => units += c.len_utf16(),
        }
    }
    units
}
