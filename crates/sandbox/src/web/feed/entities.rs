//! Entities defined by a document, as far as feeds need them: short plain texts, each replaced once.

use reveille_base::words::first_bytes;

/// Bytes of a document searched for definitions.
const SEARCHED_BYTES: usize = 64 * 1_024;
/// Maximum number of definitions.
const MAX_ENTITIES: usize = 100;
/// Maximum length of an entity's value, in bytes. Together with the field limit this bounds an expanded field.
const MAX_VALUE_BYTES: usize = 200;

/// Names with `&` and `;`, and their values.
#[derive(Debug, Default)]
pub(super) struct OwnEntities(Vec<(String, String)>);

impl OwnEntities {
    /// Parses `<!ENTITY name "text">`. Definitions with references to entities or files are skipped, so no expansion is recursive.
    pub(super) fn parse(document: &str) -> Self {
        let head = first_bytes(document, SEARCHED_BYTES);
        let Some((_, subset)) = head.split_once("<!DOCTYPE") else { return Self::default() };
        let definitions = subset.split("<!ENTITY").skip(1).take(MAX_ENTITIES);
        Self(definitions.filter_map(read_definition).collect())
    }

    /// Replaces each entity in a text.
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
