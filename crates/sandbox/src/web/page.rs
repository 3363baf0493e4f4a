//! Conversion of a response to readable text: HTML as simplified Markdown, other text unchanged. Other content is only named.

use reqwest::Url;

use super::{
    Gate, Web, WebError, charset,
    charset::TextForm,
    clean::{clean_line, clean_text},
    fetch::{Ask, Fetched},
    html::{Id, PageTree, extract_readable},
};

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Bytes examined to guess the type of a body.
const SNIFFED_BYTES: usize = 1_024;
/// Maximum length of a feed address, in bytes.
const MAX_FEED_BYTES: usize = 500;
/// The content types of feeds in pages.
const FEED_TYPES: [&str; 5] = [
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
    "application/json+feed",
];

/// A page. Its text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The final address after redirects.
    pub url: String,
    /// `https://host` of the final address.
    pub origin: String,
    /// The title, on one line.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// The address of the page's feed.
    pub feed: Option<String>,
    /// True if the page is longer than the text.
    pub is_cut: bool,
}

/// The kind of a body, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    /// Not declared by the server. It is guessed from the first bytes.
    Unsaid,
    /// Unreadable, with a description.
    Unreadable(&'static str),
}

impl Web {
    /// Reads a page. The gate is called for each redirect, but not for the URL itself.
    ///
    /// # Errors
    /// The reason in our own words.
    pub async fn fetch_page(&self, url: &str, gate: Gate<'_>) -> Result<Page, WebError> {
        let fetched = self.fetch(Ask { url, headers: reqwest::header::HeaderMap::new(), gate }).await?;
        // A hostile page may take seconds to parse, and the wake must be able to stop meanwhile.
        run_blocking(move || parse_page(&fetched)).await?
    }
}

/// Runs a computation on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, WebError> {
    let given_up = |_| WebError::Unreadable("I gave up reading it.");
    tokio::task::spawn_blocking(work).await.map_err(given_up)
}

pub(super) fn parse_page(fetched: &Fetched) -> Result<Page, WebError> {
    let Fetched { url, content_type, body, is_cut } = fetched;
    let kind = match kind(content_type.as_deref()) {
        Kind::Unsaid => sniff_kind(body),
        kind => kind,
    };
    if let Kind::Unreadable(what) = kind {
        return Err(WebError::Unreadable(what));
    }
    let form = if kind == Kind::Html { TextForm::Html } else { TextForm::Plain };
    let text = charset::decode(body, parse_charset(content_type.as_deref()), form);
    let (title, text, feed, is_all) = match kind {
        Kind::Html => {
            let document = PageTree::parse(&text);
            let read = extract_readable(&document, url);
            (read.title, read.text, find_feed(&document, url), read.is_all)
        }
        _ => (None, text, None, true),
    };
    Ok(Page {
        origin: format_origin(url),
        url: url.to_string(),
        title: title.map(|title| clean_line(&title, MAX_TITLE_CHARS)).filter(|title| !title.is_empty()),
        text: clean_text(&text).trim().to_owned(),
        feed,
        is_cut: *is_cut || !is_all,
    })
}

/// Returns the address of a page's first feed. A second feed usually lists comments.
fn find_feed(document: &PageTree, url: &Url) -> Option<String> {
    let attribute = |id, name| document.attribute(id, name).unwrap_or_default().trim().to_ascii_lowercase();
    let is_feed = |id: &Id| {
        document.tag(*id) == Some("link")
            && attribute(*id, "rel").split_ascii_whitespace().any(|relation| matches!(relation, "alternate" | "feed"))
            && FEED_TYPES.contains(&&*attribute(*id, "type"))
    };
    let base = document.iter_subtree(document.root()).find(|id| document.tag(*id) == Some("base"));
    let base = base.and_then(|id| document.attribute(id, "href")).and_then(|href| url.join(href.trim()).ok());
    let feed = document.iter_subtree(document.root()).find(is_feed)?;
    let href = document.attribute(feed, "href")?.trim();
    let feed = base.as_ref().unwrap_or(url).join(href).ok()?;
    let is_usable = matches!(feed.scheme(), "http" | "https") && feed.as_str().len() <= MAX_FEED_BYTES;
    is_usable.then(|| clean_line(feed.as_str(), MAX_FEED_BYTES))
}

/// Returns `https://host`, with the port unless it is the scheme's default.
pub(super) fn format_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Returns a content type without parameters, in lower case; empty if the server sent none.
pub(super) fn parse_essence(content_type: Option<&str>) -> String {
    content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the charset of a content type.
pub(super) fn parse_charset(content_type: Option<&str>) -> Option<&str> {
    let parameters = content_type?.split(';').skip(1);
    parameters.filter_map(|parameter| parameter.split_once('=')).find_map(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

fn kind(content_type: Option<&str>) -> Kind {
    let essence = parse_essence(content_type);
    match essence.split_once('/') {
        Some(("text", "html")) | Some(("application", "xhtml+xml")) => Kind::Html,
        Some(("text", _)) => Kind::Text,
        Some(("image", "svg+xml")) => Kind::Unreadable("It is a drawing (SVG), not text."),
        Some(("image", _)) => Kind::Unreadable("It is a picture, not text."),
        Some(("audio" | "video", _)) => Kind::Unreadable("It is sound or video, not text."),
        Some(("font", _)) => Kind::Unreadable("It is a font, not text."),
        Some(("application", "pdf")) => Kind::Unreadable("It is a PDF: those can't be read here yet."),
        Some(("application", "octet-stream" | "binary" | "unknown")) | None => Kind::Unsaid,
        Some((_, subtype)) if subtype.ends_with("+json") || subtype.ends_with("+xml") => Kind::Text,
        Some((
            "application",
            "json" | "xml" | "javascript" | "ecmascript" | "yaml" | "x-yaml" | "toml" | "sql" | "x-ndjson" | "jsonl"
            | "rtf" | "x-sh" | "x-httpd-php" | "x-tex" | "x-latex",
        )) => Kind::Text,
        Some(("application", "zip" | "gzip" | "x-gzip" | "x-tar" | "x-7z-compressed" | "vnd.rar")) => {
            Kind::Unreadable("It is an archive, not text.")
        }
        Some(_) => Kind::Unreadable("It is of a kind that can't be read as text."),
    }
}

/// Guesses the kind from the first bytes.
fn sniff_kind(body: &[u8]) -> Kind {
    let (head, _) = body.split_at(body.len().min(SNIFFED_BYTES));
    let begins = String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    if begins.starts_with("%pdf-") {
        return Kind::Unreadable("It is a PDF: those can't be read here yet.");
    }
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    let has_mark = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    if !has_mark && head.iter().any(is_binary) {
        return Kind::Unreadable("It isn't text, and the server doesn't say what it is.");
    }
    let is_html = ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| begins.starts_with(tag));
    if is_html { Kind::Html } else { Kind::Text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(content_type: Option<&str>, body: &[u8]) -> Result<Page, WebError> {
        parse_page(&Fetched {
            url: Url::parse("https://example.org/a/b").unwrap(),
            content_type: content_type.map(str::to_owned),
            body: body.to_vec(),
            is_cut: false,
        })
    }

    #[test]
    fn text_of_each_kind_is_read_and_the_rest_is_named() {
        for kind in [
            "text/plain",
            "TEXT/PLAIN; charset=utf-8",
            "application/json",
            "application/ld+json",
            "application/rss+xml",
            "text/markdown",
            "application/octet-stream",
        ] {
            assert_eq!(read_as(Some(kind), b" <b>{\"a\":1}</b>\r\n").unwrap().text, "<b>{\"a\":1}</b>", "{kind}");
        }
        for kind in ["text/html", "Text/HTML;charset=utf-8", "application/xhtml+xml"] {
            assert_eq!(read_as(Some(kind), b"<title>T</title><p>a<b>b</b>").unwrap().text, "ab", "{kind}");
        }
        for kind in
            ["application/pdf", "image/png", "image/svg+xml", "video/mp4", "application/zip", "font/woff2", "x/y"]
        {
            assert!(matches!(read_as(Some(kind), b"text"), Err(WebError::Unreadable(_))), "{kind}");
        }
    }

    #[test]
    fn an_undeclared_type_is_guessed_from_the_first_bytes() {
        assert_eq!(read_as(None, b"\n<!DOCTYPE html><p>a &amp; b").unwrap().text, "a & b");
        assert_eq!(read_as(None, b"a &amp; b").unwrap().text, "a &amp; b");
        assert_eq!(read_as(Some("nonsense"), b"\xff\xfea\0").unwrap().text, "a");
        for binary in [&b"%PDF-1.7 text"[..], b"\x7fELF\x02\x01\x01\0", b"\x89PNG\r\n\x1a\n\0"] {
            assert!(matches!(read_as(None, binary), Err(WebError::Unreadable(_))));
        }
    }

    #[test]
    fn the_servers_charset_is_used_however_it_is_written() {
        for kind in [
            "text/plain;charset=iso-8859-1",
            "text/plain; a=b; CHARSET=\"ISO-8859-1\"",
            "text/plain; charset = latin1 ",
        ] {
            assert_eq!(read_as(Some(kind), b"caf\xe9").unwrap().text, "café", "{kind}");
        }
    }

    #[test]
    fn a_title_is_one_short_line_and_an_origin_has_no_path() {
        let title = "word ".repeat(100_000);
        let page = read_as(Some("text/html"), format!("<title>\n a\n{title}</title>x").as_bytes()).unwrap();
        let shown = page.title.unwrap();
        assert!(
            shown.starts_with("a word word") && shown.chars().count() <= MAX_TITLE_CHARS + 1 && !shown.contains('\n')
        );
        assert_eq!((page.origin.as_str(), page.url.as_str()), ("https://example.org", "https://example.org/a/b"));
    }
}
