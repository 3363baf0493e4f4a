//! Markup as a flat list of tags and text, parsed like in browsers: no input is an error.
//!
//! html5ever's tokenizer without its tree builder. It accepts undefined prefixes, bare ampersands, unquoted attributes
//! and control characters, decodes HTML's named entities, and expands no entities of the document. Names are in lower
//! case.

use std::{
    borrow::Cow,
    cell::RefCell,
    time::{Duration, Instant},
};

use html5ever::{
    Attribute, LocalName,
    buffer_queue::BufferQueue,
    tendril::StrTendril,
    tokenizer::{TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts},
};

use reveille_base::words::first_bytes;

/// Bytes given to the tokenizer between two checks of the limits.
const PIECE_BYTES: usize = 1_024;
/// Maximum number of tags and texts in a document.
const MAX_PIECES: usize = 300_000;
/// Maximum time to tokenize a document. A document of 2 MB takes a twentieth of a second.
const TOKENIZE_FOR: Duration = Duration::from_secs(10);
/// Length of HTML's longest entity name, in bytes.
const MAX_ENTITY_BYTES: usize = 33;
/// The begin and end of text without markup.
pub(super) const CDATA: (&str, &str) = ("<![CDATA[", "]]>");

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Markup {
    /// A start tag, with its prefix.
    Open(LocalName, Vec<Attribute>),
    /// An end tag, or the end of a self-closing tag.
    Close(LocalName),
    /// Text between two tags, with its entities decoded.
    Text(String),
    /// The name in a document type declaration.
    Doctype(String),
}

/// Returns an attribute's value by its name, including the prefix, in lower case.
pub(super) fn find_attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| attribute.value.trim())
}

/// Splits a text into tags and text, up to the maximum number; `None` if it takes too long.
pub(super) fn split_markup(text: &str) -> Option<Vec<Markup>> {
    let tokenizer = Tokenizer::new(Pieces::default(), TokenizerOpts::default());
    let began = Instant::now();
    let text = escape_ampersands(text);
    let (queue, mut rest) = (BufferQueue::default(), text.as_ref());
    while !rest.is_empty() && tokenizer.sink.0.borrow().len() < MAX_PIECES {
        if began.elapsed() > TOKENIZE_FOR {
            return None;
        }
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        queue.push_back(StrTendril::from_slice(piece));
        // The tokenizer stops early only for scripts, which this sink never reports.
        drop(tokenizer.feed(&queue));
        rest = after;
    }
    tokenizer.end();
    Some(tokenizer.sink.0.into_inner())
}

/// Escapes each `&` that doesn't begin a complete entity, because HTML reads `&copy=1` in an address as a sign.
fn escape_ampersands(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let (mut escaped, mut rest) = (String::with_capacity(text.len() + 64), text);
    while let Some(at) = rest.find(['&', '<']) {
        let (before, from) = rest.split_at(at);
        escaped.push_str(before);
        if let Some((letter, length)) = pair_of_numbers(from) {
            escaped.push(letter);
            rest = from.get(length..).unwrap_or_default();
            continue;
        }
        let length = if from.starts_with(CDATA.0) {
            from.find(CDATA.1).map_or(from.len(), |end| end + CDATA.1.len())
        } else {
            escaped.push_str(if from.starts_with('&') && !is_entity(from) {
                "&amp;"
            } else {
                from.get(..1).unwrap_or_default()
            });
            rest = from.get(1..).unwrap_or_default();
            continue;
        };
        let (inside, after) = from.split_at(length);
        escaped.push_str(inside);
        rest = after;
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// Decodes a surrogate pair of two numeric entities (`&#55357;&#56832;`, from programs with UTF-16), with its length.
fn pair_of_numbers(text: &str) -> Option<(char, usize)> {
    let number = |text: &str| {
        let (number, _) = text.strip_prefix("&#")?.split_once(';')?;
        let length = number.len() + 3;
        let value = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u16::from_str_radix(hex, 16),
            None => number.parse(),
        };
        Some((value.ok()?, length))
    };
    let (first, length) = number(first_bytes(text, 20))?;
    let rest = text.get(length..)?;
    let (second, more) = number(first_bytes(rest, 20))?;
    let letter = char::decode_utf16([first, second]).next()?.ok().filter(|letter| letter.len_utf16() == 2)?;
    Some((letter, length + more))
}

/// Returns true if a text begins with an entity, or with the beginning of a numeric one.
fn is_entity(text: &str) -> bool {
    let name = text.get(1..text.floor_char_boundary(MAX_ENTITY_BYTES)).unwrap_or_default();
    let is_number = name.starts_with('#');
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    is_number || end.is_some_and(|end| end > 0 && name.get(end..).is_some_and(|rest| rest.starts_with(';')))
}

#[derive(Default)]
struct Pieces(RefCell<Vec<Markup>>);

impl TokenSink for Pieces {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut pieces = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => pieces.push(Markup::Close(tag.name)),
            Token::TagToken(tag) => {
                let closes = tag.self_closing.then(|| Markup::Close(tag.name.clone()));
                pieces.push(Markup::Open(tag.name, tag.attrs));
                pieces.extend(closes);
            }
            Token::CharacterTokens(text) => match pieces.last_mut() {
                Some(Markup::Text(so_far)) => so_far.push_str(&text),
                _ => pieces.push(Markup::Text(text.into())),
            },
            Token::DoctypeToken(doctype) => {
                pieces.push(Markup::Doctype(doctype.name.map(String::from).unwrap_or_default()));
            }
            Token::CommentToken(_) | Token::NullCharacterToken | Token::EOFToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }

    /// A CDATA section is text in XML, and in escaped titles.
    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        true
    }
}
