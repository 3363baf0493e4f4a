//! Whether what is searched may leave this machine, to be embedded.

use chrono::{DateTime, Utc};

use super::backoff::set_handled;
use crate::{Result, Store};

/// Under this key stands the embedder that a person has allowed to get all texts.
const ALLOWED: &str = "embedder/allowed";

impl Store {
    /// The embedder that a person has allowed, by its id.
    pub fn allowed_embedder(&self) -> Result<Option<String>> {
        self.handled(ALLOWED)
    }

    /// A person allows one, by its id, in place of any before; none: they take it back.
    pub fn allow_embedder(&mut self, id: Option<&str>, now: DateTime<Utc>) -> Result<()> {
        self.write(|tx| match id {
            Some(id) => set_handled(tx, ALLOWED, id, now),
            None => Ok(tx.execute("DELETE FROM handled WHERE key = ?1", [ALLOWED]).map(drop)?),
        })
    }
}
