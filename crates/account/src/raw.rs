//! The journalled requests of a cycle: the fixed part of the conversation, then each added message in order. Request `n` consists of the
//! first line and all lines before the assistant's `n`-th turn.
//!
//! Secrets were masked before a message was journalled. Secrets set since then are masked here; all other bytes stay.

use reveille_base::redact::Redactor;
use reveille_model::content::assistant_message;
use reveille_store::{CycleRow, Entry, JournalLine};

/// The lines, each as raw JSON; empty if nothing is kept.
pub fn render_requests(row: &CycleRow, journal: &[JournalLine], redactor: &Redactor) -> Vec<String> {
    let entries: Vec<&Entry> = journal.iter().filter_map(|line| line.entry.as_ref()).collect();
    if entries.is_empty() || row.cycle.is_by_rule() {
        return Vec::new();
    }
    let first = entries.iter().find_map(|entry| match entry {
        Entry::Handed { from, .. } => Some(from.as_str()),
        _ => None,
    });
    let fixed = render_fixed_part(first.unwrap_or(&row.cycle.model), &row.cycle.system, &row.cycle.tools);
    let messages = entries.into_iter().flat_map(|entry| match entry {
        Entry::Said { raw, .. } => vec![raw.clone()],
        Entry::Turn { content, .. } => assistant_message(content).into_iter().collect(),
        Entry::Folded { raw, .. } => vec![FOLDED.to_owned(), raw.clone()],
        Entry::Handed { model, system, tools, raw, .. } => {
            vec![HANDED.to_owned(), render_fixed_part(model, system, tools), raw.clone()]
        }
        _ => Vec::new(),
    });
    std::iter::once(fixed).chain(messages).map(|line| join_lines(redactor.redact_json(&line))).collect()
}

/// Marks a new conversation after folding. Later requests contain none of the lines above, except the fixed part.
const FOLDED: &str = r#"{"folded":"a new conversation begins"}"#;

/// Marks a new conversation with another model. Later requests contain none of the lines above, not even the fixed part.
const HANDED: &str = r#"{"handed":"another model goes on in a new conversation"}"#;

fn render_fixed_part(model: &str, system: &str, tools: &str) -> String {
    let name = serde_json::Value::from(model);
    format!(r#"{{"model":{name},"system":{system},"tools":{tools}}}"#)
}

/// Puts JSON on one line. Raw line breaks occur only between tokens, where a blank means the same.
fn join_lines(raw: String) -> String {
    if raw.contains(['\n', '\r']) { raw.replace(['\n', '\r'], " ") } else { raw }
}
