//! The report for a fleet's worker at the end of a turn: one JSON document on standard output.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use reveille_base::clock::format_rfc3339;
use reveille_channels::telegram::Inbox;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_store::{StoreError, database, in_force::load_effective_config};

use super::print_json;

/// Work that waits for the next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnDue {
    /// A name for each due item.
    pub(super) due: Vec<String>,
    /// Time when the next item is due.
    pub(super) next_at: Option<String>,
}

/// Prints the waiting work.
///
/// # Errors
/// If the store can't be read.
pub(super) fn print_due_work(config: &Config, now: DateTime<Utc>) -> Result<(), StoreError> {
    let mut told = TurnDue { due: Vec::new(), next_at: None };
    if let Some(store) = database::open_read_only(config)? {
        let waiting = cycle::read_waiting_work(&store, &load_effective_config(config, &store)?, now)?;
        told = TurnDue {
            due: waiting.due.iter().map(ToString::to_string).collect(),
            next_at: waiting.next_at.map(format_rfc3339),
        };
    }
    if !Inbox::at_path(config.inbox_dir()).is_empty() {
        told.due.push("inbox".to_owned());
    }
    print_json(&told);
    Ok(())
}
