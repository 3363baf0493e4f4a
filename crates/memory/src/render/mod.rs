//! Markdown, as models write it, made into messages that Telegram takes: values in, values out.
//!
//! The Markdown is read once into plain text with spans of formatting over it (`styled`). The text is cut into parts where
//! a reader would pause (`split`). Each part's HTML is written from the spans that reach into it. A part carries its text without formatting too, so that an answer arrives even when Telegram refuses the formatting.

mod addresses;
mod blocks;
mod split;
mod styled;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod wrap;
mod writer;

use std::ops::Range;

use styled::Styled;
pub use terminal::{Looks, terminal, without_escapes};
pub use wrap::wrapped;

/// The longest message that Telegram takes, in UTF-16 code units of what a reader sees.
pub const MESSAGE_UNITS_MAX: usize = 4096;

/// The longest text under a file that Telegram takes, in the same units.
pub const CAPTION_UNITS_MAX: usize = 1024;

/// What [`beginning`] adds below.
const IN_FILE: &str = "… The whole answer is in the file.";

/// What [`with_repeat_mark`] adds below a part.
const REPEAT_MARK: &str = "↻ This may be a repeat: the first try wasn't confirmed.";

/// What [`with_topic_mark`] adds below a part.
const TOPIC_MARK: &str = "↪ Its topic is closed or gone.";

/// The longest part in UTF-16 code units: every part keeps room for both marks, and two line breaks before each.
const PART_UNITS_MAX: usize = MESSAGE_UNITS_MAX - MARKS_UNITS;

/// That room.
const MARKS_UNITS: usize = 96;

/// One message's worth of rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPart {
    /// Telegram HTML: balanced, only tags that Telegram knows, at most [`MESSAGE_UNITS_MAX`] units once parsed.
    pub html: String,
    /// The same text without formatting, at most [`MESSAGE_UNITS_MAX`] units; links' addresses stand behind their
    /// labels where there is room.
    pub plain: String,
}

/// How links are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// As links, for the schemes that Telegram opens: http, https, tg, mailto. Others as [`Links::AsText`].
    Clickable,
    /// As `label (address)`, addresses as code, bare ones too, so that no client makes links of them: the reader sees where
    /// each leads. In [`RenderedPart::plain`], which has no code, their points are raised.
    AsText,
}

/// Renders Markdown with clickable links. Nothing comes of empty or white text.
pub fn render(markdown: &str) -> Vec<RenderedPart> {
    render_with(markdown, Links::Clickable)
}

/// Renders Markdown, showing its links as asked. Any input renders; what isn't known as Markdown is shown as it stands.
pub fn render_with(markdown: &str, links: Links) -> Vec<RenderedPart> {
    let styled = read(markdown, links);
    split::parts(&styled, PART_UNITS_MAX)
        .into_iter()
        .map(|cut| RenderedPart { html: styled.html(&cut), plain: plain(&styled, &cut, links, PART_UNITS_MAX) })
        .collect()
}

/// The beginning of a long text, to stand under a file that has all of it; none where nothing would be seen.
pub fn beginning(markdown: &str, links: Links) -> Option<RenderedPart> {
    let styled = read(markdown, links);
    let units_max = CAPTION_UNITS_MAX - MARKS_UNITS - split::units(IN_FILE) - 2;
    let cut = split::parts(&styled, units_max).into_iter().next()?;
    let (html, plain) = (styled.html(&cut), plain(&styled, &cut, links, units_max));
    Some(RenderedPart { html: format!("{html}\n\n<i>{IN_FILE}</i>"), plain: format!("{plain}\n\n{IN_FILE}") })
}

/// The beginning of a text without formatting, to stand under a file that has all of it.
pub fn beginning_of_plain(plain: &str) -> String {
    let units_max = CAPTION_UNITS_MAX - MARKS_UNITS - split::units(IN_FILE) - 2;
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= units_max
    };
    let beginning: String = plain.chars().take_while(fits).collect();
    format!("{}\n\n{IN_FILE}", beginning.trim_end())
}

fn read(markdown: &str, links: Links) -> Styled {
    let styled = blocks::read(markdown, links);
    match links {
        Links::Clickable => styled,
        Links::AsText => addresses::as_code(styled),
    }
}

fn plain(styled: &Styled, cut: &Range<usize>, links: Links, units_max: usize) -> String {
    match links {
        Links::Clickable => {
            let with_addresses = styled.plain_with_addresses(cut);
            let fits = split::units(&with_addresses) <= units_max;
            if fits { with_addresses } else { styled.visible(cut).to_owned() }
        }
        Links::AsText => addresses::defanged(styled.visible(cut)),
    }
}

/// A short text as it is, nothing in it taken for formatting, and nothing a link: points in addresses are raised.
pub fn verbatim(text: &str) -> RenderedPart {
    // fault: step-plan-link-worked
    let text = addresses::defanged(text);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    RenderedPart { html: escaped, plain: text }
}

/// The part with a last line that says that it may be a repeat, for sending again what may have arrived. Every part
/// made here has room for it; a longer one, made elsewhere, is given back without.
pub fn with_repeat_mark(part: &RenderedPart) -> RenderedPart {
    with_mark(part, REPEAT_MARK)
}

/// As [`with_repeat_mark`], with a line that says why the part doesn't stand in its topic.
pub fn with_topic_mark(part: &RenderedPart) -> RenderedPart {
    with_mark(part, TOPIC_MARK)
}

fn with_mark(part: &RenderedPart, mark: &str) -> RenderedPart {
    let marked =
        RenderedPart { html: format!("{}\n\n<i>{mark}</i>", part.html), plain: format!("{}\n\n{mark}", part.plain) };
    let longest = split::units(&marked.plain).max(visible_units(&marked.html));
    if longest <= MESSAGE_UNITS_MAX { marked } else { part.clone() }
}

/// The length of HTML made here, as Telegram counts it: tags not at all, an entity as its one character.
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
