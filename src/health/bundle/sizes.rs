//! Measures the parts of a workspace. Files with unknown names are only counted, never named.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// Known names in a workspace.
const KNOWN: [&str; 29] = [
    ".env",
    "messages.db",
    "messages.db-wal",
    "messages.db-shm",
    "index.db",
    "index.db-wal",
    "index.db-shm",
    ".live",
    ".wake-lock",
    ".bot-lock",
    ".chat-lock",
    ".stay-lock",
    ".voice-lock",
    ".last-look",
    ".health-told",
    "policy.toml",
    "mcp.toml",
    "mcp-token",
    "mcp-pins",
    "mcp",
    "logs",
    "models",
    "scratch",
    "copies",
    "inbox",
    "voice",
    "files",
    "page",
    "claude-code",
];
/// Maximum number of files to measure.
const MAX_ENTRIES: usize = 200_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Measures a workspace, and adds what couldn't be read to `unread`.
pub(super) fn measure_workspace(workspace: &Path, repo_name: &str, unread: &mut Vec<String>) -> Value {
    let entries = match fs::read_dir(workspace) {
        Ok(entries) => entries,
        Err(error) => {
            unread.push(format!("the workspace: {error}"));
            return Value::Null;
        }
    };
    let (mut parts, mut others, mut left) = (Vec::new(), Sizes::default(), MAX_ENTRIES);
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let sizes = measure_path(&entry.path(), MAX_DEPTH, &mut left);
        let known_name = if name == repo_name {
            Some("(the memory's repository)")
        } else {
            KNOWN.into_iter().find(|known| *known == name)
        };
        match known_name {
            Some(name) => parts.push((name, sizes)),
            None => others.add(&sizes),
        }
    }
    parts.sort_by_key(|(name, _)| *name);
    let free = reveille_base::disk::free_bytes(workspace).ok();
    let described = |sizes: &Sizes| json!({"files": sizes.files, "bytes": sizes.bytes, "unreadable": sizes.unreadable});
    let parts: Vec<Value> =
        parts.iter().map(|(name, sizes)| json!({"name": name, "sizes": described(sizes)})).collect();
    json!({"parts": parts, "others": described(&others), "free_bytes_on_disk": free, "is_cut_short": left == 0})
}

#[derive(Default)]
struct Sizes {
    files: u64,
    bytes: u64,
    unreadable: u64,
}

impl Sizes {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.unreadable += other.unreadable;
    }
}

/// Measures a file or folder without following links.
fn measure_path(path: &Path, depth: usize, left: &mut usize) -> Sizes {
    let mut sizes = Sizes::default();
    let Some(fewer) = left.checked_sub(1) else { return sizes };
    *left = fewer;
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => match fs::read_dir(path).ok().filter(|_| depth > 0) {
            Some(entries) => {
                entries.flatten().for_each(|entry| sizes.add(&measure_path(&entry.path(), depth - 1, left)));
            }
            None => sizes.unreadable += 1,
        },
        Ok(found) => {
            sizes.files += 1;
            sizes.bytes += found.len();
        }
        Err(_) => sizes.unreadable += 1,
    }
    sizes
}
