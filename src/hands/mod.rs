//! What acts outside our own stores: programs, files beside the memory, the network.
//!
//! A tool that acts (`tool::Tool::acting`) is given [`Hands`]; they belong to one cycle and end with it. Whether a call
//! may act at all was decided before, by the policy.

pub mod beneath;
pub mod edits;
pub mod opener;
pub mod search;
pub mod system;

use std::path::{Path, PathBuf};

use edits::Edits;

/// The means by which one cycle acts.
#[derive(Debug)]
pub struct Hands {
    scratch: PathBuf,
    /// What the text editor has done.
    pub(crate) edits: Edits,
    /// Pictures that were looked at, and their bytes.
    pub(crate) pictures: (usize, u64),
}

impl Hands {
    /// Hands whose own files stand in `scratch`.
    pub fn new(scratch: &Path) -> Self {
        Self { scratch: scratch.to_owned(), edits: Edits::default(), pictures: (0, 0) }
    }

    /// The directory that programs may write to and that outlives cycles.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }
}
