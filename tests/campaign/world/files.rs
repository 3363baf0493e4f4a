//! Reads the files of a world.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Lock files beneath a directory.
pub(crate) fn locks(dir: &Path) -> Vec<PathBuf> {
    files(dir).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "lock")).collect()
}

/// All files beneath a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// All files beneath a directory with their bytes, without SQLite's temporary files (an index and an empty log).
pub(super) fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = files(dir).into_iter().map(|path| (path.clone(), fs::read(path).unwrap_or_default()));
    let is_lasting = |path: &Path, bytes: &[u8]| {
        let name = path.to_string_lossy();
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    };
    read.filter(|(path, bytes)| is_lasting(path, bytes)).collect()
}

/// A text without `<!-- … -->`, which holds ids of wakes and messages.
pub(super) fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before.trim_end_matches(' '));
        rest = after.split_once("-->").map_or("", |(_, rest)| rest);
    }
    kept + rest
}

pub(super) fn append(path: &Path, text: &str) {
    let mut content = fs::read_to_string(path).unwrap();
    content.push_str(text);
    fs::write(path, content).unwrap();
}
