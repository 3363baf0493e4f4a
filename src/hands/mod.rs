//! What acts outside our own stores: programs, files beside the memory, the network.
//!
//! A tool that acts (`tool::Tool::acting`) is given [`Hands`]; they belong to one cycle and end with it. Whether a call
//! may act at all was decided before, by the policy.

use std::path::{Path, PathBuf};

/// The means by which one cycle acts.
#[derive(Debug)]
pub struct Hands {
    scratch: PathBuf,
}

impl Hands {
    /// Hands whose own files stand in `scratch`.
    pub fn new(scratch: &Path) -> Self {
        Self { scratch: scratch.to_owned() }
    }

    /// The directory that programs may write to and that outlives cycles.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }
}
