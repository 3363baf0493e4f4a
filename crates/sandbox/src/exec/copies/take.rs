//! Taking a copy, and recording the changes afterwards.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, Utc};
use rustix::fs::OFlags;

use reveille_base::file;

use super::{
    AFTER, After, BEFORE, Before, Copies, CopyError, CopyScope, CopyTaken, FILES, MAX_ENTRIES_AFTER, Root, read_json,
    remove,
    walk::{self, Measure, State, TreeEntry, TreeKind},
    write_durably,
};

/// Held while a copy is taken, so that two takers don't treat each other's unfinished copy as incomplete.
pub(super) static TAKING: Mutex<()> = Mutex::new(());

impl Copies {
    /// Copies folders for a wake. On return the copy is durable.
    ///
    /// # Errors
    /// No complete copy exists.
    pub fn take(&self, wake: &str, reach: CopyScope<'_>, now: DateTime<Utc>) -> Result<CopyTaken, CopyError> {
        let _alone = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = self.measure_roots(reach)?;
        let bytes = measured.iter().map(|root| root.bytes).sum();
        self.forget_old(now, bytes).map_err(CopyError::at_path(&self.dir))?;
        let of_wake = self.dir.join(wake);
        file::create_private_dirs(&of_wake).map_err(CopyError::at_path(&of_wake))?;
        let last = self.list_for_wake(wake).next();
        let last: u32 = last.as_deref().and_then(Path::file_name).and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0);
        let dir = of_wake.join((last + 1).to_string());
        if dir.exists() {
            // An incomplete copy.
            remove(&dir).map_err(CopyError::at_path(&dir))?;
        }
        match fill_copy(&dir, measured, reach, bytes, now) {
            Ok(()) => Ok(CopyTaken { dir }),
            Err(error) => {
                // Without its marker this doesn't count as a copy; if removal fails now, the next copy removes the leftovers.
                drop(remove(&dir));
                Err(error)
            }
        }
    }

    /// Returns true if the disk can share the bytes of two files, by trying one.
    pub(super) fn can_share(&self, measured: &[Measure]) -> bool {
        let mut files = measured.iter().flat_map(|root| root.entries.iter().map(move |entry| (root, entry)));
        let Some((root, file)) = files.find(|(_, entry)| entry.kind == TreeKind::File && entry.state.bytes > 0) else {
            return true;
        };
        let trial = self.dir.join("trial");
        let cloned = file::create_private_dirs(&self.dir).and_then(|()| {
            let from = open_file(&root.root.join(&file.path))?;
            share_bytes(&from, &file::create_or_truncate_private(&trial)?)
        });
        drop(fs::remove_file(&trial));
        cloned.is_ok()
    }
}

fn fill_copy(
    dir: &Path,
    measured: Vec<Measure>,
    reach: CopyScope<'_>,
    bytes: u64,
    now: DateTime<Utc>,
) -> Result<(), CopyError> {
    let files = dir.join(FILES);
    file::create_private_dirs(&files).map_err(CopyError::at_path(&files))?;
    for (n, root) in measured.iter().enumerate() {
        for (k, entry) in root.entries.iter().enumerate().filter(|(_, entry)| entry.kind == TreeKind::File) {
            let path = root.root.join(&entry.path);
            let (kept, bytes) = (files.join(format!("{n}-{k}")), entry.state.bytes);
            copy_file(&path, &kept, entry).map_err(CopyError::at_path(&path))?;
            let is_whole = fs::metadata(&kept).is_ok_and(|kept| kept.len() == bytes);
            let is_same = fs::symlink_metadata(&path).is_ok_and(|now| State::from_metadata(&now) == entry.state);
            if !is_whole || !is_same {
                let why = format!("{} is being changed by somebody else", path.display());
                return Err(CopyError::Uncovered(why));
            }
        }
    }
    let roots = measured.into_iter().map(|Measure { root, entries, .. }| Root {
        path: root,
        hidden: reach.hidden.to_vec(),
        entries,
    });
    let before = Before { taken_at: now, bytes, roots: roots.collect() };
    let at = dir.join(BEFORE);
    write_durably(&at, &before).map_err(CopyError::at_path(&at))?;
    // The parent folders' entries must be durable too.
    for dir in dir.ancestors().skip(1).take(3) {
        file::sync(dir).map_err(CopyError::at_path(dir))?;
    }
    Ok(())
}

impl Drop for CopyTaken {
    fn drop(&mut self) {
        if let Err(error) = self.record_changes() {
            tracing::warn!(%error, "a command's changes could not be recorded: the command counts as cut off");
        }
    }
}

impl CopyTaken {
    /// Records the command's changes after its end. Removes the copy if there are none.
    fn record_changes(&self) -> Result<(), CopyError> {
        let at = self.dir.join(BEFORE);
        let before: Before = read_json(&at).map_err(CopyError::at_path(&at))?;
        let mut left = MAX_ENTRIES_AFTER;
        let changed: Vec<After> =
            before.roots.iter().map(|root| find_changes(root, &mut left)).collect::<Result<_, CopyError>>()?;
        if changed.iter().all(|root| root.changed.is_empty() && root.gone.is_empty()) {
            return remove(&self.dir).map_err(CopyError::at_path(&self.dir));
        }
        let at = self.dir.join(AFTER);
        write_durably(&at, &changed).map_err(CopyError::at_path(&at))
    }
}

fn find_changes(root: &Root, left: &mut usize) -> Result<After, CopyError> {
    let mut before: BTreeMap<&str, &TreeEntry> =
        root.entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    let mut changed = walk::list_entries(&root.path, &root.hidden, left)?;
    changed.retain(|entry| before.remove(entry.path.as_str()).is_none_or(|before| !before.is_same(entry)));
    Ok(After { changed, gone: before.into_keys().map(str::to_owned).collect() })
}

/// Opens a file for reading. Links aren't followed, and a pipe doesn't block.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(path)
}

/// Copies one file, by sharing its bytes if possible.
fn copy_file(from: &Path, to: &Path, entry: &TreeEntry) -> io::Result<()> {
    let mut source = open_file(from)?;
    if State::from_metadata(&source.metadata()?) != entry.state {
        return Err(io::Error::other("it is being changed by somebody else"));
    }
    let mut kept = file::create_private(to)?;
    if share_bytes(&source, &kept).is_err() {
        io::copy(&mut source, &mut kept)?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn share_bytes(from: &File, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(target_os = "linux"))]
fn share_bytes(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
