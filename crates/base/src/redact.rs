//! Keeps secrets out of everything that is written: prompts, logs, errors, messages, commits.
//!
//! [`Secret`] can't be printed by accident. [`Redactor`] is the last gate before text leaves: it knows the live secrets and what is
//! secret alone of each (`parts`), in the spellings they leak in (`spellings`), and the shapes of well-known keys that aren't ours to
//! know (`shapes`). Each is one pass of an automaton over the text, whatever the number of secrets.
//!
//! What it is for: what ordinary tools do to a secret (encode it, escape it, wrap it, dump it as spaced hex), and a plain
//! reversal. It is no wall against somebody who wants to hide one from it: a cipher or a letter a line passes. The wall is that no
//! tool can read where secrets are.

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

use parts::SecretParts;
use spellings::Spellings;

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

/// Whether a word by itself is a key by its look: what services give out begins so, or it is a bot's token.
pub fn is_like_a_key(word: &str) -> bool {
    const BEGINNINGS: [&str; 10] =
        ["sk-", "sk_", "AIza", "gsk_", "ghp_", "github_pat_", "xai-", "xoxb-", "AKIA", "hf_"];
    /// Shorter ones are words.
    const MIN_CHARS: usize = 16;
    let is_token = word.split_once(':').is_some_and(|(id, rest)| {
        id.len() >= 6 && id.bytes().all(|b| b.is_ascii_digit()) && rest.len() >= 30 && !rest.contains('/')
    });
    let is_one = word.len() >= MIN_CHARS && !word.contains(char::is_whitespace);
    is_one && (is_token || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)))
}

/// Whether what has this name holds a secret, be it a variable, a header, a field or a parameter.
pub fn is_secret_name(name: &str) -> bool {
    parts::is_secret_name(name)
}

/// The passwords and tokens of the addresses in a text that is no secret otherwise, such as a setting.
pub fn passwords_in(text: &str) -> Vec<Secret> {
    parts::passwords_in(text).into_iter().map(Secret::new).collect()
}

/// Finds secrets in text and replaces them.
#[derive(Clone)]
pub struct Redactor {
    /// Every spelling of a live secret; none without secrets. Made when first needed: most wakes have nothing to write.
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
    /// A redactor for these live secrets, and always for the well-known key shapes.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let secrets: Vec<Secret> = secrets.into_iter().cloned().collect();
        Self::when_needed(move || secrets)
    }

    /// The same for secrets that are gathered before the first text is looked at.
    pub fn when_needed(gather: impl FnOnce() -> Vec<Secret> + Send + 'static) -> Self {
        let make = move || Spellings::of(&SecretParts::of(gather().iter().map(Secret::expose)));
        Self { spellings: Arc::new(LazyLock::new(Box::new(make))) }
    }

    /// Gets ready for the first text, while there is nothing else to do.
    pub fn get_ready(&self) {
        LazyLock::force(&self.spellings);
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

    /// Raw JSON with every secret in its strings and names replaced: its structure stays whole, whatever stands in them, and the bytes of
    /// pictures (`{"type": "base64", "data": …}`) stay as they are. JSON without secrets comes back unchanged to the byte. What
    /// isn't JSON is redacted as text.
    pub fn redact_json(&self, raw: &str) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(raw) else {
            return self.redact(raw);
        };
        if self.redact_value(&mut value) { value.to_string() } else { raw.to_owned() }
    }

    /// Whether something was replaced. A parser's bound on depth bounds this, too.
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

    /// Whether [`Redactor::redact`] would change the text.
    pub fn contains_secret(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// What [`Redactor::redact`] would replace, each spelling once.
    pub fn secrets_in(&self, text: &str) -> BTreeSet<String> {
        self.spans(text).into_iter().filter_map(|span| text.get(span).map(str::to_owned)).collect()
    }

    /// Whether raw JSON holds a live secret in one of its strings, as whoever gets the string could read it: escapes are undone, and
    /// twice what percent-encodes a part of it. Shapes don't count: a key that somebody was given may be theirs to hand on. What isn't
    /// JSON is looked at as text.
    pub fn carries_live_secret(&self, raw: &str) -> bool {
        match serde_json::from_str::<Value>(raw) {
            Ok(value) => self.is_live_in(raw) || self.is_carried(&value),
            Err(_) => self.is_live_in(raw),
        }
    }

    fn is_carried(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_live_in(text),
            Value::Array(values) => values.iter().any(|value| self.is_carried(value)),
            Value::Object(fields) => fields.iter().any(|(name, value)| self.is_live_in(name) || self.is_carried(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn is_live_in(&self, text: &str) -> bool {
        let Some(spellings) = &**self.spellings else { return false };
        let once = percent_decoded(text);
        let twice = percent_decoded(&once);
        // fault: secret-spelled-part-passes
        [text, &once, &twice].into_iter().any(|text| !spellings.find(text).is_empty())
    }

    /// Byte ranges of secrets, in order, none touching another.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = shapes::find(text);
        found.extend((**self.spellings).iter().flat_map(|spellings| spellings.find(text)));
        found.retain(|span| text.get(span.clone()) != Some(MASK));
        merge(found)
    }
}

/// The text with each `%41` as the byte that it stands for. Bytes that make no text are replaced.
fn percent_decoded(text: &str) -> String {
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

#[cfg(test)]
mod tests;
