//! Extraction of a title's words from the various markup in feeds.

use reveille_base::words::first_bytes;

use super::markup::{CDATA, Markup, split_markup};

/// Maximum bytes of text searched for words.
pub(super) const MAX_SEARCHED_BYTES: usize = 20_000;
/// Elements with invisible text.
const UNSEEN: [&str; 4] = ["script", "style", "head", "template"];
/// Elements that separate words, and elements within words.
const BLOCKS: [&str; 15] =
    ["p", "div", "br", "hr", "li", "ul", "ol", "h1", "h2", "h3", "h4", "td", "tr", "table", "blockquote"];
const INLINE: [&str; 28] = [
    "a", "abbr", "b", "big", "cite", "code", "del", "em", "font", "i", "img", "ins", "kbd", "mark", "q", "s", "small",
    "span", "strike", "strong", "sub", "sup", "tt", "u", "wbr", "pre", "video", "iframe",
];
/// Elements without an end tag.
const VOID: [&str; 4] = ["br", "hr", "img", "wbr"];

/// The markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFormat {
    /// Plain text.
    Plain,
    /// Plain text by the format's rules, though publishers often escape it twice.
    Escaped,
    /// HTML.
    Html,
    /// Undeclared: any of these.
    Undeclared,
}

/// Extracts the words of a text, with its white space unchanged.
pub(super) fn extract_words(text: &str, format: TextFormat) -> String {
    let text = first_bytes(text, MAX_SEARCHED_BYTES);
    // Some programs escape the CDATA mark along with its content.
    let inside = text.trim().strip_prefix(CDATA.0).and_then(|text| text.strip_suffix(CDATA.1));
    let text = inside.unwrap_or(text);
    match format {
        TextFormat::Plain => text.to_owned(),
        TextFormat::Escaped => decode_entities(text),
        TextFormat::Html => html_words(&split_markup(text).unwrap_or_default()),
        TextFormat::Undeclared if text.contains('<') => {
            let pieces = split_markup(text).unwrap_or_default();
            if is_html(&pieces) { html_words(&pieces) } else { decode_entities(text) }
        }
        TextFormat::Undeclared => decode_entities(text),
    }
}

/// Decodes the entities of a text once. A `<` is text here, not markup.
pub(super) fn decode_entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let texts = split_markup(&text.replace('<', "&lt;")).unwrap_or_default();
    texts.into_iter().filter_map(|piece| if let Markup::Text(text) = piece { Some(text) } else { None }).collect()
}

/// Returns true if an element separates words.
pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// Returns true if the tags are HTML. `Vec<T>` and `a < b` are text.
fn is_html(pieces: &[Markup]) -> bool {
    let is_known = |name: &str| [&BLOCKS[..], &INLINE, &UNSEEN].iter().any(|known| known.contains(&name));
    pieces.iter().any(|piece| match piece {
        Markup::Close(name) => is_known(name),
        Markup::Open(name, attributes) => VOID.contains(&&**name) || is_known(name) && !attributes.is_empty(),
        Markup::Text(_) | Markup::Doctype(_) => false,
    })
}

fn html_words(pieces: &[Markup]) -> String {
    let (mut words, mut unseen) = (String::new(), None);
    for piece in pieces {
        match piece {
            Markup::Open(name, _) if unseen.is_none() && UNSEEN.contains(&&**name) => unseen = Some(name),
            Markup::Close(name) if unseen == Some(name) => unseen = None,
            Markup::Open(name, _) | Markup::Close(name) if is_block(name) => words.push(' '),
            Markup::Text(text) if unseen.is_none() => words.push_str(text),
            _ => {}
        }
    }
    words
}
