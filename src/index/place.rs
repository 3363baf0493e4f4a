//! Where the index is kept, and what it is made of.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Index, IndexError, Ready, Sources};
use crate::{
    config::Config,
    store::{Store, StoreError},
    zone::Tz,
};

/// How long a search brings the index up to date before it answers: what is left then is found by a later one.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where the index is kept, and the database whose messages are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexPlace {
    /// The index's file.
    pub index: PathBuf,
    /// The store's file.
    pub database: PathBuf,
}

impl IndexPlace {
    /// The places of a workspace.
    pub fn of(config: &Config) -> Self {
        Self { index: config.index_path(), database: config.db_path() }
    }

    /// The store, for looking only; none while there is none.
    ///
    /// # Errors
    /// It can't be read.
    pub fn store(&self) -> Result<Option<Store>, StoreError> {
        Store::open_read_only(&self.database)
    }

    /// Asks the index, brought up to date with the memory in a work tree and with what was said. Where it turns out to be damaged it is
    /// made anew, once. With the answer comes what a person should know of the index.
    ///
    /// # Errors
    /// Another process is writing to it, what was said can't be read, or `ask` fails.
    pub fn ask<T>(
        &self,
        brain: &Path,
        zone: Tz,
        mut ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        let store = self.store()?;
        let sources = Sources { brain, store: store.as_ref(), zone };
        let mut ready = Ready::at(&self.index, &sources, Some(PATIENCE))?;
        match ask(&mut ready.index) {
            Err(IndexError::Damaged(_) | IndexError::Sqlite(_)) => {
                drop(ready);
                let mut ready = Ready::anew(&self.index, &sources)?;
                Ok((ask(&mut ready.index)?, ready.note))
            }
            answer => Ok((answer?, ready.note)),
        }
    }
}
