//! What a call acts on, told by its arguments: how far it reaches and what it risks follow from it, and the policy looks at it.

use std::path::PathBuf;

use reveille_memory as memory;
use reveille_policy::{Access, Reach, Risk, Rules, What};

use super::{Documents, World};

/// What a call acts on, as the policy looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// Shell text, and what it asks to be given.
    Shell {
        /// What would be run.
        text: String,
        /// Of which it gets what is granted.
        wanted: Access,
    },
    /// A file or folder; relative paths are the scratch folder's.
    Path {
        /// As it was given.
        path: PathBuf,
        /// Whether it is written.
        is_write: bool,
    },
    /// An address that is fetched.
    Url(String),
    /// An application that is started.
    App,
    /// Documents of the memory that are read, by their names there.
    Documents(Vec<String>),
    /// Documents of the memory that are written.
    Edits {
        /// Their names there.
        names: Vec<String>,
        /// Whether one of them goes.
        removes: bool,
    },
    /// Nothing that needs a look of its own.
    Nothing,
}

impl Touched {
    /// As the policy takes it; `kept_at`: where the documents are that it names.
    pub(super) fn what<'a>(&'a self, kept_at: &'a [PathBuf], rules: &Rules) -> What<'a> {
        match self {
            Self::Shell { text, wanted } => What::Shell { text, access: rules.access(text, *wanted) },
            Self::Path { path, is_write } => What::Path { path, is_write: *is_write },
            Self::Url(url) => What::Url(url),
            Self::App => What::App,
            Self::Documents(_) | Self::Edits { .. } => What::Documents(kept_at),
            Self::Nothing => What::Plain,
        }
    }

    /// What it risks at least, by itself.
    pub(super) fn risk(&self) -> Risk {
        match self {
            Self::App | Self::Edits { removes: true, .. } => Risk::Dangerous,
            _ => Risk::Safe,
        }
    }

    /// How far it reaches, for a tool of this reach.
    pub(super) fn reach(&self, of_tool: Reach, world: &World) -> Reach {
        match self {
            Self::Shell { text, wanted } => world.rules.access(text, *wanted).reach(),
            Self::Path { is_write: true, .. } => Reach::Persists,
            Self::Url(_) | Self::App => Reach::Leaves,
            Self::Edits { names, .. } if names.iter().any(|name| memory::steers(name)) => Reach::Steers,
            Self::Edits { .. } => Reach::Persists,
            Self::Path { .. } | Self::Documents(_) | Self::Nothing => of_tool,
        }
    }

    /// Whether a standing job is written.
    pub(super) fn edits_job(&self) -> bool {
        matches!(self, Self::Edits { names, .. } if names.iter().any(|name| memory::is_job(name)))
    }

    /// Where the documents are kept that it names.
    pub(super) fn kept_at(&self, documents: &Documents) -> Vec<PathBuf> {
        match self {
            Self::Documents(names) | Self::Edits { names, .. } => {
                names.iter().filter_map(|name| documents.place(name)).collect()
            }
            _ => Vec::new(),
        }
    }
}
