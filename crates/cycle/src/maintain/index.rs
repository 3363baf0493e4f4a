//! Updates the memory's index while the wake waits for the remote, and at the end of a wake that did something, for a short time.
//!
//! The index is derived data, so its failures don't fail the wake: the next search updates it.

use std::time::Duration;

use reveille_git::Repo;
use reveille_index::{Ready, Sources};

use crate::session::Session;

/// The maximum duration. The next wake continues.
const BOUND: Duration = Duration::from_secs(2);

/// Updates the index.
pub(crate) fn update_index(session: &Session<'_>, repo: &Repo) {
    let config = session.context.config;
    let sources = Sources { brain: repo.root(), store: Some(&session.store), zone: config.timezone };
    match session.index.prepare_index(&sources, Some(BOUND)) {
        Ok(Ready { index, note, refreshed }) => {
            session.index.keep_index(index);
            if let Some(note) = note {
                tracing::warn!("{note}");
            }
            tracing::debug!(?refreshed, "the index is up to date");
        }
        Err(error) => tracing::warn!(%error, "the memory's index isn't up to date; the next search makes up for it"),
    }
}
