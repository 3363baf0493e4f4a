//! Which store the settings name: the workspace's own file, or a database that several machines share.

use reveille_config::Config;

use crate::{Store, StoreError, StorePlace};

/// Where the store is.
///
/// # Errors
/// [`StoreError::Server`] where `DATABASE_URL` can't be used.
pub fn place(config: &Config) -> Result<StorePlace, StoreError> {
    let Some(url) = &config.database_url else { return Ok(StorePlace::File(config.db_path())) };
    shared(config, url)
}

#[cfg(feature = "postgres")]
fn shared(config: &Config, url: &str) -> Result<StorePlace, StoreError> {
    let password = config.database_password.as_ref().map(reveille_base::redact::Secret::expose);
    let address = crate::DatabaseAddress::parse(url, password);
    address
        .map(|address| StorePlace::Shared(Box::new(address)))
        .map_err(|why| StoreError::Server(format!("DATABASE_URL: {why}")))
}

#[cfg(not(feature = "postgres"))]
fn shared(_: &Config, _: &str) -> Result<StorePlace, StoreError> {
    Err(StoreError::Server(
        "DATABASE_URL is set, but this build knows no PostgreSQL (its feature is `postgres`)".to_owned(),
    ))
}

/// What people call the store by; nothing secret.
pub fn name(config: &Config) -> String {
    place(config).map_or_else(|_| "DATABASE_URL".to_owned(), |place| place.name())
}

/// Opens the store, making it if need be.
///
/// # Errors
/// The store's.
pub fn open(config: &Config) -> Result<Store, StoreError> {
    place(config)?.open()
}

/// Opens the store for looking only; none where there is none.
///
/// # Errors
/// The store's.
pub fn look(config: &Config) -> Result<Option<Store>, StoreError> {
    place(config)?.look()
}

/// Opens the store where there is one; none is made.
///
/// # Errors
/// The store's.
pub fn open_if_made(config: &Config) -> Result<Option<Store>, StoreError> {
    place(config)?.open_if_made()
}
