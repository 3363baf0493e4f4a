//! The entities that a document defines for itself, in the little that feeds need: short plain texts, each replaced once.

use reveille_base::words::first_bytes;

/// How much of a document is searched for definitions, in bytes.
const SEARCHED_BYTES: usize = 64 * 1_024;
/// The most definitions that are kept.
const MAX_ENTITIES: usize = 100;
/// The longest text that an entity stands for, in bytes. With the bound on a field's length it bounds what a field grows to.
const MAX_VALUE_BYTES: usize = 200;

/// Names with `&` and `;`, and what they stand for.
#[derive(Debug, Default)]
pub(super) struct OwnEntities(Vec<(String, String)>);

impl OwnEntities {
    /// Reads `<!ENTITY name "text">`. What refers to other entities or to files is left out, so nothing is expanded twice.
    pub(super) fn find(document: &str) -> Self {
        let head = first_bytes(document, SEARCHED_BYTES);
        let Some((_, subset)) = head.split_once("<!DOCTYPE") else { return Self::default() };
        let definitions = subset.split("<!ENTITY").skip(1).take(MAX_ENTITIES);
        Self(definitions.filter_map(read_definition).collect())
    }

    /// A text with each of them replaced.
    pub(super) fn replace(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, (name, value)| if text.contains(name) { text.replace(name, value) } else { text })
    }
}

fn read_definition(definition: &str) -> Option<(String, String)> {
    let (name, rest) = definition.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (value, _) = rest.get(1..)?.split_once(quote)?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_plain = value.len() <= MAX_VALUE_BYTES && !value.contains(['&', '<', '%']);
    (is_name && is_plain).then(|| (format!("&{name};"), value.to_owned()))
}
