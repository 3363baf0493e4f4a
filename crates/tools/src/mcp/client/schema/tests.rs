use proptest::prelude::*;

use super::*;

fn read(schema: &Value) -> Result<ToolArguments, String> {
    let read = ToolArguments::from_schema(schema);
    if let Ok(read) = &read {
        let schema = read.schema.as_object().unwrap();
        assert!(
            schema["type"] == "object" && schema["properties"].is_object(),
            "every API wants these at the top: {schema:?}"
        );
        for keyword in ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$schema"] {
            assert!(!schema.contains_key(keyword), "no API takes {keyword} at the top: {schema:?}");
        }
        assert!(schema["properties"].as_object().unwrap().keys().all(|key| is_plain_key(key)), "{schema:?}");
        check(&read.schema, &read.schema);
    }
    read
}

/// Checks that the models' APIs would take a schema: valid in the draft of 2020-12, with references that resolve.
#[track_caller]
fn check(schema: &Value, document: &Value) {
    let object = schema.as_object().unwrap_or_else(|| panic!("no schema: {schema}"));
    for (keyword, value) in object {
        let is_good = match keyword.as_str() {
            "type" => {
                let is_type = |value: &Value| {
                    ["array", "boolean", "integer", "null", "number", "object", "string"]
                        .contains(&value.as_str().unwrap_or("?"))
                };
                is_type(value) || value.as_array().is_some_and(|types| types.len() > 1 && types.iter().all(is_type))
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                value.as_object().unwrap().values().for_each(|value| check(value, document));
                true
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array().unwrap().iter().for_each(|value| check(value, document));
                value != &json!([])
            }
            "additionalProperties" if value.is_boolean() => true,
            "items" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "additionalProperties" => {
                check(value, document);
                true
            }
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.as_f64().is_some_and(|number| number >= 0.0),
            "description" | "title" | "format" | "pattern" => value.is_string(),
            "$ref" => resolve_reference(document, value.as_str().unwrap()).is_some(),
            "uniqueItems" => value.is_boolean(),
            "nullable" | "$id" | "$schema" => false,
            _ => true,
        };
        assert!(is_good, "{keyword}: {value}");
    }
    if object.get("type") == Some(&json!("array")) {
        assert!(object.contains_key("items"), "{schema}");
    }
}

/// A new report is one line: its name, the schema as the server sends it, and the properties and required fields as the model sees
/// them.
#[test]
fn every_schema_becomes_one_that_the_apis_take() {
    let a = json!({"type": "string"});
    let cases: Vec<(&str, Value, Value, Value)> = vec![
        ("nothing", json!({}), json!({}), json!(null)),
        ("null", json!(null), json!({}), json!(null)),
        ("true", json!(true), json!({}), json!(null)),
        (
            "an object or null",
            json!({"type": ["object", "null"], "properties": {"a": a}}),
            json!({"a": a}),
            json!(null),
        ),
        ("properties null", json!({"type": "object", "properties": null, "required": null}), json!({}), json!(null)),
        ("properties of PHP", json!({"type": "object", "properties": [], "required": []}), json!({}), json!(null)),
        ("no type", json!({"properties": {"a": a}, "required": ["a"]}), json!({"a": a}), json!(["a"])),
        (
            "one of two needed",
            json!({"type": "object", "properties": {"a": a, "b": a}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": a, "b": a}),
            json!(null),
        ),
        (
            "one is needed in any case",
            json!({"properties": {"a": a}, "oneOf": [{"required": ["a", "b"]}, {"required": ["a"]}]}),
            json!({"a": a}),
            json!(["a"]),
        ),
        (
            "two forms",
            json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "x"}, "a": a}, "required": ["kind", "a"]}, {"type": "object", "properties": {"kind": {"const": "y"}}, "required": ["kind"]}]}),
            json!({"kind": {"anyOf": [{"const": "x"}, {"const": "y"}]}, "a": a}),
            json!(["kind"]),
        ),
        (
            "parts",
            json!({"allOf": [{"properties": {"a": a}, "required": ["a"], "additionalProperties": false}, {"properties": {"b": a}}]}),
            json!({"a": a, "b": a}),
            json!(["a"]),
        ),
        (
            "one form and null",
            json!({"anyOf": [{"properties": {"a": a}}, {"type": "null"}]}),
            json!({"a": a}),
            json!(null),
        ),
        (
            "a definition as the whole",
            json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "properties": {"a": a}, "required": ["a"]}}}),
            json!({"a": a}),
            json!(["a"]),
        ),
        (
            "forms by definitions",
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": {"properties": {"a": a}}, "B": {"properties": {"b": a}}}}),
            json!({"a": a, "b": a}),
            json!(null),
        ),
        (
            "a definition that holds itself",
            json!({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}}}),
            json!({"n": {"$ref": "#/$defs/N"}}),
            json!(null),
        ),
        ("a whole that is itself", json!({"$ref": "#"}), json!({}), json!(null)),
        (
            "a reference to itself",
            json!({"properties": {"n": {"$ref": "#"}}}),
            json!({"n": {"$ref": "#"}}),
            json!(null),
        ),
        (
            "a reference to nowhere",
            json!({"properties": {"n": {"$ref": "#/$defs/N", "description": "n"}}}),
            json!({"n": {"description": "n"}}),
            json!(null),
        ),
        (
            "a reference to elsewhere",
            json!({"properties": {"n": {"$ref": "https://a.example/n.json"}}}),
            json!({"n": {}}),
            json!(null),
        ),
        (
            "a reference by its own address",
            json!({"$id": "https://a.example/s", "properties": {"n": {"$ref": "https://a.example/s#/$defs/N"}}, "$defs": {"N": a}}),
            json!({"n": {"$ref": "#/$defs/N"}}),
            json!(null),
        ),
        (
            "a reference with signs",
            json!({"properties": {"n": {"$ref": "#/definitions/R%3Cx%3E"}}, "definitions": {"R<x>": a}}),
            json!({"n": {"$ref": "#/definitions/R%3Cx%3E"}}),
            json!(null),
        ),
        (
            "a draft of 2013",
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "x", "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}}}),
            json!({"n": {"type": "number", "exclusiveMinimum": 0, "maximum": 9}}),
            json!(null),
        ),
        (
            "a tuple of an older draft",
            json!({"properties": {"p": {"type": "array", "items": [a, a], "additionalItems": false}}}),
            json!({"p": {"type": "array", "prefixItems": [a, a], "items": {"not": {}}}}),
            json!(null),
        ),
        (
            "a list of anything",
            json!({"properties": {"p": {"type": "array"}}}),
            json!({"p": {"type": "array", "items": {}}}),
            json!(null),
        ),
        (
            "an object of anything",
            json!({"properties": {"p": {"type": "object"}}}),
            json!({"p": {"type": "object", "properties": {}}}),
            json!(null),
        ),
        (
            "required at the argument",
            json!({"properties": {"a": {"type": "string", "required": true}, "b": {"type": "string", "required": false}}}),
            json!({"a": a, "b": a}),
            json!(["a"]),
        ),
        ("required in a word", json!({"properties": {"a": a}, "required": "a"}), json!({"a": a}), json!(["a"])),
        (
            "required without a description",
            json!({"properties": {}, "required": ["a", "a", 7]}),
            json!({"a": {}}),
            json!(["a"]),
        ),
        (
            "true and false as schemas",
            json!({"properties": {"a": true, "b": false}}),
            json!({"a": {}, "b": {"not": {}}}),
            json!(null),
        ),
        (
            "words as schemas",
            json!({"properties": {"a": "string", "b": "how many", "c": null}}),
            json!({"a": a, "b": {"description": "how many"}, "c": {}}),
            json!(null),
        ),
        (
            "any",
            json!({"properties": {"a": {"type": "any"}, "b": {"type": null}, "c": {"type": []}}}),
            json!({"a": {}, "b": {}, "c": {}}),
            json!(null),
        ),
        (
            "types of a language",
            json!({"properties": {"a": {"type": "str"}, "b": {"type": "INTEGER"}, "c": {"type": ["float", null]}}}),
            json!({"a": a, "b": {"type": "integer"}, "c": {"type": ["number", "null"]}}),
            json!(null),
        ),
        (
            "nullable",
            json!({"properties": {"a": {"type": "string", "nullable": true, "enum": ["x"]}}}),
            json!({"a": {"type": ["string", "null"], "enum": ["x", null]}}),
            json!(null),
        ),
        (
            "null in the place of words",
            json!({"properties": {"a": {"type": "string", "description": null, "title": 7, "format": null, "pattern": null, "enum": null, "default": null, "examples": "x"}}}),
            json!({"a": {"type": "string", "title": "7", "default": null, "examples": ["x"]}}),
            json!(null),
        ),
        (
            "bounds in words",
            json!({"properties": {"a": {"type": "integer", "minimum": "1", "maximum": "many", "minLength": -1, "maxLength": 3.0, "multipleOf": 0}}}),
            json!({"a": {"type": "integer", "minimum": 1, "maxLength": 3.0}}),
            json!(null),
        ),
        (
            "empty combinations",
            json!({"properties": {"a": {"type": "string", "anyOf": [], "allOf": null, "oneOf": {"const": 1}, "enum": []}}}),
            json!({"a": {"type": "string", "oneOf": [{"const": 1}]}}),
            json!(null),
        ),
        (
            "combinations below the top",
            json!({"properties": {"a": {"anyOf": [a, {"type": "null"}]}}}),
            json!({"a": {"anyOf": [a, {"type": "null"}]}}),
            json!(null),
        ),
        (
            "an address' sign",
            json!({"properties": {"$filter": a, "x[]": a, "é": a, "": a}, "required": ["$filter"]}),
            json!({"_filter": a, "x__": a, "_": a, "__2": a}),
            json!(["_filter"]),
        ),
        (
            "two names that become one",
            json!({"properties": {"a b": a, "a_b": a, "a$b": a}}),
            json!({"a_b_2": a, "a_b": a, "a_b_3": a}),
            json!(null),
        ),
        ("a long name", json!({"properties": {"x".repeat(70): a}}), json!({"x".repeat(60): a}), json!(null)),
        (
            "nothing of the whole",
            json!({"properties": {"a": a}, "not": {"required": ["a"]}}),
            json!({"a": a}),
            json!(null),
        ),
    ];
    for (name, schema, properties, required) in cases {
        let read = read(&schema).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(read.schema["properties"], properties, "{name}");
        assert_eq!(read.schema.get("required").unwrap_or(&Value::Null), &required, "{name}");
    }
}

#[test]
fn what_a_schema_no_longer_says_is_said_in_words() {
    let needs = json!({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}, {}]});
    assert_eq!(read(&needs).unwrap().note, "At least one of these is needed: `a`; or `b` and `c`; or nothing more.");
    let forms = json!({"oneOf": [{"properties": {"k": {"const": 1}}, "required": ["k"]}, {"properties": {"k": {"const": 2}, "b": {}}}]});
    assert_eq!(
        read(&forms).unwrap().note,
        r#"The arguments have one of these forms: {"properties":{"k":{"const":1}},"required":["k"]} or {"properties":{"k":{"const":2},"b":{}},"required":[]}."#
    );
    let not = json!({"not": {"required": ["a"]}});
    assert_eq!(read(&not).unwrap().note, r#"As a whole, the arguments are also bound by {"not":{"required":["a"]}}."#);
    assert_eq!(read(&json!({"properties": {"a": {}}})).unwrap().note, "");
    let long = json!({"anyOf": [{"properties": {"a": {"description": "x".repeat(5_000)}}, "required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(read(&long).unwrap().note, "The arguments have one of several forms, which need `a`; or `b`.");
}

#[test]
fn a_call_names_arguments_as_the_server_does() {
    let read = read(&json!({"properties": {"$filter": {}, "plain": {}}})).unwrap();
    assert_eq!(read.note, r#"To the server, `_filter` is "$filter"."#);
    let called = read.restore(json!({"_filter": "x", "plain": 1, "other": {"_filter": 2}}));
    assert_eq!(called, json!({"$filter": "x", "plain": 1, "other": {"_filter": 2}}));
    assert_eq!(read.restore(json!([1])), json!([1]));
}

#[test]
fn what_describes_no_named_arguments_is_left_out_with_a_reason() {
    for (schema, why) in [
        (json!(false), "aren't described"),
        (json!("string"), "aren't described"),
        (json!([]), "aren't described"),
        (json!({"type": "string"}), "something other than named"),
        (json!({"type": "array", "items": {}}), "something other than named"),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "something other than named"),
        (json!({"properties": ["a"]}), "a list without names"),
    ] {
        let left_out = read(&schema).unwrap_err();
        assert!(left_out.contains(why), "{schema}: {left_out}");
    }
}

#[test]
fn a_schema_within_schemas_ends_somewhere() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let read = read(&deep).unwrap();
    assert!(read.schema.to_string().len() < 2_000);
    // Definitions that double with each step are visited a limited number of times.
    let mut defs = Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/D{}", n + 1)});
        defs.insert(format!("D{n}"), json!({"anyOf": [next, next], "allOf": [next, next]}));
    }
    let bomb = json!({"$ref": "#/$defs/D0", "$defs": defs});
    self::read(&bomb).unwrap();
}

/// Schemas as people write them, sensible or not.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "string",
            "object",
            "array",
            "any",
            "",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "$x",
            "a"
        ])
        .prop_map(Value::from),
    ];
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "enum",
        "const",
        "not",
        "nullable",
        "minimum",
        "exclusiveMinimum",
        "minLength",
        "additionalProperties",
        "prefixItems",
        "additionalItems",
        "description",
        "default",
        "examples",
        "$id",
        "$schema",
        "$recursiveRef",
        "dependencies",
        "a",
        "$x",
        "x y",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((keyword.clone(), inner), 0..6).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_is_rewritten_or_left_out(schema in any_schema()) {
        let once = read(&schema);
        prop_assert_eq!(&once, &read(&schema), "the same schema gives the same definition");
        if let Ok(once) = once {
            let again = read(&once.schema).unwrap();
            prop_assert_eq!(again.schema, once.schema, "what is rewritten stays as it is");
        }
    }
}
