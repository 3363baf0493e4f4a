//! Fields of the protocol's messages. A missing one is null, as the protocol means it.

use serde_json::Value;

static NULL: Value = Value::Null;

/// Reading and setting fields of a JSON object.
pub(crate) trait MessageFields {
    /// The field, or null.
    fn at(&self, key: &str) -> &Value;
    /// The field's text, or an empty one.
    fn text(&self, key: &str) -> &str;
    /// The field's number, or 0.
    fn number(&self, key: &str) -> f64;
    /// True if the field is true.
    fn is_true(&self, key: &str) -> bool;
    /// The elements of the field's list.
    fn list(&self, key: &str) -> &[Value];
    /// Sets the field of an object.
    fn set(&mut self, key: &str, value: impl Into<Value>);
}

impl MessageFields for Value {
    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }

    fn text(&self, key: &str) -> &str {
        self.at(key).as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> f64 {
        self.at(key).as_f64().unwrap_or_default()
    }

    fn is_true(&self, key: &str) -> bool {
        self.at(key).as_bool().unwrap_or_default()
    }

    fn list(&self, key: &str) -> &[Value] {
        self.at(key).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) {
        if let Some(object) = self.as_object_mut() {
            object.insert(key.to_owned(), value.into());
        }
    }
}
