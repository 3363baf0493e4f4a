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
use reveille_store::StoreError;
use reveille_tools::Refusal;

pub use world::build_world;

/// The reason why an order wasn't carried out. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The order is impossible or wasn't understood; the text is for the person.
    #[error("{0}")]
    Refused(String),
    /// The memory couldn't be written.
    #[error(transparent)]
    Memory(#[from] ProvenanceError),
    /// The database couldn't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Phrases of a tool's message that name a tool, each with the wording for a terminal.
const COMMANDS: [(&str, &str); 4] = [
    ("`task_move`", "`wake task move`"),
    ("`task_list` shows them", "`wake task list` shows them"),
    ("say the task's name, or “list tasks” to see them", "give the task's name, or look at `wake task list`"),
    ("Send “list reminders” to see them", "`wake remind list` shows them"),
];

impl OrderError {
    fn from_refusal(refusal: &Refusal) -> Self {
        let words = COMMANDS.iter().fold(refusal.0.clone(), |words, (tool, command)| words.replace(tool, command));
        let mut chars = words.chars();
        let first = chars.next().map(char::to_uppercase).into_iter().flatten();
        Self::Refused(first.chain(chars).collect())
    }
}
