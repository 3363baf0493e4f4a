//! Opens the store the settings name: the workspace's own file, or a database that several machines share.

use reveille_config::Config;

use crate::{Store, StoreError, StorePlace};

/// The location of the store.
///
/// # Errors
/// [`StoreError::Server`] if `DATABASE_URL` is unusable.
pub fn locate_store(config: &Config) -> Result<StorePlace, StoreError> {
    let Some(url) = &config.database_url else { return Ok(StorePlace::File(config.db_path())) };
    locate_shared_store(config, url)
}

#[cfg(feature = "postgres")]
fn locate_shared_store(config: &Config, url: &str) -> Result<StorePlace, StoreError> {
    let password = config.database_password.as_ref().map(reveille_base::redact::Secret::expose);
    let address = crate::DatabaseAddress::parse(url, password);
    address
        .map(|address| StorePlace::Shared(Box::new(address)))
        .map_err(|why| StoreError::Server(format!("DATABASE_URL: {why}")))
}

#[cfg(not(feature = "postgres"))]
fn locate_shared_store(_: &Config, _: &str) -> Result<StorePlace, StoreError> {
    Err(StoreError::Server(
        "DATABASE_URL is set, but this build doesn't support PostgreSQL (feature `postgres`)".to_owned(),
    ))
}

/// The store's name for people, free of secrets.
pub fn name(config: &Config) -> String {
    locate_store(config).map_or_else(|_| "DATABASE_URL".to_owned(), |place| place.name())
}

/// Opens the store; creates it if necessary.
///
/// # Errors
/// The store's.
pub fn open(config: &Config) -> Result<Store, StoreError> {
    locate_store(config)?.open()
}

/// Opens an existing store read-only; `None` if there is no store.
///
/// # Errors
/// The store's.
pub fn open_read_only(config: &Config) -> Result<Option<Store>, StoreError> {
    locate_store(config)?.open_read_only()
}

/// Opens an existing store; `None` if there is no store.
///
/// # Errors
/// The store's.
pub fn open_existing(config: &Config) -> Result<Option<Store>, StoreError> {
    locate_store(config)?.open_existing()
}
