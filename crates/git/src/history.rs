//! What the branch tells: who committed what, and which wake it was. For `wake log`, `wake show`, and for finding what a
//! person committed since.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use git2::{DiffDelta, DiffFormat, DiffStatsFormat, Repository, Sort};

use reveille_base::words;

use super::{FileChange, Oid, Repo, RepoError, WAKE_EMAIL};

/// How much of a diff is shown.
const MAX_DIFF_BYTES: usize = 256 << 10;
/// How many commits back a wake, or a person's commit, is looked for.
pub(super) const MAX_SEARCHED: usize = 10_000;
/// The shortest beginning of an id that is looked up.
const MIN_PREFIX: usize = 4;
/// How long an id is in full, in hexadecimal digits.
const WHOLE_ID: usize = 40;

/// A commit, as `wake log` lists it.
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
    /// Its `Wake-Id` trailer, if a wake made it.
    pub wake_id: Option<String>,
    /// When it was committed.
    pub at: DateTime<Utc>,
}

impl Commit {
    /// Whether a wake's work is in it, as opposed to a person's.
    pub fn is_wake(&self) -> bool {
        self.wake_id.is_some()
    }

    /// Whether this program committed in its own name: a wake, a merge, the templates.
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
    /// Files and counts of lines; empty when a file was left out.
    pub stat: String,
    /// The changes against its first parent, cut off at 256 KiB.
    pub diff: String,
    /// How many files were left out.
    pub left_out: usize,
}

/// Where the commit that was seen last stands while the history is rewritten.
pub const SEEN: &str = "refs/reveille/seen";

impl Repo {
    /// The last `limit` commits of our branch, newest first.
    pub fn log(&self, limit: usize) -> Result<Vec<Commit>, RepoError> {
        self.walk(None, limit)
    }

    /// The commits of our branch that people made and `since` doesn't have, newest first, at most `limit`; however many of ours came
    /// after them. A `since` that is gone hides nothing.
    pub fn peoples_commits_since(&self, since: Oid, limit: usize) -> Result<Vec<Commit>, RepoError> {
        // fault: persons-commit-hidden-committed
        let commits = self.walk(Some(since), MAX_SEARCHED)?;
        Ok(commits.into_iter().filter(|commit| !commit.is_ours() && !commit.is_wake()).take(limit).collect())
    }

    /// What a commit that was noted as seen is now: a person who rewrites the history takes [`SEEN`] along. None: it is gone.
    pub fn seen_now(&self, noted: Oid) -> Result<Option<Oid>, RepoError> {
        if self.git.odb()?.exists(noted) { Ok(Some(noted)) } else { self.id_of(SEEN) }
    }

    /// The commit of the wake with this id; so a resumed cycle learns that it was published.
    pub fn wake_commit(&self, wake_id: &str) -> Result<Option<Oid>, RepoError> {
        let found = self.find_wake(|id| id == wake_id)?;
        Ok(found.map(|commit| commit.id))
    }

    /// A commit's whole message, trailers included.
    pub fn message(&self, commit: Oid) -> Result<String, RepoError> {
        Ok(String::from_utf8_lossy(self.git.find_commit(commit)?.message_bytes()).into_owned())
    }

    /// The paths of all files that a commit changed against its first parent.
    pub fn changed_by(&self, commit: Oid) -> Result<BTreeSet<PathBuf>, RepoError> {
        let diff = self.changes_of(&self.git.find_commit(commit)?)?;
        Ok(diff.deltas().flat_map(|delta| paths(&delta)).collect())
    }

    /// What would take back a commit's changes against its first parent: of each file what it left, and what was there before.
    pub fn reversal(&self, commit: Oid) -> Result<Vec<FileChange>, RepoError> {
        let found = self.git.find_commit(commit)?;
        let parent = found.parent_ids().next();
        let diff = self.changes_of(&found)?;
        let mut changes = Vec::new();
        for delta in diff.deltas() {
            let Some(path) = delta.new_file().path().or(delta.old_file().path()).and_then(|path| path.to_str()) else {
                continue;
            };
            let base = self.read_committed(Some(commit), path)?;
            let content = self.read_committed(parent, path)?;
            changes.push(FileChange { path: path.to_owned(), base, content });
        }
        Ok(changes)
    }

    /// A commit by its wake's id, by its own, or by the beginning of either (four characters at least), without the files that are
    /// to be left out.
    pub fn show(&self, id: &str, is_left_out: impl Fn(&Path) -> bool) -> Result<Option<CommitInFull>, RepoError> {
        let found = self.commit_called(id)?;
        found.map(|commit| self.shown(commit.id, is_left_out)).transpose()
    }

    /// A commit by its wake's id, by its own, or by the beginning of either (four characters at least).
    pub fn commit_called(&self, id: &str) -> Result<Option<Commit>, RepoError> {
        if id.len() < MIN_PREFIX {
            return Ok(None);
        }
        // In full it is found at once, however long the history is.
        let whole = if id.len() == WHOLE_ID { Oid::from_str(id).ok() } else { None };
        if let Some(commit) = whole.and_then(|id| self.git.find_commit(id).ok()) {
            return Ok(Some(described(&commit)));
        }
        if let Some(commit) = self.find_wake(|wake_id| wake_id.starts_with(id))? {
            return Ok(Some(commit));
        }
        Ok(self.git.find_commit_by_prefix(id).ok().map(|commit| described(&commit)))
    }

    pub(super) fn changes_of(&self, commit: &git2::Commit<'_>) -> Result<git2::Diff<'_>, RepoError> {
        let parent = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        Ok(self.git.diff_tree_to_tree(parent.as_ref(), Some(&commit.tree()?), None)?)
    }

    fn shown(&self, id: Oid, is_left_out: impl Fn(&Path) -> bool) -> Result<CommitInFull, RepoError> {
        let commit = self.git.find_commit(id)?;
        let diff = self.changes_of(&commit)?;
        let all: BTreeSet<PathBuf> = diff.deltas().flat_map(|delta| paths(&delta)).collect();
        let left_out: BTreeSet<PathBuf> = all.into_iter().filter(|path| is_left_out(path)).collect();
        let stat = match left_out.is_empty() {
            true => diff.stats()?.to_buf(DiffStatsFormat::FULL, 80)?.to_vec(),
            false => Vec::new(),
        };
        let mut text = Vec::new();
        let printed = diff.print(DiffFormat::Patch, |delta, _, line| {
            if paths(&delta).any(|path| left_out.contains(&path)) {
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
            commit: described(&commit),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            stat: String::from_utf8_lossy(&stat).into_owned(),
            diff: String::from_utf8_lossy(&text).into_owned(),
            left_out: left_out.len(),
        })
    }

    fn find_wake(&self, matches: impl Fn(&str) -> bool) -> Result<Option<Commit>, RepoError> {
        let commits = self.walk(None, MAX_SEARCHED)?;
        Ok(commits.into_iter().find(|commit| commit.wake_id.as_deref().is_some_and(&matches)))
    }

    pub(super) fn walk(&self, hidden: Option<Oid>, limit: usize) -> Result<Vec<Commit>, RepoError> {
        let Some(tip) = self.head()? else { return Ok(Vec::new()) };
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push(tip)?;
        if let Some(hidden) = hidden.filter(|hidden| self.git.find_commit(*hidden).is_ok()) {
            walk.hide(hidden)?;
        }
        walk.take(limit).map(|id| Ok(described(&self.git.find_commit(id?)?))).collect()
    }
}

/// Where a changed file was, and where it is.
fn paths(delta: &DiffDelta<'_>) -> impl Iterator<Item = PathBuf> + use<> {
    let both = [delta.old_file().path(), delta.new_file().path()];
    both.map(|path| path.map(Path::to_owned)).into_iter().flatten()
}

pub(super) fn described(commit: &git2::Commit<'_>) -> Commit {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let author = commit.author();
    Commit {
        id: commit.id(),
        author: text(author.name_bytes()),
        email: text(author.email_bytes()),
        subject: text(commit.message_bytes()).lines().next().unwrap_or_default().to_owned(),
        wake_id: trailer(&text(commit.message_bytes()), "Wake-Id"),
        at: DateTime::from_timestamp(commit.time().seconds(), 0).unwrap_or_default(),
    }
}

/// Whether wakes have committed in the repository in `dir`. One that is there and can't be read counts as such.
pub fn has_wakes(dir: &Path) -> bool {
    if !dir.join(".git").exists() {
        return false;
    }
    let search = || -> Result<bool, git2::Error> {
        let git = Repository::open(dir)?;
        let mut walk = git.revwalk()?;
        walk.push_glob("refs/heads/*")?;
        for id in walk.take(MAX_SEARCHED) {
            if described(&git.find_commit(id?)?).is_wake() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    search().unwrap_or(true)
}

/// The value of a message's trailer.
pub fn trailer(message: &str, name: &str) -> Option<String> {
    let trailers = git2::message_trailers_strs(message).ok()?;
    trailers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// A message with trailers at its end. A value is put on one line, so that none can pass for another trailer.
pub fn trailers(message: &str, trailers: &[(&str, &str)]) -> String {
    let mut whole = message.trim_end().to_owned();
    whole.push_str("\n\n");
    for (name, value) in trailers {
        let value = words::one_line(value);
        whole.push_str(&format!("{name}: {value}\n"));
    }
    whole
}
