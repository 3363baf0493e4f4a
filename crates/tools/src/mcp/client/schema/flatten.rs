//! Conversion of combined shapes at the top of a schema (`$ref`, `allOf`, `anyOf`, `oneOf`) to one list of arguments.

use serde_json::{Map, Value, json};

use reveille_base::words::truncate_text;

use super::resolve_reference;

/// Maximum number of schemas examined, because references may be circular.
const MAX_SCHEMAS: usize = 128;
/// Maximum length of the sentence about alternative forms, in characters.
const MAX_FORMS_CHARS: usize = 3_000;

/// A schema without combinations at the top.
#[derive(Debug, Default)]
pub(super) struct FlatSchema {
    /// The schema.
    pub(super) schema: Map<String, Value>,
    /// Sentences about lost restrictions.
    pub(super) notes: Vec<String>,
}

/// Flattens a converted schema; `None` if it describes no object.
pub(super) fn flatten_schema(root: &Value) -> Option<FlatSchema> {
    let Shape { mut properties, required, mut rest, notes } = read_shape(root, root, &mut { MAX_SCHEMAS })?;
    // Some APIs require a description of each required argument.
    for name in &required {
        properties.entry(name.clone()).or_insert_with(super::any_value_schema);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.append(&mut rest);
    Some(FlatSchema { schema, notes })
}

/// The known arguments of an object.
#[derive(Debug, Default, Clone)]
struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// The other keywords.
    rest: Map<String, Value>,
    notes: Vec<String>,
}

/// Reads the shape of a schema in the document; `None` if it matches no object.
fn read_shape(schema: &Value, document: &Value, left: &mut usize) -> Option<Shape> {
    let object = schema.as_object()?;
    let Some(fewer) = left.checked_sub(1) else { return Some(Shape::default()) };
    *left = fewer;
    let is_object = match object.get("type") {
        Some(Value::String(only)) => only == "object",
        Some(Value::Array(several)) => several.iter().any(|one| one == "object"),
        _ => true,
    };
    if !is_object {
        return None;
    }
    let mut found = Shape::default();
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("type" | "$ref" | "allOf" | "anyOf" | "oneOf" | "default" | "examples", _) => {}
            ("properties", Value::Object(properties)) => found.properties = properties.clone(),
            ("required", Value::Array(names)) => found.required = list_texts(names),
            // No API accepts these at the top.
            ("not" | "enum" | "const", _) => {
                found.notes.push(limit_text(&format!(
                    "As a whole, the arguments are also bound by {}.",
                    json!({keyword.as_str(): value})
                )));
            }
            _ => {
                found.rest.insert(keyword.clone(), value.clone());
            }
        }
    }
    if let Some(to) = object.get("$ref").and_then(Value::as_str).and_then(|to| resolve_reference(document, to)) {
        found.add(read_shape(to, document, left)?);
    }
    for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        found.add(read_shape(part, document, left)?);
    }
    for (keyword, how_many) in [("anyOf", "At least one"), ("oneOf", "Exactly one")] {
        let Some(Value::Array(forms)) = object.get(keyword) else { continue };
        let mut forms: Vec<Shape> = forms.iter().filter_map(|form| read_shape(form, document, left)).collect();
        match forms.len() {
            0 => return None,
            1 => found.add(forms.remove(0)),
            _ => found.add_either(&forms, how_many),
        }
    }
    Some(found)
}

fn list_texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Shape {
    /// Adds a shape that must hold as well.
    fn add(&mut self, other: Self) {
        for (key, schema) in other.properties {
            match self.properties.get_mut(&key) {
                Some(known) if *known == schema || schema == json!({}) => {}
                Some(known) if *known == json!({}) => *known = schema,
                Some(known) => *known = json!({"allOf": [known.clone(), schema]}),
                None => {
                    self.properties.insert(key, schema);
                }
            }
        }
        self.require(other.required);
        for (keyword, value) in other.rest {
            self.rest.entry(keyword).or_insert(value);
        }
        // Each part would exclude arguments named only by another part.
        self.rest.shift_remove("additionalProperties");
        self.rest.shift_remove("unevaluatedProperties");
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Adds alternative shapes, one of which must hold as well.
    fn add_either(&mut self, forms: &[Self], how_many: &str) {
        let in_all = |name: &String| forms.iter().all(|form| form.required.contains(name));
        let common: Vec<String> = forms
            .first()
            .into_iter()
            .flat_map(|form| form.required.iter().filter(|name| in_all(name)).cloned())
            .collect();
        let is_only_needs = forms.iter().all(|form| form.properties.is_empty());
        let needs = |form: &Self| {
            let names: Vec<String> = form.required.iter().map(|name| format!("`{name}`")).collect();
            if names.is_empty() { "nothing more".to_owned() } else { names.join(" and ") }
        };
        let listed_needs = || forms.iter().map(needs).collect::<Vec<_>>().join("; or ");
        if is_only_needs {
            self.notes.push(limit_text(&format!("{how_many} of these is needed: {}.", listed_needs())));
        } else {
            let whole = |form: &Self| json!({"properties": form.properties, "required": form.required}).to_string();
            let whole = forms.iter().map(whole).collect::<Vec<_>>().join(" or ");
            let note = format!("The arguments have one of these forms: {whole}.");
            let short =
                || limit_text(&format!("The arguments have one of several forms, which need {}.", listed_needs()));
            self.notes.push(if note.chars().count() <= MAX_FORMS_CHARS { note } else { short() });
        }
        for key in forms.iter().flat_map(|form| form.properties.keys()) {
            if self.properties.contains_key(key) {
                continue;
            }
            let mut schemas: Vec<Value> = Vec::new();
            for schema in forms.iter().filter_map(|form| form.properties.get(key)) {
                if !schemas.contains(schema) {
                    schemas.push(schema.clone());
                }
            }
            let schema = if schemas.len() == 1 { schemas.remove(0) } else { json!({"anyOf": schemas}) };
            self.properties.insert(key.clone(), schema);
        }
        self.require(common);
        if !is_only_needs {
            self.rest.shift_remove("additionalProperties");
            self.rest.shift_remove("unevaluatedProperties");
        }
    }

    fn require(&mut self, names: Vec<String>) {
        for name in names {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }
}

fn limit_text(text: &str) -> String {
    truncate_text(text, MAX_FORMS_CHARS)
}
