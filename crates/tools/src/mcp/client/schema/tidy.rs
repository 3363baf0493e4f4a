//! Conversion of a server's schema to valid JSON Schema (2020-12): older drafts are translated, meaningless parts dropped.

use serde_json::{Map, Number, Value, json};

use super::any_value_schema;

/// Maximum nesting of schemas; deeper ones accept any value.
const MAX_DEPTH: usize = 24;
/// The standard types.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Converts a whole schema.
///
/// # Errors
/// The schema doesn't describe named arguments, so a conversion would lose information.
pub(super) fn tidy_root(schema: &Value) -> Result<Value, String> {
    let object = match schema {
        Value::Object(object) => object,
        // A tool without arguments.
        Value::Null | Value::Bool(true) => return Ok(any_value_schema()),
        _ => return Err("its arguments aren't described by an object".to_owned()),
    };
    if matches!(object.get("properties"), Some(Value::Array(list)) if !list.is_empty()) {
        return Err("its arguments are a list without names".to_owned());
    }
    // The schema's own address: references that begin with it are local.
    let id = object.get("$id").and_then(Value::as_str).unwrap_or_default().trim_end_matches('#').to_owned();
    let mut tidied = tidy_schema(schema, 0);
    if !id.is_empty() {
        make_local(&mut tidied, &id);
    }
    Ok(tidied)
}

fn make_local(value: &mut Value, id: &str) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(local) = reference.strip_prefix(id).filter(|rest| rest.is_empty() || rest.starts_with('#'))
            {
                *reference = if local.is_empty() { "#".to_owned() } else { local.to_owned() };
            }
            object.values_mut().for_each(|value| make_local(value, id));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| make_local(value, id)),
        _ => {}
    }
}

fn tidy_schema(schema: &Value, depth: usize) -> Value {
    match schema {
        _ if depth > MAX_DEPTH => any_value_schema(),
        Value::Object(object) => Value::Object(tidy_object(object, depth)),
        Value::Bool(false) => json!({"not": {}}),
        // `"path": "string"` abbreviates a type; any other text is a description.
        Value::String(text) => match find_type(text) {
            Some(name) => tidy_schema(&json!({"type": name}), depth),
            None => json!({"description": text}),
        },
        _ => any_value_schema(),
    }
}

fn tidy_object(object: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let mut tidied = Map::new();
    for (keyword, value) in object {
        if let Some(value) = tidy_keyword(keyword, value, depth + 1) {
            tidied.insert(keyword.clone(), value);
        }
    }
    if let Some(Value::Array(first)) = object.get("items") {
        let rest = object.get("additionalItems").filter(|rest| !rest.is_null());
        if !first.is_empty() {
            tidied.insert("prefixItems".to_owned(), first.iter().map(|item| tidy_schema(item, depth + 1)).collect());
        }
        tidied.insert("items".to_owned(), rest.map_or_else(any_value_schema, |rest| tidy_schema(rest, depth + 1)));
    }
    if object.contains_key("$recursiveRef") {
        tidied.insert("$ref".to_owned(), "#".into());
    }
    collect_required_names(object, &mut tidied);
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if object.get(exclusive) == Some(&Value::Bool(true))
            && let Some(limit) = tidied.shift_remove(bound)
        {
            tidied.insert(exclusive.to_owned(), limit);
        }
    }
    if object.get("nullable") == Some(&Value::Bool(true)) {
        allow_null(&mut tidied);
    }
    // Both are meaningless, but required by some APIs.
    for (of, keyword) in [("array", "items"), ("object", "properties")] {
        if is_of_type(&tidied, of) && !tidied.contains_key(keyword) {
            tidied.insert(keyword.to_owned(), json!({}));
        }
    }
    tidied
}

fn is_of_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Converts a keyword's value; `None` drops the keyword.
fn tidy_keyword(keyword: &str, value: &Value, depth: usize) -> Option<Value> {
    match keyword {
        "type" => parse_types(value),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            let schemas = value.as_object()?;
            Some(Value::Object(schemas.iter().map(|(key, schema)| (key.clone(), tidy_schema(schema, depth))).collect()))
        }
        "dependencies" => {
            let tidied = |value: &Value| if value.is_array() { value.clone() } else { tidy_schema(value, depth) };
            let entries = value.as_object()?;
            Some(Value::Object(entries.iter().map(|(key, value)| (key.clone(), tidied(value))).collect()))
        }
        "required" => {
            let mut names: Vec<Value> = Vec::new();
            for name in list_items(value).iter().filter(|name| name.is_string()) {
                if !names.contains(name) {
                    names.push((*name).clone());
                }
            }
            (!names.is_empty()).then_some(Value::Array(names))
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            let schemas: Vec<Value> = list_items(value).iter().map(|schema| tidy_schema(schema, depth)).collect();
            (!schemas.is_empty()).then_some(Value::Array(schemas))
        }
        "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" if value.is_boolean() => {
            Some(value.clone())
        }
        "additionalProperties"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "contentSchema"
        | "items" => (value.is_object() || value.is_boolean()).then(|| tidy_schema(value, depth)),
        "enum" => match value {
            Value::Object(named) if !named.is_empty() => Some(named.values().cloned().collect()),
            Value::Array(values) if !values.is_empty() => Some(value.clone()),
            _ => None,
        },
        "examples" => (!value.is_null()).then(|| Value::Array(list_items(value).into_iter().cloned().collect())),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => parse_number(value).map(Value::Number),
        "multipleOf" => parse_number(value).filter(|step| step.as_f64() > Some(0.0)).map(Value::Number),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => parse_integer(value),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean().then(|| value.clone()),
        "description" | "title" => match value {
            Value::Null => None,
            Value::String(_) => Some(value.clone()),
            other => Some(other.to_string().into()),
        },
        "format" | "pattern" | "$comment" | "contentEncoding" | "contentMediaType" | "$ref" => {
            value.is_string().then(|| value.clone())
        }
        "dependentRequired" => value.is_object().then(|| value.clone()),
        // The draft's id, and names without any reference to them.
        "$schema" | "$id" | "id" | "$anchor" | "$vocabulary" | "$dynamicAnchor" | "$dynamicRef"
        | "$recursiveAnchor" | "$recursiveRef" | "additionalItems" | "nullable" => None,
        _ => Some(value.clone()),
    }
}

/// Returns a list's items, no items for null or a boolean, or any other value as the only item.
fn list_items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
        other => vec![other],
    }
}

fn parse_types(value: &Value) -> Option<Value> {
    let mut names: Vec<&str> = Vec::new();
    let words = match value {
        Value::Null => Vec::new(),
        Value::Array(words) => words.iter().map(|word| word.as_str().unwrap_or("null")).collect(),
        other => other.as_str().into_iter().collect(),
    };
    for name in words {
        // An unknown type could be anything.
        let name = find_type(name)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => None,
        [only] => Some((*only).into()),
        several => Some(several.iter().map(|name| Value::from(*name)).collect()),
    }
}

/// Returns the standard name of a type, also for names from programming languages.
fn find_type(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase();
    let standard = match word.as_str() {
        "str" | "text" => "string",
        "int" | "long" | "int32" | "int64" => "integer",
        "float" | "double" | "decimal" => "number",
        "bool" => "boolean",
        "dict" | "map" => "object",
        "list" | "tuple" => "array",
        "none" => "null",
        other => other,
    };
    TYPES.into_iter().find(|name| *name == standard)
}

fn parse_number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => serde_json::from_str(text.trim()).ok(),
        _ => None,
    }
}

fn parse_integer(value: &Value) -> Option<Value> {
    let number = parse_number(value)?;
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..=9.0e15).contains(float));
    number.as_u64().map(Value::from).or_else(|| float.map(|_| number.into()))
}

/// Collects the arguments marked as required themselves, as in older drafts.
fn collect_required_names(object: &Map<String, Value>, tidied: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = object.get("properties") else { return };
    let marked = properties.iter().filter(|(_, schema)| schema.get("required") == Some(&Value::Bool(true)));
    let marked: Vec<Value> = marked.map(|(key, _)| Value::from(key.as_str())).collect();
    if let Some(Value::Array(required)) = tidied.get_mut("required") {
        let new: Vec<Value> = marked.into_iter().filter(|key| !required.contains(key)).collect();
        required.extend(new);
    } else if !marked.is_empty() {
        tidied.insert("required".to_owned(), Value::Array(marked));
    }
}

/// Allows null for `nullable`, a keyword of `OpenAPI`.
fn allow_null(tidied: &mut Map<String, Value>) {
    match tidied.get_mut("type") {
        Some(Value::Array(several)) if !several.contains(&"null".into()) => several.push("null".into()),
        Some(only @ Value::String(_)) if *only != "null" => *only = json!([only.clone(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = tidied.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
