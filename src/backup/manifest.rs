//! The manifest of a backup, and the places where members may go. The list of places is fixed here, never read from the
//! file.

use std::collections::BTreeSet;

use reveille_git::BundledRefs;
use reveille_store::StoreSize;

use super::{
    BackupError,
    container::{MEMBER_BYTES_MAX, NAME_BYTES_MAX},
};

/// The format that this program writes and reads.
pub(super) const FORMAT: u32 = 1;
/// The member with the database.
pub(super) const DATABASE: &str = "messages.db";
/// The member with the memory's history.
pub(super) const BUNDLE: &str = "memory.bundle";
/// The member with the settings.
pub(super) const SETTINGS: &str = ".env";
/// Included files of the workspace; [`SETTINGS`] only on request.
pub(super) const TOP: [&str; 4] = ["policy.toml", "mcp.toml", "chat-history", SETTINGS];
/// Folders of the workspace whose files are included.
pub(super) const FOLDERS: [&str; 3] = ["files", "voice", "mcp-pins"];
/// Those with the files of messages, which are in `MEDIA_DIR`.
pub(super) const MEDIA: [&str; 2] = ["files", "voice"];
/// Path prefix for a person's uncommitted changes.
pub(super) const EDITS: &str = "edits/";
/// Maximum bytes of a file name.
const FILE_NAME_BYTES_MAX: usize = 255;
/// Maximum number of members.
pub(super) const MEMBERS_MAX: usize = 200_000;

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BackupManifest {
    /// The format's number.
    pub format: u32,
    /// Time of the backup, RFC 3339.
    pub created_at: String,
    /// The program that created it.
    pub program: String,
    /// The database's schema.
    pub schema: i64,
    /// The numbers of rows in the database.
    pub holds: StoreSize,
    /// The name of the memory's folder in the workspace.
    pub repo_name: String,
    /// The memory's state. `None` if there was no memory yet.
    pub memory: Option<BundledRefs>,
    /// The members, in order.
    pub members: Vec<BackupMember>,
    /// Files of the memory that a person had deleted without committing that.
    pub deleted: Vec<String>,
    /// Settings that were set and aren't included.
    pub settings: Vec<String>,
    /// Other parts that aren't included, with the reasons.
    pub left_out: Vec<LeftOut>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BackupMember {
    /// The path, which decides the destination.
    pub path: String,
    /// The size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// `true` for an executable; only used for uncommitted files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_executable: bool,
}

/// A part that a backup leaves out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// The name.
    pub what: String,
    /// The reason, as a clause.
    pub why: String,
}

/// The destination of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberPlace<'a> {
    Database,
    Bundle,
    /// A file in the workspace itself.
    Top(&'a str),
    /// A file in one of the workspace's folders.
    In(&'a str, &'a str),
    /// A file in the memory's work tree, subject to git's own path rules.
    Edit(&'a str),
}

impl<'a> MemberPlace<'a> {
    /// Returns the destination of a member. `None` for paths that this program never writes.
    pub(super) fn from_path(path: &'a str) -> Option<Self> {
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

/// Returns `true` for a plain file name: visible and without a folder.
pub(super) fn is_plain(name: &str) -> bool {
    let is_fine = |c: char| c != '/' && !c.is_control();
    !name.is_empty() && name.len() <= FILE_NAME_BYTES_MAX && !name.starts_with('.') && name.chars().all(is_fine)
}

/// Returns the member's name in the tar file.
pub(super) fn name_in_file(at: usize, path: &str) -> String {
    match path.len() < NAME_BYTES_MAX {
        true => path.to_owned(),
        false => format!("long-name/{at}"),
    }
}

impl BackupManifest {
    /// Parses and validates a manifest from an untrusted source.
    ///
    /// # Errors
    /// [`BackupError::TooNew`] for a newer format; [`BackupError::Damaged`] for invalid contents.
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
            if MemberPlace::from_path(path).is_none() {
                return Err(damaged(format!("names {path:?}, which isn't one of Reveille's files")));
            }
            if !seen.insert(path.as_str()) {
                return Err(damaged(format!("names {path:?} twice")));
            }
            if *bytes > MEMBER_BYTES_MAX {
                return Err(damaged(format!("says that {path:?} is larger than a backup may hold")));
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

    /// Returns the total size of the members.
    pub fn total_bytes(&self) -> u64 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(member.bytes))
    }

    /// Lists the uncommitted and the deleted files of the person.
    pub fn list_uncommitted(&self) -> impl Iterator<Item = &str> {
        let edits = self.members.iter().filter_map(|member| member.path.strip_prefix(EDITS));
        edits.chain(self.deleted.iter().map(String::as_str))
    }
}
