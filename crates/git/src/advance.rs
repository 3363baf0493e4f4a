//! The one way in which our branch moves, whatever for: a person's edits, a wake's commit, a merge.
//!
//! 1. The objects are stored and synced, as one pack: nothing refers to them yet.
//! 2. The index is locked, and a note of what is about to happen is put on the disk.
//! 3. The branch moves by compare-and-swap. **This is the moment it happens.**
//! 4. The work tree's files follow; one that no longer holds what was read gets the person's text and ours, joined.
//! 5. The index entries follow that still say what the old commit said; what else the person staged stays staged.
//! 6. The note is removed, the lock freed.
//!
//! Killed before 3, nothing happened: the files are as the person left them, and the note is dropped. Killed after 3,
//! [`Repo::finish_interrupted`] does 4 to 6 again. Files before the branch would be wrong: the wake's bytes, found
//! uncommitted, would pass for the person's. The index before the branch, too: the person's next commit would hold
//! our work. The index not at all: it would revert us.

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
    endings::as_on_disk,
    index_lock::{self, IndexLock},
    names,
    publish::{FileChange, joined},
    sparse::keep_marks,
    tree::{self, FILE, Item, LINK, SUBMODULE},
    worktree::{OnDisk, Replaced, TEMPORARY},
};

/// How the file is called that keeps bytes which nobody else has, before their object's id.
pub(super) const KEPT: &str = "kept-";
/// The note of a move that couldn't be read.
pub(super) const DAMAGED_NOTE: &str = "move.damaged";
/// How often a file that keeps changing under our hands is tried.
const WRITE_ATTEMPTS: usize = 5;
/// How often, and after what pause, a move is tried that someone else's git command got in the way of.
const ATTEMPTS: usize = 10;
pub(super) const PAUSE: Duration = Duration::from_millis(150);

/// A move of our branch, as the note on the disk has it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Move {
    /// The commit that the branch is at; none before the first.
    pub(super) from: Option<CommitText>,
    /// The commit that it goes to.
    pub(super) to: CommitText,
    /// For the reflog.
    pub(super) why: String,
    pub(super) files: Vec<FileMove>,
}

/// What happens to one file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileMove {
    pub(super) path: String,
    /// What the work tree holds.
    pub(super) before: Option<Item>,
    /// What it shall hold.
    pub(super) after: Option<Item>,
    /// Whether the index follows even where the person has staged something: their file was committed as a whole.
    pub(super) unstage: bool,
}

/// A commit's id, written as text.
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

/// What [`Repo::finish_interrupted`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// A commit had been made; its files and index entries are in place now, or will be when HEAD is on our branch again.
    Completed(Oid),
    /// A commit had been prepared but not made: nothing had happened.
    NeverHappened,
}

/// Where a test stops a move, as a kill would. Anyone else: `Never`.
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
    /// Whether a killed run left something undone that [`Repo::finish_interrupted`] can do now.
    pub fn is_interrupted(&self) -> bool {
        index_lock::is_ours(self.git.path(), &self.private)
            || self.is_move_noted() && matches!(self.condition(), Ok(Condition::Normal | Condition::Unborn))
    }

    /// Does what a killed run left undone. Cheap when there is nothing to do; every changing call begins with it. What the person
    /// changed since is joined with ours.
    pub fn finish_interrupted(&self, merge: &Merge<'_>) -> Result<Option<Finished>, RepoError> {
        index_lock::release_dead(self.git.path(), &self.private);
        self.make_index_readable()?;
        let Some(mut planned) = self.read_note()? else {
            return Ok(None);
        };
        self.remove_stale_locks();
        let happened = match self.head()? {
            Some(tip) => self.contains(tip, planned.to.0)?,
            None => false,
        };
        if !happened {
            self.remove_note()?;
            return Ok(Some(Finished::NeverHappened));
        }
        // On another branch or in the middle of a merge, the files are the person's affair. The note waits: when HEAD comes
        // back, what is missing in them would pass for a revert of theirs.
        if self.condition()? == Condition::Normal {
            let lock = IndexLock::take(self.git.path(), &self.private)?;
            self.keep_temporary(&planned)?;
            let commit = planned.to.0;
            self.write_files(&mut planned, merge).map_err(|error| match error {
                // It may stay so for long, and what needs no commit needn't wait for it.
                error if error.is_of_a_file() => RepoError::Behind { commit, source: Box::new(error) },
                error => error,
            })?;
            self.write_index(lock, &planned)?;
            self.remove_note()?;
        }
        Ok(Some(Finished::Completed(planned.to.0)))
    }

    /// Carries a move out. [`RepoError::Moved`], [`RepoError::Locked`], [`RepoError::NotOnBranch`]: nothing was changed.
    pub(super) fn advance(&self, mut planned: Move, merge: &Merge<'_>, stop: StopAt) -> Result<(), RepoError> {
        let commit = planned.to.0;
        self.store_objects(self.noted_alone(&planned)?)?;
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
            // It may come after the move, when that couldn't be synced: without its note, files that lag behind the branch would
            // pass for a person's edit.
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

    /// Starts over when someone committed at the same moment, and waits a little for another git program to end.
    pub(super) fn retrying<T>(&self, attempt: impl Fn() -> Result<T, RepoError>) -> Result<T, RepoError> {
        for _ in 1..ATTEMPTS {
            match attempt() {
                Err(RepoError::Moved) => {}
                Err(RepoError::Locked { .. }) => {
                    self.remove_stale_locks();
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
        attempt()
    }

    /// Whether the work tree holds just this, as it is or as git would store it.
    pub(super) fn is_on_disk(&self, path: &str, item: Option<Item>, file: Option<&OnDisk>) -> Result<bool, RepoError> {
        let (item, file) = match (item, file) {
            (None, None) => return Ok(true),
            (Some(item), Some(file)) if item.mode == file.mode => (item, file),
            _ => return Ok(false),
        };
        let is_it = |bytes: &[u8]| Ok::<_, RepoError>(Oid::hash_object(git2::ObjectType::Blob, bytes)? == item.id);
        Ok(is_it(&file.bytes)? || file.mode != LINK && is_it(&self.stored(path, &file.bytes)?)?)
    }

    /// What the note of a move names and neither of its commits has: what else stood in the work tree, or shall.
    fn noted_alone(&self, planned: &Move) -> Result<Vec<Oid>, RepoError> {
        let was = tree::Files::of(&self.git, planned.from.map(|from| from.0))?;
        let goal = tree::Files::of(&self.git, Some(planned.to.0))?;
        let mut alone = Vec::new();
        for file in &planned.files {
            let committed = [was.item(&file.path)?, goal.item(&file.path)?].map(|item| item.map(|item| item.id));
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
        let (at_tip, at_goal) = (tree::Files::of(&self.git, tip)?, tree::Files::of(&self.git, Some(planned.to.0))?);
        // Files go before others come: a file may become a directory.
        let (gone, written): (Vec<usize>, Vec<_>) =
            (0..planned.files.len()).partition(|at| planned.files.get(*at).is_some_and(|file| file.after.is_none()));
        let mut left = None;
        for at in gone.into_iter().chain(written) {
            let Some(file) = planned.files.get(at) else { continue };
            let is_submodule = [file.before, file.after].into_iter().flatten().any(|item| item.mode == SUBMODULE);
            if file.before == file.after || is_submodule {
                continue;
            }
            // A commit of the person's on top of a killed move has the last word on what it changed.
            if tip == Some(planned.to.0) || at_tip.item(&file.path)? == at_goal.item(&file.path)? {
                match self.write_file(planned, at, merge) {
                    // Something that is no file stands there, or on its way: the person's, like any other version of theirs.
                    Ok(()) | Err(RepoError::UnsafePath { .. }) => {}
                    // The others needn't wait for it.
                    Err(error) if error.is_of_a_file() => left = left.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        left.map_or(Ok(()), Err)
    }

    fn write_file(&self, planned: &mut Move, at: usize, merge: &Merge<'_>) -> Result<(), RepoError> {
        for _ in 0..WRITE_ATTEMPTS {
            let Some(file) = planned.files.get(at) else { return Ok(()) };
            let now = self.tree.read(&file.path)?;
            if self.is_on_disk(&file.path, file.after, now.as_ref())? || self.is_not_checked_out(&file.path) {
                return Ok(());
            }
            if !self.is_on_disk(&file.path, file.before, now.as_ref())? {
                // Where it can't be joined the person's version stays; ours is in the commit, and git shows the difference.
                // fault: person-saved-moment-commit
                let Some(joined) = self.join(file, now.as_ref(), merge)? else { return Ok(()) };
                self.expect(planned, at, now.as_ref(), joined)?;
                continue;
            }
            let after = self.on_disk(file.after, now.as_ref())?;
            if self.tree.replace(&file.path, now.as_ref(), after.as_ref())? == Replaced::Done {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Notes that a file holds `now` and shall hold `joined`: killed before its note is removed, the move isn't joined with the
    /// outcome of its own join.
    fn expect(&self, planned: &mut Move, at: usize, now: Option<&OnDisk>, joined: Item) -> Result<(), RepoError> {
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

    /// What the person made of a file, and what it shall be, as one; none where that can't be done without losing bytes.
    fn join(&self, file: &FileMove, now: Option<&OnDisk>, merge: &Merge<'_>) -> Result<Option<Item>, RepoError> {
        let (before, after) = (self.on_disk(file.before, now)?, self.on_disk(file.after, now)?);
        let sides = [before.as_ref(), now, after.as_ref()];
        let is_text = |side: &&OnDisk| side.mode != LINK && !side.bytes.contains(&0);
        if !sides.into_iter().flatten().all(|side| is_text(&side)) {
            return Ok(None);
        }
        let text = |side: Option<&OnDisk>| side.map(|side| String::from_utf8(side.bytes.clone())).transpose();
        let bytes = match (text(before.as_ref()), text(now), text(after.as_ref())) {
            (Ok(base), Ok(persons), Ok(content)) => {
                let change = FileChange { path: file.path.clone(), base, content };
                joined(merge, &change, persons).map(String::into_bytes)
            }
            _ => union(sides),
        };
        let mode = now.or(after.as_ref()).map_or(FILE, |side| side.mode);
        bytes.map(|bytes| Ok(Item { id: self.git.blob(&bytes)?, mode })).transpose()
    }

    /// What an item is on disk, with the line endings of what is there now.
    fn on_disk(&self, item: Option<Item>, now: Option<&OnDisk>) -> Result<Option<OnDisk>, RepoError> {
        let bytes = tree::bytes_of(&self.git, item)?;
        Ok(bytes.zip(item).map(|(bytes, item)| {
            let bytes = match now {
                Some(now) if ![now.mode, item.mode].contains(&LINK) => as_on_disk(bytes, &now.bytes),
                _ => bytes,
            };
            OnDisk { bytes, mode: item.mode }
        }))
    }

    fn write_index(&self, mut lock: IndexLock, planned: &Move) -> Result<(), RepoError> {
        let mut changed = false;
        let tip = self.head()?;
        let before = tree::Files::of(&self.git, planned.from.map(|from| from.0))?;
        let now = tree::Files::of(&self.git, tip)?;
        // What git wouldn't take into an index isn't in it.
        for file in planned.files.iter().filter(|file| names::refused(&file.path).is_none()) {
            let (old, new) = (before.item(&file.path)?, now.item(&file.path)?);
            let staged = staged(&lock.index, &file.path);
            if staged != new && (staged == old || file.unstage) {
                self.set_entry(&mut lock.index, &file.path, new)?;
                changed = true;
            }
        }
        if changed { lock.write() } else { Ok(()) }
    }

    /// With the file's size and times where it holds just what was committed, so that git needn't read it again.
    pub(super) fn set_entry(&self, index: &mut Index, path: &str, item: Option<Item>) -> Result<(), RepoError> {
        let Some(item) = item else {
            return tree::set(index, path, None);
        };
        let mut entry = tree::entry(path, item);
        let stat = self.tree.stat(path);
        let now = match self.tree.read(path) {
            Err(RepoError::UnsafePath { .. }) => None,
            read => read?,
        };
        if let Some(stat) = stat
            && self.is_on_disk(path, Some(item), now.as_ref())?
        {
            fill_in(&mut entry, &stat);
        }
        keep_marks(index, &mut entry, path);
        Ok(index.add(&entry)?)
    }

    /// A killed write leaves its temporary file. The bytes of it that nobody else has are kept.
    fn keep_temporary(&self, planned: &Move) -> Result<(), RepoError> {
        let temporary = self.private.join(TEMPORARY);
        let Ok(bytes) = fs::read(&temporary) else { return Ok(()) };
        for file in &planned.files {
            let is_old = tree::bytes_of(&self.git, file.before)?.is_some_and(|before| before == bytes);
            let is_new = tree::bytes_of(&self.git, file.after)?.is_some_and(|after| after.starts_with(&bytes));
            if is_old || is_new {
                return Ok(());
            }
        }
        let id = Oid::hash_object(git2::ObjectType::Blob, &bytes)?;
        fs::rename(&temporary, self.private.join(format!("{KEPT}{id}"))).map_err(RepoError::io("keeping", &temporary))
    }

    pub(super) fn is_move_noted(&self) -> bool {
        self.note().exists()
    }

    fn note(&self) -> PathBuf {
        note(&self.private)
    }

    pub(super) fn read_note(&self) -> Result<Option<Move>, RepoError> {
        let path = self.note();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RepoError::io("reading", &path)(error)),
        };
        if let Ok(planned) = serde_json::from_slice(&bytes) {
            return Ok(Some(planned));
        }
        // It was renamed into place whole, so this is none of our writing. Out of the way, but kept.
        fs::rename(&path, self.private.join(DAMAGED_NOTE)).map_err(RepoError::io("moving away", &path))?;
        Ok(None)
    }

    fn write_note(&self, planned: &Move) -> Result<(), RepoError> {
        let path = self.note();
        let write = || file::replace_durably(&path, &serde_json::to_vec(planned)?);
        write().map_err(RepoError::io("writing", &path))
    }

    fn remove_note(&self) -> Result<(), RepoError> {
        let path = self.note();
        file::remove_if_there(&path).map_err(RepoError::io("removing", &path))?;
        file::sync(&self.private).map_err(RepoError::io("syncing", &self.private))
    }
}

/// For text in another encoding: line by line; where both changed the same lines, the person's stay and ours follow.
fn union([before, persons, ours]: [Option<&OnDisk>; 3]) -> Option<Vec<u8>> {
    let (mut base, mut left, mut right) = (MergeFileInput::new(), MergeFileInput::new(), MergeFileInput::new());
    base.content(before.map_or(&[], |side| &side.bytes));
    left.content(&persons?.bytes);
    right.content(&ours?.bytes);
    let mut options = MergeFileOptions::new();
    options.favor(git2::FileFavor::Union);
    Some(git2::merge_file(&base, &left, &right, Some(&mut options)).ok()?.content().to_vec())
}

/// Where a move is noted until it is done.
pub(super) fn note(private: &Path) -> PathBuf {
    private.join("move.json")
}

/// What an index holds at a path; none for nothing, a conflict, or a path that is only meant to be added.
pub(super) fn staged(index: &Index, path: &str) -> Option<Item> {
    const INTENT_TO_ADD: u16 = 1 << 13;
    let entry = index.get_path(std::path::Path::new(path), 0)?;
    (entry.flags_extended & INTENT_TO_ADD == 0).then_some(Item { id: entry.id, mode: entry.mode })
}

/// Git keeps the low 32 bits of everything.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index format holds the low 32 bits")]
fn fill_in(entry: &mut git2::IndexEntry, stat: &rustix::fs::Stat) {
    entry.ctime = IndexTime::new(stat.st_ctime as i32, stat.st_ctime_nsec as u32);
    entry.mtime = IndexTime::new(stat.st_mtime as i32, stat.st_mtime_nsec as u32);
    entry.dev = stat.st_dev as u32;
    entry.ino = stat.st_ino as u32;
    entry.uid = stat.st_uid;
    entry.gid = stat.st_gid;
    entry.file_size = stat.st_size as u32;
}
