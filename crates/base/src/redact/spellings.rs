//! The spellings of live secrets, found by one automaton in a text without white space.
//!
//! White space is ignored because tools insert it: encoders wrap long lines, dumps separate bytes, indentation follows a line break.
//! Short spellings may only span line ends, because across spaces they would match ordinary words.

use std::{collections::BTreeSet, ops::Range, sync::OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{MIN_SECRET_BYTES, parts::SecretParts};

/// The minimum length in bytes of a spelling that may span any white space.
const LONG_BYTES: usize = 12;
/// The minimum length in bytes of a cut-off secret that is still masked.
const MIN_CUT_BYTES: usize = 8;
/// The mark at the end of a text that was cut off.
const CUT: &str = "…";

/// A spelling of a secret, without white space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Spelling {
    text: String,
    /// The white space of the spelling as returned by [`find_spaces`], compared for short spellings.
    spaces: String,
    /// True for base64, whose first and last characters share bits with the surrounding bytes and are masked too.
    shares_edges: bool,
}

/// All spellings of some secrets.
#[derive(Clone)]
pub(super) struct Spellings {
    automaton: AhoCorasick,
    all: Vec<Spelling>,
    /// Built for the first text with a cut, which most wakes never see. `None` if the automaton can't be built.
    beginnings: OnceLock<Option<Beginnings>>,
}

/// The first [`MIN_CUT_BYTES`] bytes of all spellings that are long enough.
#[derive(Clone)]
struct Beginnings {
    automaton: AhoCorasick,
    /// For each beginning, the index of its spelling in `Spellings::all`.
    begun: Vec<usize>,
}

impl Spellings {
    /// Builds the automaton. `None` without secrets, or if they exceed the automaton's limit of gigabytes.
    pub(super) fn from_secrets(secrets: &SecretParts) -> Option<Self> {
        let spelled = secrets.spelled.iter().flat_map(|secret| list_spellings(secret));
        let lines = secrets.lines.iter().map(|line| Spelling {
            text: line.clone(),
            spaces: String::new(),
            shares_edges: false,
        });
        let all: Vec<Spelling> = spelled.chain(lines).collect::<BTreeSet<_>>().into_iter().collect();
        if all.is_empty() {
            return None;
        }
        let automaton = build_automaton(all.iter().map(|spelling| &spelling.text))?;
        Some(Self { automaton, all, beginnings: OnceLock::new() })
    }

    fn beginnings(&self) -> Option<&Beginnings> {
        let make = || {
            let beginning_of =
                |spelling: &Spelling| spelling.text.as_bytes().get(..MIN_CUT_BYTES).map(<[u8]>::to_owned);
            let (begun, first): (Vec<_>, Vec<_>) =
                self.all.iter().enumerate().filter_map(|(at, spelling)| Some((at, beginning_of(spelling)?))).unzip();
            Some(Beginnings { automaton: build_automaton(first)?, begun })
        };
        self.beginnings.get_or_init(make).as_ref()
    }

    /// Returns the byte ranges of the text that spell a secret, in any order.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let squeezed = Squeezed::from_text(text);
        let found = self.automaton.find_overlapping_iter(&squeezed.text);
        let spelled = |found: aho_corasick::Match| {
            let spelling = self.all.get(found.pattern().as_usize())?;
            let is_long = spelling.text.len() >= LONG_BYTES;
            let exact = squeezed.to_original(found.range())?;
            if !is_long && find_spaces(text.get(exact)?) != spelling.spaces {
                return None;
            }
            let range = if spelling.shares_edges { squeezed.with_edges(text, found.range()) } else { found.range() };
            squeezed.to_original(range)
        };
        found.filter_map(spelled).chain(self.find_cut(&squeezed)).collect()
    }

    /// Returns the position from which the text may be the beginning of a spelling, or the text's length if there is none.
    pub(super) fn find_open(&self, text: &str) -> usize {
        let squeezed = Squeezed::from_text(text);
        let end = squeezed.text.as_bytes();
        let begun = |spelling: &Spelling| {
            let whole = spelling.text.as_bytes();
            let most = (whole.len() - 1).min(end.len());
            let length =
                (1..=most).rev().find(|length| whole.get(..*length).is_some_and(|begun| end.ends_with(begun)))?;
            // The character before base64 shares bits with it.
            let start = end.len() - length - usize::from(spelling.shares_edges && end.len() > length);
            squeezed.to_original(start..end.len()).map(|range| range.start)
        };
        let first = self.all.iter().filter_map(begun).min().unwrap_or(text.len());
        (0..=first).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    }

    /// The ranges of spellings whose end was cut off: most of a secret is secret too.
    fn find_cut<'a>(&'a self, squeezed: &'a Squeezed) -> impl Iterator<Item = Range<usize>> + 'a {
        // Most texts have no cut and skip the second pass.
        let beginnings = if squeezed.text.contains(CUT) { self.beginnings() } else { None };
        let found = beginnings.map(|beginnings| beginnings.automaton.find_overlapping_iter(&squeezed.text));
        found.into_iter().flatten().filter_map(move |beginning| {
            let spelling = self.all.get(*beginnings?.begun.get(beginning.pattern().as_usize())?)?;
            let rest = squeezed.text.as_bytes().get(beginning.start()..)?;
            let same = rest.iter().zip(spelling.text.as_bytes()).take_while(|(a, b)| a == b).count();
            let is_cut = same < spelling.text.len() && rest.get(same..)?.starts_with(CUT.as_bytes());
            // A character cut in two can't match, because the mark of a cut begins at a boundary.
            is_cut.then(|| squeezed.to_original(beginning.start()..beginning.start() + same)).flatten()
        })
    }
}

/// Builds a small automaton quickly, since each start of a program needs one.
fn build_automaton(patterns: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Option<AhoCorasick> {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::ContiguousNFA)).build(patterns).ok()
}

/// A text without white space, with the original positions.
struct Squeezed {
    text: String,
    /// The position after each removed run of white space: in this text, and in the original. Sorted.
    gaps: Vec<(usize, usize)>,
}

impl Squeezed {
    fn from_text(text: &str) -> Self {
        let mut squeezed = Self { text: String::with_capacity(text.len()), gaps: vec![(0, 0)] };
        let mut at = 0;
        for piece in text.split_inclusive(is_ignored) {
            let kept = piece.trim_end_matches(is_ignored);
            squeezed.text.push_str(kept);
            at += piece.len();
            if kept.len() < piece.len() {
                squeezed.gaps.push((squeezed.text.len(), at));
            }
        }
        squeezed
    }

    /// Extends the range by adjacent base64 characters. A space between them in `text`, the original, marks another word and stops
    /// the extension.
    fn with_edges(&self, text: &str, range: Range<usize>) -> Range<usize> {
        let is_edge = |at: usize, pair: Range<usize>| {
            self.text.as_bytes().get(at).is_some_and(|byte| is_base64(*byte))
                && self
                    .to_original(pair)
                    .and_then(|pair| text.get(pair))
                    .is_some_and(|pair| find_spaces(pair).is_empty())
        };
        let start = range.start.checked_sub(1).filter(|at| is_edge(*at, *at..range.start + 1)).unwrap_or(range.start);
        let end = if is_edge(range.end, range.end - 1..range.end + 1) { range.end + 1 } else { range.end };
        start..end
    }

    /// Maps a range back to the original text.
    fn to_original(&self, range: Range<usize>) -> Option<Range<usize>> {
        let place = |at: usize| {
            let next = self.gaps.partition_point(|(here, _)| *here <= at);
            let (here, there) = self.gaps.get(next.checked_sub(1)?)?;
            Some(there + (at - here))
        };
        Some(place(range.start)?..place(range.end.checked_sub(1)?)? + 1)
    }
}

/// Returns true for the characters that the search ignores: white space, control characters and zero-width characters.
fn is_ignored(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Collects the ignored characters of a text, except runs with a line end, which tools insert anywhere.
fn find_spaces(text: &str) -> String {
    let runs = text.split(|c| !is_ignored(c));
    runs.filter(|run| !run.contains(['\n', '\r'])).collect()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Lists the recognised spellings of a secret: plain and reversed; hex, also as programs write bytes; percent-encoded; escaped for JSON
/// and HTML; base64 at each alignment.
fn list_spellings(secret: &str) -> Vec<Spelling> {
    let bytes = secret.as_bytes();
    let hex = |before: &str, joint: &str| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{before}{byte:02x}")).collect();
        digits.join(joint)
    };
    let upper = |text: &str| text.to_ascii_uppercase().replace("\\X", "\\x").replace("0X", "0x");
    // fault: hexadecimal-isnt-known
    let hexes = [hex("", ""), hex("", ":"), hex("\\x", ""), hex("0x", ",")];
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let percent = encode_percent(bytes, unreserved, HexCase::Upper);
    let texts = [
        secret.to_owned(),
        secret.chars().rev().collect(),
        json.replace('/', "\\/"),
        json,
        html.replace('"', "&quot;"),
        html,
        percent.replace("%20", "+"),
        percent,
        encode_percent(bytes, unreserved, HexCase::Lower),
        encode_percent(bytes, |_| false, HexCase::Upper),
        encode_percent(bytes, |_| false, HexCase::Lower),
    ];
    let uppers = hexes.each_ref().map(|text| upper(text));
    let plain = texts.into_iter().chain(hexes).chain(uppers).map(|text| (text, false));
    // fault: base64-known-alignment-alone
    let coded = (0..3).flat_map(|alignment| {
        let standard = encode_inner_base64(bytes, alignment);
        let url_safe = standard.replace('+', "-").replace('/', "_");
        [(standard, true), (url_safe, true)]
    });
    plain
        .chain(coded)
        .map(|(text, shares_edges)| Spelling {
            spaces: find_spaces(&text),
            text: text.replace(is_ignored, ""),
            shares_edges,
        })
        .filter(|spelling| spelling.text.len() >= MIN_SECRET_BYTES)
        .collect()
}

/// The letters of hexadecimal digits.
#[derive(Clone, Copy)]
enum HexCase {
    Lower,
    Upper,
}

fn encode_percent(bytes: &[u8], keep: impl Fn(u8) -> bool, case: HexCase) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        match (keep(byte), case) {
            (true, _) => text.push(char::from(byte)),
            (false, HexCase::Lower) => text.push_str(&format!("%{byte:02x}")),
            (false, HexCase::Upper) => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Returns the base64 characters that depend on the secret alone, for a secret `alignment` bytes after a three-byte boundary. Characters
/// that share bits with a neighbouring byte are left out.
fn encode_inner_base64(secret: &[u8], alignment: usize) -> String {
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
