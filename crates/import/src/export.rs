//! Reads the conversation files exported by ChatGPT and Claude. An unreadable file or conversation doesn't affect the others.

use serde_json::Value;

use reveille_base::{words::truncate_text, zone::Tz};

use super::{
    ImportError,
    conversation::{ConversationShelf, ExportedConversation},
    found::FoundContent,
    repair::parse_json,
    source::{ImportSource, SourceEntry, TOO_LARGE, is_beyond_bound},
    stores::{self, StoreEnd, find_text},
};

/// The maximum size of a conversations file, in bytes.
pub(super) const MAX_CONVERSATIONS_BYTES: u64 = 256 << 20;

pub(super) const NOT_UNDERSTOOD: &str = "an unreadable conversation";
pub(super) const EMPTY: &str = "an empty conversation";
pub(super) const NOT_NEEDED: &str = "account data, ratings and pages for browsers";
pub(super) const TOOL_CALLS: &str = "tool calls and their results";
pub(super) const THOUGHTS: &str = "a model's or its program's own notes";
pub(super) const OTHER_BRANCHES: &str = "an answer or question that was replaced by another";
pub(super) const OTHER_EXPORT: &str = "another assistant's export: import it separately";
/// The maximum length of a conversation's title, in characters.
const MAX_TITLE_CHARS: usize = 300;

const UNTITLED: &str = "without a title";
const BROKEN_OFF: &str = "it is cut off: only the part before that is imported";
const NOT_JSON: &str = "not JSON";
const NO_CONVERSATIONS: &str = "it has no conversations";
const BEYOND_BOUND: &str = "too long: only its beginning is imported";
const DAMAGED: &str = "it can't be read, or its checksum is wrong";

/// Parses one conversation of an export, and reports its skipped parts.
pub(super) type ReadConversation<'a> = &'a dyn Fn(&Value, &mut FoundContent) -> Option<ExportedConversation>;

/// Reads files of conversations and adds the conversations below a folder.
///
/// # Errors
/// None of the files is readable.
pub(super) fn read_conversations(
    source: &ImportSource,
    files: &[&SourceEntry],
    folder: &str,
    tz: Tz,
    found: &mut FoundContent,
    read_one: ReadConversation<'_>,
) -> Result<(), ImportError> {
    let mut shelf = ConversationShelf::default();
    let (mut first_error, mut readable_files) = (None, 0);
    for entry in files {
        let mut own = FoundContent::default();
        let mut conversations = Vec::new();
        let end = visit_values(source, entry, &mut |raw, value| match value {
            Some(value) => visit_conversations(value, &mut |value| conversations.extend(read_one(value, &mut own))),
            None => own.leave_out(name_conversation(raw), if raw.is_empty() { TOO_LARGE } else { NOT_UNDERSTOOD }),
        });
        let damage = match end {
            Ok(damage) => damage,
            Err(error) => {
                found.leave_out(&entry.path, DAMAGED);
                first_error.get_or_insert(error);
                continue;
            }
        };
        readable_files += usize::from(damage != Some(NOT_JSON));
        if let Some(why) = damage {
            found.leave_out(&entry.path, why);
            first_error.get_or_insert_with(|| ImportError::unreadable(&entry.path, why));
        }
        if conversations.is_empty() && own.left_out.is_empty() && damage.is_none() {
            found.leave_out(&entry.path, NO_CONVERSATIONS);
        }
        found.left_out.append(&mut own.left_out);
        conversations.into_iter().for_each(|conversation| shelf.add_conversation(folder, conversation, tz, found));
    }
    shelf.into_documents(tz, found);
    match first_error {
        Some(error) if readable_files == 0 => Err(error),
        _ => Ok(()),
    }
}

/// Passes each element of a file to `work`, raw and parsed; an oversized element is passed as empty bytes. Returns the damage of a file
/// that is readable in part or not JSON, in words.
///
/// # Errors
/// The file can't be read, or its checksum is wrong.
pub(super) fn visit_values(
    source: &ImportSource,
    entry: &SourceEntry,
    work: &mut dyn FnMut(&[u8], Option<&Value>),
) -> Result<Option<&'static str>, ImportError> {
    let end = source.with_reader(entry, MAX_CONVERSATIONS_BYTES, |reader| {
        stores::visit_raw_elements(reader, &mut |raw| match raw {
            Some(raw) => work(raw, parse_json(raw).as_ref()),
            None => work(&[], None),
        })
    })?;
    match end {
        Ok(StoreEnd::Whole) => Ok(None),
        Ok(StoreEnd::BrokenOff) => Ok(Some(BROKEN_OFF)),
        Ok(StoreEnd::NoJson) => Ok(Some(NOT_JSON)),
        Err(error) if is_beyond_bound(&error) => Ok(Some(BEYOND_BOUND)),
        Err(error) => Err(ImportError::unreadable(&entry.path, error)),
    }
}

/// Passes each conversation of an element to `work`. Most elements are one conversation; some hold a list of conversations.
fn visit_conversations(value: &Value, work: &mut dyn FnMut(&Value)) {
    let list = ["conversations", "chats", "data"].iter().find_map(|name| value.get(name)?.as_array());
    match list.or_else(|| value.as_array()) {
        Some(list) => list.iter().for_each(work),
        None => work(value),
    }
}

/// Returns the title of a conversation.
pub(super) fn read_title(conversation: &Value, names: &[&str]) -> String {
    find_text(conversation, names).map(|title| truncate_text(title, MAX_TITLE_CHARS)).unwrap_or_default()
}

/// Reports an unreadable conversation.
pub(super) fn report_unreadable(title: &str, found: &mut FoundContent) {
    found.leave_out(if title.is_empty() { UNTITLED } else { title }, NOT_UNDERSTOOD);
}

/// Returns a name for an unreadable conversation: its title, if one can be found in the raw bytes.
pub(super) fn name_conversation(raw: &[u8]) -> String {
    let value = parse_json(raw).unwrap_or_default();
    let title = read_title(&value, &["title", "name"]);
    if !title.is_empty() {
        return title;
    }
    let beginning = String::from_utf8_lossy(raw.get(..raw.len().min(4_000)).unwrap_or_default());
    let after = ["\"title\"", "\"name\""].iter().find_map(|key| beginning.split_once(key));
    let title = after.and_then(|(_, after)| after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"'));
    title.and_then(|title| title.split('"').next()).filter(|title| !title.is_empty()).unwrap_or(UNTITLED).to_owned()
}
