//! The history of our branch: commits, their authors and their wakes. For `wake log`, `wake show`, and to find a person's later commits.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use git2::{DiffDelta, DiffFormat, DiffStatsFormat, Repository, Sort};

use reveille_base::words;

use super::{FileChange, Oid, RepoError, WAKE_EMAIL};
use crate::areas::CommitHistory;

/// The maximum size of a shown diff, in bytes.
const MAX_DIFF_BYTES: usize = 256 << 10;
/// The maximum number of commits searched for a wake's or a person's commit.
pub(super) const MAX_SEARCHED: usize = 10_000;
/// The minimum length of an id's prefix in a search.
const MIN_PREFIX: usize = 4;
/// The length of a full id in hexadecimal digits.
const WHOLE_ID: usize = 40;

/// A commit, as listed by `wake log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: Oid,
    /// The author's name.
    pub author: String,
    /// The author's address.
    pub email: String,
    /// The first line of its message.
    pub subject: String,
    /// The `Wake-Id` trailer of a wake's commit.
    pub wake_id: Option<String>,
    /// The commit time.
    pub at: DateTime<Utc>,
}

impl Commit {
    /// Returns `true` if the commit holds a wake's work, as opposed to a person's.
    pub fn is_wake(&self) -> bool {
        self.wake_id.is_some()
    }

    /// Returns `true` if this program committed in its own name: a wake, a merge, the templates.
    pub fn is_ours(&self) -> bool {
        self.email == WAKE_EMAIL
    }
}

/// A commit in full, for `wake show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInFull {
    /// The commit.
    pub commit: Commit,
    /// Its whole message, trailers included.
    pub message: String,
    /// The changed files and their counts of lines; empty if a file was left out.
    pub stat: String,
    /// The changes against its first parent, at most 256 KiB.
    pub diff: String,
    /// The number of files left out.
    pub left_out: usize,
}

/// The reference that keeps the last seen commit findable after a rewrite of the history.
pub const SEEN: &str = "refs/reveille/seen";

impl CommitHistory<'_> {
    /// Returns the last `limit` commits of our branch, newest first.
    pub fn list_commits(&self, limit: usize) -> Result<Vec<Commit>, RepoError> {
        self.walk_commits(None, limit)
    }

    /// Returns the newest `limit` commits of people on our branch that aren't ancestors of `since`, newest first. Our own commits don't
    /// count towards the limit. If `since` no longer exists, returns commits from the whole history.
    pub fn peoples_commits_since(&self, since: Oid, limit: usize) -> Result<Vec<Commit>, RepoError> {
        // fault: persons-commit-hidden-committed
        let commits = self.walk_commits(Some(since), MAX_SEARCHED)?;
        Ok(commits.into_iter().filter(|commit| !commit.is_ours() && !commit.is_wake()).take(limit).collect())
    }

    /// Returns the commit that replaces a commit recorded as seen, or that commit if it still exists. After a rewrite of the history,
    /// [`SEEN`] names the replacement. `None` if there is none.
    pub fn seen_now(&self, noted: Oid) -> Result<Option<Oid>, RepoError> {
        if self.0.git.odb()?.exists(noted) { Ok(Some(noted)) } else { self.0.find_reference_id(SEEN) }
    }

    /// Finds the commit of the wake with this id, so that a resumed cycle learns of its publication.
    pub fn wake_commit(&self, wake_id: &str) -> Result<Option<Oid>, RepoError> {
        let found = self.find_wake(|id| id == wake_id)?;
        Ok(found.map(|commit| commit.id))
    }

    /// Returns a commit's whole message, trailers included.
    pub fn read_message(&self, commit: Oid) -> Result<String, RepoError> {
        Ok(String::from_utf8_lossy(self.0.git.find_commit(commit)?.message_bytes()).into_owned())
    }

    /// Returns the paths of all files that a commit changed against its first parent.
    pub fn list_changed_paths(&self, commit: Oid) -> Result<BTreeSet<PathBuf>, RepoError> {
        let diff = self.diff_commit(&self.0.git.find_commit(commit)?)?;
        Ok(diff.deltas().flat_map(|delta| list_delta_paths(&delta)).collect())
    }

    /// Returns the changes that undo a commit: for each file its content after the commit, and the one in the first parent.
    pub fn plan_reversal(&self, commit: Oid) -> Result<Vec<FileChange>, RepoError> {
        let found = self.0.git.find_commit(commit)?;
        let parent = found.parent_ids().next();
        let diff = self.diff_commit(&found)?;
        let mut changes = Vec::new();
        for delta in diff.deltas() {
            let Some(path) = delta.new_file().path().or(delta.old_file().path()).and_then(|path| path.to_str()) else {
                continue;
            };
            let base = self.0.read_committed_text(Some(commit), path)?;
            let content = self.0.read_committed_text(parent, path)?;
            changes.push(FileChange { path: path.to_owned(), base, content });
        }
        Ok(changes)
    }

    /// Finds a commit by its wake's id, its own id or a prefix of either (at least four characters), without the files for which
    /// `is_left_out` is `true`.
    pub fn find_full_commit(
        &self,
        id: &str,
        is_left_out: impl Fn(&Path) -> bool,
    ) -> Result<Option<CommitInFull>, RepoError> {
        let found = self.find_commit(id)?;
        found.map(|commit| self.read_full_commit(commit.id, is_left_out)).transpose()
    }

    /// Finds a commit by its wake's id, its own id or a prefix of either (at least four characters).
    pub fn find_commit(&self, id: &str) -> Result<Option<Commit>, RepoError> {
        if id.len() < MIN_PREFIX {
            return Ok(None);
        }
        // A full id needs no search, however long the history is.
        let whole = if id.len() == WHOLE_ID { Oid::from_str(id).ok() } else { None };
        if let Some(commit) = whole.and_then(|id| self.0.git.find_commit(id).ok()) {
            return Ok(Some(read_commit(&commit)));
        }
        if let Some(commit) = self.find_wake(|wake_id| wake_id.starts_with(id))? {
            return Ok(Some(commit));
        }
        Ok(self.0.git.find_commit_by_prefix(id).ok().map(|commit| read_commit(&commit)))
    }

    pub(super) fn diff_commit(&self, commit: &git2::Commit<'_>) -> Result<git2::Diff<'_>, RepoError> {
        let parent = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        Ok(self.0.git.diff_tree_to_tree(parent.as_ref(), Some(&commit.tree()?), None)?)
    }

    fn read_full_commit(&self, id: Oid, is_left_out: impl Fn(&Path) -> bool) -> Result<CommitInFull, RepoError> {
        let commit = self.0.git.find_commit(id)?;
        let diff = self.diff_commit(&commit)?;
        let all: BTreeSet<PathBuf> = diff.deltas().flat_map(|delta| list_delta_paths(&delta)).collect();
        let left_out: BTreeSet<PathBuf> = all.into_iter().filter(|path| is_left_out(path)).collect();
        let stat = match left_out.is_empty() {
            true => diff.stats()?.to_buf(DiffStatsFormat::FULL, 80)?.to_vec(),
            false => Vec::new(),
        };
        let mut text = Vec::new();
        let printed = diff.print(DiffFormat::Patch, |delta, _, line| {
            if list_delta_paths(&delta).any(|path| left_out.contains(&path)) {
                return true;
            }
            if matches!(line.origin(), '+' | '-' | ' ') {
                text.extend(line.origin().to_string().bytes());
            }
            text.extend_from_slice(line.content());
            text.len() < MAX_DIFF_BYTES
        });
        if text.len() < MAX_DIFF_BYTES {
            printed?;
        }
        text.truncate(MAX_DIFF_BYTES);
        Ok(CommitInFull {
            commit: read_commit(&commit),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            stat: String::from_utf8_lossy(&stat).into_owned(),
            diff: String::from_utf8_lossy(&text).into_owned(),
            left_out: left_out.len(),
        })
    }

    fn find_wake(&self, matches: impl Fn(&str) -> bool) -> Result<Option<Commit>, RepoError> {
        let commits = self.walk_commits(None, MAX_SEARCHED)?;
        Ok(commits.into_iter().find(|commit| commit.wake_id.as_deref().is_some_and(&matches)))
    }

    pub(super) fn walk_commits(&self, hidden: Option<Oid>, limit: usize) -> Result<Vec<Commit>, RepoError> {
        let Some(tip) = self.0.head()? else { return Ok(Vec::new()) };
        let mut walk = self.0.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push(tip)?;
        if let Some(hidden) = hidden.filter(|hidden| self.0.git.find_commit(*hidden).is_ok()) {
            walk.hide(hidden)?;
        }
        walk.take(limit).map(|id| Ok(read_commit(&self.0.git.find_commit(id?)?))).collect()
    }
}

/// Returns the old and the new path of a changed file.
fn list_delta_paths(delta: &DiffDelta<'_>) -> impl Iterator<Item = PathBuf> + use<> {
    let both = [delta.old_file().path(), delta.new_file().path()];
    both.map(|path| path.map(Path::to_owned)).into_iter().flatten()
}

pub(super) fn read_commit(commit: &git2::Commit<'_>) -> Commit {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let author = commit.author();
    Commit {
        id: commit.id(),
        author: text(author.name_bytes()),
        email: text(author.email_bytes()),
        subject: text(commit.message_bytes()).lines().next().unwrap_or_default().to_owned(),
        wake_id: find_trailer(&text(commit.message_bytes()), "Wake-Id"),
        at: DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default(),
    }
}

/// Returns `true` if wakes have committed in the repository at `dir`, or if it can't be read.
pub fn has_wakes(dir: &Path) -> bool {
    if !dir.join(".git").exists() {
        return false;
    }
    let search = || -> Result<bool, git2::Error> {
        let git = Repository::open(dir)?;
        let mut walk = git.revwalk()?;
        walk.push_glob("refs/heads/*")?;
        for id in walk.take(MAX_SEARCHED) {
            if read_commit(&git.find_commit(id?)?).is_wake() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    search().unwrap_or(true)
}

/// Returns the value of a message's trailer.
pub fn find_trailer(message: &str, name: &str) -> Option<String> {
    let trailers = git2::message_trailers_strs(message).ok()?;
    trailers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// Appends trailers to a message. Folds each value into one line, so that it can't add a trailer.
pub fn append_trailers(message: &str, trailers: &[(&str, &str)]) -> String {
    let mut whole = message.trim_end().to_owned();
    whole.push_str("\n\n");
    for (name, value) in trailers {
        let value = words::one_line(value);
        whole.push_str(&format!("{name}: {value}\n"));
    }
    whole
}
