//! `wake memory forget --purge`: removes the words from git's history too. A file in the workspace keeps the old history for some days.
//!
//! The order: write the new history, note the mapping of commits, put the history in force, update the database and the remote, delete
//! the note. After an interruption, the next purge finds the note and does the rest.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use reveille_base::file::{create_private_dirs, replace_durably};
use reveille_config::Config;
use reveille_cycle::merge_texts;
use reveille_git::{Oid, OldLine, REMOTE_TIMEOUT, RemoteError};
use reveille_memory::forgetting::SoughtWords;
use reveille_store::HEAD_SEEN;

use super::{
    ProvenanceError,
    hand::{PersonSession, PersonSessionTools},
};

/// The file endings of a backup and of a note.
const BACKUP: &str = "bundle";
const NOTE: &str = "json";

/// The result of a purge.
#[derive(Debug)]
pub struct PurgedHistory {
    /// The number of rewritten commits; 0 if no commit held the words.
    pub commits: usize,
    /// The backup of the old history.
    pub backup: Option<PathBuf>,
    /// The result of replacing the remote's history; `None` if there was nothing to replace.
    pub pushed: Option<Result<(), RemoteError>>,
}

/// Removes the words from the history.
///
/// # Errors
/// [`ProvenanceError::Refused`] if changes can't be committed; nothing was changed then.
pub fn purge_history(
    hand: &mut PersonSession<'_>,
    tools: PersonSessionTools<'_>,
    sought: &SoughtWords,
) -> Result<PurgedHistory, ProvenanceError> {
    let dir = tools.config.purged_dir();
    let cut_off = list_notes(&dir);
    finish_interrupted_purges(hand, &cut_off)?;
    let edits = hand.commit_edits()?;
    if let Some(left) = edits.left_alone.first() {
        let why = format!(
            "{} has changes that I can't commit, because it {}. The history stays as it is.",
            left.path, left.why
        );
        return Err(ProvenanceError::Refused(why));
    }
    let now = tools.clock.now();
    // Rewrite the remote's new commits too. If the fetch fails, the push below is refused and nothing is lost.
    if let Err(error) = hand.repo.remote().fetch(REMOTE_TIMEOUT) {
        tracing::info!(%error, "the remote was not fetched before the purge");
    }
    let Some(planned) = hand.repo.purge().plan_purge(&|text| sought.mask(text), now)? else {
        if !cut_off.is_empty() {
            // An interrupted purge of other words left them on the remote. Its note stays for a purge of those words.
            let is_left = hand.repo.purge().old_line()? == Some(OldLine::Remote);
            finish_purge(hand, if is_left { &[] } else { &cut_off })?;
        }
        return Ok(PurgedHistory { commits: 0, backup: None, pushed: None });
    };
    create_private_dirs(&dir).map_err(|error| build_unwritable_error(&dir, &error))?;
    let backup = find_free_backup(&dir, &now.format("%Y%m%dT%H%M%SZ").to_string());
    hand.repo.bundle(&backup)?;
    let commits: BTreeMap<String, String> =
        planned.commits.iter().map(|(old, new)| (old.to_string(), new.to_string())).collect();
    let note = backup.with_extension(NOTE);
    write_note(&note, &commits).map_err(|error| build_unwritable_error(&note, &error))?;
    let was_seen = hand.readable_store().maintenance().find_handled_value(HEAD_SEEN)?
        == hand.repo.head()?.map(|head| head.to_string());
    hand.repo.purge().carry_out_purge(&planned)?;
    hand.fenced_store().undos_mut().rewrite_commits(&commits)?;
    if let (true, Some(head)) = (was_seen, hand.repo.head()?) {
        hand.fenced_store().maintenance_mut().set_handled_value(HEAD_SEEN, &head.to_string())?;
    }
    hand.repo.remote().integrate(now, &merge_texts)?;
    let pushed = match hand.repo.purge().push_purged_history(&planned, REMOTE_TIMEOUT.into()) {
        Ok(true) => Some(Ok(())),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    };
    // The remote still has the words: keep the note for the next purge.
    let done = if matches!(pushed, Some(Err(_))) { Vec::new() } else { [cut_off, vec![note]].concat() };
    finish_purge(hand, &done)?;
    Ok(PurgedHistory { commits: commits.len(), backup: Some(backup), pushed })
}

/// A warning about the consequences of a purge beyond this machine.
pub fn describe_consequences(commits: usize) -> String {
    let first = match commits {
        1 => "the one that holds the words".to_owned(),
        n => format!("the first of the {n} that hold the words"),
    };
    format!(
        "Every commit from {first} onward gets a new id, and the remote's history is replaced by force. Other clones and forks still \
         hold the words: clone them again, and merge nothing from them."
    )
}

/// Returns true if a purge was interrupted. Another purge finishes it, even if the history no longer holds the words.
pub fn was_cut_off(config: &Config) -> bool {
    !list_notes(&config.purged_dir()).is_empty()
}

/// A free path for a backup, unused by another backup or note of the same second.
fn find_free_backup(dir: &Path, time: &str) -> PathBuf {
    let path = |n: u32| match n {
        1 => dir.join(format!("{time}.{BACKUP}")),
        n => dir.join(format!("{time}-{n}.{BACKUP}")),
    };
    // A killed git leaves its lock behind.
    let traces = [BACKUP, NOTE, "bundle.lock"];
    let is_free = |path: &PathBuf| !traces.iter().any(|ending| path.with_extension(ending).exists());
    (1..).map(path).find(is_free).unwrap_or_else(|| path(1))
}

/// The notes of interrupted purges.
fn list_notes(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == NOTE)).collect()
}

/// Clears the remaining traces of the words, then deletes the notes.
fn finish_purge(hand: &mut PersonSession<'_>, notes: &[PathBuf]) -> Result<(), ProvenanceError> {
    hand.repo.purge().clear_purged_history()?;
    hand.scrub_index()?;
    notes.iter().try_for_each(|note| remove(note))
}

/// Updates the database after an interrupted purge whose history is in force.
fn finish_interrupted_purges(hand: &mut PersonSession<'_>, notes: &[PathBuf]) -> Result<(), ProvenanceError> {
    for path in notes {
        let commits: Option<BTreeMap<String, String>> =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // Interrupted before the references moved: not in force.
        let head = hand.repo.head()?;
        let in_force = |new: &String| match (head, Oid::from_str(new)) {
            (Some(head), Ok(new)) => hand.repo.contains(head, new).unwrap_or(false),
            _ => false,
        };
        if let Some(commits) = commits.filter(|commits| commits.values().any(in_force)) {
            hand.fenced_store().undos_mut().rewrite_commits(&commits)?;
        }
    }
    Ok(())
}

fn write_note(path: &Path, commits: &BTreeMap<String, String>) -> std::io::Result<()> {
    replace_durably(path, &serde_json::to_vec(commits)?)
}

fn remove(path: &Path) -> Result<(), ProvenanceError> {
    fs::remove_file(path).map_err(|error| build_unwritable_error(path, &error))
}

fn build_unwritable_error(path: &Path, error: &std::io::Error) -> ProvenanceError {
    ProvenanceError::Refused(format!("{} can't be written: {error}.", path.display()))
}
