//! `wake memory diff`: readable changes of the memory since a point in time.

use std::collections::BTreeSet;

use reveille_base::words::format_local_time;
use reveille_git::{Commit, Repo};
use reveille_memory::changes::{ChangedLine, list_changed_lines};

use super::{
    ProvenanceError,
    point::{DayEdge, Point, PointError, WallClock, find_point},
};

/// The changes since a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryChanges {
    /// The start of the period.
    pub since: Point,
    /// The commits since then, newest first.
    pub commits: Vec<Commit>,
    /// True if there are uncommitted edits.
    pub has_edits: bool,
    /// The documents that changed.
    pub documents: Vec<ChangedDocument>,
}

/// A document that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedDocument {
    /// The path of the document.
    pub path: String,
    /// The kind of change: new, gone or changed.
    pub is: DocumentFate,
    /// The added and removed lines.
    pub lines: Vec<ChangedLine>,
}

/// The fate of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentFate {
    /// The document is new.
    New,
    /// The document is gone.
    Gone,
    /// The document existed before and still does.
    Changed,
}

/// Lists the changes since a point named by a person, or since the last wake's commit.
pub fn list_changes(repo: &Repo, since: Option<&str>, wall: WallClock) -> Result<MemoryChanges, ProvenanceError> {
    let since = match since {
        Some(text) => find_point(repo, text, DayEdge::Begin, wall)?,
        None => {
            let commit = repo.history().last_wake()?.ok_or_else(|| PointError::TooEarly("a wake".to_owned()))?;
            Point { name: format!("the last wake ({})", format_local_time(commit.at, wall.tz)), commit }
        }
    };
    let then = since.commit.id;
    let head = repo.head()?;
    let (was, is) = (repo.history().list_markdown_at(then)?, repo.history().all_markdown()?);
    let (mut documents, mut has_edits) = (Vec::new(), false);
    for path in was.union(&is).collect::<BTreeSet<_>>() {
        let old = repo.history().read_text_at(then, path)?;
        // Links and binary files are skipped.
        let Ok(new) = repo.read_work_tree(path) else { continue };
        if let Some(head) = head {
            has_edits |= repo.history().read_text_at(head, path)? != new;
        }
        if old == new {
            continue;
        }
        let is = match (&old, &new) {
            (None, _) => DocumentFate::New,
            (_, None) => DocumentFate::Gone,
            _ => DocumentFate::Changed,
        };
        let lines = list_changed_lines(old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
        documents.push(ChangedDocument { path: path.clone(), is, lines });
    }
    Ok(MemoryChanges { commits: repo.history().commits_since(then)?, since, has_edits, documents })
}
