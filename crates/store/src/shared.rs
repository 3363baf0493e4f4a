//! A database that several machines share: where it is, and opening it.

use std::path::{Path, PathBuf};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::{
    Result, Store, StoreError, in_place,
    sql::{Postgres, SqlConnection, Tls},
};

/// Where a shared database is, and how one gets in.
#[derive(Clone)]
pub struct DatabaseAddress {
    pub(super) config: Config,
    pub(super) tls: Tls,
    name: String,
}

impl std::fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl DatabaseAddress {
    /// Reads a `postgres://` address. A password of its own goes before one that stands in the address.
    ///
    /// # Errors
    /// What is wrong with it, without the address itself: that may hold a password.
    pub fn parse(url: &str, password: Option<&str>) -> std::result::Result<Self, String> {
        let (url, authorities) = without_authorities(url);
        let mut config: Config =
            url.parse().map_err(|_| "it isn't an address such as postgres://user@host/name".to_owned())?;
        if config.get_password().is_some() {
            return Err(
                "the password belongs in the file that DATABASE_PASSWORD_FILE names, not in the address".to_owned()
            );
        }
        if let Some(password) = password {
            config.password(password);
        }
        let host = config.get_hosts().first().map_or_else(
            || "localhost".to_owned(),
            |host| match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            },
        );
        let name = format!("postgres://{host}/{}", config.get_dbname().unwrap_or_default());
        // What crosses a network is encrypted, whatever the address says.
        let stays_here = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => is_loopback(name),
            Host::Unix(_) => true,
        });
        // So is what goes to a server of which a certificate is expected: a port of this machine may lead elsewhere.
        match (stays_here && authorities.is_none(), config.get_ssl_mode()) {
            (false, _) => config.ssl_mode(SslMode::Require),
            // A server's own certificate for this machine is nobody's word for anything.
            (true, SslMode::Prefer) => config.ssl_mode(SslMode::Disable),
            (true, _) => &mut config,
        };
        Ok(Self { config, tls: Tls::new(authorities.as_deref().map(Path::new))?, name })
    }

    /// The same database with another schema in the place of its own.
    pub(super) fn in_schema(&self, schema: &str) -> Self {
        let mut config = self.config.clone();
        config.options(format!("-csearch_path={schema}"));
        Self { config, tls: self.tls.clone(), name: self.name.clone() }
    }

    /// The folder of the socket by which it is reached, if it is by one.
    pub fn socket_dir(&self) -> Option<PathBuf> {
        self.config.get_hosts().iter().find_map(|host| match host {
            Host::Unix(path) => Some(path.clone()),
            Host::Tcp(_) => None,
        })
    }

    /// What people call it by: host and database, nothing secret.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Whether what is sent there stays on this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The address without `sslrootcert`, which the client library doesn't know, and what that names.
fn without_authorities(url: &str) -> (String, Option<String>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (own, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|part| part.starts_with("sslrootcert="));
    let path = own.first().and_then(|part| part.strip_prefix("sslrootcert=")).map(|path| path.replace("%2F", "/"));
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    (format!("{address}{query}"), path)
}

impl Store {
    /// Opens a shared database, making its tables or bringing them up to date if need be.
    pub fn open_shared(address: &DatabaseAddress) -> Result<Self> {
        let store = Self::connect(address, false);
        store.bring_up_to_date()?;
        Ok(store)
    }

    /// Opens a shared database for looking only, or says `None` when there is nothing of ours in it.
    pub fn open_shared_read_only(address: &DatabaseAddress) -> Result<Option<Self>> {
        let store = Self::connect(address, true);
        let schema = store.schema()?;
        if schema.is_too_new() {
            return Err(StoreError::Newer { path: store.path.clone(), found: schema.found, known: schema.known });
        }
        Ok((schema.found > 0).then_some(store))
    }

    fn connect(address: &DatabaseAddress, is_read_only: bool) -> Self {
        let conn = SqlConnection::from(Postgres::new(address.config.clone(), address.tls.clone(), is_read_only));
        let (path, opened) = (PathBuf::from(&address.name), in_place::Opened::default());
        Self { conn, path, restart_at_bytes: u64::MAX, opened }
    }
}
