//! The files that a call names, as they were when its person was asked about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a yes is bound to besides the bytes of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFiles {
    /// The files that the call names, those that it runs first.
    pub files: Vec<BoundFile>,
    /// Folders of the scratch that the call may load more from.
    pub folders: Vec<PathBuf>,
    /// SHA-256 of the names, sizes and times of all else in these, hex; `None` if the call runs nothing that could load it.
    pub beside: Option<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    /// Where the call finds it: absolute, links in it not followed.
    pub named: PathBuf,
    /// Where that leads, without symbolic links.
    pub path: PathBuf,
    /// How long it is.
    pub bytes: u64,
    /// SHA-256 of its bytes, hex; of a file that is too long to be read, of its size, its time of change and its number on the disk.
    pub sha256: String,
    /// All of its bytes, where they are text that may be shown.
    pub text: Option<String>,
    /// Whether the call runs it, by itself or by a program that reads its commands from it.
    pub is_run: bool,
    /// Whether it may be run by itself.
    pub is_executable: bool,
}

impl BoundFiles {
    /// Reads what a question keeps; `None` where it names nothing. What can't be read is like nothing that is there, so that nothing runs.
    pub fn parse(text: Option<&str>) -> Self {
        let unreadable = || Self { beside: Some(String::new()), ..Self::default() };
        text.map_or_else(Self::default, |text| serde_json::from_str(text).unwrap_or_else(|_| unreadable()))
    }

    /// Whether a yes is bound to nothing but the call.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.beside.is_none()
    }

    /// Whether the call runs something that isn't in its own words.
    pub fn runs_files(&self) -> bool {
        self.beside.is_some() || self.files.iter().any(|file| file.is_run)
    }
}
