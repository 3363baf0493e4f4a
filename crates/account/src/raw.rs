//! The requests of a cycle, as they were journalled: the conversation's fixed part, then each message that a request added, in order.
//! Request `n` is the first line and all lines before the `n`-th turn of the assistant's.
//!
//! Secrets were masked before a message was journalled. A secret that was set since is masked here; all else stays to the byte.

use reveille_base::redact::Redactor;
use reveille_model::content::assistant_message;
use reveille_store::{CycleRow, Entry, JournalLine};

/// The lines, each raw JSON. Empty: nothing of it is kept.
pub fn requests(row: &CycleRow, journal: &[JournalLine], redactor: &Redactor) -> Vec<String> {
    let entries: Vec<&Entry> = journal.iter().filter_map(|line| line.entry.as_ref()).collect();
    if entries.is_empty() || row.cycle.is_by_rule() {
        return Vec::new();
    }
    let first = entries.iter().find_map(|entry| match entry {
        Entry::Handed { from, .. } => Some(from.as_str()),
        _ => None,
    });
    let fixed = fixed_part(first.unwrap_or(&row.cycle.model), &row.cycle.system, &row.cycle.tools);
    let messages = entries.into_iter().flat_map(|entry| match entry {
        Entry::Said { raw, .. } => vec![raw.clone()],
        Entry::Turn { content, .. } => assistant_message(content).into_iter().collect(),
        Entry::Folded { raw, .. } => vec![FOLDED.to_owned(), raw.clone()],
        Entry::Handed { model, system, tools, raw, .. } => {
            vec![HANDED.to_owned(), fixed_part(model, system, tools), raw.clone()]
        }
        _ => Vec::new(),
    });
    std::iter::once(fixed).chain(messages).map(|line| on_one_line(redactor.redact_json(&line))).collect()
}

/// Stands where a new conversation begins: what is above is in no later request, but for the fixed part.
const FOLDED: &str = r#"{"folded":"a new conversation begins"}"#;

/// Stands where another model goes on: what is above, the fixed part too, is in no later request.
const HANDED: &str = r#"{"handed":"another model goes on in a new conversation"}"#;

fn fixed_part(model: &str, system: &str, tools: &str) -> String {
    let name = serde_json::Value::from(model);
    format!(r#"{{"model":{name},"system":{system},"tools":{tools}}}"#)
}

/// A line break in JSON stands between tokens, where a blank says the same.
fn on_one_line(raw: String) -> String {
    if raw.contains(['\n', '\r']) { raw.replace(['\n', '\r'], " ") } else { raw }
}
