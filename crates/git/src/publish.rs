//! A wake's single commit. The result is first built as objects without references; then the branch moves once.
//!
//! A file that the person changed during the cycle is committed as theirs, directly below; the merge of both versions comes on top. Changes
//! unfit for a commit stay uncommitted in their file, and ours are merged into it.

use chrono::{DateTime, Utc};
use git2::Signature;

use reveille_memory::merge::ByHand;

use super::{
    IsSecret, LeftAlone, Merge, Oid, Repo, RepoError,
    advance::{self, FileMove, Move, StopAt},
    person::{EditVerdict, FILTERED, HOLDS_SECRET},
    same_name::SHARED_NAME,
    sparse::{NOT_CHECKED_OUT, UNSEEN},
    tree::{self, FILE, Item, LINK},
    wake_signature,
    worktree::OnDisk,
};

/// One file of a wake's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the work tree, with `/`.
    pub path: String,
    /// The content that the cycle read; `None` if there was no such file.
    pub base: Option<String>,
    /// The new content; `None` to delete the file.
    pub content: Option<String>,
}

/// The input of a commit, made by [`Repo::publish`].
#[must_use]
pub struct Publish<'a> {
    /// The files.
    pub changes: &'a [FileChange],
    /// The whole message, trailers included (see [`super::append_trailers`]).
    pub message: &'a str,
    /// The commit's time.
    pub now: DateTime<Utc>,
    /// Joins the person's text with ours.
    pub merge: &'a Merge<'a>,
    /// Finds text that must not be committed.
    pub is_secret: &'a IsSecret<'a>,
}

/// The outcome of publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The wake's commit.
    pub commit: Oid,
    /// The commit of the person's changes during the cycle, directly below the wake's.
    pub persons: Option<Oid>,
    /// Files in which the person's text was joined with ours.
    pub merged: Vec<String>,
    /// Files written to the work tree but unfit for a commit.
    pub left_alone: Vec<LeftAlone>,
}

impl Repo {
    /// Commits on our branch and updates the work tree and the index.
    pub fn publish(&self, publish: &Publish<'_>) -> Result<Published, RepoError> {
        self.finish_interrupted_move(publish.merge)?;
        self.require_branch()?;
        self.retry_attempt(|| self.try_publish(publish, StopAt::Never))
    }

    /// Publishes like [`Repo::publish`], but as the person's own commit.
    pub fn publish_as_person(&self, publish: &Publish<'_>) -> Result<Published, RepoError> {
        self.finish_interrupted_move(publish.merge)?;
        self.require_branch()?;
        let person = self.person_signature(publish.now)?;
        self.retry_attempt(|| self.try_publish_as(&person, publish, StopAt::Never))
    }

    pub(super) fn try_publish(&self, publish: &Publish<'_>, stop: StopAt) -> Result<Published, RepoError> {
        self.try_publish_as(&wake_signature(publish.now)?, publish, stop)
    }

    fn try_publish_as(
        &self,
        author: &Signature<'_>,
        publish: &Publish<'_>,
        stop: StopAt,
    ) -> Result<Published, RepoError> {
        let from = self.head()?;
        let mut plans = Vec::new();
        for change in publish.changes {
            plans.push(self.plan_file(from, change, publish)?);
        }
        let theirs: Vec<FileMove> = plans.iter().filter_map(Plan::persons_file).collect();
        let persons = if theirs.is_empty() { None } else { Some(self.persons_commit(from, &theirs, publish.now)?) };
        let parent = persons.or(from);
        let files = plans.iter().filter(|plan| plan.left_alone.is_none());
        let tree = tree::with_files(&self.git, parent, files.map(|plan| (plan.path.as_str(), plan.committed)))?;
        let parents: Vec<Oid> = parent.into_iter().collect();
        let commit = self.commit_object(author, publish.message, tree, &parents)?;

        let planned = Move {
            from: from.map(advance::CommitText),
            to: advance::CommitText(commit),
            why: format!("commit: {}", publish.message.lines().next().unwrap_or_default()),
            files: plans.iter().map(Plan::file_move).collect(),
        };
        self.advance_branch(planned, publish.merge, stop)?;
        let merged = plans.iter().filter(|plan| plan.merged).map(|plan| plan.path.clone()).collect();
        let left_alone = plans
            .into_iter()
            .filter_map(|plan| plan.left_alone.map(|why| LeftAlone { path: plan.path, why }))
            .collect();
        Ok(Published { commit, persons, merged, left_alone })
    }

    /// Plans one file's content, on disk and in the commit.
    fn plan_file(&self, from: Option<Oid>, change: &FileChange, publish: &Publish<'_>) -> Result<Plan, RepoError> {
        let path = change.path.as_str();
        let on_disk = self.read_writable(path)?;
        let edited = to_text(on_disk.as_ref()) != change.base;
        let join = |theirs: Option<String>| join_change(publish.merge, change, theirs);
        let after = if edited { join(to_text(on_disk.as_ref())) } else { change.content.clone() };

        let uncommitted = !self.is_same_as_commit(from, path, on_disk.as_ref())?;
        let judged = if uncommitted {
            self.read_committable(path, on_disk.clone(), publish.is_secret)?
        } else {
            EditVerdict::Same
        };
        // Our content, without changes of theirs that may not be committed.
        let committed = match &judged {
            EditVerdict::Leave(_) => join(self.read_committed_text(from, path)?),
            EditVerdict::Same | EditVerdict::Take(_) => after.clone(),
        };
        // fault: wake-commits-name-holds
        let holds_secret = |text: &str| (publish.is_secret)(text) || (publish.is_secret)(path);
        // fault: wake-commits-secret-merge
        let left_alone = if committed.as_deref().is_some_and(holds_secret) {
            Some(HOLDS_SECRET)
        } else if self.has_filter(path) {
            Some(FILTERED)
        } else if self.is_unseen(path) {
            Some(UNSEEN)
        } else {
            None
        };
        let mode = on_disk.as_ref().map_or(FILE, |file| file.mode);
        let blob = |bytes: Option<&[u8]>| -> Result<Option<Item>, RepoError> {
            bytes.map(|bytes| Ok(Item { id: self.git.blob(bytes)?, mode })).transpose()
        };
        let stored = committed.as_ref().map(|text| self.to_stored_bytes(path, text.as_bytes())).transpose()?;
        let persons = match judged {
            EditVerdict::Take(Some(file)) => Some(Some(Item { id: self.git.blob(&file.bytes)?, mode: file.mode })),
            EditVerdict::Take(None) => Some(None),
            EditVerdict::Same | EditVerdict::Leave(_) => None,
        };
        Ok(Plan {
            path: path.to_owned(),
            before: blob(on_disk.as_ref().map(|file| file.bytes.as_slice()))?,
            after: blob(after.as_ref().map(String::as_bytes))?,
            committed: blob(stored.as_deref())?,
            persons,
            merged: edited,
            left_alone,
        })
    }

    /// Checks that a wake may write to a path. Links, directories and binary files are the person's to repair ([`RepoError::UnsafePath`]),
    /// since a join with text would lose bytes. So are permissions and mounts ([`RepoError::Io`]): a commit whose file can't follow would
    /// look reverted.
    pub fn check_writable(&self, path: &str) -> Result<(), RepoError> {
        self.check_text(path)?;
        self.tree.check_replaceable(path)
    }

    /// Checks that a path holds readable text or nothing.
    pub fn check_text(&self, path: &str) -> Result<(), RepoError> {
        self.read_writable(path).map(drop)
    }

    fn read_writable(&self, path: &str) -> Result<Option<OnDisk>, RepoError> {
        let on_disk = self.tree.read(path)?;
        if on_disk.is_some() && self.find_shared_name(self.head()?, path)?.is_some() {
            return Err(RepoError::UnsafePath { path: path.to_owned(), why: SHARED_NAME });
        }
        let why = match &on_disk {
            None if self.is_not_checked_out(path) => NOT_CHECKED_OUT,
            Some(file) if file.mode == LINK => "it is a link",
            Some(file) if std::str::from_utf8(&file.bytes).is_err() => "it isn't text in UTF-8",
            _ => return Ok(on_disk),
        };
        Err(RepoError::UnsafePath { path: path.to_owned(), why })
    }

    pub(super) fn read_committed_text(&self, from: Option<Oid>, path: &str) -> Result<Option<String>, RepoError> {
        let bytes = tree::read_item(&self.git, tree::find_item(&self.git, from, path)?)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

struct Plan {
    path: String,
    before: Option<Item>,
    after: Option<Item>,
    committed: Option<Item>,
    /// The person's uncommitted work to commit as theirs: a file, or its deletion.
    persons: Option<Option<Item>>,
    merged: bool,
    left_alone: Option<&'static str>,
}

impl Plan {
    fn file_move(&self) -> FileMove {
        FileMove { path: self.path.clone(), before: self.before, after: self.after, unstage: self.persons.is_some() }
    }

    fn persons_file(&self) -> Option<FileMove> {
        self.persons.map(|before| FileMove { before, ..self.file_move() })
    }
}

fn to_text(file: Option<&OnDisk>) -> Option<String> {
    file.map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
}

/// Joins the person's text with ours. A file deleted by them and changed by us comes back as ours; a file deleted by us and changed by them
/// stays theirs.
pub(super) fn join_change(merge: &Merge<'_>, change: &FileChange, theirs: Option<String>) -> Option<String> {
    match (&change.content, theirs) {
        (content, theirs) if theirs == change.base => content.clone(),
        (Some(ours), Some(theirs)) if *ours == theirs => Some(theirs),
        (Some(ours), Some(theirs)) => {
            let base = change.base.as_deref().unwrap_or_default();
            Some(merge(&change.path, base, &theirs, ours, &ByHand::default()))
        }
        (Some(ours), None) => Some(ours.clone()),
        (None, theirs) => theirs,
    }
}
