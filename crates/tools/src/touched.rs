//! The target of a call, derived from its arguments. The policy, the reach and the risk depend on the target.

use std::path::PathBuf;

use reveille_memory as memory;
use reveille_policy::{Access, Reach, Risk, Rules, What};

use super::{Documents, World};

/// The target of a call, for the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// A shell command, with its requested access.
    Shell {
        /// The command.
        text: String,
        /// The requested access; only granted parts are given.
        wanted: Access,
    },
    /// A file or folder; relative paths are in the scratch folder.
    Path {
        /// The path as given.
        path: PathBuf,
        /// True for writing.
        is_write: bool,
    },
    /// A fetched address.
    Url(String),
    /// A started application.
    App,
    /// Documents of the memory that are read, by name.
    Documents(Vec<String>),
    /// Documents of the memory that are written.
    Edits {
        /// The documents' names.
        names: Vec<String>,
        /// True if one of them is removed.
        removes: bool,
    },
    /// No target that needs a check of its own.
    Nothing,
}

impl Touched {
    /// Converts the target for the policy; `kept_at` holds the paths of the named documents.
    pub(super) fn to_policy_target<'a>(&'a self, kept_at: &'a [PathBuf], rules: &Rules) -> What<'a> {
        match self {
            Self::Shell { text, wanted } => What::Shell { text, access: rules.limit_access(text, *wanted) },
            Self::Path { path, is_write } => What::Path { path, is_write: *is_write },
            Self::Url(url) => What::Url(url),
            Self::App => What::App,
            Self::Documents(_) | Self::Edits { .. } => What::Documents(kept_at),
            Self::Nothing => What::Plain,
        }
    }

    /// Returns the minimum risk of the target.
    pub(super) fn risk(&self) -> Risk {
        match self {
            Self::App | Self::Edits { removes: true, .. } => Risk::Dangerous,
            _ => Risk::Safe,
        }
    }

    /// Returns the reach of the target, for a tool with this reach.
    pub(super) fn reach(&self, of_tool: Reach, world: &World) -> Reach {
        match self {
            Self::Shell { text, wanted } => world.means.rules.limit_access(text, *wanted).reach(),
            Self::Path { is_write: true, .. } => Reach::Persists,
            Self::Url(_) | Self::App => Reach::Leaves,
            Self::Edits { names, .. } if names.iter().any(|name| memory::is_steering(name)) => Reach::Steers,
            Self::Edits { .. } => Reach::Persists,
            Self::Path { .. } | Self::Documents(_) | Self::Nothing => of_tool,
        }
    }

    /// Returns true if a standing job is written.
    pub(super) fn edits_job(&self) -> bool {
        matches!(self, Self::Edits { names, .. } if names.iter().any(|name| memory::is_job(name)))
    }

    /// Returns the paths of the named documents.
    pub(super) fn list_paths(&self, documents: &Documents) -> Vec<PathBuf> {
        match self {
            Self::Documents(names) | Self::Edits { names, .. } => {
                names.iter().filter_map(|name| documents.find_path(name)).collect()
            }
            _ => Vec::new(),
        }
    }
}
