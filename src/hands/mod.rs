//! What acts outside our own stores: programs, files beside the memory, the network.
//!
//! A tool that acts (`tool::Tool::acting`) is given [`Hands`]; they belong to one cycle and end with it. Whether a call
//! may act at all was decided before, by the policy.

mod keep;

use std::path::{Path, PathBuf};

pub use keep::MAX_TOLD_BYTES;

use crate::web::Web;

/// The means by which one cycle acts.
#[derive(Debug)]
pub struct Hands {
    scratch: PathBuf,
    web: Web,
}

impl Hands {
    /// Hands whose own files stand in `scratch`.
    pub fn new(scratch: &Path) -> Self {
        Self { scratch: scratch.to_owned(), web: Web::default() }
    }

    /// The same, reaching the web in this way.
    #[must_use]
    pub fn with_web(self, web: Web) -> Self {
        Self { web, ..self }
    }

    /// The directory that programs may write to and that outlives cycles.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// The way to the web.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// An output as a mind is told it: all of it if it is short, else how it begins, with the file that holds the whole and how
    /// to read on. `name` is the tool's, part of the file's name.
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        keep::keep_rest(&self.scratch, name, output)
    }
}
