//! Why there is no encoder.

use std::path::PathBuf;

/// Why a sentence encoder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// This build has no encoder in it.
    #[error("this build can't embed on this machine: it was made without the feature embed")]
    NotBuilt,
    /// A file of the folder can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the folder isn't what it should be.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The folder's model isn't one that is read.
    #[error("this model can't be used: {0}")]
    Unfit(String),
}

#[cfg(feature = "embed")]
impl EncoderError {
    pub(crate) fn damaged(path: &std::path::Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }
}
