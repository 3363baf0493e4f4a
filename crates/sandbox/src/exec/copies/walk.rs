//! The entries of a folder, with the data to detect changes.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::CopyError;

/// A file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TreeEntry {
    /// The path relative to the root.
    pub(super) path: String,
    pub(super) kind: TreeKind,
    pub(super) state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TreeKind {
    Dir,
    File,
    /// A link with its target.
    Link(String),
    /// A pipe, a socket, a device.
    Other,
}

/// Metadata that changes with content or permissions. Programs can't set the change time (`ctime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) mode: u32,
    pub(super) bytes: u64,
    pub(super) modified: (i64, i64),
    inode: u64,
    changed: (i64, i64),
}

impl State {
    pub(super) fn from_metadata(found: &Metadata) -> Self {
        Self {
            mode: found.mode() & 0o7777,
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Builds the state from the kernel's answer for a name beneath a handle.
    #[expect(clippy::unnecessary_cast, reason = "the types of its fields differ from system to system")]
    pub(super) fn from_stat(found: &rustix::fs::Stat) -> Self {
        Self {
            mode: found.st_mode as u32 & 0o7777,
            bytes: u64::try_from(found.st_size).unwrap_or(0),
            modified: (found.st_mtime as i64, found.st_mtime_nsec as i64),
            inode: found.st_ino as u64,
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
        }
    }
}

impl TreeEntry {
    /// Returns true if the entry is unchanged. A folder counts as unchanged if only its content has changed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && match self.kind {
                TreeKind::Dir => self.state.mode == other.state.mode,
                _ => self.state == other.state,
            }
    }
}

/// A scanned folder.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) root: PathBuf,
    /// Parent folders come before their content.
    pub(super) entries: Vec<TreeEntry>,
    /// The bytes of all files.
    pub(super) bytes: u64,
}

/// Scans a folder to be copied. `left` is the number of entries still allowed.
pub(super) fn measure_folder(root: &Path, hidden: &[PathBuf], left: &mut usize) -> Result<Measure, CopyError> {
    let root = root.canonicalize().map_err(CopyError::at_path(root))?;
    let entries = list_entries(&root, hidden, left)?;
    if let Some(other) = entries.iter().find(|entry| entry.kind == TreeKind::Other) {
        return Err(CopyError::Uncovered(format!("{} can't be copied", root.join(&other.path).display())));
    }
    let bytes = entries.iter().filter(|entry| entry.kind == TreeKind::File).map(|entry| entry.state.bytes).sum();
    Ok(Measure { root, entries, bytes })
}

/// Lists all entries of a folder except the hidden ones. Links aren't followed.
pub(super) fn list_entries(root: &Path, hidden: &[PathBuf], left: &mut usize) -> Result<Vec<TreeEntry>, CopyError> {
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(folder) = pending.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).map_err(CopyError::at_path(&path))? {
            let entry = entry.map_err(CopyError::at_path(&path))?;
            let path = entry.path();
            if hidden.contains(&path) {
                continue;
            }
            *left = left.checked_sub(1).ok_or_else(|| CopyError::Uncovered("they hold too many files".to_owned()))?;
            let unnamed = |_| CopyError::Uncovered(format!("the name {} can't be kept", path.display()));
            let name = entry.file_name().into_string().map_err(unnamed)?;
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // The entry has just vanished.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(CopyError::at_path(&path)(error)),
            };
            let kind = kind(&path, &metadata)?;
            if kind == TreeKind::Dir {
                pending.push(name.clone());
            }
            found.push(TreeEntry { path: name, kind, state: State::from_metadata(&metadata) });
        }
    }
    Ok(found)
}

fn kind(path: &Path, found: &Metadata) -> Result<TreeKind, CopyError> {
    Ok(if found.is_dir() {
        TreeKind::Dir
    } else if found.is_file() {
        TreeKind::File
    } else if found.is_symlink() {
        let to = fs::read_link(path).map_err(CopyError::at_path(path))?;
        let unnamed = |_| CopyError::Uncovered(format!("where {} leads can't be kept", path.display()));
        TreeKind::Link(to.into_os_string().into_string().map_err(unnamed)?)
    } else {
        TreeKind::Other
    })
}
