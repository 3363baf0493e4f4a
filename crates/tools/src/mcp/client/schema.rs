//! Conversion of tool schemas to the form accepted by the models' APIs.
//!
//! An API refuses a whole request for a single unacceptable schema, so one tool of one server could break every message. Each schema is
//! therefore rewritten. Invalid keywords are repaired or dropped ([`tidy`]). Alternatives and combinations at the top level (`anyOf`,
//! `allOf`) become one list of arguments, with a sentence that explains them ([`flatten`]). Arguments with unacceptable names are renamed,
//! and calls translate them back. A rewritten schema never allows less than the server's. It may allow more, because the server
//! checks each call itself. A schema that can't be rewritten is left out with a reason.
//!
//! A person approves the server's original (`pin`); the rewritten schema is derived from it each time.

mod flatten;
mod tidy;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use reveille_base::words::truncate_text;

use self::{flatten::flatten_schema, tidy::tidy_root};

/// Maximum length of an argument's name, in characters, set by the APIs.
const MAX_KEY_CHARS: usize = 64;
/// Maximum length of a note, in characters.
const MAX_NOTE_CHARS: usize = 6_000;

/// The arguments of a tool as shown to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ToolArguments {
    /// A JSON Schema (2020-12) of an object, without combinations at the top level.
    pub(super) schema: Value,
    /// Sentences about restrictions that the rewritten schema can't express; may be empty.
    pub(super) note: String,
    /// The server's argument names by the model's names, where they differ.
    renamed: BTreeMap<String, String>,
}

impl ToolArguments {
    /// Rewrites a server's schema. Pure and deterministic.
    ///
    /// # Errors
    /// The reason why the tool can't be offered, as the end of a sentence.
    pub(super) fn from_schema(schema: &Value) -> Result<Self, String> {
        let root = tidy_root(schema)?;
        let shape = flatten_schema(&root).ok_or("it takes something other than named arguments")?;
        let mut notes = shape.notes;
        let (mut schema, renamed) = with_plain_keys(shape.schema);
        if !renamed.is_empty() {
            let names: Vec<String> = renamed.iter().map(|(new, old)| format!("`{new}` is {old:?}")).collect();
            notes.push(format!("To the server, {}.", names.join(", ")));
        }
        let document = schema.clone();
        drop_dangling(&mut schema, &document);
        Ok(Self { schema, note: truncate_text(&notes.join(" "), MAX_NOTE_CHARS), renamed })
    }

    /// Translates a call's arguments to the server's names.
    pub(super) fn restore(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(object) if !self.renamed.is_empty() => {
                let restored = |(key, value)| (self.renamed.get(&key).cloned().unwrap_or(key), value);
                Value::Object(object.into_iter().map(restored).collect())
            }
            other => other,
        }
    }
}

/// Gives each argument a name accepted by every API.
fn with_plain_keys(mut schema: Map<String, Value>) -> (Value, BTreeMap<String, String>) {
    let mut renamed = BTreeMap::new();
    let Some(Value::Object(properties)) = schema.get("properties") else { return (Value::Object(schema), renamed) };
    let mut new_names = BTreeMap::new();
    for key in properties.keys().filter(|key| !is_plain_key(key)) {
        let is_taken = |name: &str| properties.contains_key(name) || renamed.contains_key(name);
        let name = plain_key(key, is_taken);
        renamed.insert(name.clone(), key.clone());
        new_names.insert(key.clone(), name);
    }
    let name_of = |key: &str| new_names.get(key).cloned().unwrap_or_else(|| key.to_owned());
    let properties: Map<_, _> = properties.iter().map(|(key, value)| (name_of(key), value.clone())).collect();
    let required = schema.get("required").and_then(Value::as_array).map(|required| {
        required.iter().filter_map(Value::as_str).map(|key| Value::String(name_of(key))).collect::<Vec<_>>()
    });
    schema.insert("properties".to_owned(), Value::Object(properties));
    if let Some(required) = required {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    (Value::Object(schema), renamed)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

fn is_plain_key(key: &str) -> bool {
    (1..=MAX_KEY_CHARS).contains(&key.len()) && key.chars().all(is_plain)
}

fn plain_key(key: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let plain: String = key.chars().map(|c| if is_plain(c) { c } else { '_' }).take(MAX_KEY_CHARS - 4).collect();
    let plain = if plain.is_empty() { "_".to_owned() } else { plain };
    let numbered = (2..).map(|number| format!("{plain}_{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(plain)
}

/// Drops each dangling reference. Its place then accepts any value that its other keywords allow.
fn drop_dangling(value: &mut Value, document: &Value) {
    match value {
        Value::Object(object) => {
            let is_dangling =
                object.get("$ref").and_then(Value::as_str).is_some_and(|to| resolve_reference(document, to).is_none());
            if is_dangling {
                object.shift_remove("$ref");
            }
            object.values_mut().for_each(|value| drop_dangling(value, document));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| drop_dangling(value, document)),
        _ => {}
    }
}

/// Resolves a reference within a document; `None` if it leads outside or nowhere.
fn resolve_reference<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let found = document.pointer(pointer).or_else(|| document.pointer(&decode_percent(pointer)?));
    found.filter(|found| found.is_object())
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns a schema that accepts any value.
fn any_value_schema() -> Value {
    json!({})
}

#[cfg(test)]
mod tests;
