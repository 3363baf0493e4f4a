//! Masks secrets in all output: prompts, logs, errors, messages, commits.
//!
//! [`Secret`] can't be printed by accident. [`Redactor`] checks text before it leaves the program. It knows the live secrets and their
//! secret parts (`parts`), the spellings in which they leak (`spellings`), and the shapes of well-known keys (`shapes`). Each check is
//! one pass of an automaton over the text, for any number of secrets.
//!
//! The purpose is to catch the work of ordinary tools: encoding, escaping, wrapping, spaced hex dumps, plain reversal. A ciphered secret
//! or a single letter on each line gets past. The real barrier against a deliberate leak is that no tool can read the places of
//! secrets.

mod parts;
mod shapes;
mod spellings;

use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use serde_json::Value;

use crate::words::first_bytes;
use parts::SecretParts;
use spellings::Spellings;

/// The mask that replaces a secret.
const MASK: &str = "***";

/// The minimum length in bytes of a masked secret; shorter ones would blank out ordinary words.
const MIN_SECRET_BYTES: usize = 6;

/// A string that prints as `***`. Deliberately without `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Exposes the secret, for the code that sends it.
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

/// Returns true if a word looks like a key: a known prefix, or the form of a bot token.
pub fn is_like_a_key(word: &str) -> bool {
    const BEGINNINGS: [&str; 10] =
        ["sk-", "sk_", "AIza", "gsk_", "ghp_", "github_pat_", "xai-", "xoxb-", "AKIA", "hf_"];
    /// The minimum length of a key; shorter ones are ordinary words.
    const MIN_CHARS: usize = 16;
    let is_token = word.split_once(':').is_some_and(|(id, rest)| {
        id.len() >= 6 && id.bytes().all(|b| b.is_ascii_digit()) && rest.len() >= 30 && !rest.contains('/')
    });
    let is_long_word = word.len() >= MIN_CHARS && !word.contains(char::is_whitespace);
    is_long_word && (is_token || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)))
}

/// Returns true if a variable, header, field or parameter of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    parts::is_secret_name(name)
}

/// Extracts the passwords and tokens from URLs in an otherwise public text, such as a setting.
pub fn find_passwords(text: &str) -> Vec<Secret> {
    parts::find_passwords(text).into_iter().map(Secret::new).collect()
}

/// Finds and masks secrets in text.
#[derive(Clone)]
pub struct Redactor {
    /// All spellings of the live secrets; `None` without secrets. Built on first use, because most wakes write nothing.
    spellings: Arc<LazyLock<Option<Spellings>, MakeSpellings>>,
}

type MakeSpellings = Box<dyn FnOnce() -> Option<Spellings> + Send>;

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Creates a redactor for these live secrets and for well-known key shapes.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let secrets: Vec<Secret> = secrets.into_iter().cloned().collect();
        Self::new_lazy(move || secrets)
    }

    /// Creates a redactor whose secrets are gathered on first use.
    pub fn new_lazy(gather: impl FnOnce() -> Vec<Secret> + Send + 'static) -> Self {
        let make = move || Spellings::from_secrets(&SecretParts::from_secrets(gather().iter().map(Secret::expose)));
        Self { spellings: Arc::new(LazyLock::new(Box::new(make))) }
    }

    /// Builds the automaton ahead of the first text.
    pub fn get_ready(&self) {
        LazyLock::force(&self.spellings);
    }

    /// Replaces each secret with `***`. Text without secrets is returned unchanged.
    pub fn redact(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut kept_to = 0;
        for span in self.find_spans(text) {
            clean.push_str(text.get(kept_to..span.start).unwrap_or_default());
            clean.push_str(MASK);
            kept_to = span.end;
        }
        clean.push_str(text.get(kept_to..).unwrap_or_default());
        clean
    }

    /// Masks secrets in the strings and names of raw JSON. The structure stays intact, and so do the bytes of pictures
    /// (`{"type": "base64", "data": …}`). JSON without secrets is returned byte for byte. Invalid JSON is masked as plain text.
    pub fn redact_json(&self, raw: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(raw) else {
            return self.redact(raw);
        };
        if self.redact_value(&mut value) { value.to_string() } else { raw.to_owned() }
    }

    /// Returns true if anything was replaced. The parser bounds the depth.
    fn redact_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let is_secret = self.contains_secret(text);
                if is_secret {
                    *text = self.redact(text);
                }
                is_secret
            }
            Value::Array(values) => self.redact_values(values.iter_mut()),
            Value::Object(fields) => {
                let is_bytes = fields.get("type").and_then(Value::as_str) == Some("base64");
                let values = fields.iter_mut().filter(|(name, _)| !(is_bytes && *name == "data"));
                let is_changed = self.redact_values(values.map(|(_, value)| value));
                if !fields.keys().any(|name| self.contains_secret(name)) {
                    return is_changed;
                }
                *fields = std::mem::take(fields).into_iter().map(|(name, value)| (self.redact(&name), value)).collect();
                true
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn redact_values<'a>(&self, values: impl Iterator<Item = &'a mut Value>) -> bool {
        let mut is_changed = false;
        for value in values {
            is_changed |= self.redact_value(value);
        }
        is_changed
    }

    /// Returns true if [`Redactor::redact`] would change the text.
    pub fn contains_secret(&self, text: &str) -> bool {
        !self.find_spans(text).is_empty()
    }

    /// Returns the distinct texts that [`Redactor::redact`] would replace.
    pub fn find_secrets(&self, text: &str) -> BTreeSet<String> {
        self.find_spans(text).into_iter().filter_map(|span| text.get(span).map(str::to_owned)).collect()
    }

    /// Returns true if raw JSON contains a live secret in the form that a recipient could read: JSON escapes undone, and percent
    /// encoding up to twice. Key shapes don't count, because a key from somebody else may be theirs to send. Invalid JSON is searched as
    /// plain text.
    pub fn carries_live_secret(&self, raw: &str) -> bool {
        match serde_json::from_str::<Value>(raw) {
            Ok(value) => self.is_live_text(raw) || self.is_live_value(&value),
            Err(_) => self.is_live_text(raw),
        }
    }

    fn is_live_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_live_text(text),
            Value::Array(values) => values.iter().any(|value| self.is_live_value(value)),
            Value::Object(fields) => {
                fields.iter().any(|(name, value)| self.is_live_text(name) || self.is_live_value(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn is_live_text(&self, text: &str) -> bool {
        let Some(spellings) = &**self.spellings else { return false };
        let once = decode_percent(text);
        let twice = decode_percent(&once);
        // fault: secret-spelled-part-passes
        [text, &once, &twice].into_iter().any(|text| !spellings.find(text).is_empty())
    }

    /// Returns the length of the part of a growing text that is safe to show: no secret can begin in it and end after it, whatever
    /// follows. The part ends before a word, because the last word may be the beginning of a key.
    fn find_settled_length(&self, text: &str) -> usize {
        let find_last_word = |at: usize| find_last_word(first_bytes(text, at));
        let spelled = (**self.spellings).as_ref().map_or(text.len(), |spellings| spellings.find_open(text));
        // fault: beginning-secret-shown
        let settled = find_last_word(spelled.min(shapes::find_open(text)));
        // A secret may begin before that word and end within it or after it.
        let crossing = self.find_spans(text).into_iter().find(|span| span.start < settled && settled < span.end);
        crossing.map_or(settled, |span| find_last_word(span.start))
    }

    /// The byte ranges of secrets, in order and disjoint.
    fn find_spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = shapes::find(text);
        found.extend((**self.spellings).iter().flat_map(|spellings| spellings.find(text)));
        found.retain(|span| text.get(span.clone()) != Some(MASK));
        merge_spans(found)
    }
}

/// Returns the position at which the last word of a text begins. Keys are ASCII, so any other letter separates words, which also serves
/// scripts without spaces. In a URL the whole run counts, because a password may hold any letter.
fn find_last_word(text: &str) -> usize {
    let (run, word) =
        (text.trim_end_matches(|c: char| !c.is_whitespace()), text.trim_end_matches(|c| !is_between_words(c)));
    if text.get(run.len()..).is_some_and(|run| run.contains("://")) { run.len() } else { word.len() }
}

fn is_between_words(c: char) -> bool {
    c.is_whitespace() || !c.is_ascii()
}

/// A text that is shown while it grows. The parts shown mask every secret that the whole text would mask.
#[derive(Debug)]
pub struct GrowingText {
    redactor: Redactor,
    held: String,
}

impl GrowingText {
    /// Begins an empty text.
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new() }
    }

    /// Adds to the text, and returns the next part that is safe to show, masked. The rest is held back.
    pub fn push(&mut self, more: &str) -> String {
        self.held.push_str(more);
        if !more.contains(is_between_words) {
            return String::new();
        }
        let settled: String = self.held.drain(..self.redactor.find_settled_length(&self.held)).collect();
        self.redactor.redact(&settled)
    }

    /// Ends the text, and returns the part held back, masked.
    pub fn finish(&mut self) -> String {
        self.redactor.redact(&std::mem::take(&mut self.held))
    }
}

/// Decodes each `%41` to its byte. Invalid UTF-8 is replaced.
fn decode_percent(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (*first, after) {
            (b'%', [high, low, beyond @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = beyond;
                    high << 4 | low
                }
                _ => b'%',
            },
            (byte, _) => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sorts the ranges and joins those that overlap or touch.
fn merge_spans(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
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

#[cfg(test)]
mod tests;
