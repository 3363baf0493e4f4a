//! Reads an assistant with its memory in JSON: facts in `knowledge.json`, reminders in `reminders.json`, conversations in
//! `conversation_log.jsonl`, settings in `config/`.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::Value;

use reveille_base::{clock::parse_time, schedule::resolve_local_time, zone::Tz};
use reveille_config::OldSetting;
use reveille_memory::imported::break_comments;

use super::{
    ImportError,
    conversation::{self, ImportedConversation, ImportedMessage},
    found::{CUT_SHORT, DocumentKind, FoundContent, FoundDocument, FoundFact, FoundReminder},
    markdown_agent,
    names::TakenNames,
    notes,
    repair::parse_json,
    source::{ImportSource, MAX_WHOLE_BYTES, SourceEntry, UNREADABLE, is_beyond_bound},
    stores::{find_list, find_text, find_time},
};

const FOLDER: &str = "json-agent";
/// The maximum size of the conversation log, in bytes.
const MAX_LOG_BYTES: u64 = 256 << 20;

const OF_THE_PROGRAM: &str = "files of the program, not of its memory";
const OVER: &str = "reminders in the past";
const NOT_UNDERSTOOD: &str = "unreadable entries";
const INDEX: &str = "an index, which Reveille rebuilds";

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundContent, ImportError> {
    let mut found = FoundContent::default();
    let mut taken = TakenNames::default();
    for entry in source.entries() {
        let folder = entry.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_in = |name: &str| folder.split('/').any(|step| step == name);
        match entry.file_name() {
            "knowledge.json" => read_facts(source, entry, &mut found),
            "reminders.json" => read_reminders(source, entry, &mut found, tz),
            "conversation_log.jsonl" => read_conversations(source, entry, &mut found, tz),
            "user_config.json" | "secrets.json" => read_settings(source, entry, &mut found),
            ".env" => markdown_agent::read_settings(source, entry, &mut found),
            "personality.md" => notes::take_file(source, entry, FOLDER, "personality.md", &mut found, &mut taken),
            _ if is_in("chroma") || entry.file_name() == "compaction_log.jsonl" => found.leave_out(&entry.path, INDEX),
            _ if is_in("tasks") && entry.has_ending(&[".md", ".json", ".txt"]) => {
                take_scheduled_task(source, entry, &mut found, &mut taken);
            }
            name if is_in("memory") && entry.has_ending(notes::ENDINGS) => {
                notes::take_file(source, entry, FOLDER, name, &mut found, &mut taken);
            }
            _ => found.leave_out(&entry.path, OF_THE_PROGRAM),
        }
    }
    Ok(found)
}

/// Parses a file as JSON. `None` if it is invalid, which is reported.
fn parse_file(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent) -> Option<Value> {
    match source.read_bytes(entry, MAX_WHOLE_BYTES) {
        Ok(bytes) => match parse_json(&bytes) {
            Some(value) => return Some(value),
            None => found.leave_out(&entry.path, "not JSON"),
        },
        Err(why) => found.leave_out(&entry.path, why),
    }
    None
}

/// Returns the elements of a file, which is a list, or an object with a list of this name.
fn find_elements<'a>(value: &'a Value, name: &str, entry: &SourceEntry, found: &mut FoundContent) -> &'a [Value] {
    if !value.is_null() && !value.is_array() && !value.get(name).is_some_and(|list| list.is_array() || list.is_null()) {
        found.leave_out(&entry.path, NOT_UNDERSTOOD);
    }
    value.as_array().map_or_else(|| find_list(value, &[name]), Vec::as_slice)
}

fn read_facts(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent) {
    let Some(store) = parse_file(source, entry, found) else { return };
    for element in find_elements(&store, "facts", entry, found) {
        match element.as_str().or_else(|| find_text(element, &["fact", "text", "content"])) {
            Some(text) => found.facts.push(FoundFact { text: text.to_owned(), from: entry.file_name().to_owned() }),
            None => found.leave_out(&entry.path, NOT_UNDERSTOOD),
        }
    }
}

fn read_reminders(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent, tz: Tz) {
    const OVER_FIELDS: [&str; 7] = ["done", "completed", "complete", "sent", "cancelled", "canceled", "dismissed"];
    const DUE_FIELDS: [&str; 6] = ["due", "due_at", "due_date", "datetime", "time", "when"];
    let Some(store) = parse_file(source, entry, found) else { return };
    for element in find_elements(&store, "reminders", entry, found) {
        let text = find_text(element, &["text", "task", "message", "reminder", "content", "title"]);
        let due_from_number =
            || find_time(element, &DUE_FIELDS).map(|at| at.with_timezone(&tz).format("%Y-%m-%d %H:%M").to_string());
        let due = find_text(element, &DUE_FIELDS).filter(|due| due.parse::<f64>().is_err()).map(str::to_owned);
        let due = due.or_else(due_from_number).unwrap_or_default();
        let is_true = |name: &str| match element.get(name) {
            Some(Value::Bool(is_true)) => *is_true,
            Some(Value::Number(number)) => number.as_i64() == Some(1),
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        };
        let status = find_text(element, &["status"]).unwrap_or_default().to_lowercase();
        let is_over = OVER_FIELDS.into_iter().any(|name| is_true(name) || status == name);
        match text {
            _ if is_over => found.leave_out(text.unwrap_or_default(), OVER),
            Some(text) => {
                found.reminders.push(FoundReminder { text: text.to_owned(), due, from: entry.file_name().to_owned() });
            }
            None => found.leave_out(&entry.path, NOT_UNDERSTOOD),
        }
    }
}

/// Reads the conversations, one document per month.
fn read_conversations(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent, tz: Tz) {
    let mut months: BTreeMap<String, ImportedConversation> = BTreeMap::new();
    let mut unreadable = 0;
    let read = source.with_reader(entry, MAX_LOG_BYTES, |reader| -> std::io::Result<()> {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let value = parse_json(&line).unwrap_or_default();
            let is_blank = line.trim_ascii().is_empty();
            line.clear();
            let at = find_text(&value, &["timestamp"]).and_then(|at| parse_moment(at, tz));
            let at = at.or_else(|| find_time(&value, &["timestamp"]));
            let month = at.map_or_else(|| "undated".to_owned(), |at| at.with_timezone(&tz).format("%Y-%m").to_string());
            let fields = [("You", "user_message"), ("Assistant", "agent_response"), ("Summary", "summary")];
            let spoken = fields.into_iter().filter_map(|(who, name)| Some((who, find_text(&value, &[name])?)));
            let said: Vec<_> =
                spoken.map(|(who, text)| ImportedMessage { who: who.to_owned(), at, text: text.to_owned() }).collect();
            if said.is_empty() {
                unreadable += usize::from(!is_blank);
                continue;
            }
            let title = format!("Conversations of {month}");
            months.entry(month).or_insert_with(|| ImportedConversation { title, said: Vec::new() }).said.extend(said);
        }
        Ok(())
    });
    match read {
        Ok(Err(error)) if is_beyond_bound(&error) => found.leave_out(&entry.path, CUT_SHORT),
        Ok(Ok(())) => {}
        _ => return found.leave_out(&entry.path, UNREADABLE),
    }
    (0..unreadable).for_each(|_| found.leave_out(&entry.path, NOT_UNDERSTOOD));
    for (month, read) in months {
        let day = format!("{month}-01").parse().ok();
        conversation::add_documents(&format!("{FOLDER}/conversations/{month}"), day, &read, tz, found);
    }
}

/// Parses a local time, or one with a zone.
fn parse_moment(text: &str, tz: Tz) -> Option<DateTime<Utc>> {
    let civil = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let civil = civil.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    civil.map(|civil| resolve_local_time(civil, tz).at).or_else(|| parse_time(text))
}

/// Reads settings in JSON: all names, but only the values of settings known here and not secret.
fn read_settings(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent) {
    let Some(store) = parse_file(source, entry, found) else { return };
    add_settings("", &store, entry.file_name() == "secrets.json", found);
}

/// Adds the settings of a JSON value. The name of a nested setting joins the names of all levels, as in `MAIL_SERVER_PORT`.
fn add_settings(name: &str, value: &Value, is_secrets: bool, found: &mut FoundContent) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let field = field.to_uppercase();
                let name = if name.is_empty() { field } else { format!("{name}_{field}") };
                add_settings(&name, value, is_secrets, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add_settings(name, value, is_secrets, found)),
        value => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let old = OldSetting::new(name, &value);
            if is_secrets {
                found.secrets.push(reveille_base::redact::Secret::new(value));
            } else {
                found.secrets.extend(old.secret());
            }
            // The values of a list share one name. An unknown setting shows its name alone, so one entry is enough.
            if !name.is_empty() && (old.is_known() || !found.settings.iter().any(|other| other.name == name)) {
                found.settings.push(old);
            }
        }
    }
}

/// Takes a task that the other assistant ran on a schedule. It becomes a document of orders, without effect here.
fn take_scheduled_task(source: &ImportSource, entry: &SourceEntry, found: &mut FoundContent, taken: &mut TakenNames) {
    match source.read_text(entry, notes::MAX_NOTE_BYTES) {
        Ok(text) => {
            let Some(path) = super::names::to_document_path(&format!("{FOLDER}/tasks"), entry.file_name()) else {
                return;
            };
            let text = if entry.has_ending(&[".json"]) { format!("```json\n{}\n```\n", text.trim()) } else { text };
            let text = break_comments(&text);
            found.documents.push(FoundDocument {
                path: taken.reserve_path(path),
                text,
                day: None,
                kind: DocumentKind::Orders,
            });
        }
        Err(why) => found.leave_out(&entry.path, why),
    }
}
