//! An assistant that keeps its memory in JSON: facts in `knowledge.json`, reminders in `reminders.json`, what was said in
//! `conversation_log.jsonl`, settings in `config/`.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::Value;

use super::{
    ImportError,
    conversation::{self, ReadConversation, SaidThere},
    found::{DocumentSort, FoundDocument, FoundFact, FoundReminder, FoundThings},
    markdown_agent,
    names::TakenNames,
    notes,
    source::{ImportSource, MAX_WHOLE_BYTES, SourceEntry},
    stores::text_of,
};
use crate::{clock::parse_time, config::OldSetting, memory::imported::harmless, schedule::resolve, zone::Tz};

const FOLDER: &str = "json-agent";
/// The longest log of what was said, in bytes.
const MAX_LOG_BYTES: u64 = 256 << 20;

const OF_THE_PROGRAM: &str = "files of the program, not of its memory";
const DONE: &str = "reminders that were over";
const NOT_UNDERSTOOD: &str = "entries that aren't understood";
const INDEX: &str = "an index, which is made anew";

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundThings, ImportError> {
    let mut found = FoundThings::default();
    let mut taken = TakenNames::default();
    for entry in source.entries() {
        let folder = entry.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_in = |name: &str| folder.split('/').any(|step| step == name);
        match entry.file_name() {
            "knowledge.json" => facts(source, entry, &mut found),
            "reminders.json" => reminders(source, entry, &mut found),
            "conversation_log.jsonl" => said(source, entry, &mut found, tz)?,
            "user_config.json" | "secrets.json" => settings(source, entry, &mut found),
            ".env" => markdown_agent::settings(source, entry, &mut found),
            "personality.md" => notes::take(source, entry, FOLDER, "personality.md", &mut found, &mut taken),
            _ if is_in("chroma") || entry.file_name() == "compaction_log.jsonl" => found.leave(&entry.path, INDEX),
            _ if is_in("tasks") && entry.ends_in(&[".md", ".json", ".txt"]) => {
                scheduled(source, entry, &mut found, &mut taken);
            }
            name if is_in("memory") && entry.ends_in(notes::ENDINGS) => {
                notes::take(source, entry, FOLDER, name, &mut found, &mut taken);
            }
            _ => found.leave(&entry.path, OF_THE_PROGRAM),
        }
    }
    Ok(found)
}

/// A store as JSON; what isn't any is left out.
fn json(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings) -> Option<Value> {
    match source.text(entry, MAX_WHOLE_BYTES) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(value) => return Some(value),
            Err(_) => found.leave(&entry.path, "not JSON"),
        },
        Err(why) => found.leave(&entry.path, why),
    }
    None
}

/// The elements of a store: a list, or an object with a list of this name.
fn elements<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.as_array().or_else(|| value.get(name)?.as_array()).into_iter().flatten()
}

fn facts(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings) {
    let Some(store) = json(source, entry, found) else { return };
    for element in elements(&store, "facts") {
        match element.as_str().or_else(|| text_of(element, &["fact", "text", "content"])) {
            Some(text) => found.facts.push(FoundFact { text: text.to_owned(), from: entry.file_name().to_owned() }),
            None => found.leave(&entry.path, NOT_UNDERSTOOD),
        }
    }
}

fn reminders(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings) {
    let Some(store) = json(source, entry, found) else { return };
    for element in elements(&store, "reminders") {
        let text = text_of(element, &["text", "task", "message", "reminder", "content", "title"]);
        let due = text_of(element, &["due", "due_at", "due_date", "datetime", "time", "when"]).unwrap_or_default();
        let is_true = |name: &str| element.get(name).and_then(Value::as_bool) == Some(true);
        let status = text_of(element, &["status"]).unwrap_or_default().to_lowercase();
        let is_over = ["done", "completed", "complete", "sent"].into_iter().any(|name| is_true(name) || status == name);
        match text {
            _ if is_over => found.leave(text.unwrap_or_default(), DONE),
            Some(text) => found.reminders.push(FoundReminder {
                text: text.to_owned(),
                due: due.to_owned(),
                from: entry.file_name().to_owned(),
            }),
            None => found.leave(&entry.path, NOT_UNDERSTOOD),
        }
    }
}

/// What was said, a document a month.
fn said(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings, tz: Tz) -> Result<(), ImportError> {
    let mut months: BTreeMap<String, ReadConversation> = BTreeMap::new();
    let mut bad = 0;
    let read = source.with_reader(entry, MAX_LOG_BYTES, |reader| -> std::io::Result<()> {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let value: Value = serde_json::from_slice(&line).unwrap_or_default();
            let is_blank = line.trim_ascii().is_empty();
            line.clear();
            let at = text_of(&value, &["timestamp"]).and_then(|at| moment(at, tz));
            let month = at.map_or_else(|| "undated".to_owned(), |at| at.with_timezone(&tz).format("%Y-%m").to_string());
            let said = [("You", "user_message"), ("Assistant", "agent_response"), ("Summary", "summary")];
            let said = said.into_iter().filter_map(|(who, name)| Some((who, text_of(&value, &[name])?)));
            let said: Vec<_> =
                said.map(|(who, text)| SaidThere { who: who.to_owned(), at, text: text.to_owned() }).collect();
            if said.is_empty() {
                bad += usize::from(!is_blank);
                continue;
            }
            let title = format!("Conversations of {month}");
            months.entry(month).or_insert_with(|| ReadConversation { title, said: Vec::new() }).said.extend(said);
        }
        Ok(())
    })?;
    read.map_err(|error| ImportError::unreadable(&entry.path, error))?;
    (0..bad).for_each(|_| found.leave(&entry.path, NOT_UNDERSTOOD));
    for (month, read) in months {
        let day = format!("{month}-01").parse().ok();
        conversation::keep(&format!("{FOLDER}/conversations/{month}"), day, &read, tz, found);
    }
    Ok(())
}

/// A time with a zone, or one on the person's wall.
fn moment(text: &str, tz: Tz) -> Option<DateTime<Utc>> {
    let civil = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
    let civil = civil.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    civil.map(|civil| resolve(civil, tz).at).or_else(|| parse_time(text))
}

/// Settings in JSON: the names of all, the values of those that are known here and no secret.
fn settings(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings) {
    let Some(store) = json(source, entry, found) else { return };
    each_setting("", &store, entry.file_name() == "secrets.json", found);
}

/// Goes down to the single values: what stands deeper is named by all names above it.
fn each_setting(name: &str, value: &Value, is_secrets: bool, found: &mut FoundThings) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let field = field.to_uppercase();
                let name = if name.is_empty() { field } else { format!("{name}_{field}") };
                each_setting(&name, value, is_secrets, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| each_setting(name, value, is_secrets, found)),
        value => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let old = OldSetting::new(name, &value);
            if is_secrets {
                found.secrets.push(crate::redact::Secret::new(value));
            } else {
                found.secrets.extend(old.secret());
            }
            // Of a list, the name once.
            if !name.is_empty() && (old.is_known() || !found.settings.iter().any(|other| other.name == name)) {
                found.settings.push(old);
            }
        }
    }
}

/// A task that another assistant did by itself: what it says, as an order that isn't in force.
fn scheduled(source: &ImportSource, entry: &SourceEntry, found: &mut FoundThings, taken: &mut TakenNames) {
    match source.text(entry, notes::MAX_NOTE_BYTES) {
        Ok(text) => {
            let Some(path) = super::names::document(&format!("{FOLDER}/tasks"), entry.file_name()) else { return };
            let text = if entry.ends_in(&[".json"]) { format!("```json\n{}\n```\n", text.trim()) } else { text };
            let text = harmless(&text);
            found.documents.push(FoundDocument { path: taken.free(path), text, day: None, sort: DocumentSort::Orders });
        }
        Err(why) => found.leave(&entry.path, why),
    }
}
