//! Orders of a person that run at once and without a model: tasks, reminders, the day's overview and memory search.
//!
//! Tasks are in the memory, so a change is a commit of the person under the wake lock ([`tasks`]). Reminders are rows
//! ([`reminders`]). Both use the model's tools, so the same checks and formats apply.

pub mod jobs;
pub mod lists;
pub mod reminders;
pub mod search;
pub mod tasks;
pub mod today;
pub mod undo;
mod world;

use reveille_account::provenance::ProvenanceError;
use reveille_base::words::capitalize;
use reveille_store::StoreError;
use reveille_tools::{NamedList, Refusal};

pub use world::build_world;

/// The reason why an order wasn't carried out. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The order is impossible or wasn't understood; the text is for the person.
    #[error("{0}")]
    Refused(String),
    /// The order names nothing that exists, or more than one thing. `why` is a sentence without a period.
    #[error("{why}. Nothing was done; `{}` shows them.", list_command(*list))]
    Unknown {
        /// The reason.
        why: String,
        /// The list to choose from.
        list: NamedList,
    },
    /// The memory couldn't be written.
    #[error(transparent)]
    Memory(#[from] ProvenanceError),
    /// The database couldn't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the command that shows a list.
fn list_command(list: NamedList) -> &'static str {
    match list {
        NamedList::Tasks | NamedList::NumberedTasks => "wake task list",
        NamedList::Reminders => "wake remind list",
    }
}

impl OrderError {
    /// Returns the reason without a command to type, for a person with a page or a chat.
    pub fn reason(&self) -> String {
        match self {
            Self::Unknown { why, .. } => format!("{why}. Nothing was done."),
            other => other.to_string(),
        }
    }
}

impl From<Refusal> for OrderError {
    fn from(Refusal { why, list }: Refusal) -> Self {
        let why = capitalize(&why);
        match list {
            Some(list) => Self::Unknown { why, list },
            None if why.ends_with('.') => Self::Refused(why),
            None => Self::Refused(format!("{why}. Nothing was done.")),
        }
    }
}
