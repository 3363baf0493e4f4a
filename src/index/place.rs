//! Where the index is kept, and what it is made of.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{IndexError, Ready, Sources};
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

    /// The index, brought up to date with the memory in a work tree and with what was said.
    ///
    /// # Errors
    /// Another process is writing to it, or what was said can't be read.
    pub fn ready(&self, brain: &Path, zone: Tz) -> Result<Ready, IndexError> {
        let store = self.store()?;
        Ready::at(&self.index, &Sources { brain, store: store.as_ref(), zone }, Some(PATIENCE))
    }
}
