//! The permission to send searched texts from this machine to an embedder.

use chrono::{DateTime, Utc};

use super::backoff::save_handled_value;
use crate::{
    Result,
    areas::{Maintenance, ReadStore, WriteStore},
};

/// The key of the embedder a person has allowed to get all texts.
const ALLOWED: &str = "embedder/allowed";

impl<S: ReadStore> Maintenance<S> {
    /// The id of the embedder a person has allowed.
    pub fn allowed_embedder(&self) -> Result<Option<String>> {
        self.find_handled_value(ALLOWED)
    }
}

impl<S: WriteStore> Maintenance<S> {
    /// Allows one embedder, by its id, in place of any earlier one; `None` withdraws the permission.
    pub fn allow_embedder(&mut self, id: Option<&str>, now: DateTime<Utc>) -> Result<()> {
        self.0.write(|tx| match id {
            Some(id) => save_handled_value(tx, ALLOWED, id, now),
            None => Ok(tx.execute("DELETE FROM handled WHERE key = ?1", [ALLOWED]).map(drop)?),
        })
    }
}
