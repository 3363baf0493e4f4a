//! Keys that are recognised by shape, whoever owns them.
//!
//! One automaton finds the prefixes of such keys; code then examines the rest. Prefixes that occur in ordinary text (`sk-`, or `AKIA` in
//! a picture's base64) must begin a word and have a key's length, so that hashes, UUIDs and pictures stay.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::words::first_bytes;

/// The maximum distance in bytes between the begin and end lines of a private key.
const MAX_KEY_BLOCK_BYTES: usize = 16 * 1024;
/// The maximum length in bytes of user name and password in a URL.
const MAX_USER_INFO_BYTES: usize = 1_024;
/// The minimum length in bytes of a secret user name without a password, so that `ssh://git@…` passes.
const MIN_LONE_USER_BYTES: usize = 20;

/// The maximum length in bytes of a key that must be mixed. Each prefix is examined anew, and a hostile text has many.
const MAX_MIXED_BYTES: usize = 1_024;

/// The required text after a prefix.
#[derive(Clone, Copy)]
enum Tail {
    /// At least this many such bytes.
    AtLeast(usize, Bytes),
    /// Exactly this many such bytes, at the beginning of a word.
    Exactly(usize, Bytes),
    /// Like `AtLeast`, at the beginning of a word, with a digit and a letter.
    Mixed(usize, Bytes),
    /// Two parts with a dot between them, each of at least this many bytes, at the beginning of a word.
    Pair(usize),
    /// Slack tokens (`xoxb-` and the like): a letter and a hyphen, then the rest.
    Slack,
    /// A JSON web token: three parts with dots between them.
    Token,
    /// A Telegram token: digits, a colon (this prefix), at least 30 bytes.
    Telegram,
    /// A block of a private key after `-----BEGIN `.
    Block,
    /// A name and a password after `://`.
    Address,
}

/// A set of allowed bytes.
type Bytes = fn(u8) -> bool;

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
fn is_alphanumeric_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}
fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
fn is_upper_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}
fn is_dotted_byte(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'.'
}
fn is_path_byte(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'/'
}

/// Prefixes and the text after them, from the issuers' documentation and sample keys.
const SHAPES: [(&str, Tail); 45] = [
    ("sk-ant-", Tail::AtLeast(10, is_word_byte)),
    ("sk-", Tail::Mixed(20, is_word_byte)), // OpenAI and others that took its form
    ("sk_live_", Tail::AtLeast(16, is_alphanumeric_byte)),
    ("sk_test_", Tail::AtLeast(16, is_alphanumeric_byte)),
    ("rk_live_", Tail::AtLeast(16, is_alphanumeric_byte)),
    ("whsec_", Tail::Mixed(20, is_alphanumeric_byte)),
    ("ghp_", Tail::AtLeast(20, is_alphanumeric_byte)),
    ("gho_", Tail::AtLeast(20, is_alphanumeric_byte)),
    ("ghu_", Tail::AtLeast(20, is_alphanumeric_byte)),
    ("ghs_", Tail::AtLeast(20, is_alphanumeric_byte)),
    ("ghr_", Tail::AtLeast(20, is_alphanumeric_byte)),
    ("github_pat_", Tail::AtLeast(20, is_identifier_byte)),
    ("glpat-", Tail::AtLeast(20, is_dotted_byte)),
    ("glptt-", Tail::AtLeast(20, is_dotted_byte)),
    ("npm_", Tail::Exactly(36, is_alphanumeric_byte)),
    ("pypi-AgE", Tail::AtLeast(30, is_word_byte)),
    ("AKIA", Tail::Exactly(16, is_upper_byte)),
    ("ASIA", Tail::Exactly(16, is_upper_byte)),
    ("AIza", Tail::Exactly(35, is_word_byte)),
    ("ya29.", Tail::Mixed(20, is_word_byte)),
    ("GOCSPX-", Tail::AtLeast(20, is_word_byte)),
    ("xox", Tail::Slack),
    ("xapp-", Tail::Mixed(20, is_word_byte)),
    ("hooks.slack.com/services/", Tail::AtLeast(20, is_path_byte)),
    ("discord.com/api/webhooks/", Tail::AtLeast(30, is_path_byte)),
    ("SG.", Tail::Pair(16)), // SendGrid
    ("hf_", Tail::Mixed(30, is_alphanumeric_byte)),
    ("dop_v1_", Tail::AtLeast(40, is_alphanumeric_byte)),
    ("shpat_", Tail::AtLeast(24, is_alphanumeric_byte)),
    ("hvs.", Tail::Mixed(20, is_word_byte)),
    ("tskey-", Tail::Mixed(20, is_word_byte)),
    ("lin_api_", Tail::AtLeast(24, is_alphanumeric_byte)),
    ("ntn_", Tail::Mixed(30, is_alphanumeric_byte)),
    ("r8_", Tail::Mixed(30, is_alphanumeric_byte)),
    ("gsk_", Tail::Mixed(30, is_alphanumeric_byte)),
    ("xai-", Tail::Mixed(40, is_word_byte)),
    ("pplx-", Tail::Mixed(30, is_word_byte)),
    ("AGE-SECRET-KEY-1", Tail::AtLeast(50, is_upper_byte)),
    ("dckr_pat_", Tail::AtLeast(20, is_word_byte)),
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
    // Small and fast to build, like the automaton of live secrets.
    builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::ContiguousNFA));
    builder.build(SHAPES.iter().map(|(beginning, _)| beginning)).expect("constant beginnings")
});

/// The byte ranges of the text that look like keys, in any order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for beginning in BEGINNINGS.find_overlapping_iter(text) {
        let Some((_, tail)) = SHAPES.get(beginning.pattern().as_usize()) else { continue };
        let is_within = found.last().is_some_and(|last| beginning.end() < last.end);
        // Skip a prefix inside a key that ends with its run: examining it again would be quadratic in a hostile text.
        if !(is_within && matches!(tail, Tail::AtLeast(..) | Tail::Slack)) {
            found.extend(Look { text, beginning: beginning.range() }.find_key(*tail));
        }
    }
    found
}

/// The position of a private key's block that has no end yet, or the text's length. Other keys are single words.
pub(super) fn find_open(text: &str) -> usize {
    let open = |at: &usize| {
        let near = first_bytes(text.get(*at..).unwrap_or_default(), MAX_KEY_BLOCK_BYTES);
        let has_end = near.split_once("-----END ").is_some_and(|(_, end)| end.contains("-----"));
        !has_end && at + MAX_KEY_BLOCK_BYTES > text.len()
    };
    text.match_indices("-----BEGIN ").map(|(at, _)| at).find(open).unwrap_or(text.len())
}

/// A prefix in a text with its surroundings.
struct Look<'a> {
    text: &'a str,
    beginning: Range<usize>,
}

impl Look<'_> {
    /// The range of the key that begins here, if any.
    fn find_key(&self, tail: Tail) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        match tail {
            Tail::Mixed(..) | Tail::Exactly(..) | Tail::Pair(_) | Tail::Token if !self.begins_a_word() => None,
            Tail::AtLeast(least, of) => {
                let length = self.run(end, of, usize::MAX);
                (length >= least).then_some(start..end + length)
            }
            Tail::Exactly(exactly, of) => {
                let is_one =
                    self.run(end, of, exactly + 1) == exactly && self.run(end, is_word_byte, exactly + 1) == exactly;
                is_one.then_some(start..end + exactly)
            }
            Tail::Pair(least) => {
                let first = self.run(end, is_word_byte, usize::MAX);
                let second = end + first + 1;
                let is_pair = first >= least && self.bytes().get(second - 1) == Some(&b'.');
                let length = if is_pair { self.run(second, is_word_byte, usize::MAX) } else { 0 };
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
                let length = self.run(end + 2, |byte| is_alphanumeric_byte(byte) || byte == b'-', usize::MAX);
                (kind.is_ascii_alphabetic() && length >= 10).then_some(start..end + 2 + length)
            }
            Tail::Token => self.find_token(),
            Tail::Telegram => self.find_telegram_token(),
            Tail::Block => self.find_key_block(),
            Tail::Address => self.find_userinfo(),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Counts the bytes of this kind from here on, up to `most`.
    fn run(&self, from: usize, of: Bytes, most: usize) -> usize {
        self.bytes().get(from..).unwrap_or_default().iter().take(most).take_while(|byte| of(**byte)).count()
    }

    /// Returns true if the prefix begins a word. The letter of an escape (`\n`, `\u003d`, `%3D`) doesn't belong to a word.
    fn begins_a_word(&self) -> bool {
        let before = self.bytes().get(..self.beginning.start).unwrap_or_default();
        match before {
            [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
            [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
            [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) => true,
            [.., last] => !is_identifier_byte(*last) && !matches!(last, b'+' | b'-'),
            [] => true,
        }
    }

    fn find_token(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let word_end = |from: usize| from + self.run(from, is_word_byte, usize::MAX);
        let header_end = word_end(end);
        let claims = self.bytes().get(header_end..)?.strip_prefix(b".eyJ").map(|_| header_end + 1)?;
        let claims_end = word_end(claims);
        let is_one = header_end - start >= 12 && claims_end - claims >= 12;
        let is_signed = self.bytes().get(claims_end) == Some(&b'.');
        is_one.then(|| start..if is_signed { word_end(claims_end + 1) } else { claims_end })
    }

    /// The range of a Telegram token. In URLs the digits follow `/bot` directly.
    fn find_telegram_token(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let before = self.bytes().get(..start)?;
        let digits = before.iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
        let length = self.run(end, is_word_byte, usize::MAX);
        (digits >= 6 && length >= 30).then_some(start - digits..end + length)
    }

    /// The range up to the end of the block. Without an end line, the range covers only lines that look like a key.
    fn find_key_block(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.beginning;
        let rest = self.text.get(end..)?;
        let (kind, body) = rest.split_once("-----")?;
        let is_private = kind.len() <= 40
            && (kind.ends_with("PRIVATE KEY") || kind.ends_with("PRIVATE KEY BLOCK"))
            && kind.bytes().all(|byte| is_upper_byte(byte) || byte == b' ');
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

    /// The range of a name with a password, or of a long name alone, between `://` and `@`.
    fn find_userinfo(&self) -> Option<Range<usize>> {
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

/// Returns true for a line of base64 (with escaped line breaks), a key header or an empty line.
fn is_of_a_key(line: &str) -> bool {
    let line = line.trim();
    let is_header = line.split_once(": ").is_some_and(|(name, _)| {
        matches!(name, "Proc-Type" | "DEK-Info" | "Comment" | "Version" | "Hash" | "Charset" | "MessageID")
    });
    is_header || line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\\".contains(&byte))
}
