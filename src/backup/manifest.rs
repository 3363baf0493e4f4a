//! What a backup says of itself, and where its members may go: the list is ours, never the file's.

use std::collections::BTreeSet;

use reveille_git::BundledMemory;
use reveille_store::StoreSize;

use super::{
    BackupError,
    container::{MEMBER_BYTES_MAX, NAME_BYTES_MAX},
};

/// The form that this program writes and reads.
pub(super) const FORMAT: u32 = 1;
/// What the database is called in it.
pub(super) const DATABASE: &str = "messages.db";
/// What the memory's history is called in it.
pub(super) const BUNDLE: &str = "memory.bundle";
/// The settings.
pub(super) const SETTINGS: &str = ".env";
/// Files of the workspace itself that come along; [`SETTINGS`] only when that is asked for.
pub(super) const TOP: [&str; 4] = ["policy.toml", "mcp.toml", "chat-history", SETTINGS];
/// Folders of the workspace whose files come along.
pub(super) const FOLDERS: [&str; 3] = ["files", "voice", "mcp-pins"];
/// Those with the files of messages, which stand where `MEDIA_DIR` says.
pub(super) const MEDIA: [&str; 2] = ["files", "voice"];
/// Before the path of what a person hasn't committed.
pub(super) const EDITS: &str = "edits/";
/// The longest name of a file, in bytes.
const FILE_NAME_BYTES_MAX: usize = 255;
/// The most members.
pub(super) const MEMBERS_MAX: usize = 200_000;

/// What is in a backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BackupManifest {
    /// The form of the file.
    pub format: u32,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// The program that made it.
    pub program: String,
    /// The database's schema.
    pub schema: i64,
    /// How much the database holds.
    pub holds: StoreSize,
    /// The name of the memory's folder in the workspace.
    pub repo_name: String,
    /// Where the memory stood; none: there was no memory yet.
    pub memory: Option<BundledMemory>,
    /// What it is made of, in order.
    pub members: Vec<BackupMember>,
    /// Files of the memory that a person had deleted, and not committed that.
    pub deleted: Vec<String>,
    /// Settings that were set and aren't in it.
    pub settings: Vec<String>,
    /// What else isn't in it, and why.
    pub left_out: Vec<LeftOut>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BackupMember {
    /// What it is, and where it goes.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// Whether it can be run; of what a person hasn't committed alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_executable: bool,
}

/// Something that a backup doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why, to follow on "it".
    pub why: String,
}

/// Where a member goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberPlace<'a> {
    Database,
    Bundle,
    /// A file of the workspace itself.
    Top(&'a str),
    /// A file in one of its folders.
    In(&'a str, &'a str),
    /// A file in the memory's work tree. Git's own rules say whether that may be.
    Edit(&'a str),
}

impl<'a> MemberPlace<'a> {
    /// The place of a member of this name; none where we write none.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        if path == DATABASE {
            return Some(Self::Database);
        }
        if path == BUNDLE {
            return Some(Self::Bundle);
        }
        if TOP.contains(&path) {
            return Some(Self::Top(path));
        }
        if let Some(path) = path.strip_prefix(EDITS) {
            return Some(Self::Edit(path));
        }
        let (folder, name) = path.split_once('/')?;
        (FOLDERS.contains(&folder) && is_plain(name)).then_some(Self::In(folder, name))
    }
}

/// Whether it names a file, hidden from nobody and in no other folder.
pub(super) fn is_plain(name: &str) -> bool {
    let is_fine = |c: char| c != '/' && !c.is_control();
    !name.is_empty() && name.len() <= FILE_NAME_BYTES_MAX && !name.starts_with('.') && name.chars().all(is_fine)
}

/// What the `at`th member is called in the file.
pub(super) fn name_in_file(at: usize, path: &str) -> String {
    match path.len() < NAME_BYTES_MAX {
        true => path.to_owned(),
        false => format!("long-name/{at}"),
    }
}

impl BackupManifest {
    /// Reads what may come from anywhere, and holds it against what we write.
    ///
    /// # Errors
    /// [`BackupError::TooNew`] for another form; [`BackupError::Damaged`] with what is wrong.
    pub(super) fn parse(text: &[u8]) -> Result<Self, BackupError> {
        let damaged = |why: String| BackupError::Damaged(format!("its list {why}"));
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| damaged(format!("can't be read ({error})")))?;
        if let Some(format) = value.get("format").and_then(serde_json::Value::as_u64)
            && format > u64::from(FORMAT)
        {
            return Err(BackupError::TooNew);
        }
        let manifest: Self =
            serde_json::from_value(value).map_err(|error| damaged(format!("can't be read ({error})")))?;
        let mut seen = BTreeSet::new();
        for BackupMember { path, bytes, .. } in &manifest.members {
            if MemberPlace::of(path).is_none() {
                return Err(damaged(format!("names {path:?}, which is nothing of Reveille's")));
            }
            if !seen.insert(path.as_str()) {
                return Err(damaged(format!("names {path:?} twice")));
            }
            if *bytes > MEMBER_BYTES_MAX {
                return Err(damaged(format!("says that {path:?} is larger than a backup's files may be")));
            }
        }
        if manifest.members.len() > MEMBERS_MAX {
            return Err(damaged("names too many files".to_owned()));
        }
        if !seen.contains(DATABASE) {
            return Err(damaged("names no database".to_owned()));
        }
        let in_the_way = |name: &str| TOP.contains(&name) || FOLDERS.contains(&name) || name.starts_with(DATABASE);
        if !is_plain(&manifest.repo_name) || in_the_way(&manifest.repo_name) {
            return Err(damaged("names no folder for the memory".to_owned()));
        }
        if manifest.memory.is_none() && (seen.contains(BUNDLE) || !manifest.deleted.is_empty()) {
            return Err(damaged("contradicts itself".to_owned()));
        }
        Ok(manifest)
    }

    /// How many bytes its files are.
    pub fn bytes(&self) -> u64 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(member.bytes))
    }

    /// The files that a person hasn't committed, and those that they deleted.
    pub fn uncommitted(&self) -> impl Iterator<Item = &str> {
        let edits = self.members.iter().filter_map(|member| member.path.strip_prefix(EDITS));
        edits.chain(self.deleted.iter().map(String::as_str))
    }
}
