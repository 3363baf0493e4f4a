//! `wake memory forget --purge`: the words go out of git's history, too. What was is kept in a file of the workspace for some days.
//!
//! The new history is written first, then noted with what each commit becomes, then put in force; the database and the remote follow,
//! and the note goes last. Cut off in between, the next purge finds the note and does what is left.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use reveille_base::{
    file::{create_private_dirs, replace_durably},
    words::count,
};
use reveille_config::Config;
use reveille_cycle::merge_texts;
use reveille_git::{Oid, OldLine, REMOTE_TIMEOUT, RemoteError};
use reveille_memory::forgetting::SoughtWords;
use reveille_store::HEAD_SEEN;

use super::{
    ProvenanceError,
    hand::{Hand, HandTools},
};

/// How a backup's name ends, and a note's.
const BACKUP: &str = "bundle";
const NOTE: &str = "json";

/// What a purge came to.
#[derive(Debug)]
pub struct PurgedHistory {
    /// Commits that were made anew; 0: none held the words.
    pub commits: usize,
    /// Where the history is kept as it was.
    pub backup: Option<PathBuf>,
    /// Whether the remote's history was replaced; none: there was nothing to replace.
    pub pushed: Option<Result<(), RemoteError>>,
}

/// Takes the words out of the history.
///
/// # Errors
/// [`ProvenanceError::Refused`] where something isn't committed; nothing was changed then.
pub fn purge(
    hand: &mut Hand<'_>,
    tools: HandTools<'_>,
    sought: &SoughtWords,
) -> Result<PurgedHistory, ProvenanceError> {
    let dir = tools.config.purged_dir();
    let cut_off = notes(&dir);
    finish_interrupted(hand, &cut_off)?;
    let edits = hand.commit_edits()?;
    if let Some(left) = edits.left_alone.first() {
        let why = format!(
            "{} has changes that I can't commit, because it {}. The history stays as it is.",
            left.path, left.why
        );
        return Err(ProvenanceError::Refused(why));
    }
    let now = tools.clock.now();
    // What is new there is made anew, too. Without an answer the push below is refused, and nothing is lost.
    if let Err(error) = hand.repo.fetch(REMOTE_TIMEOUT) {
        tracing::info!(%error, "the remote was not fetched before the purge");
    }
    let Some(planned) = hand.repo.plan_purge(&|text| sought.masked(text), now)? else {
        if !cut_off.is_empty() {
            // Other words were purged then, and the remote still has them: that note is for the purge of those.
            let is_left = hand.repo.old_line()? == Some(OldLine::Remote);
            finish(hand, if is_left { &[] } else { &cut_off })?;
        }
        return Ok(PurgedHistory { commits: 0, backup: None, pushed: None });
    };
    create_private_dirs(&dir).map_err(|error| unwritable(&dir, &error))?;
    let backup = free_backup(&dir, &now.format("%Y%m%dT%H%M%SZ").to_string());
    hand.repo.bundle(&backup)?;
    let commits: BTreeMap<String, String> =
        planned.commits.iter().map(|(old, new)| (old.to_string(), new.to_string())).collect();
    let note = backup.with_extension(NOTE);
    write_note(&note, &commits).map_err(|error| unwritable(&note, &error))?;
    let was_seen = hand.rows().handled(HEAD_SEEN)? == hand.repo.head()?.map(|head| head.to_string());
    hand.repo.carry_out_purge(&planned)?;
    hand.store().rewrite_commits(&commits)?;
    if let (true, Some(head)) = (was_seen, hand.repo.head()?) {
        hand.store().set_handled(HEAD_SEEN, &head.to_string())?;
    }
    hand.repo.integrate(now, &merge_texts)?;
    let pushed = match hand.repo.push_purged(&planned, REMOTE_TIMEOUT.into()) {
        Ok(true) => Some(Ok(())),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    };
    // The remote still has them: the note stays, for the next purge to go on.
    let done = if matches!(pushed, Some(Err(_))) { Vec::new() } else { [cut_off, vec![note]].concat() };
    finish(hand, &done)?;
    Ok(PurgedHistory { commits: commits.len(), backup: Some(backup), pushed })
}

/// The words that tell what a purge does beyond this machine.
pub fn warning(commits: usize) -> String {
    format!(
        "Every commit since the first of {} gets another id, and the remote's history is replaced by force. Other clones and forks still \
         hold the words: make them anew, and merge nothing from them.",
        count(commits, "commit")
    )
}

/// Whether a purge was cut off here. Another one finishes it, though the history may hold the words no more.
pub fn was_cut_off(config: &Config) -> bool {
    !notes(&config.purged_dir()).is_empty()
}

/// A backup's path that neither one from the same second has, nor a note.
fn free_backup(dir: &Path, time: &str) -> PathBuf {
    let path = |n: u32| match n {
        1 => dir.join(format!("{time}.{BACKUP}")),
        n => dir.join(format!("{time}-{n}.{BACKUP}")),
    };
    // Git leaves its lock behind where it is killed.
    let traces = [BACKUP, NOTE, "bundle.lock"];
    let is_free = |path: &PathBuf| !traces.iter().any(|ending| path.with_extension(ending).exists());
    (1..).map(path).find(is_free).unwrap_or_else(|| path(1))
}

/// The notes of purges that were cut off.
fn notes(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == NOTE)).collect()
}

/// Clears away what still holds the words, and then the notes.
fn finish(hand: &mut Hand<'_>, notes: &[PathBuf]) -> Result<(), ProvenanceError> {
    hand.repo.clear_purged()?;
    hand.scrub_index()?;
    notes.iter().try_for_each(|note| remove(note))
}

/// The database follows a history that was put in force before a purge was cut off.
fn finish_interrupted(hand: &mut Hand<'_>, notes: &[PathBuf]) -> Result<(), ProvenanceError> {
    for path in notes {
        let commits: Option<BTreeMap<String, String>> =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // Cut off before the references moved, it is in force nowhere.
        let head = hand.repo.head()?;
        let in_force = |new: &String| match (head, Oid::from_str(new)) {
            (Some(head), Ok(new)) => hand.repo.contains(head, new).unwrap_or(false),
            _ => false,
        };
        if let Some(commits) = commits.filter(|commits| commits.values().any(in_force)) {
            hand.store().rewrite_commits(&commits)?;
        }
    }
    Ok(())
}

fn write_note(path: &Path, commits: &BTreeMap<String, String>) -> std::io::Result<()> {
    replace_durably(path, &serde_json::to_vec(commits)?)
}

fn remove(path: &Path) -> Result<(), ProvenanceError> {
    fs::remove_file(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> ProvenanceError {
    ProvenanceError::Refused(format!("{} can't be written: {error}.", path.display()))
}
