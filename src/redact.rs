//! Keeps secrets out of everything that is written: logs, errors, journal, messages, commits.
//!
//! [`Secret`] can't be printed by accident. [`Redactor`] is the last gate before text leaves: it knows the live secrets
//! in the spellings they usually leak in, and the shapes of well-known keys that aren't ours to know.

use std::{collections::BTreeSet, fmt, ops::Range, sync::LazyLock};

use regex_lite::Regex;

/// What stands where a secret stood.
const MASK: &str = "***";

/// Secrets shorter than this (bytes) are not looked for: they would blank out ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// A string that prints as `***`. It has no `Serialize` on purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that must send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

/// Finds secrets in text and replaces them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Every spelling that is looked for, without line breaks.
    spellings: BTreeSet<Spelling>,
}

/// One way a secret may be written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Spelling {
    text: String,
    /// Base64 shares its first and last character with the bytes around the secret; those characters go too.
    shares_edges: bool,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} spellings)", self.spellings.len())
    }
}

impl Redactor {
    /// A redactor for these live secrets, and always for the well-known key shapes.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut spellings = BTreeSet::new();
        for secret in secrets {
            let secret = secret.expose().trim();
            if secret.len() >= MIN_SECRET_BYTES {
                spellings.extend(spellings_of(secret));
            }
        }
        Self { spellings }
    }

    /// The text with every secret replaced by `***`. Text without secrets comes back unchanged.
    pub fn redact(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut kept_to = 0;
        for span in self.spans(text) {
            clean.push_str(text.get(kept_to..span.start).unwrap_or_default());
            clean.push_str(MASK);
            kept_to = span.end;
        }
        clean.push_str(text.get(kept_to..).unwrap_or_default());
        clean
    }

    /// Whether [`Redactor::redact`] would change the text.
    pub fn contains_secret(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// Byte ranges of secrets, in order, none touching another.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = shape_spans(text);
        found.extend(self.spelling_spans(text));
        merge(found)
    }

    /// Live secrets. Line breaks are looked through, since encoders wrap long lines.
    fn spelling_spans(&self, text: &str) -> Vec<Range<usize>> {
        let joined = Joined::of(text);
        let mut found = Vec::new();
        for spelling in &self.spellings {
            let mut from = 0;
            while let Some(at) = joined.text.get(from..).and_then(|rest| rest.find(&spelling.text)) {
                let mut start = from + at;
                let mut end = start + spelling.text.len();
                from = end;
                if spelling.shares_edges {
                    let bytes = joined.text.as_bytes();
                    start -= usize::from(start > 0 && bytes.get(start - 1).is_some_and(|b| is_base64(*b)));
                    end += usize::from(bytes.get(end).is_some_and(|b| is_base64(*b)));
                }
                found.extend(joined.original(start..end));
            }
        }
        found
    }
}

/// A text without its line breaks that remembers where each byte stood.
struct Joined {
    text: String,
    offsets: Vec<usize>,
}

impl Joined {
    fn of(text: &str) -> Self {
        let mut joined = Self { text: String::with_capacity(text.len()), offsets: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices().filter(|(_, c)| !is_line_break(*c)) {
            joined.text.push(c);
            joined.offsets.extend(at..at + c.len_utf8());
        }
        joined
    }

    /// The range in the text that this came from.
    fn original(&self, range: Range<usize>) -> Option<Range<usize>> {
        let start = *self.offsets.get(range.start)?;
        let last = *self.offsets.get(range.end.checked_sub(1)?)?;
        Some(start..last + 1)
    }
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Sorts the ranges and joins those that overlap or touch.
fn merge(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// Keys that are recognised by their shape alone.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"sk-ant-[A-Za-z0-9_-]{10,}",
        r"[0-9]{6,}:[A-Za-z0-9_-]{30,}", // Telegram bot token; in URLs it follows `/bot` directly
        r"gh[pousr]_[A-Za-z0-9]{20,}",
        r"github_pat_[A-Za-z0-9_]{20,}",
        r"(AKIA|ASIA)[0-9A-Z]{16}",
        r"xox[a-z]-[A-Za-z0-9-]{10,}",
        // A block without its end is a secret up to the end of the text.
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|$)",
    ]
    .iter()
    .map(|shape| compiled(shape))
    .collect()
});

/// Credentials inside a URL; the first group is what is masked. A short lone user name (`ssh://git@…`) is no secret.
static URL_CREDENTIALS: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#@:]*:[^\s/?#@]+|[^\s/?#@:]{20,})@"));

#[expect(clippy::expect_used, reason = "the patterns are constants of this file, and a test compiles them all")]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

fn shape_spans(text: &str) -> Vec<Range<usize>> {
    let shapes = SHAPES.iter().flat_map(|shape| shape.find_iter(text)).map(|found| found.range());
    let urls = URL_CREDENTIALS.captures_iter(text).filter_map(|found| found.get(1)).map(|group| group.range());
    shapes.chain(urls).filter(|span| text.get(span.clone()) != Some(MASK)).collect()
}

/// The spellings in which a secret is recognised: as it is, hex, percent-encoded, escaped for JSON and HTML, base64.
fn spellings_of(secret: &str) -> Vec<Spelling> {
    let bytes = secret.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let json = serde_json::to_string(secret).unwrap_or_default();
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let percent = percent_encoded(bytes, unreserved, false);
    let texts = [
        secret.to_owned(),
        hex.to_uppercase(),
        hex,
        json.trim_matches('"').to_owned(),
        html.replace('"', "&quot;"),
        html,
        percent.replace("%20", "+"),
        percent,
        percent_encoded(bytes, unreserved, true),
        percent_encoded(bytes, |_| false, false),
        percent_encoded(bytes, |_| false, true),
    ];
    let plain = texts.into_iter().map(|text| Spelling { text, shares_edges: false });
    let coded = (0..3).flat_map(|alignment| {
        let standard = base64_inside(bytes, alignment);
        let url_safe = standard.replace('+', "-").replace('/', "_");
        [standard, url_safe].map(|text| Spelling { text, shares_edges: true })
    });
    plain
        .chain(coded)
        .map(|spelling| Spelling { text: spelling.text.replace(is_line_break, ""), ..spelling })
        .filter(|spelling| spelling.text.len() >= MIN_SECRET_BYTES)
        .collect()
}

fn percent_encoded(bytes: &[u8], keep: impl Fn(u8) -> bool, lower: bool) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        match (keep(byte), lower) {
            (true, _) => text.push(char::from(byte)),
            (false, true) => text.push_str(&format!("%{byte:02x}")),
            (false, false) => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The base64 characters that are the same whatever surrounds the secret, when it begins `alignment` bytes after a
/// three-byte boundary: those that hold no bit of a neighbour.
fn base64_inside(secret: &[u8], alignment: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |index: usize| -> usize {
        let byte = (index / 8).checked_sub(alignment).and_then(|at| secret.get(at));
        byte.map_or(0, |byte| usize::from(byte >> (7 - index % 8) & 1))
    };
    let first = (alignment * 8).div_ceil(6);
    let end = (alignment + secret.len()) * 8 / 6;
    (first..end)
        .map(|at| (at * 6..at * 6 + 6).fold(0, |value, index| value << 1 | bit(index)))
        .filter_map(|value| ALPHABET.get(value))
        .map(|byte| char::from(*byte))
        .collect()
}

#[cfg(test)]
mod tests;
