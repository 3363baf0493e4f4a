//! Where a store is: a file of its own, or a database that several machines share.

use std::path::PathBuf;

#[cfg(feature = "postgres")]
use super::DatabaseAddress;
use super::{Result, Store};

/// Where a store is.
#[derive(Debug, Clone)]
pub enum StorePlace {
    /// A file of SQLite's.
    File(PathBuf),
    /// A PostgreSQL.
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
    /// What people call it by: its path, or its host and database; nothing secret.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => address.name().to_owned(),
        }
    }

    /// The folder of the socket by which it is reached; none: by a network, or it is a file.
    pub fn socket_dir(&self) -> Option<PathBuf> {
        match self {
            Self::File(_) => None,
            #[cfg(feature = "postgres")]
            Self::Shared(address) => address.socket_dir(),
        }
    }

    /// Opens it, making it if need be.
    ///
    /// # Errors
    /// The store's.
    pub fn open(&self) -> Result<Store> {
        match self {
            Self::File(path) => Store::open(path),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => Store::open_shared(address),
        }
    }

    /// Opens it for looking only; none where there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn look(&self) -> Result<Option<Store>> {
        match self {
            Self::File(path) => Store::open_read_only(path),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => Store::open_shared_read_only(address),
        }
    }

    /// Opens it where there is one; none is made.
    ///
    /// # Errors
    /// The store's.
    pub fn open_if_made(&self) -> Result<Option<Store>> {
        let is_made = match self {
            Self::File(path) => path.exists(),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => self.look()?.is_some(),
        };
        is_made.then(|| self.open()).transpose()
    }
}
