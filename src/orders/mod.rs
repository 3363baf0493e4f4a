//! What a person orders at once and without a model: tasks, reminders, what today holds, and what is remembered.
//!
//! Tasks stand in the memory: what changes them is a commit of the person's own, under the wake lock ([`tasks`]). Reminders are rows
//! ([`reminders`]). Both go through the tools that a model has, so that the same is checked and the same is written.

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

pub use world::world;

/// Why an order wasn't carried out. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// It can't be done as things are, or wasn't understood; in words for the person.
    #[error("{0}")]
    Refused(String),
    /// The memory couldn't be written.
    #[error(transparent)]
    Memory(#[from] ProvenanceError),
    /// The database couldn't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a tool's words that name other tools read at a terminal.
const COMMANDS: [(&str, &str); 4] = [
    ("`task_move`", "`wake task move`"),
    ("`task_list` shows them", "`wake task list` shows them"),
    ("say the task's name, or “list tasks” to see them", "give the task's name, or look at `wake task list`"),
    ("Send “list reminders” to see them", "`wake remind list` shows them"),
];

impl OrderError {
    fn refused(refusal: &Refusal) -> Self {
        let words = COMMANDS.iter().fold(refusal.0.clone(), |words, (tool, command)| words.replace(tool, command));
        let mut chars = words.chars();
        let first = chars.next().map(char::to_uppercase).into_iter().flatten();
        Self::Refused(first.chain(chars).collect())
    }
}
