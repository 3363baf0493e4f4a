//! The words of a title, out of the many ways in which feeds write markup into one.

use reveille_base::words::first_bytes;

use super::markup::{CDATA, Markup, split_markup};

/// The longest text that is searched for words, in bytes.
pub(super) const MAX_SEARCHED_BYTES: usize = 20_000;
/// Elements whose text nobody sees.
const UNSEEN: [&str; 4] = ["script", "style", "head", "template"];
/// Elements that separate words, and those that stand within a word.
const BLOCKS: [&str; 15] =
    ["p", "div", "br", "hr", "li", "ul", "ol", "h1", "h2", "h3", "h4", "td", "tr", "table", "blockquote"];
const INLINE: [&str; 28] = [
    "a", "abbr", "b", "big", "cite", "code", "del", "em", "font", "i", "img", "ins", "kbd", "mark", "q", "s", "small",
    "span", "strike", "strong", "sub", "sup", "tt", "u", "wbr", "pre", "video", "iframe",
];
/// Elements that need no end tag.
const VOID: [&str; 4] = ["br", "hr", "img", "wbr"];

/// The way in which a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// As it stands.
    Plain,
    /// Plain by its format's rules, but publishers often escape it twice.
    Escaped,
    /// HTML.
    Html,
    /// One of these; nothing says which.
    Unsaid,
}

/// The words of a text, with blanks as they come.
pub(super) fn read_words(text: &str, writing: Writing) -> String {
    let text = first_bytes(text, MAX_SEARCHED_BYTES);
    // Some programs escape the mark of CDATA along with what it holds.
    let inside = text.trim().strip_prefix(CDATA.0).and_then(|text| text.strip_suffix(CDATA.1));
    let text = inside.unwrap_or(text);
    match writing {
        Writing::Plain => text.to_owned(),
        Writing::Escaped => decode_entities(text),
        Writing::Html => html_words(&split_markup(text).unwrap_or_default()),
        Writing::Unsaid if text.contains('<') => {
            let pieces = split_markup(text).unwrap_or_default();
            if is_html(&pieces) { html_words(&pieces) } else { decode_entities(text) }
        }
        Writing::Unsaid => decode_entities(text),
    }
}

/// The text with its entities decoded once. A `<` stays.
pub(super) fn decode_entities(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let texts = split_markup(&text.replace('<', "&lt;")).unwrap_or_default();
    texts.into_iter().filter_map(|piece| if let Markup::Text(text) = piece { Some(text) } else { None }).collect()
}

/// Whether an element separates the words around it.
pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// Whether tags are HTML's: `Vec<T>` and `a < b` are text.
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
