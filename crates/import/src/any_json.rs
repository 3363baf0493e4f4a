//! Generates arbitrary JSON, to test the parsers of other programs' files.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

/// Generates arbitrary JSON that often contains fields of exports.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
        "(text|a|b|user|code|all|tool_use)".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let field = "(text|type|parts|role|message|content|parent|[a-z]{0,3})";
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((field, inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Replaces one value in a document, at a place chosen by `at`.
pub(super) fn replace_value(document: &mut Value, at: Index, value: Value) {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(place) = places.get(next).cloned() {
        next += 1;
        match document.pointer(&place) {
            Some(Value::Object(fields)) => places.extend(fields.keys().map(|key| format!("{place}/{key}"))),
            Some(Value::Array(list)) => places.extend((0..list.len()).map(|at| format!("{place}/{at}"))),
            _ => {}
        }
    }
    if let Some(field) = document.pointer_mut(at.get::<String>(&places)) {
        *field = value;
    }
}
