//! A person's changes in the work tree, committed as theirs before the wake adds its own.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use git2::{Signature, Status, StatusOptions};

use reveille_base::process;

use super::{
    IsSecret, Merge, OWNER_EMAIL, OWNER_NAME, Oid, Repo, RepoError,
    advance::{self, FileMove, Move, StopAt},
    names::{self, Refused},
    remote,
    same_name::SHARED_NAME,
    sparse::UNSEEN,
    tree::{self, Item, LINK},
    worktree::{self, OnDisk},
};

/// The size from which a person's files aren't committed for them.
pub const MAX_PERSON_FILE_BYTES: usize = 1_000_000;

/// The reason to leave a file with a secret uncommitted.
pub const HOLDS_SECRET: &str = "seems to hold a secret";
/// The reason to leave a file uncommitted that git would pass through another program.
pub(super) const FILTERED: &str = "goes through a git filter, which isn't run for you";

/// The reason to leave an unreadable file alone.
const UNREADABLE: &str = "can't be read";

/// The maximum number of files named in a commit's message.
const MAX_LISTED: usize = 50;

/// The outcome for a person's uncommitted changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonEdits {
    /// Their commit, if there was anything to commit.
    pub commit: Option<Oid>,
    /// The committed files.
    pub files: Vec<String>,
    /// `true` if more files have changed than the limit: nothing was done.
    pub put_off: bool,
    /// Changed files left uncommitted, in the work tree and in the index.
    pub left_alone: Vec<LeftAlone>,
}

/// A file that isn't committed for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// The file.
    pub path: String,
    /// The reason, to follow "it".
    pub why: &'static str,
}

impl Repo {
    /// Commits uncommitted Markdown as the person's: changed, new or deleted, staged or not, as in the work tree.
    pub fn commit_person_edits(
        &self,
        now: DateTime<Utc>,
        is_secret: &IsSecret<'_>,
        merge: &Merge<'_>,
    ) -> Result<PersonEdits, RepoError> {
        self.commit_few_person_edits(usize::MAX, now, is_secret, merge)
    }

    /// Commits like [`Repo::commit_person_edits`], unless more than `max` files have changed, since someone may be waiting.
    pub fn commit_few_person_edits(
        &self,
        max: usize,
        now: DateTime<Utc>,
        is_secret: &IsSecret<'_>,
        merge: &Merge<'_>,
    ) -> Result<PersonEdits, RepoError> {
        self.finish_interrupted_move(merge)?;
        self.require_branch()?;
        self.retry_attempt(|| self.try_commit_person_edits(max, now, is_secret, merge, StopAt::Never))
    }

    pub(super) fn try_commit_person_edits(
        &self,
        max: usize,
        now: DateTime<Utc>,
        is_secret: &IsSecret<'_>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<PersonEdits, RepoError> {
        let from = self.head()?;
        let committed = tree::Files::at_commit(&self.git, from)?;
        let mut edits = PersonEdits::default();
        let mut taken = Vec::new();
        let changed = self.changed_files()?;
        if changed.len() > max {
            return Ok(PersonEdits { put_off: true, ..edits });
        }
        for Changed { path, why_left } in changed {
            match self.persons_file(&committed, &path, why_left, is_secret)? {
                EditVerdict::Same => {}
                EditVerdict::Leave(why) => edits.left_alone.push(LeftAlone { path, why }),
                EditVerdict::Take(file) => taken.push((path, file)),
            }
        }
        let files = taken
            .into_iter()
            .map(|(path, file)| {
                let item =
                    file.map(|file| Ok::<_, RepoError>(Item { id: self.git.blob(&file.bytes)?, mode: file.mode }));
                let item = item.transpose()?;
                Ok(FileMove { path, before: item, after: item, unstage: true })
            })
            .collect::<Result<Vec<_>, RepoError>>()?;
        edits.files = files.iter().map(|file| file.path.clone()).collect();
        if files.is_empty() {
            return Ok(edits);
        }
        let commit = self.persons_commit(from, &files, now)?;
        let planned = Move {
            from: from.map(advance::CommitText),
            to: advance::CommitText(commit),
            why: "commit: edited by hand".to_owned(),
            files,
        };
        self.advance_branch(planned, merge, stop)?;
        edits.commit = Some(commit);
        Ok(edits)
    }

    /// Makes the commit of a person's files on top of `from`; no reference moves.
    pub(super) fn persons_commit(
        &self,
        from: Option<Oid>,
        files: &[FileMove],
        now: DateTime<Utc>,
    ) -> Result<Oid, RepoError> {
        let tree = tree::with_files(&self.git, from, files.iter().map(|file| (file.path.as_str(), file.before)))?;
        let message = persons_message(files);
        let parents: Vec<Oid> = from.into_iter().collect();
        self.commit_object(&self.person_signature(now)?, &message, tree, &parents)
    }

    /// Decides if a file on disk can be committed for the person, and returns it as git would store it.
    pub(super) fn read_committable(
        &self,
        path: &str,
        file: Option<OnDisk>,
        is_secret: &IsSecret<'_>,
    ) -> Result<EditVerdict, RepoError> {
        if let Some(why) = self.reason_to_leave(path, file.as_ref(), is_secret) {
            return Ok(EditVerdict::Leave(why));
        }
        let stored = file.map(|OnDisk { bytes, mode }| {
            Ok::<_, RepoError>(OnDisk { bytes: self.to_stored_bytes(path, &bytes)?.into_owned(), mode })
        });
        Ok(EditVerdict::Take(stored.transpose()?))
    }

    pub(super) fn reason_to_leave(
        &self,
        path: &str,
        file: Option<&OnDisk>,
        is_secret: &IsSecret<'_>,
    ) -> Option<&'static str> {
        if !worktree::is_markdown(path) {
            return Some("isn't Markdown");
        }
        if self.has_filter(path) {
            return Some(FILTERED);
        }
        if self.is_unseen(path) {
            return Some(UNSEEN);
        }
        // The name goes into the commit's message and tree.
        if is_secret(path) {
            return Some(HOLDS_SECRET);
        }
        let file = file?;
        if file.mode == LINK {
            return Some("is a link");
        }
        if file.bytes.len() >= MAX_PERSON_FILE_BYTES {
            return Some("is 1 MB or larger");
        }
        if file.bytes.contains(&0) {
            return Some("isn't text");
        }
        is_secret(&String::from_utf8_lossy(&file.bytes)).then_some(HOLDS_SECRET)
    }

    /// Returns `true` for files left to git: filters (encryption, large file storage) are programs that change the committed content. Files
    /// in another encoding, or with a `$Id$` that git fills in, count too.
    pub(super) fn has_filter(&self, path: &str) -> bool {
        use git2::AttrValue::{Bytes, String, True};
        let path = std::path::Path::new(path);
        ["filter", "working-tree-encoding", "ident"].into_iter().any(|name| {
            let attribute = self.git.get_attr_bytes(path, name, git2::AttrCheckFlags::FILE_THEN_INDEX);
            let value = attribute.map(git2::AttrValue::from_bytes);
            value.is_ok_and(|value| matches!(value, Bytes(_) | String(_)) || name == "ident" && value == True)
        })
    }

    fn persons_file(
        &self,
        committed: &tree::Files<'_>,
        path: &str,
        why_left: Option<&'static str>,
        is_secret: &IsSecret<'_>,
    ) -> Result<EditVerdict, RepoError> {
        let file = match self.read_changed_file(path, why_left)? {
            Ok(file) => file,
            Err(why) => return Ok(EditVerdict::Leave(why)),
        };
        if self.is_on_disk(path, committed.find_item(path)?, file.as_ref())? {
            // Only the index differs: something is staged that the work tree no longer has.
            return Ok(EditVerdict::Same);
        }
        self.read_committable(path, file, is_secret)
    }

    /// Reads a changed file; the inner error is the reason to leave it alone unread.
    pub(super) fn read_changed_file(
        &self,
        path: &str,
        why_left: Option<&'static str>,
    ) -> Result<Result<Option<OnDisk>, &'static str>, RepoError> {
        if let Some(why) = why_left {
            return Ok(Err(strip_subject(why)));
        }
        match self.tree.read(path) {
            Ok(file) => Ok(Ok(file)),
            Err(RepoError::UnsafePath { why, .. }) => Ok(Err(strip_subject(why))),
            Err(error) if error.is_file_fault() => Ok(Err(UNREADABLE)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_same_as_commit(
        &self,
        commit: Option<Oid>,
        path: &str,
        file: Option<&OnDisk>,
    ) -> Result<bool, RepoError> {
        self.is_on_disk(path, tree::find_item(&self.git, commit, path)?, file)
    }

    /// Lists the differences from the last commit, in the index or in the work tree.
    pub(super) fn changed_files(&self) -> Result<Vec<Changed>, RepoError> {
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false).exclude_submodules(true);
        let mut left = Vec::new();
        let statuses = match self.git.statuses(Some(&mut options)) {
            Ok(statuses) => statuses,
            // A single unreadable or too deep file fails the whole status: the query is repeated for the sound files.
            Err(error) => {
                let sound;
                (sound, left) = self.list_readable_files()?;
                if left.is_empty() {
                    return Err(error.into());
                }
                options.disable_pathspec_match(true);
                for path in &sound {
                    options.pathspec(path.as_str());
                }
                self.git.statuses(Some(&mut options))?
            }
        };
        let changed = statuses.iter().filter(|entry| entry.status() != Status::CURRENT);
        left.extend(changed.map(|entry| Changed::from_status_entry(&entry)));
        self.drop_unseen(&mut left)?;
        self.mark_shared_names(&mut left)?;
        // One entry covers everything beneath an offending name.
        let mut named = BTreeSet::new();
        left.retain(|changed| changed.why_left.is_none() || named.insert(changed.path.clone()));
        Ok(left)
    }

    /// Lists the files of the work tree, the index and the last commit: readable ones, and the others with reasons.
    fn list_readable_files(&self) -> Result<(BTreeSet<String>, Vec<Changed>), RepoError> {
        let (mut all, mut left) = (BTreeSet::new(), Vec::new());
        self.tree.walk(&mut |path, is_directory| {
            if !is_directory {
                all.insert(path.to_owned());
                return false;
            }
            if self.git.is_path_ignored(path).unwrap_or(false) {
                return false;
            }
            let refused = names::find_refused_part(&format!("{path}/file")).map(Changed::from_refused);
            let goes_on = refused.is_none();
            left.extend(refused);
            goes_on
        })?;
        all.extend(self.git.index()?.iter().filter_map(|entry| String::from_utf8(entry.path).ok()));
        all.extend(tree::list_paths(&self.git, self.head()?)?);
        let mut sound = BTreeSet::new();
        for path in all {
            if let Some(refused) = names::find_refused_part(&path) {
                left.push(Changed::from_refused(refused));
                continue;
            }
            match self.tree.read(&path) {
                Ok(_) | Err(RepoError::UnsafePath { .. }) => drop(sound.insert(path)),
                Err(error) if error.is_file_fault() => left.push(Changed { path, why_left: Some(UNREADABLE) }),
                Err(error) => return Err(error),
            }
        }
        Ok((sound, left))
    }

    /// Returns git's own author for the person, else the default.
    pub(super) fn person_signature(&self, now: DateTime<Utc>) -> Result<Signature<'static>, RepoError> {
        let time = git2::Time::new(now.timestamp(), 0);
        let known = self.read_git_author().and_then(|(name, email)| Signature::new(&name, &email, &time).ok());
        known.map_or_else(|| Ok(Signature::new(OWNER_NAME, OWNER_EMAIL, &time)?), Ok)
    }

    /// Returns the author's name and address from git. libgit2 misses some sources, such as `GIT_CONFIG_GLOBAL` and `author.name`, and is
    /// used only if git can't be run.
    fn read_git_author(&self) -> Option<(String, String)> {
        let Ok(output) = process::run(&remote::build_author_command(&self.root)) else {
            let config = self.git.config().ok()?;
            return Some((config.get_string("user.name").ok()?, config.get_string("user.email").ok()?));
        };
        // `Ann Smith <ann@example.org> 1795424609 +0000`
        let author = String::from_utf8_lossy(&output.stdout);
        let (author, _time) = author.rsplit_once("> ").filter(|_| output.status.success())?;
        author.split_once(" <").map(|(name, email)| (name.to_owned(), email.to_owned()))
    }
}

/// Writes the message of a person's commit.
fn persons_message(files: &[FileMove]) -> String {
    let is_gone = |file: &FileMove| file.before.is_none();
    let done = match files.iter().filter(|file| is_gone(file)).count() {
        0 => "Edited by hand",
        gone if gone == files.len() => "Deleted by hand",
        _ => "Edited and deleted by hand",
    };
    if let [file] = files {
        return format!("{done}: {}\n", file.path);
    }
    let is_mixed = files.iter().any(is_gone) && !files.iter().all(is_gone);
    let mut listed: Vec<String> = files
        .iter()
        .take(MAX_LISTED)
        .map(|file| format!("{}{}", file.path, if is_mixed && is_gone(file) { " (deleted)" } else { "" }))
        .collect();
    if files.len() > MAX_LISTED {
        listed.push("…".to_owned());
    }
    format!("{done}: {} files\n\n{}\n", files.len(), listed.join("\n"))
}

/// Turns a reason about "it" into one to follow "it".
fn strip_subject(why: &'static str) -> &'static str {
    why.strip_prefix("it ").unwrap_or(why)
}

impl LeftAlone {
    /// Returns `true` if the disk takes the file for another: the person renames one of the two.
    pub fn shares_name(&self) -> bool {
        self.why == strip_subject(SHARED_NAME)
    }

    /// Returns `true` if git would refuse the path: the person renames it.
    pub fn is_misnamed(&self) -> bool {
        [names::GITS_OWN, names::TOO_DEEP].map(strip_subject).contains(&self.why)
    }
}

/// A file that differs from the last commit.
pub(super) struct Changed {
    /// Its name; invalid UTF-8 is replaced.
    pub(super) path: String,
    /// The reason to leave the file alone unread, to follow "it".
    pub(super) why_left: Option<&'static str>,
}

impl Changed {
    fn from_status_entry(entry: &git2::StatusEntry<'_>) -> Self {
        let path = std::str::from_utf8(entry.path_bytes());
        if let Some(refused) = path.ok().and_then(names::find_refused_part) {
            return Self::from_refused(refused);
        }
        let why_left = match path {
            Err(_) => Some("has a name that isn't UTF-8"),
            Ok(_) if entry.status().is_conflicted() => Some("has a conflict that isn't resolved"),
            Ok(_) => None,
        };
        Self { path: String::from_utf8_lossy(entry.path_bytes()).into_owned(), why_left }
    }

    fn from_refused(Refused { why, begins }: Refused<'_>) -> Self {
        Self { path: begins.to_owned(), why_left: Some(why) }
    }
}

/// The decision on a person's file.
pub(super) enum EditVerdict {
    /// The file is as committed.
    Same,
    /// Leave the file alone and report the reason.
    Leave(&'static str),
    /// Commit the file in git's stored form; `None` for a deletion.
    Take(Option<OnDisk>),
}
