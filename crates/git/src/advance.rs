//! The single protocol by which our branch moves: for a person's edits, a wake's commit or a merge.
//!
//! 1. The objects are stored and synced as one pack, still without references to them.
//! 2. The index is locked, and a note of the planned move is written to the disk.
//! 3. The branch moves by compare-and-swap. **From here on, the commit counts.**
//! 4. The files of the work tree follow. If a file has changed since it was read, it gets the person's text merged with ours.
//! 5. Index entries follow if they still match the old commit; anything else the person staged stays staged.
//! 6. The note is removed and the lock freed.
//!
//! After a kill before step 3, nothing has happened: the files are as the person left them, and the note is dropped. After a kill past step
//! 3, [`Repo::finish_interrupted_move`] repeats steps 4 to 6. No other order works. If the files came before the branch, the wake's
//! uncommitted bytes would be taken for the person's. If the index came before the branch, the person's next commit would include our work.
//! If the index stayed behind, their next commit would revert our work.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use git2::{ErrorCode, Index, IndexTime, MergeFileInput, MergeFileOptions};
use serde::{Deserialize, Serialize};

use reveille_base::file;

use super::{
    Condition, Merge, Oid, Repo, RepoError,
    endings::to_disk_bytes,
    index_lock::{self, IndexLock},
    names,
    publish::{FileChange, join_change},
    sparse::keep_marks,
    tree::{self, FILE, Item, LINK, SUBMODULE},
    worktree::{OnDisk, Replaced, TEMPORARY},
};

/// The prefix of the name of a file with bytes found nowhere else; their object id follows.
pub(super) const KEPT: &str = "kept-";
/// The file name of an unreadable note.
pub(super) const DAMAGED_NOTE: &str = "move.damaged";
/// The number of attempts to write a file that keeps changing.
const WRITE_ATTEMPTS: usize = 5;
/// The number of attempts at a move that another git command blocks; [`PAUSE`] is the time between them.
const ATTEMPTS: usize = 10;
pub(super) const PAUSE: Duration = Duration::from_millis(150);

/// A move of our branch, as noted on the disk.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Move {
    /// The commit before the move; `None` before the first.
    pub(super) from: Option<CommitText>,
    /// The commit after the move.
    pub(super) to: CommitText,
    /// The reason, for the reflog.
    pub(super) why: String,
    pub(super) files: Vec<FileMove>,
}

/// The change of one file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileMove {
    pub(super) path: String,
    /// The expected content of the work tree.
    pub(super) before: Option<Item>,
    /// The content after the move.
    pub(super) after: Option<Item>,
    /// True to update the index even over a person's staged changes, because their file was committed as a whole.
    pub(super) unstage: bool,
}

/// A commit id, serialized as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct CommitText(pub(super) Oid);

impl TryFrom<String> for CommitText {
    type Error = git2::Error;

    fn try_from(text: String) -> Result<Self, git2::Error> {
        Oid::from_str(&text).map(Self)
    }
}

impl From<CommitText> for String {
    fn from(commit: CommitText) -> Self {
        commit.0.to_string()
    }
}

/// The result of [`Repo::finish_interrupted_move`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// The commit was made. Its files and index entries are in place now, or will be once HEAD is back on our branch.
    Completed(Oid),
    /// The commit was prepared but never made.
    NeverHappened,
}

/// The step at which a test stops a move, as a kill would; `Never` outside tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopAt {
    Never,
    AfterLock,
    AfterNote,
    AfterBranch,
    AfterFiles,
    AfterIndex,
}

impl Repo {
    /// Returns `true` if a killed run left work that [`Repo::finish_interrupted_move`] can do now.
    pub fn is_interrupted(&self) -> bool {
        index_lock::is_ours(self.git.path(), &self.private)
            || self.is_move_noted() && matches!(self.read_condition(), Ok(Condition::Normal | Condition::Unborn))
    }

    /// Completes the work of a killed run, merged with what the person changed since. Cheap if there is none. Every call that changes
    /// something begins with it.
    pub fn finish_interrupted_move(&self, merge: &Merge<'_>) -> Result<Option<Finished>, RepoError> {
        index_lock::release_dead_lock(self.git.path(), &self.private);
        self.make_index_readable()?;
        let Some(mut planned) = self.read_note()? else {
            return Ok(None);
        };
        self.housekeeping().remove_stale_locks();
        let happened = match self.head()? {
            Some(tip) => self.contains(tip, planned.to.0)?,
            None => false,
        };
        if !happened {
            self.remove_note()?;
            return Ok(Some(Finished::NeverHappened));
        }
        // On another branch or in the middle of a merge, the files are left to the person. The note stays, because once HEAD is back, files
        // that lack our changes would look as if the person had reverted them.
        if self.read_condition()? == Condition::Normal {
            let lock = IndexLock::take(self.git.path(), &self.private)?;
            self.keep_temporary(&planned)?;
            let commit = planned.to.0;
            self.write_files(&mut planned, merge).map_err(|error| match error {
                // The fault may persist, and shouldn't delay work that needs no commit.
                error if error.is_file_fault() => RepoError::Behind { commit, source: Box::new(error) },
                error => error,
            })?;
            self.write_index(lock, &planned)?;
            self.remove_note()?;
        }
        Ok(Some(Finished::Completed(planned.to.0)))
    }

    /// Carries out a move. [`RepoError::Moved`], [`RepoError::Locked`] and [`RepoError::NotOnBranch`] mean that nothing was changed.
    pub(super) fn advance_branch(&self, mut planned: Move, merge: &Merge<'_>, stop: StopAt) -> Result<(), RepoError> {
        let commit = planned.to.0;
        self.store_objects(self.list_uncommitted_objects(&planned)?)?;
        let lock = IndexLock::take(self.git.path(), &self.private)?;
        if stop == StopAt::AfterLock {
            std::mem::forget(lock);
            return Ok(());
        }
        // fault: wake-killed-move-leaves
        // fault: commit-made-note-follows
        self.write_note(&planned)?;
        if stop == StopAt::AfterNote {
            std::mem::forget(lock);
            return Ok(());
        }
        if let Err(error) = self.require_branch().and_then(|()| self.move_branch(&planned)) {
            // The error may follow the move, if only its sync failed. Without the note, files behind the branch would be taken for a
            // person's edit.
            if self.head()? == Some(commit) {
                return Err(RepoError::Unfinished { commit, source: Box::new(error) });
            }
            self.remove_note()?;
            return Err(error);
        }
        if stop == StopAt::AfterBranch {
            std::mem::forget(lock);
            return Ok(());
        }
        let follow = || {
            self.write_files(&mut planned, merge)?;
            if stop == StopAt::AfterFiles {
                std::mem::forget(lock);
                return Ok(());
            }
            // fault: index-couldnt-written-forgotten
            self.write_index(lock, &planned)?;
            if stop == StopAt::AfterIndex { Ok(()) } else { self.remove_note() }
            // fault end: index-couldnt-written-forgotten
        };
        follow().map_err(|source: RepoError| RepoError::Unfinished { commit, source: Box::new(source) })
    }

    /// Repeats an attempt if someone committed at the same moment, and waits briefly for another git program to end.
    pub(super) fn retry_attempt<T>(&self, attempt: impl Fn() -> Result<T, RepoError>) -> Result<T, RepoError> {
        for _ in 1..ATTEMPTS {
            match attempt() {
                Err(RepoError::Moved) => {}
                Err(RepoError::Locked { .. }) => {
                    self.housekeeping().remove_stale_locks();
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
        attempt()
    }

    /// Returns `true` if the work tree holds exactly this item, verbatim or as git would store it.
    pub(super) fn is_on_disk(&self, path: &str, item: Option<Item>, file: Option<&OnDisk>) -> Result<bool, RepoError> {
        let (item, file) = match (item, file) {
            (None, None) => return Ok(true),
            (Some(item), Some(file)) if item.mode == file.mode => (item, file),
            _ => return Ok(false),
        };
        let is_it = |bytes: &[u8]| Ok::<_, RepoError>(Oid::hash_object(git2::ObjectType::Blob, bytes)? == item.id);
        Ok(is_it(&file.bytes)? || file.mode != LINK && is_it(&self.to_stored_bytes(path, &file.bytes)?)?)
    }

    /// Returns the objects that a note names but neither of its commits holds: content found only in the work tree, before or after the
    /// move.
    fn list_uncommitted_objects(&self, planned: &Move) -> Result<Vec<Oid>, RepoError> {
        let was = tree::Files::at_commit(&self.git, planned.from.map(|from| from.0))?;
        let goal = tree::Files::at_commit(&self.git, Some(planned.to.0))?;
        let mut alone = Vec::new();
        for file in &planned.files {
            let committed =
                [was.find_item(&file.path)?, goal.find_item(&file.path)?].map(|item| item.map(|item| item.id));
            let noted = [file.before, file.after].into_iter().flatten().filter(|item| item.mode != SUBMODULE);
            alone.extend(noted.map(|item| item.id).filter(|id| !committed.contains(&Some(*id))));
        }
        Ok(alone)
    }

    fn move_branch(&self, planned: &Move) -> Result<(), RepoError> {
        let name = self.branch_ref();
        self.git.reference_ensure_log(&name)?;
        let moved = match planned.from {
            Some(from) => self.git.reference_matching(&name, planned.to.0, true, from.0, &planned.why),
            None => self.git.reference(&name, planned.to.0, false, &planned.why),
        };
        match moved {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.code() {
                ErrorCode::Modified | ErrorCode::Exists | ErrorCode::NotFound => RepoError::Moved,
                ErrorCode::Locked => RepoError::Locked { path: self.git.path().join(format!("{name}.lock")) },
                _ => RepoError::Git(error),
            }),
        }
    }

    pub(super) fn write_files(&self, planned: &mut Move, merge: &Merge<'_>) -> Result<(), RepoError> {
        let tip = self.head()?;
        let (at_tip, at_goal) =
            (tree::Files::at_commit(&self.git, tip)?, tree::Files::at_commit(&self.git, Some(planned.to.0))?);
        // Removals come first: a file may become a directory.
        let (gone, written): (Vec<usize>, Vec<_>) =
            (0..planned.files.len()).partition(|at| planned.files.get(*at).is_some_and(|file| file.after.is_none()));
        let mut first_error = None;
        for at in gone.into_iter().chain(written) {
            let Some(file) = planned.files.get(at) else { continue };
            let is_submodule = [file.before, file.after].into_iter().flatten().any(|item| item.mode == SUBMODULE);
            if file.before == file.after || is_submodule {
                continue;
            }
            // If the person committed on top of a killed move, their commit wins for the files it changed.
            if tip == Some(planned.to.0) || at_tip.find_item(&file.path)? == at_goal.find_item(&file.path)? {
                match self.write_file(planned, at, merge) {
                    // Something other than a file is at the path or above it. It stays, like any other version of the person's.
                    Ok(()) | Err(RepoError::UnsafePath { .. }) => {}
                    // A fault of one file doesn't hold up the others.
                    Err(error) if error.is_file_fault() => first_error = first_error.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn write_file(&self, planned: &mut Move, at: usize, merge: &Merge<'_>) -> Result<(), RepoError> {
        for _ in 0..WRITE_ATTEMPTS {
            let Some(file) = planned.files.get(at) else { return Ok(()) };
            let now = self.tree.read(&file.path)?;
            if self.is_on_disk(&file.path, file.after, now.as_ref())? || self.is_not_checked_out(&file.path) {
                return Ok(());
            }
            if !self.is_on_disk(&file.path, file.before, now.as_ref())? {
                // If they can't be merged, the person's version stays; ours is in the commit, and git shows the difference.
                // fault: person-saved-moment-commit
                let Some(joined) = self.join_file(file, now.as_ref(), merge)? else { return Ok(()) };
                self.note_expected_file(planned, at, now.as_ref(), joined)?;
                continue;
            }
            let after = self.convert_to_disk(file.after, now.as_ref())?;
            if self.tree.replace(&file.path, now.as_ref(), after.as_ref())? == Replaced::Done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Notes that a file holds `now` and should hold `joined`. Without this, a move repeated after a kill would be merged with the
    /// result of its own merge.
    fn note_expected_file(
        &self,
        planned: &mut Move,
        at: usize,
        now: Option<&OnDisk>,
        joined: Item,
    ) -> Result<(), RepoError> {
        let now =
            now.map(|now| Ok::<_, RepoError>(Item { id: self.git.blob(&now.bytes)?, mode: now.mode })).transpose()?;
        if let Some(file) = planned.files.get_mut(at) {
            (file.before, file.after) = (now, Some(joined));
        }
        // fault: move-joined-joined-again
        self.store_objects(now.into_iter().chain([joined]).map(|item| item.id))?;
        self.write_note(planned)
        // fault end: move-joined-joined-again
    }

    /// Merges the person's version of a file with its planned content; `None` if bytes would be lost.
    fn join_file(&self, file: &FileMove, now: Option<&OnDisk>, merge: &Merge<'_>) -> Result<Option<Item>, RepoError> {
        let (before, after) = (self.convert_to_disk(file.before, now)?, self.convert_to_disk(file.after, now)?);
        let sides = [before.as_ref(), now, after.as_ref()];
        let is_text = |side: &&OnDisk| side.mode != LINK && !side.bytes.contains(&0);
        if !sides.into_iter().flatten().all(|side| is_text(&side)) {
            return Ok(None);
        }
        let text = |side: Option<&OnDisk>| side.map(|side| String::from_utf8(side.bytes.clone())).transpose();
        let bytes = match (text(before.as_ref()), text(now), text(after.as_ref())) {
            (Ok(base), Ok(persons), Ok(content)) => {
                let change = FileChange { path: file.path.clone(), base, content };
                join_change(merge, &change, persons).map(String::into_bytes)
            }
            _ => merge_lines(sides),
        };
        let mode = now.or(after.as_ref()).map_or(FILE, |side| side.mode);
        bytes.map(|bytes| Ok(Item { id: self.git.blob(&bytes)?, mode })).transpose()
    }

    /// Returns an item's form on disk, with the line endings of the current file.
    fn convert_to_disk(&self, item: Option<Item>, now: Option<&OnDisk>) -> Result<Option<OnDisk>, RepoError> {
        let bytes = tree::read_item(&self.git, item)?;
        Ok(bytes.zip(item).map(|(bytes, item)| {
            let bytes = match now {
                Some(now) if ![now.mode, item.mode].contains(&LINK) => to_disk_bytes(bytes, &now.bytes),
                _ => bytes,
            };
            OnDisk { bytes, mode: item.mode }
        }))
    }

    fn write_index(&self, mut lock: IndexLock, planned: &Move) -> Result<(), RepoError> {
        let mut changed = false;
        let tip = self.head()?;
        let before = tree::Files::at_commit(&self.git, planned.from.map(|from| from.0))?;
        let now = tree::Files::at_commit(&self.git, tip)?;
        // Paths that git refuses are never in the index.
        for file in planned.files.iter().filter(|file| names::find_refused_part(&file.path).is_none()) {
            let (old, new) = (before.find_item(&file.path)?, now.find_item(&file.path)?);
            let staged = find_staged_item(&lock.index, &file.path);
            if staged != new && (staged == old || file.unstage) {
                self.set_entry(&mut lock.index, &file.path, new)?;
                changed = true;
            }
        }
        if changed { lock.write() } else { Ok(()) }
    }

    /// Sets a file's entry, with size and times if the file is as committed, to spare git another read.
    pub(super) fn set_entry(&self, index: &mut Index, path: &str, item: Option<Item>) -> Result<(), RepoError> {
        let Some(item) = item else {
            return tree::set_index_item(index, path, None);
        };
        let mut entry = tree::build_index_entry(path, item);
        let stat = self.tree.stat(path);
        let now = match self.tree.read(path) {
            Err(RepoError::UnsafePath { .. }) => None,
            read => read?,
        };
        if let Some(stat) = stat
            && self.is_on_disk(path, Some(item), now.as_ref())?
        {
            set_entry_stat(&mut entry, &stat);
        }
        keep_marks(index, &mut entry, path);
        Ok(index.add(&entry)?)
    }

    /// Handles the temporary file of a killed write: bytes found nowhere else are kept.
    fn keep_temporary(&self, planned: &Move) -> Result<(), RepoError> {
        let temporary = self.private.join(TEMPORARY);
        let Ok(bytes) = fs::read(&temporary) else { return Ok(()) };
        for file in &planned.files {
            let is_old = tree::read_item(&self.git, file.before)?.is_some_and(|before| before == bytes);
            let is_new = tree::read_item(&self.git, file.after)?.is_some_and(|after| after.starts_with(&bytes));
            if is_old || is_new {
                return Ok(());
            }
        }
        let id = Oid::hash_object(git2::ObjectType::Blob, &bytes)?;
        fs::rename(&temporary, self.private.join(format!("{KEPT}{id}"))).map_err(RepoError::io("keeping", &temporary))
    }

    pub(super) fn is_move_noted(&self) -> bool {
        self.note_path().exists()
    }

    fn note_path(&self) -> PathBuf {
        note_path(&self.private)
    }

    pub(super) fn read_note(&self) -> Result<Option<Move>, RepoError> {
        let path = self.note_path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RepoError::io("reading", &path)(error)),
        };
        if let Ok(planned) = serde_json::from_slice(&bytes) {
            return Ok(Some(planned));
        }
        // Our notes are renamed into place whole, so someone else wrote this one. The file is moved away but kept.
        fs::rename(&path, self.private.join(DAMAGED_NOTE)).map_err(RepoError::io("moving away", &path))?;
        Ok(None)
    }

    fn write_note(&self, planned: &Move) -> Result<(), RepoError> {
        let path = self.note_path();
        let write = || file::replace_durably(&path, &serde_json::to_vec(planned)?);
        write().map_err(RepoError::io("writing", &path))
    }

    fn remove_note(&self) -> Result<(), RepoError> {
        let path = self.note_path();
        file::remove_if_there(&path).map_err(RepoError::io("removing", &path))?;
        file::sync(&self.private).map_err(RepoError::io("syncing", &self.private))
    }
}

/// Merges texts in another encoding line by line. If both sides changed the same lines, the person's come first and ours follow.
fn merge_lines([before, persons, ours]: [Option<&OnDisk>; 3]) -> Option<Vec<u8>> {
    let (mut base, mut left, mut right) = (MergeFileInput::new(), MergeFileInput::new(), MergeFileInput::new());
    base.content(before.map_or(&[], |side| &side.bytes));
    left.content(&persons?.bytes);
    right.content(&ours?.bytes);
    let mut options = MergeFileOptions::new();
    options.favor(git2::FileFavor::Union);
    Some(git2::merge_file(&base, &left, &right, Some(&mut options)).ok()?.content().to_vec())
}

/// Returns the path of the note, which exists until a move is done.
pub(super) fn note_path(private: &Path) -> PathBuf {
    private.join("move.json")
}

/// Returns the index's item at a path; `None` for a conflict or for a path only meant to be added (`git add -N`).
pub(super) fn find_staged_item(index: &Index, path: &str) -> Option<Item> {
    const INTENT_TO_ADD: u16 = 1 << 13;
    let entry = index.get_path(std::path::Path::new(path), 0)?;
    (entry.flags_extended & INTENT_TO_ADD == 0).then_some(Item { id: entry.id, mode: entry.mode })
}

/// Fills in a file's state as git does, with the low 32 bits of each value.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index format holds the low 32 bits")]
fn set_entry_stat(entry: &mut git2::IndexEntry, stat: &rustix::fs::Stat) {
    entry.ctime = IndexTime::new(stat.st_ctime as i32, stat.st_ctime_nsec as u32);
    entry.mtime = IndexTime::new(stat.st_mtime as i32, stat.st_mtime_nsec as u32);
    entry.dev = stat.st_dev as u32;
    entry.ino = stat.st_ino as u32;
    entry.uid = stat.st_uid;
    entry.gid = stat.st_gid;
    entry.file_size = stat.st_size as u32;
}
