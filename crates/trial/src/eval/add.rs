//! Turns a recorded cycle into a case: a copy without secrets, which outlives its journal.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use reveille_account::{
    clean_for_display, read,
    story::{JournalState, StoryCall, WakeStory},
};
use reveille_base::{
    clock::format_rfc3339,
    file,
    redact::Redactor,
    words::{one_line, truncate_text},
};
use reveille_config::{Config, OFFLINE_MODEL};
use reveille_git::{Oid, Repo, RepoError};
use reveille_memory as memory;
use reveille_memory::{changes::list_changed_lines, templates::list_files, view};
use reveille_store::{CycleRow, Incoming, Store, StoreError};
use reveille_tools::Registry;

use super::case::EvalCase;

/// The mask that replaces a secret.
const MASK: &str = "***";
/// The numbers of the owner's chat and a guest's in a case, in place of the real ones.
const CHATS: (i64, i64) = (1, 2);
/// The maximum length of a case's topic, taken from the first message, in characters.
const MAX_ABOUT_CHARS: usize = 100;

/// A written case.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AddedCase {
    /// Its file.
    pub path: PathBuf,
    /// The number of masked places.
    pub masked: usize,
    /// The parts of the cycle that the case lacks, one sentence each.
    pub left_out: Vec<String>,
}

/// The reason no case was written.
#[derive(Debug, thiserror::Error)]
pub enum AddCaseError {
    /// The cycle can't become a case, with the reason for people.
    #[error("{0} No case was written.")]
    Unfit(String),
    /// The file can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Io {
        /// The file or its folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Writes a cycle as a case into a folder, readable by its owner alone.
///
/// # Errors
/// The cycle can't become a case, or the file can't be written. An existing file stays as it is.
pub fn add_case(
    (store, repo): (&Store, &Repo),
    config: &Config,
    redactor: &Redactor,
    row: &CycleRow,
    dir: &Path,
) -> Result<AddedCase, AddCaseError> {
    let id = &row.cycle.id;
    let unfit = |why: &str| AddCaseError::Unfit(format!("The wake {id} can't become a case: {why}"));
    let story = read::load_story(store, redactor, row)?;
    let asked = store.history().list_cycle_messages(std::slice::from_ref(id))?.remove(id).unwrap_or_default();
    let commit = row.commit_id.as_deref().and_then(|commit| Oid::from_str(commit).ok());
    match story.journal {
        JournalState::Whole => {}
        JournalState::Forgotten => return Err(unfit("its journal is older than KEEP_DAYS and was deleted.")),
        JournalState::Damaged { .. } => return Err(unfit("a part of its journal is unreadable.")),
    }
    let (Some(commit), false) = (commit, asked.is_empty()) else {
        return Err(unfit("a case needs a message that started the wake, and a commit that ended it."));
    };
    let before =
        repo.history().find_parent(commit)?.ok_or_else(|| unfit("the memory has nothing from before its commit."))?;
    let masked = |text: &str| clean_for_display(redactor, text);
    let mut left_out = Vec::new();
    let mut text = render_head(row, &story, (&asked, config), &masked);
    text.push_str("\n[memory]\n");
    let templates: BTreeMap<&str, &str> = list_files().into_iter().collect();
    for path in repo.history().list_markdown_at(before)? {
        if let Some(content) =
            repo.history().read_text_at(before, &path)?.filter(|content| templates.get(&*path) != Some(&&**content))
        {
            write_line(&mut text, &quote_toml(&path), &masked(&content));
        }
    }
    write_messages(&mut text, (&asked, config), &masked, &mut left_out);
    write_answers(&mut text, &story, &mut left_out);
    if row.cycle.model != OFFLINE_MODEL {
        write_turns(&mut text, &story);
    }
    text.push_str("\n[expect]\n");
    write_receipts(&mut text, &story);
    for path in repo.history().list_changed_paths(commit)? {
        let path = path.to_string_lossy();
        let (was, is) = (repo.history().read_text_at(before, &path)?, repo.history().read_text_at(commit, &path)?);
        let (Some(is), false) = (is, path == memory::EPISODIC_MEMORY || !path.ends_with(".md")) else { continue };
        let added_lines = list_changed_lines(&was.unwrap_or_default(), &is).into_iter().filter(|line| line.is_added);
        let added_lines: Vec<String> = added_lines.map(|line| quote_toml(masked(&line.text).trim())).collect();
        if !added_lines.is_empty() {
            text.push_str(&format!(
                "\n[expect.files.{}]\ncontains = [{}]\n",
                quote_toml(&path),
                added_lines.join(", ")
            ));
        }
    }
    if let Err(why) = EvalCase::parse(&text) {
        return Err(unfit(&format!("the case can't be read back: {why}")));
    }
    let path = dir.join(format!("{id}.toml"));
    write_case(dir, &path, &text).map_err(|source| AddCaseError::Io { path: path.clone(), source })?;
    Ok(AddedCase { path, masked: text.matches(MASK).count(), left_out })
}

fn render_head(
    row: &CycleRow,
    story: &WakeStory,
    (asked, config): (&[Incoming], &Config),
    masked: &dyn Fn(&str) -> String,
) -> String {
    let about =
        asked.first().map_or_else(String::new, |first| truncate_text(&one_line(&masked(&first.text)), MAX_ABOUT_CHARS));
    let mut text = format!(
        "# The wake {}, recorded with {}. Secrets are masked; names and facts are not: read it before you share it.\n",
        story.wake_id, row.cycle.model
    );
    write_line(&mut text, "about", &about);
    write_line(&mut text, "now", &story.started_at.map(format_rfc3339).unwrap_or_default());
    write_line(&mut text, "timezone", config.timezone.name());
    if view::foreign_chat(row.cycle.chat, config.owner_chat).is_some() {
        text.push_str(&format!("owner = {}\n", CHATS.0));
    }
    text.push_str(&format!("autonomy = {}\n", config.autonomy.as_str()));
    text
}

fn write_messages(
    text: &mut String,
    (asked, config): (&[Incoming], &Config),
    masked: &dyn Fn(&str) -> String,
    left_out: &mut Vec<String>,
) {
    for (at, message) in asked.iter().enumerate() {
        text.push_str("\n[[said]]\n");
        write_line(text, "text", &masked(&message.text));
        if view::foreign_chat(Some(message.chat), config.owner_chat).is_some() {
            text.push_str(&format!("chat = {}\n", CHATS.1));
        }
        for (key, value) in [("forwarded_from", &message.forwarded_from), ("quoted", &message.quoted)] {
            value.iter().for_each(|value| write_line(text, key, &masked(value)));
        }
        if at + 1 < asked.len() {
            text.push_str("wake = false\n");
        }
        if message.kind != "text" {
            left_out.push(format!("Message {} was a {}: its file is left out.", message.id, message.kind));
        }
    }
}

fn list_calls(story: &WakeStory) -> impl Iterator<Item = &StoryCall> {
    story.turns().flat_map(|turn| &turn.calls)
}

/// Writes the results of calls that acted outside, as the case's answers.
fn write_answers(text: &mut String, story: &WakeStory, left_out: &mut Vec<String>) {
    let registry = Registry::for_thinking_model();
    for call in list_calls(story) {
        let Some(result) = &call.result else { continue };
        let is_known = registry.get(&call.tool).is_some();
        if is_known && registry.is_acting(&call.tool) {
            text.push_str("\n[[answers]]\n");
            write_line(text, "tool", &call.tool);
            write_line(text, "input", &call.input);
            write_line(text, "content", &result.content);
            if result.is_error {
                text.push_str("is_error = true\n");
            }
            result.receipt.iter().for_each(|receipt| write_line(text, "receipt", receipt));
            result.taint.iter().for_each(|taint| write_line(text, "taint", taint));
        } else if call.tool.starts_with("mcp__") {
            left_out.push(format!("{} is a tool of a server, and cases have no servers.", call.tool));
        }
        if result.has_image {
            left_out.push(format!("The picture that {} showed is left out.", call.tool));
        }
    }
}

/// Writes the turns as a script, so that the case can be repeated without an AI model.
fn write_turns(text: &mut String, story: &WakeStory) {
    for turn in story.turns() {
        text.push_str("\n[[turns]]\n");
        write_line(text, "text", &turn.text);
        for call in &turn.calls {
            text.push_str("[[turns.calls]]\n");
            write_line(text, "tool", &call.tool);
            write_line(text, "input", &call.input);
        }
    }
}

/// Writes the receipts to expect. Those of answers, plans and notes are left out.
fn write_receipts(text: &mut String, story: &WakeStory) {
    let registry = if story.model.as_deref() == Some(OFFLINE_MODEL) {
        Registry::for_offline_model()
    } else {
        Registry::for_thinking_model()
    };
    let is_free = |call: &&StoryCall| registry.get(&call.tool).is_some_and(|tool| tool.is_free);
    let receipt = |call: &StoryCall| Some((call.tool.clone(), call.result.as_ref()?.receipt.clone()?));
    let receipts = list_calls(story).filter(|call| !is_free(call)).filter_map(receipt);
    let receipts: Vec<String> = receipts
        .map(|(tool, what)| format!("    {{ tool = {}, what = {} }},\n", quote_toml(&tool), quote_toml(&what)))
        .collect();
    text.push_str(&format!("did = [\n{}]\n", receipts.concat()));
    if receipts.is_empty() {
        let said = list_calls(story).any(|call| call.tool == "reply") || !story.said.is_empty();
        text.push_str(if said { "answer = [\"\"]\n" } else { "" });
    }
}

fn write_line(text: &mut String, key: &str, value: &str) {
    // Writing to a string can't fail.
    writeln!(text, "{key} = {}", quote_toml(value)).ok();
}

/// Quotes a text as a TOML string, keeping its line breaks.
fn quote_toml(value: &str) -> String {
    let is_long = value.contains('\n');
    let mut quoted = if is_long { "\"\"\"\n".to_owned() } else { "\"".to_owned() };
    for c in value.chars() {
        match c {
            '\n' => quoted.push('\n'),
            '\\' | '"' => quoted.extend(['\\', c]),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push_str(if is_long { "\"\"\"" } else { "\"" });
    quoted
}

fn write_case(dir: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    if !dir.exists() {
        file::create_private_dirs(dir)?;
    }
    file::write_private(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_quoted_text_is_read_back_unchanged(value in any::<String>()) {
            let read: BTreeMap<String, String> = toml::from_str(&format!("a = {}\n", quote_toml(&value))).unwrap();
            prop_assert_eq!(&read["a"], &value);
        }
    }
}
