//! Opening a database that several machines share.

use std::path::PathBuf;

use reveille_postgres::{DatabaseAccess, DatabaseAddress, Postgres};

use super::{Result, Store, StoreError, in_place, sql::SqlConnection};

impl Store {
    /// Opens a shared database; creates or upgrades its tables if necessary.
    pub fn open_shared_database(address: &DatabaseAddress) -> Result<Self> {
        let store = Self::connect(address, DatabaseAccess::ReadWrite);
        store.bring_up_to_date()?;
        Ok(store)
    }

    /// Opens a shared database for reading only; `None` if it holds no tables of ours.
    pub fn open_shared_read_only(address: &DatabaseAddress) -> Result<Option<Self>> {
        let store = Self::connect(address, DatabaseAccess::ReadOnly);
        let schema = store.read_schema()?;
        if schema.is_too_new() {
            return Err(StoreError::Newer { path: store.path.clone(), found: schema.found, known: schema.known });
        }
        Ok((schema.found > 0).then_some(store))
    }

    fn connect(address: &DatabaseAddress, access: DatabaseAccess) -> Self {
        let conn = SqlConnection::from(Postgres::new(address, access));
        let (path, opened) = (PathBuf::from(address.name()), in_place::Opened::default());
        Self { conn, path, restart_at_bytes: u64::MAX, opened }
    }
}
