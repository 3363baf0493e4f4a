//! The index of the memory, brought up to date while the remote is waited for, and at the end of a wake that did something: never for
//! long.
//!
//! It is derived, so trouble with it is no trouble of the wake's: a search brings it up to date by itself.

use std::time::Duration;

use reveille_git::Repo;
use reveille_index::{Ready, Sources};

use crate::session::Session;

/// How long it may take; the next wake goes on.
const BOUND: Duration = Duration::from_secs(2);

/// Brings the index up to date.
pub(crate) fn keep_current(session: &Session<'_>, repo: &Repo) {
    let config = session.context.config;
    let sources = Sources { brain: repo.root(), store: Some(&session.store), zone: config.timezone };
    match session.index.ready(&sources, Some(BOUND)) {
        Ok(Ready { index, note, refreshed }) => {
            session.index.keep(index);
            if let Some(note) = note {
                tracing::warn!("{note}");
            }
            tracing::debug!(?refreshed, "the index is up to date");
        }
        Err(error) => tracing::warn!(%error, "the memory's index isn't up to date; the next search makes up for it"),
    }
}
