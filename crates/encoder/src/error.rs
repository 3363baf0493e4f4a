//! Errors of the sentence encoder.

use std::path::PathBuf;

/// The reason a sentence encoder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// This build has no encoder.
    #[error("this build can't embed on this machine: it was made without the feature embed")]
    NotBuilt,
    /// A file of the folder can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of the folder is malformed.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The folder's model is of an unsupported kind.
    #[error("this model can't be used: {0}")]
    Unfit(String),
}

#[cfg(feature = "embed")]
impl EncoderError {
    pub(crate) fn for_damaged_file(path: &std::path::Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }
}
