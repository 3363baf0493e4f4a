//! The files that a call names, as they were when the owner was asked for approval.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The files that an approval is bound to, besides the bytes of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFiles {
    /// The files that the call names, executed files first.
    pub files: Vec<BoundFile>,
    /// Scratch folders from which the call may load more files.
    pub folders: Vec<PathBuf>,
    /// SHA-256 (hex) of the names, sizes and times of all other files in `folders`; `None` if the call runs nothing that could load them.
    pub beside: Option<String>,
}

/// A file that an approval is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    /// The absolute path in the call, symbolic links not resolved.
    pub named: PathBuf,
    /// The path with symbolic links resolved.
    pub path: PathBuf,
    /// The size of the file.
    pub bytes: u64,
    /// SHA-256 (hex) of the content; for a file too long to read, of its size, change time and inode.
    pub sha256: String,
    /// The full content, if it is text that may be shown.
    pub text: Option<String>,
    /// True if the call runs the file, directly or through an interpreter.
    pub is_run: bool,
    /// True if the file may be run directly.
    pub is_executable: bool,
}

impl BoundFiles {
    /// Parses the column of a stored question; `None` gives no files. An unreadable text matches no files on disk, so the call won't run.
    pub fn parse(text: Option<&str>) -> Self {
        let unreadable = || Self { beside: Some(String::new()), ..Self::default() };
        text.map_or_else(Self::default, |text| serde_json::from_str(text).unwrap_or_else(|_| unreadable()))
    }

    /// Returns true if the approval is bound to the call alone.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.beside.is_none()
    }

    /// Returns true if the call runs code from files.
    pub fn runs_files(&self) -> bool {
        self.beside.is_some() || self.files.iter().any(|file| file.is_run)
    }
}
