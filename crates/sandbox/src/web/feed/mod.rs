//! The content of a watched address: a feed's entries, or a page.
//!
//! Feeds are often invalid XML, so the parser is as tolerant as browsers' readers (`markup`, `xml`, `json`, `title`).
//! A strict parser refuses a feed for one stray character, which would silently end the watch.

mod entities;
mod entry;
mod json;
mod markup;
mod title;
mod xml;

use std::{borrow::Cow, collections::HashSet, io::Write as _};

use flate2::write::MultiGzDecoder;

use reveille_base::words::first_bytes;

use self::{
    entities::OwnEntities,
    entry::{EntryDraft, LinkRank},
    markup::{Markup, split_markup},
};
use super::{
    Gate, Page, Web, WebError,
    body::Sink,
    charset,
    clean::clean_text,
    fetch::{Ask, Fetched},
    page::{self, format_origin, parse_charset, parse_essence, run_blocking},
};

/// Bytes of a document searched for a feed's root.
const SEARCHED_BYTES: usize = 64 * 1_024;
/// Maximum size of an unpacked file, in bytes.
const MAX_UNPACKED_BYTES: usize = 2 * 1_024 * 1_024;
/// The first bytes of a gzip file.
const GZIP_MARK: [u8; 2] = [0x1f, 0x8b];
const UNREADABLE: WebError = WebError::Unreadable("It is a feed that can't be read.");
const TOO_SLOW: WebError = WebError::Unreadable("It takes too long to read, so I gave up.");

/// The content of a watched address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedPage {
    /// A page, or any other text.
    Page(Page),
    /// A feed: `https://host` of its source, and its entries.
    Feed(String, Vec<FeedEntry>),
}

/// An entry of a feed. Its text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedEntry {
    /// The publisher's id, possibly unstable or ambiguous; empty if missing.
    pub id: String,
    /// The title on one line, or else the beginning of the text; empty if both are missing.
    pub title: String,
    /// The absolute address of the entry's page.
    pub link: Option<String>,
}

impl Web {
    /// Reads a watched address. The gate works as for [`Web::fetch_page`].
    ///
    /// # Errors
    /// The reason in our own words.
    pub async fn fetch_watched(&self, url: &str, gate: Gate<'_>) -> Result<WatchedPage, WebError> {
        let fetched = self.fetch(Ask { url, headers: reqwest::header::HeaderMap::new(), gate }).await?;
        run_blocking(move || parse_watched(&fetched)).await?
    }
}

fn parse_watched(fetched: &Fetched) -> Result<WatchedPage, WebError> {
    let (body, is_cut) = unpack_gzip(&fetched.body)?;
    let is_cut = is_cut || fetched.is_cut;
    let kind = parse_essence(fetched.content_type.as_deref());
    let text = charset::decode_xml(&body, parse_charset(fetched.content_type.as_deref()));
    let feed = |mut entries: Vec<FeedEntry>| {
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.clone()));
        Ok(WatchedPage::Feed(format_origin(&fetched.url), entries))
    };
    if json::may_be_json_feed(&text, kind == "application/feed+json") {
        match json::read_entries(&text, &fetched.url) {
            Ok(Some(entries)) => return feed(entries),
            Ok(None) => {}
            Err(_) if is_cut => return Err(WebError::Unreadable("It is a feed that is too long to be read.")),
            Err(_) => return Err(UNREADABLE),
        }
    }
    let head = first_bytes(&text, SEARCHED_BYTES);
    let head = split_markup(head).ok_or(TOO_SLOW)?;
    // Plain text may quote a feed, or be a feed after a program's warnings.
    let is_plain = matches!(kind.as_str(), "text/plain" | "text/markdown") && !has_feed_end(&text);
    if xml::is_feed(&head, is_plain) {
        let pieces = split_markup(&text).ok_or(TOO_SLOW)?;
        return feed(xml::read_entries(pieces, &OwnEntities::parse(&text), &fetched.url, is_cut));
    }
    if is_other_xml(&text, &kind, &head) {
        return Ok(WatchedPage::Page(Page {
            url: fetched.url.to_string(),
            origin: format_origin(&fetched.url),
            title: None,
            text: clean_text(&text_lines(split_markup(&text).ok_or(TOO_SLOW)?)).trim().to_owned(),
            feed: None,
            is_cut,
        }));
    }
    match body {
        Cow::Borrowed(_) => page::parse_page(fetched),
        Cow::Owned(body) => page::parse_page(&Fetched {
            body,
            is_cut,
            url: fetched.url.clone(),
            content_type: fetched.content_type.clone(),
        }),
    }
    .map(WatchedPage::Page)
}

/// Unpacks a gzip file up to the limit; true if there was more.
fn unpack_gzip(body: &[u8]) -> Result<(Cow<'_, [u8]>, bool), WebError> {
    if !body.starts_with(&GZIP_MARK) {
        return Ok((Cow::Borrowed(body), false));
    }
    let mut unpacking = MultiGzDecoder::new(Sink::new(MAX_UNPACKED_BYTES));
    let is_whole = unpacking.write_all(body).is_ok() && unpacking.try_finish().is_ok();
    let bytes = std::mem::take(&mut unpacking.get_mut().bytes);
    // A file that can't be unpacked is reported by its type.
    Ok(if bytes.is_empty() { (Cow::Borrowed(body), false) } else { (Cow::Owned(bytes), !is_whole) })
}

/// Returns true for XML that is neither a feed nor a page: a site map, a list of feeds.
fn is_other_xml(text: &str, kind: &str, head: &[Markup]) -> bool {
    let is_xml = text.trim_start().starts_with("<?xml") || kind.ends_with("/xml") || kind.ends_with("+xml");
    let root = head.iter().find_map(|piece| if let Markup::Open(name, _) = piece { Some(&**name) } else { None });
    let is_page = head.iter().any(|piece| matches!(piece, Markup::Doctype(name) if name == "html"));
    is_xml && !is_page && root.is_some_and(|root| !matches!(root, "html" | "head" | "body" | "svg"))
}

/// Returns true if a document ends like a feed.
fn has_feed_end(text: &str) -> bool {
    let text = text.trim_end();
    let end = text.get(text.len().saturating_sub(10)..).unwrap_or_default().to_ascii_lowercase();
    ["</rss>", "</feed>", "</rdf:rdf>"].iter().any(|root| end.ends_with(root))
}

/// Joins the texts between tags, one per line.
fn text_lines(pieces: Vec<Markup>) -> String {
    let texts = pieces.into_iter().filter_map(|piece| if let Markup::Text(text) = piece { Some(text) } else { None });
    texts.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
