//! Keys that are recognised by their shape alone, whoever's they are.
//!
//! One automaton finds what such keys begin with; what follows is then looked at by hand. A beginning that stands in ordinary text,
//! too (`sk-`, `AKIA` in a picture's base64), must begin a word and have a key's length, so that hashes, UUIDs and pictures stay.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::words::first_bytes;

/// The longest block of a private key that is looked for an end of, in bytes.
const MAX_KEY_BLOCK_BYTES: usize = 16 * 1024;
/// The longest user name and password in an address, in bytes.
const MAX_USER_INFO_BYTES: usize = 1_024;
/// A user name alone is a secret from so many bytes on: `ssh://git@…` is none.
const MIN_LONE_USER_BYTES: usize = 20;

/// The longest key that must be mixed, in bytes: each beginning is looked at on its own, and a hostile text has many.
const MAX_MIXED_BYTES: usize = 1_024;

/// What a key has behind its beginning.
#[derive(Clone, Copy)]
enum Tail {
    /// So many of these bytes, or more.
    AtLeast(usize, Bytes),
    /// So many, and then none; and nothing of a word before the beginning.
    Exactly(usize, Bytes),
    /// As `AtLeast`, at a word's beginning, a digit and a letter among them.
    Mixed(usize, Bytes),
    /// At a word's beginning: two parts with a point between them, each of so many bytes, or more.
    Pair(usize),
    /// `xoxb-` and its like: a letter and a hyphen, then the rest.
    Slack,
    /// A JSON web token: three parts with points between them.
    Token,
    /// A Telegram bot's: digits before, a colon (this), 30 bytes or more.
    Telegram,
    /// `-----BEGIN `: a block of a private key, if it is one.
    Block,
    /// `://`: a name and a password, if there are any.
    Address,
}

/// Which bytes a key is made of.
type Bytes = fn(u8) -> bool;

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
fn underscored(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
fn dotted(byte: u8) -> bool {
    word(byte) || byte == b'.'
}
fn path(byte: u8) -> bool {
    word(byte) || byte == b'/'
}

/// What keys begin with, and what follows. From the issuers' documentation, and what their keys look like.
const SHAPES: [(&str, Tail); 45] = [
    ("sk-ant-", Tail::AtLeast(10, word)),
    ("sk-", Tail::Mixed(20, word)), // OpenAI and others that took its form
    ("sk_live_", Tail::AtLeast(16, alnum)),
    ("sk_test_", Tail::AtLeast(16, alnum)),
    ("rk_live_", Tail::AtLeast(16, alnum)),
    ("whsec_", Tail::Mixed(20, alnum)),
    ("ghp_", Tail::AtLeast(20, alnum)),
    ("gho_", Tail::AtLeast(20, alnum)),
    ("ghu_", Tail::AtLeast(20, alnum)),
    ("ghs_", Tail::AtLeast(20, alnum)),
    ("ghr_", Tail::AtLeast(20, alnum)),
    ("github_pat_", Tail::AtLeast(20, underscored)),
    ("glpat-", Tail::AtLeast(20, dotted)),
    ("glptt-", Tail::AtLeast(20, dotted)),
    ("npm_", Tail::Exactly(36, alnum)),
    ("pypi-AgE", Tail::AtLeast(30, word)),
    ("AKIA", Tail::Exactly(16, upper)),
    ("ASIA", Tail::Exactly(16, upper)),
    ("AIza", Tail::Exactly(35, word)),
    ("ya29.", Tail::Mixed(20, word)),
    ("GOCSPX-", Tail::AtLeast(20, word)),
    ("xox", Tail::Slack),
    ("xapp-", Tail::Mixed(20, word)),
    ("hooks.slack.com/services/", Tail::AtLeast(20, path)),
    ("discord.com/api/webhooks/", Tail::AtLeast(30, path)),
    ("SG.", Tail::Pair(16)), // SendGrid
    ("hf_", Tail::Mixed(30, alnum)),
    ("dop_v1_", Tail::AtLeast(40, alnum)),
    ("shpat_", Tail::AtLeast(24, alnum)),
    ("hvs.", Tail::Mixed(20, word)),
    ("tskey-", Tail::Mixed(20, word)),
    ("lin_api_", Tail::AtLeast(24, alnum)),
    ("ntn_", Tail::Mixed(30, alnum)),
    ("r8_", Tail::Mixed(30, alnum)),
    ("gsk_", Tail::Mixed(30, alnum)),
    ("xai-", Tail::Mixed(40, word)),
    ("pplx-", Tail::Mixed(30, word)),
    ("AGE-SECRET-KEY-1", Tail::AtLeast(50, upper)),
    ("dckr_pat_", Tail::AtLeast(20, word)),
    ("eyJ", Tail::Token),
    (":", Tail::Telegram),
    ("%3A", Tail::Telegram),
    ("%3a", Tail::Telegram),
    ("-----BEGIN ", Tail::Block),
    ("://", Tail::Address),
];

#[expect(clippy::expect_used, reason = "the beginnings are constants of this file, and every test builds this")]
static BEGINNINGS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    // Small and quickly built, as that of the live secrets.
    builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::ContiguousNFA));
    builder.build(SHAPES.iter().map(|(beginning, _)| beginning)).expect("constant beginnings")
});

/// Byte ranges of the text that look like keys, in no order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for beginning in BEGINNINGS.find_overlapping_iter(text) {
        let Some((_, tail)) = SHAPES.get(beginning.pattern().as_usize()) else { continue };
        let is_within = found.last().is_some_and(|last| beginning.end() < last.end);
        // What begins within a key that ends with its run ends there, too: looked at again, a hostile text would take for ever.
        if !(is_within && matches!(tail, Tail::AtLeast(..) | Tail::Slack)) {
            found.extend(Look { text, beginning: beginning.range() }.key(*tail));
        }
    }
    found
}

/// A beginning in a text, with what stands around it.
struct Look<'a> {
    text: &'a str,
    beginning: Range<usize>,
}

impl Look<'_> {
    /// The key that begins here, if one does.
    fn key(&self, tail: Tail) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        match tail {
            Tail::Mixed(..) | Tail::Exactly(..) | Tail::Pair(_) | Tail::Token if !self.begins_a_word() => None,
            Tail::AtLeast(least, of) => {
                let length = self.run(end, of, usize::MAX);
                (length >= least).then_some(start..end + length)
            }
            Tail::Exactly(exactly, of) => {
                let is_one = self.run(end, of, exactly + 1) == exactly && self.run(end, word, exactly + 1) == exactly;
                is_one.then_some(start..end + exactly)
            }
            Tail::Pair(least) => {
                let first = self.run(end, word, usize::MAX);
                let second = end + first + 1;
                let is_pair = first >= least && self.bytes().get(second - 1) == Some(&b'.');
                let length = if is_pair { self.run(second, word, usize::MAX) } else { 0 };
                (length >= least).then_some(start..second + length)
            }
            Tail::Mixed(least, of) => {
                let length = self.run(end, of, MAX_MIXED_BYTES);
                let key = self.bytes().get(end..end + length)?;
                let is_mixed = key.iter().any(u8::is_ascii_digit) && key.iter().any(u8::is_ascii_alphabetic);
                (length >= least && is_mixed).then_some(start..end + length)
            }
            Tail::Slack => {
                let [kind, b'-'] = self.bytes().get(end..end + 2)? else { return None };
                let length = self.run(end + 2, |byte| alnum(byte) || byte == b'-', usize::MAX);
                (kind.is_ascii_alphabetic() && length >= 10).then_some(start..end + 2 + length)
            }
            Tail::Token => self.token(),
            Tail::Telegram => self.telegram(),
            Tail::Block => self.block(),
            Tail::Address => self.address(),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// How many bytes of this kind there are from here on, counted up to `most`.
    fn run(&self, from: usize, of: Bytes, most: usize) -> usize {
        self.bytes().get(from..).unwrap_or_default().iter().take(most).take_while(|byte| of(**byte)).count()
    }

    /// Whether no word reaches into the beginning. The letter of an escape (`\n`, `\u003d`, `%3D`) isn't a word's.
    fn begins_a_word(&self) -> bool {
        let before = self.bytes().get(..self.beginning.start).unwrap_or_default();
        match before {
            [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
            [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
            [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) => true,
            [.., last] => !underscored(*last) && !matches!(last, b'+' | b'-'),
            [] => true,
        }
    }

    fn token(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let word_end = |from: usize| from + self.run(from, word, usize::MAX);
        let header_end = word_end(end);
        let claims = self.bytes().get(header_end..)?.strip_prefix(b".eyJ").map(|_| header_end + 1)?;
        let claims_end = word_end(claims);
        let is_one = header_end - start >= 12 && claims_end - claims >= 12;
        let is_signed = self.bytes().get(claims_end) == Some(&b'.');
        is_one.then(|| start..if is_signed { word_end(claims_end + 1) } else { claims_end })
    }

    /// In addresses the digits follow `/bot` directly.
    fn telegram(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let before = self.bytes().get(..start)?;
        let digits = before.iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
        let length = self.run(end, word, usize::MAX);
        (digits >= 6 && length >= 30).then_some(start - digits..end + length)
    }

    /// Up to the block's end. Without one, as far as lines look like a key's: the rest of a text isn't one.
    fn block(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let rest = self.text.get(end..)?;
        let (kind, body) = rest.split_once("-----")?;
        let is_private = kind.len() <= 40
            && (kind.ends_with("PRIVATE KEY") || kind.ends_with("PRIVATE KEY BLOCK"))
            && kind.bytes().all(|byte| upper(byte) || byte == b' ');
        if !is_private {
            return None;
        }
        let body_start = end + kind.len() + 5;
        let last = format!("-----END {kind}-----");
        let near = first_bytes(body, MAX_KEY_BLOCK_BYTES);
        let length = match near.find(&last) {
            Some(at) => at + last.len(),
            None => {
                let lines = body.split_inclusive('\n');
                let key: usize = lines.take_while(|line| is_of_a_key(line)).map(str::len).sum();
                body.get(..key).unwrap_or_default().trim_end().len()
            }
        };
        Some(start..body_start + length)
    }

    /// A name with a password, or a long name alone, between `://` and `@`.
    fn address(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        if !self.bytes().get(..start)?.last()?.is_ascii_alphanumeric() {
            return None;
        }
        let rest = self.bytes().get(end..)?;
        let is_over = |byte: &u8| byte.is_ascii_whitespace() || b"/?#@\"<>\\^`{|}".contains(byte);
        let length = rest.iter().take(MAX_USER_INFO_BYTES).position(is_over)?;
        let (info, after) = rest.split_at_checked(length)?;
        let is_secret = match info.iter().position(|byte| *byte == b':') {
            Some(colon) => colon + 1 < info.len(),
            None => info.len() >= MIN_LONE_USER_BYTES,
        };
        (after.first() == Some(&b'@') && is_secret).then_some(end..end + length)
    }
}

/// A line of base64 (line breaks may be escaped in it), a header of a key, or nothing.
fn is_of_a_key(line: &str) -> bool {
    let line = line.trim();
    let is_header = line.split_once(": ").is_some_and(|(name, _)| {
        matches!(name, "Proc-Type" | "DEK-Info" | "Comment" | "Version" | "Hash" | "Charset" | "MessageID")
    });
    is_header || line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\\".contains(&byte))
}
