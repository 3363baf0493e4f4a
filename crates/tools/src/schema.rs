//! The schema of a tool's arguments, as short as its reader can do with.

use schemars::JsonSchema;
use serde_json::Value;

/// A type's JSON schema, written out in place: a definition elsewhere is one more thing to be misread.
pub(super) fn schema_of<A: JsonSchema>() -> Value {
    let inline = schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = inline.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    shorten(&mut schema);
    let nested = schema.get_mut("properties").and_then(Value::as_object_mut);
    nested.into_iter().flat_map(|properties| properties.values_mut()).for_each(|property| {
        property.get_mut("items").and_then(Value::as_object_mut).map(|items| {
            items.remove("description");
            items.remove("additionalProperties")
        });
    });
    schema
}

/// Leaves out of a schema what its reader pays for and doesn't need: defaults, bounds that a type implies, that a field may be null, and
/// a table of described constants where a list and a sentence say the same.
fn shorten(schema: &mut Value) {
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
            if let Some(constants) = object.get("oneOf").and_then(constants) {
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
                    Some(properties) => properties.values_mut().for_each(shorten),
                    None => shorten(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The constants of an enumeration, each with what is said of it; none: it isn't one of described constants.
fn constants(one_of: &Value) -> Option<Vec<(&str, &str)>> {
    one_of
        .as_array()?
        .iter()
        .map(|one| Some((one.get("const")?.as_str()?, one.get("description")?.as_str()?)))
        .collect()
}
