//! ChatGPT's export: `conversations.json`, a list. Each conversation is a tree of messages, since an edited question begins another
//! branch; the one that was shown last is taken.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ImportError,
    conversation::{self, ReadConversation, SaidThere},
    found::FoundThings,
    recognise,
    source::{ImportSource, MAX_WHOLE_BYTES, TOO_LARGE},
    stores,
};
use crate::zone::Tz;

/// The largest file of conversations, in bytes.
pub(super) const MAX_CONVERSATIONS_BYTES: u64 = 256 << 20;
/// How much of a conversation's id is in its name.
const ID_CHARS: usize = 12;

pub(super) const NOT_UNDERSTOOD: &str = "a conversation that isn't understood";
pub(super) const EMPTY: &str = "a conversation in which nothing was said";
const OTHER_BRANCHES: &str = "an answer or question that was replaced by another";
const PICTURES: &str = "pictures, sound and files of conversations";
const TOOL_CALLS: &str = "calls of tools and what came of them";
pub(super) const NOT_NEEDED: &str = "account data, ratings and pages for browsers";

#[derive(Deserialize)]
struct ChatgptConversation {
    title: Option<String>,
    create_time: Option<f64>,
    #[serde(default)]
    mapping: HashMap<String, ChatgptNode>,
    current_node: Option<String>,
    conversation_id: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct ChatgptNode {
    message: Option<ChatgptMessage>,
    parent: Option<String>,
}

#[derive(Deserialize)]
struct ChatgptMessage {
    author: Option<ChatgptAuthor>,
    create_time: Option<f64>,
    content: Option<ChatgptContent>,
    #[serde(default)]
    metadata: Option<ChatgptMetadata>,
}

#[derive(Deserialize)]
struct ChatgptMetadata {
    is_visually_hidden_from_conversation: Option<bool>,
}

#[derive(Deserialize)]
struct ChatgptAuthor {
    role: Option<String>,
}

#[derive(Deserialize)]
struct ChatgptContent {
    content_type: Option<String>,
    #[serde(default)]
    parts: Option<Vec<Value>>,
}

pub(super) fn read(source: &ImportSource, tz: Tz) -> Result<FoundThings, ImportError> {
    let mut found = FoundThings::default();
    let files: Vec<_> = recognise::conversations(source).collect();
    if files.is_empty() {
        return Err(ImportError::Refused("There is no conversations.json in it.".to_owned()));
    }
    for entry in &files {
        let read = source.with_reader(entry, MAX_CONVERSATIONS_BYTES, |reader| {
            stores::each_of_list(reader, &mut |raw| take(raw, &mut found, tz))
        })?;
        read.map_err(|error| ImportError::unreadable(&entry.path, error))?;
    }
    for entry in source.entries().iter().filter(|entry| !files.contains(entry)) {
        let is_account = entry.ends_in(&[".json", ".html"]);
        found.leave(&entry.path, if is_account { NOT_NEEDED } else { PICTURES });
    }
    Ok(found)
}

fn take(raw: &str, found: &mut FoundThings, tz: Tz) {
    if raw.len() as u64 > MAX_WHOLE_BYTES {
        return found.leave("a conversation", TOO_LARGE);
    }
    let Ok(conversation) = serde_json::from_str::<ChatgptConversation>(raw) else {
        return found.leave(named(raw), NOT_UNDERSTOOD);
    };
    let title = conversation.title.clone().unwrap_or_default();
    let branch = branch(&conversation);
    let messages = conversation.mapping.values().filter(|node| node.message.as_ref().is_some_and(is_said)).count();
    let mut read = ReadConversation { title: title.clone(), said: Vec::new() };
    let mut taken = 0;
    for message in branch.iter().filter_map(|node| node.message.as_ref()) {
        let Some(who) = speaker(message) else { continue };
        let (text, others) = words(message);
        (0..others).for_each(|_| found.leave(&title, PICTURES));
        taken += usize::from(is_said(message));
        if !text.trim().is_empty() {
            read.said.push(SaidThere { who: who.to_owned(), at: message.create_time.and_then(moment), text });
        } else if others == 0 && !is_said(message) {
            found.leave(&title, TOOL_CALLS);
        }
    }
    (taken..messages).for_each(|_| found.leave(&title, OTHER_BRANCHES));
    if read.said.is_empty() {
        return found.leave(title, EMPTY);
    }
    let begun = conversation.create_time.and_then(moment).or_else(|| read.said.iter().find_map(|said| said.at));
    let day = begun.map(|at| at.with_timezone(&tz).date_naive());
    let id = short_id(conversation.conversation_id.or(conversation.id).as_deref(), &read);
    conversation::keep(&format!("chatgpt/{}", conversation::dated(day, &id)), day, &read, tz, found);
}

/// The messages from the first to the one that was shown last.
fn branch(conversation: &ChatgptConversation) -> Vec<&ChatgptNode> {
    let time = |node: &ChatgptNode| node.message.as_ref().and_then(|message| message.create_time).unwrap_or(0.0);
    let newest = || {
        let nodes = conversation.mapping.iter();
        nodes.max_by(|(one_id, one), (id, node)| time(one).total_cmp(&time(node)).then(one_id.cmp(id)))
    };
    let named = conversation.current_node.as_ref().filter(|id| conversation.mapping.contains_key(*id));
    let mut next = named.or_else(|| newest().map(|(id, _)| id));
    let (mut branch, mut seen) = (Vec::new(), HashSet::new());
    // A tree of others may be a circle.
    while let Some((id, node)) = next.and_then(|id| Some((id, conversation.mapping.get(id)?)))
        && seen.insert(id)
    {
        branch.push(node);
        next = node.parent.as_ref();
    }
    branch.reverse();
    branch
}

/// Whose words a message is: the person's or the assistant's, and nothing of what only a program sees.
fn speaker(message: &ChatgptMessage) -> Option<&'static str> {
    let is_hidden = message.metadata.as_ref().and_then(|metadata| metadata.is_visually_hidden_from_conversation);
    if is_hidden == Some(true) {
        return None;
    }
    match message.author.as_ref()?.role.as_deref()? {
        "user" => Some("You"),
        "assistant" => Some("ChatGPT"),
        _ => None,
    }
}

/// Whether something was said in it.
fn is_said(message: &ChatgptMessage) -> bool {
    let kind = message.content.as_ref().and_then(|content| content.content_type.as_deref());
    speaker(message).is_some()
        && matches!(kind, Some("text" | "multimodal_text"))
        && !words(message).0.trim().is_empty()
}

/// What it says, and how many parts of it are no words.
fn words(message: &ChatgptMessage) -> (String, usize) {
    let Some(content) = &message.content else { return (String::new(), 0) };
    if !matches!(content.content_type.as_deref(), Some("text" | "multimodal_text")) {
        return (String::new(), 0);
    }
    let (mut texts, mut others) = (Vec::new(), 0);
    for part in content.parts.iter().flatten() {
        // What was spoken comes as an object with its transcript.
        match part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
            Some(text) => texts.push(text.to_owned()),
            None => others += 1,
        }
    }
    (texts.join("\n\n"), others)
}

fn moment(seconds: f64) -> Option<DateTime<Utc>> {
    // Years beyond 9999 aren't dates that anybody wrote.
    const MOST: f64 = 253_402_300_799.0;
    (0.0..=MOST).contains(&seconds).then(|| DateTime::from_timestamp(seconds as i64, 0)).flatten()
}

/// A conversation's id as part of a name: its own, or one of what was said first.
pub(super) fn short_id(id: Option<&str>, read: &ReadConversation) -> String {
    let plain =
        |id: &str| id.chars().filter(char::is_ascii_alphanumeric).take(ID_CHARS).collect::<String>().to_lowercase();
    id.map(plain).filter(|id| id.len() >= ID_CHARS / 2).unwrap_or_else(|| {
        let first = read.said.first().map(|said| format!("{:?} {}", said.at, said.text)).unwrap_or_default();
        plain(&super::plan::hash(&format!("{} {first}", read.title)))
    })
}

/// How a conversation that isn't understood is named: by its title, if it has one.
pub(super) fn named(raw: &str) -> String {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    stores::text_of(&value, &["title", "name"]).unwrap_or("without a title").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(conversation: &Value) -> FoundThings {
        let mut found = FoundThings::default();
        take(&conversation.to_string(), &mut found, "UTC".parse().unwrap());
        found
    }

    fn said(words: &str, parent: &str) -> Value {
        json!({"message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [words]}}, "parent": parent})
    }

    #[test]
    fn a_tree_that_is_a_circle_or_leads_nowhere_ends() {
        let found = taken(
            &json!({"title": null, "mapping": {"a": said("one", "b"), "b": said("two", "a")}, "current_node": "a"}),
        );
        assert!(found.documents[0].text.ends_with("**You**: two\n\n**You**: one\n"), "{found:?}");
        let found =
            taken(&json!({"mapping": {"a": said("one", "gone")}, "current_node": "gone", "create_time": 1e300}));
        assert!(
            found.documents[0].text.contains("**You**: one") && found.documents[0].path.starts_with("chatgpt/undated/")
        );
    }

    #[test]
    fn one_that_is_too_large_is_left_out_and_what_is_hidden_is_not_said() {
        let mut hidden = said("CANARY", "");
        hidden["message"]["metadata"] = json!({"is_visually_hidden_from_conversation": true, "model": {"x": [1]}});
        let mut plain = said("one", "a");
        plain["message"]["metadata"] = Value::Null;
        let found = taken(&json!({"title": "x", "mapping": {"a": hidden, "b": plain}, "current_node": "b"}));
        assert!(found.documents[0].text.contains("one") && !found.documents[0].text.contains("CANARY"), "{found:?}");
        let padding = "x".repeat(usize::try_from(MAX_WHOLE_BYTES).unwrap());
        let found = taken(&json!({"title": padding, "mapping": {"a": said("one", "")}}));
        assert_eq!((found.documents.len(), found.left_out[0].why), (0, TOO_LARGE));
    }

    #[test]
    fn what_is_no_conversation_is_named_and_costs_itself_alone() {
        for (odd, why) in [
            (json!({"title": "x", "mapping": []}), NOT_UNDERSTOOD),
            (json!(7), NOT_UNDERSTOOD),
            (json!({"title": "x", "mapping": {}}), EMPTY),
        ] {
            let found = taken(&odd);
            assert_eq!((found.documents.len(), found.left_out[0].why), (0, why), "{odd}");
        }
    }
}
