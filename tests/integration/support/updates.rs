//! Example values for every field that an update or a message can have. They are generated from the machine-readable API that
//! `TELEGRAM_API_SPEC` names, or else read from `fixtures/updates.json`, which was generated the same way. The test `updates.rs` adds
//! realistic updates, each beside its expected outcome.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::env::CHAT;

/// The depth down to which optional fields are filled in; below it, only required fields are.
const OPTIONAL_DEPTH: usize = 1;
/// The maximum depth of nested types: a message can quote a message.
const MAX_DEPTH: usize = 6;

/// Example values by field, one for each variant of the field's type.
pub(crate) type Examples = BTreeMap<String, Vec<Value>>;

/// Example values for the fields of an update and of a message.
pub(crate) struct Updates {
    pub(crate) of_update: Examples,
    pub(crate) of_message: Examples,
}

/// Reads the examples in the repository.
pub(crate) fn committed() -> Updates {
    let all: Value = serde_json::from_str(include_str!("../fixtures/updates.json")).unwrap();
    let of = |name: &str| serde_json::from_value(all[name].clone()).unwrap();
    Updates { of_update: of("update"), of_message: of("message") }
}

/// Generates examples from the machine-readable API; `None` without one.
pub(crate) fn from_spec() -> Option<Updates> {
    let types = super::telegram_spec::types()?;
    let of = |name: &str| {
        let fields = types[name]["fields"].as_array().unwrap();
        let examples = |field: &Value| {
            let kind = field["types"][0].as_str().unwrap();
            (field["name"].as_str().unwrap().to_owned(), each(&types, &field["name"], kind, 0))
        };
        fields.iter().map(examples).collect()
    };
    Some(Updates { of_update: of("Update"), of_message: of("Message") })
}

/// Makes an example of each variant of a type.
fn each(types: &Value, name: &Value, kind: &str, depth: usize) -> Vec<Value> {
    if let Some(item) = kind.strip_prefix("Array of ") {
        return each(types, name, item, depth).into_iter().map(|item| json!([item])).collect();
    }
    match types[kind]["subtypes"].as_array() {
        Some(variants) => {
            variants.iter().map(|variant| object(types, variant.as_str().unwrap(), kind, depth)).collect()
        }
        None if types[kind].is_object() => vec![object(types, kind, "", depth)],
        None => vec![simple(name.as_str().unwrap(), kind)],
    }
}

fn object(types: &Value, kind: &str, parent: &str, depth: usize) -> Value {
    match kind {
        "User" => return json!({"id": CHAT, "is_bot": false, "first_name": "Ana", "language_code": "en"}),
        "Chat" => return json!({"id": CHAT, "type": "private", "first_name": "Ana"}),
        _ => {}
    }
    let mut made = Map::new();
    for field in types[kind]["fields"].as_array().into_iter().flatten() {
        let name = field["name"].as_str().unwrap();
        let is_wanted = field["required"] == true || depth < OPTIONAL_DEPTH && kind != "Message";
        if !is_wanted || depth > MAX_DEPTH {
            continue;
        }
        let value = match (parent, name) {
            ("", _) => None,
            (_, "type" | "status" | "source") => Some(json!(variant(kind, parent))),
            _ => None,
        };
        let example = || each(types, &field["name"], field["types"][0].as_str().unwrap(), depth + 1).into_iter().next();
        made.extend(value.or_else(example).map(|value| (name.to_owned(), value)));
    }
    if kind == "Message" {
        made.insert("from".to_owned(), object(types, "User", "", depth));
        made.insert("text".to_owned(), json!("something said"));
    }
    Value::Object(made)
}

/// The name of a variant in its JSON: `MessageOriginHiddenUser` is `hidden_user`.
fn variant(kind: &str, parent: &str) -> String {
    match kind {
        "ChatMemberOwner" => return "creator".to_owned(),
        "ChatMemberBanned" => return "kicked".to_owned(),
        _ => {}
    }
    let mut name = String::new();
    for c in kind.strip_prefix(parent).unwrap_or(kind).chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

fn simple(name: &str, kind: &str) -> Value {
    match (kind, name) {
        ("Integer", _) if name.ends_with("date") => json!(1_795_000_000),
        ("Integer", "duration") => json!(11),
        ("Integer", "migrate_to_chat_id" | "migrate_from_chat_id") => json!(-1_001_234),
        ("Integer", _) => json!(3),
        ("Boolean", _) => json!(true),
        ("Float", _) => json!(52.52437),
        (_, "emoji") => json!("🎲"),
        (_, "currency") => json!("XTR"),
        (_, "mime_type") => json!("audio/ogg"),
        (_, "type") => json!("regular"),
        (_, "origin") => json!("upgrade"),
        (_, "country_codes") => json!("DE"),
        _ => json!(format!("the {}", name.replace('_', " "))),
    }
}
