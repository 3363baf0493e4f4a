//! `wake memory forget`: removes words from all data that can be searched. The plan is shown first, then carried out: rows of the database
//! first, then one commit in the person's name. After an interruption, a second request finds the rest.

use std::collections::BTreeSet;

use reveille_base::words::format_count;
use reveille_git::{FileChange, HoldingCommits, Repo};
use reveille_memory::{
    DocKind,
    forgetting::{SoughtWords, remove_words},
    origin::parse_origin,
};
use reveille_store::{HeldInRows, Incoming, Store};

use super::{
    ProvenanceError,
    hand::{PersonSession, PersonsCommit},
};

/// The planned removals, and the obstacles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgetting {
    /// The documents with the lines to remove.
    pub documents: Vec<ForgottenLines>,
    /// The rows of the database with the words.
    pub rows: HeldInRows,
    /// The messages from which the removed lines came but which don't contain the words. They may say the same in other words, and
    /// are kept.
    pub sources: Vec<Incoming>,
    /// The documents that contain the words but can't be written.
    pub unwritable: Vec<String>,
}

/// The lines to remove from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenLines {
    /// The lines by number and present text.
    pub lines: Vec<(usize, String)>,
    /// The change of the document.
    pub change: FileChange,
}

impl Forgetting {
    /// Returns true if nothing contains the words.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.rows.is_empty()
    }
}

/// Plans the removal without writing anything.
pub fn plan(repo: &Repo, store: Option<&Store>, sought: &SoughtWords) -> Result<Forgetting, ProvenanceError> {
    let mut forgetting = Forgetting::default();
    let mut message_ids = BTreeSet::new();
    for path in repo.history().all_markdown()? {
        let Ok(Some(text)) = repo.read_work_tree(&path) else { continue };
        let Some(found) = remove_words(DocKind::from_path(&path), &text, sought) else { continue };
        message_ids.extend(found.lines.iter().filter_map(|(_, line)| parse_origin(line)?.message));
        if repo.check_writable(&path).is_err() {
            forgetting.unwritable.push(path.clone());
        }
        let change = FileChange { path, base: Some(text), content: Some(found.text) };
        forgetting.documents.push(ForgottenLines { lines: found.lines, change });
    }
    if let Some(store) = store {
        forgetting.rows = store.retention().find_held_words(&match_words(sought))?;
        let message_ids: Vec<i64> = message_ids.into_iter().collect();
        let is_removed = |message: &Incoming| forgetting.rows.incoming.iter().any(|row| row.id == message.id);
        forgetting.sources =
            store.inbox().list_messages(&message_ids)?.into_iter().filter(|message| !is_removed(message)).collect();
        forgetting.sources.retain(|message| message.text != reveille_store::FORGOTTEN_ROW);
    }
    Ok(forgetting)
}

fn match_words(sought: &SoughtWords) -> impl Fn(&str, bool) -> bool {
    |text, is_json| if is_json { sought.are_in_json(text) } else { sought.is_found_in(text) }
}

/// Removes the content in `shown`. The flag is true if the database file was rewritten; otherwise its free pages still hold the words.
///
/// # Errors
/// [`ProvenanceError::Refused`] if a wake's work is unfinished, or if the plan has changed since it was shown.
pub fn carry_out(
    session: &mut PersonSession<'_>,
    sought: &SoughtWords,
    shown: &Forgetting,
) -> Result<(Option<PersonsCommit>, bool), ProvenanceError> {
    let now = plan(&session.repo, Some(session.readable_store()), sought)?;
    if now != *shown {
        let why = "The text with these words has changed since then. Nothing was removed; please ask again.";
        return Err(ProvenanceError::Refused(why.to_owned()));
    }
    let is_rewritten = session.fenced_store().retention_mut().forget_words(&now.rows, &match_words(sought))?;
    session.fenced_store().inbox_mut().note_spoken_change()?;
    if now.documents.is_empty() {
        session.scrub_index()?;
        return Ok((None, is_rewritten));
    }
    let lines = now.documents.iter().map(|document| document.lines.len()).sum();
    let changes: Vec<FileChange> = now.documents.into_iter().map(|document| document.change).collect();
    // The subject must not contain the words, as it stays in the history.
    let subject = format!("Forget {} of the memory", format_count(lines, "line"));
    let made = session.commit(&changes, &subject)?;
    session.scrub_index()?;
    Ok((Some(made), is_rewritten))
}

/// Finds the commits whose lines or messages still contain the words.
pub fn find_holding_commits(repo: &Repo, sought: &SoughtWords) -> Result<HoldingCommits, ProvenanceError> {
    Ok(repo.history().commits_holding(&|text| sought.is_found_in(text))?)
}
