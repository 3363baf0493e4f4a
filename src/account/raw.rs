//! The requests of a cycle, as they were journalled: the conversation's fixed part, then each message that a request added, in order.
//! Request `n` is the first line and all lines before the `n`-th turn of the assistant's.
//!
//! Secrets were masked before a message was journalled. A secret that was set since is masked here; all else stays to the byte.

use crate::{
    model::content::assistant_message,
    redact::Redactor,
    store::{CycleRow, Entry, JournalLine},
};

/// The lines, each raw JSON. Empty: nothing of it is kept.
pub fn requests(row: &CycleRow, journal: &[JournalLine], redactor: &Redactor) -> Vec<String> {
    let entries: Vec<&Entry> = journal.iter().filter_map(|line| line.entry.as_ref()).collect();
    if entries.is_empty() || row.cycle.is_by_rule() {
        return Vec::new();
    }
    let fixed = fixed_part(row);
    let messages = entries.into_iter().flat_map(|entry| match entry {
        Entry::Said { raw, .. } => vec![raw.clone()],
        Entry::Turn { content, .. } => assistant_message(content).into_iter().collect(),
        Entry::Folded { raw, .. } => vec![FOLDED.to_owned(), raw.clone()],
        _ => Vec::new(),
    });
    std::iter::once(fixed).chain(messages).map(|line| on_one_line(redactor.redact_json(&line))).collect()
}

/// Stands where a new conversation begins: what is above is in no later request, but for the fixed part.
const FOLDED: &str = r#"{"folded":"a new conversation begins"}"#;

fn fixed_part(row: &CycleRow) -> String {
    let name = serde_json::Value::from(row.cycle.model.as_str());
    format!(r#"{{"model":{name},"system":{},"tools":{}}}"#, row.cycle.system, row.cycle.tools)
}

/// A line break in JSON stands between tokens, where a blank says the same.
fn on_one_line(raw: String) -> String {
    if raw.contains(['\n', '\r']) { raw.replace(['\n', '\r'], " ") } else { raw }
}
