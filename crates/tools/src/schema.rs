//! The JSON schema of a tool's arguments, as short as possible.

use schemars::JsonSchema;
use serde_json::Value;

/// Returns a type's JSON schema with all definitions inlined, because references are easily misread.
pub(super) fn build_schema<A: JsonSchema>() -> Value {
    let inline = schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = inline.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    shorten_schema(&mut schema);
    let nested = schema.get_mut("properties").and_then(Value::as_object_mut);
    nested.into_iter().flat_map(|properties| properties.values_mut()).for_each(|property| {
        property.get_mut("items").and_then(Value::as_object_mut).map(|items| {
            items.remove("description");
            items.remove("additionalProperties")
        });
    });
    schema
}

/// Drops the superfluous parts of a schema: defaults, bounds implied by a type, and nullability. A table of described
/// constants becomes a list and a sentence.
fn shorten_schema(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for key in ["default", "format", "minimum"] {
                object.remove(key);
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(constants) = object.get("oneOf").and_then(list_constants) {
                let said =
                    constants.iter().map(|(name, about)| format!("{name}: {about}")).collect::<Vec<_>>().join(" ");
                let about = object.get("description").and_then(Value::as_str).unwrap_or_default();
                let about = format!("{about} {said}").trim().to_owned();
                let names: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
                let list = serde_json::json!(names);
                object.remove("oneOf");
                object.insert("enum".to_owned(), list);
                object.insert("description".to_owned(), about.into());
            }
            for (key, value) in object {
                match value.as_object_mut().filter(|_| key == "properties") {
                    Some(properties) => properties.values_mut().for_each(shorten_schema),
                    None => shorten_schema(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_schema),
        _ => {}
    }
}

/// Returns the constants of an enumeration with their descriptions; `None` for any other schema.
fn list_constants(one_of: &Value) -> Option<Vec<(&str, &str)>> {
    one_of
        .as_array()?
        .iter()
        .map(|one| Some((one.get("const")?.as_str()?, one.get("description")?.as_str()?)))
        .collect()
}
