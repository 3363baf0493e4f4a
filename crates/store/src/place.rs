//! The location of a store: a file of its own, or a database that several machines share.

use std::path::PathBuf;

#[cfg(feature = "postgres")]
use super::DatabaseAddress;
use super::{Result, Store};

/// The location of a store.
#[derive(Debug, Clone)]
pub enum StorePlace {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Shared(Box<DatabaseAddress>),
}

impl Default for StorePlace {
    fn default() -> Self {
        Self::File(PathBuf::new())
    }
}

impl From<PathBuf> for StorePlace {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl StorePlace {
    /// The name for people: the path, or the host and database; it contains no secret.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => address.name().to_owned(),
        }
    }

    /// The folder of the database's socket; `None` for a network address or a file.
    pub fn socket_dir(&self) -> Option<PathBuf> {
        match self {
            Self::File(_) => None,
            #[cfg(feature = "postgres")]
            Self::Shared(address) => address.socket_dir(),
        }
    }

    /// Opens the store; creates it if necessary.
    ///
    /// # Errors
    /// The store's error.
    pub fn open(&self) -> Result<Store> {
        match self {
            Self::File(path) => Store::open(path),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => Store::open_shared_database(address),
        }
    }

    /// Opens an existing store read-only; `None` if there is no store.
    ///
    /// # Errors
    /// The store's error.
    pub fn open_read_only(&self) -> Result<Option<Store>> {
        match self {
            Self::File(path) => Store::open_read_only(path),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => Store::open_shared_read_only(address),
        }
    }

    /// Opens an existing store; `None` if there is no store.
    ///
    /// # Errors
    /// The store's error.
    pub fn open_existing(&self) -> Result<Option<Store>> {
        let exists_already = match self {
            Self::File(path) => path.exists(),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => self.open_read_only()?.is_some(),
        };
        exists_already.then(|| self.open()).transpose()
    }
}
