//! Trees as values: find files in a commit, and build the next tree.

use std::{cell::RefCell, collections::BTreeMap};

use git2::{Index, IndexEntry, IndexTime, ObjectType, Oid, Repository, Tree, TreeWalkMode, TreeWalkResult};
use serde::{Deserialize, Serialize};

use super::RepoError;

/// A file in git: the id of its content, and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: Oid,
    pub(super) mode: u32,
}

/// A regular file.
pub(super) const FILE: u32 = 0o100_644;
/// An executable file.
pub(super) const EXECUTABLE: u32 = 0o100_755;
/// A folder.
const TREE: i32 = 0o040_000;
/// A symbolic link; its content is the target.
pub(super) const LINK: u32 = 0o120_000;
/// A submodule: another repository's commit, which this program never reads or writes.
pub(super) const SUBMODULE: u32 = 0o160_000;

#[derive(Serialize, Deserialize)]
struct WrittenItem {
    id: String,
    mode: u32,
}

impl Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenItem { id: self.id.to_string(), mode: self.mode }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenItem::deserialize(deserializer)?;
        let id = Oid::from_str(&written.id).map_err(serde::de::Error::custom)?;
        Ok(Self { id, mode: written.mode })
    }
}

/// Finds a file of a commit; `None` if the path is missing or a directory.
pub(super) fn find_item(git: &Repository, commit: Option<Oid>, path: &str) -> Result<Option<Item>, RepoError> {
    let Some(commit) = commit else { return Ok(None) };
    match git.find_commit(commit)?.tree()?.get_path(std::path::Path::new(path)) {
        Ok(entry) if entry.kind() != Some(ObjectType::Tree) => {
            Ok(Some(Item { id: entry.id(), mode: u32::try_from(entry.filemode()).unwrap_or(FILE) }))
        }
        Ok(_) => Ok(None),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A commit's files, for many look-ups: each folder is read once.
pub(super) struct Files<'g> {
    git: &'g Repository,
    root: Option<Tree<'g>>,
    folders: RefCell<BTreeMap<String, Option<Tree<'g>>>>,
}

impl<'g> Files<'g> {
    pub(super) fn at_commit(git: &'g Repository, commit: Option<Oid>) -> Result<Self, RepoError> {
        let root = commit.map(|commit| git.find_commit(commit)?.tree()).transpose()?;
        Ok(Self { git, root, folders: RefCell::default() })
    }

    /// As [`find_item`].
    pub(super) fn find_item(&self, path: &str) -> Result<Option<Item>, RepoError> {
        let Some((folder, name)) = path.rsplit_once('/') else {
            return Ok(self.root.as_ref().and_then(|root| find_folder_item(root, path)));
        };
        let mut folders = self.folders.borrow_mut();
        if !folders.contains_key(folder) {
            folders.insert(folder.to_owned(), self.find_folder(folder)?);
        }
        Ok(folders.get(folder).and_then(Option::as_ref).and_then(|folder| find_folder_item(folder, name)))
    }

    fn find_folder(&self, path: &str) -> Result<Option<Tree<'g>>, RepoError> {
        let Some(root) = &self.root else { return Ok(None) };
        match root.get_path(std::path::Path::new(path)) {
            Ok(entry) if entry.kind() == Some(ObjectType::Tree) => Ok(Some(self.git.find_tree(entry.id())?)),
            Ok(_) => Ok(None),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn find_folder_item(folder: &Tree<'_>, name: &str) -> Option<Item> {
    let entry = folder.get_name(name).filter(|entry| entry.kind() != Some(ObjectType::Tree))?;
    Some(Item { id: entry.id(), mode: u32::try_from(entry.filemode()).unwrap_or(FILE) })
}

/// Reads an item's content.
pub(super) fn read_item(git: &Repository, item: Option<Item>) -> Result<Option<Vec<u8>>, RepoError> {
    item.map(|item| Ok(git.find_blob(item.id)?.content().to_vec())).transpose()
}

/// Lists the paths of a commit's files, except those that aren't UTF-8.
pub(super) fn list_paths(git: &Repository, commit: Option<Oid>) -> Result<Vec<String>, RepoError> {
    let mut paths = Vec::new();
    if let Some(commit) = commit {
        git.find_commit(commit)?.tree()?.walk(TreeWalkMode::PreOrder, |dir, entry| {
            if entry.kind() != Some(ObjectType::Tree)
                && let Ok(name) = entry.name()
            {
                paths.push(format!("{dir}{name}"));
            }
            TreeWalkResult::Ok
        })?;
    }
    Ok(paths)
}

/// Writes a commit's tree with some files set or removed. Reads and writes only the folders above them: the rest may be large, or have
/// names that git would refuse today.
pub(super) fn with_files<'a>(
    git: &Repository,
    commit: Option<Oid>,
    files: impl IntoIterator<Item = (&'a str, Option<Item>)>,
) -> Result<Oid, RepoError> {
    let base = commit.map(|commit| git.find_commit(commit)?.tree()).transpose()?;
    // Removals come first: a file may become a folder, or a folder a file.
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(_, item)| item.is_some());
    match write_folder(git, base.as_ref(), &files)? {
        Some(tree) => Ok(tree),
        None => Ok(git.treebuilder(None)?.write()?),
    }
}

/// Writes a folder with files in or beneath it set or removed; `None` if it becomes empty.
fn write_folder(
    git: &Repository,
    base: Option<&Tree<'_>>,
    files: &[(&str, Option<Item>)],
) -> Result<Option<Oid>, RepoError> {
    let mut folder = git.treebuilder(base)?;
    let mut beneath: BTreeMap<&str, Vec<(&str, Option<Item>)>> = BTreeMap::new();
    for (path, item) in files {
        match (path.split_once('/'), item) {
            (Some((name, rest)), _) => beneath.entry(name).or_default().push((rest, *item)),
            (None, Some(item)) => drop(folder.insert(path, item.id, i32::try_from(item.mode).unwrap_or(0))?),
            (None, None) if folder.get(path)?.is_some_and(|entry| entry.kind() != Some(ObjectType::Tree)) => {
                folder.remove(path)?;
            }
            (None, None) => {}
        }
    }
    for (name, files) in beneath {
        let was = base.and_then(|base| base.get_name(name)).filter(|entry| entry.kind() == Some(ObjectType::Tree));
        let was = was.map(|entry| git.find_tree(entry.id())).transpose()?;
        let is_tree = folder.get(name)?.is_some_and(|entry| entry.kind() == Some(ObjectType::Tree));
        match write_folder(git, was.as_ref(), &files)? {
            Some(tree) => drop(folder.insert(name, tree, TREE)?),
            None if is_tree => folder.remove(name)?,
            None => {}
        }
    }
    Ok(if folder.is_empty() { None } else { Some(folder.write()?) })
}

/// Sets a file in an index, or removes it.
pub(super) fn set_index_item(index: &mut Index, path: &str, item: Option<Item>) -> Result<(), RepoError> {
    match item {
        Some(item) => Ok(index.add(&build_index_entry(path, item))?),
        None if index.get_path(std::path::Path::new(path), 0).is_none() => Ok(()),
        None => Ok(index.remove(std::path::Path::new(path), 0)?),
    }
}

/// Builds an index entry that records no size or times, so that git compares the file's content.
pub(super) fn build_index_entry(path: &str, item: Item) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: item.mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: item.id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}
