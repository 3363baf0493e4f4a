//! The address of a shared database, and the rules for encrypting the connection to it.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::tls::Tls;

/// The address of a shared database, with the password and the certificates for connecting to it.
#[derive(Clone)]
pub struct DatabaseAddress {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    name: String,
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl DatabaseAddress {
    /// Parses a `postgres://` address. The password comes separately, from a file: an address with a password is refused.
    ///
    /// # Errors
    /// A description of what is wrong, without the address itself, which may hold a password.
    pub fn parse(url: &str, password: Option<&str>) -> Result<Self, String> {
        let (url, authorities) = split_authorities(url);
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
        // Traffic across a network is always encrypted, even if the address says otherwise.
        let stays_here = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => is_loopback(name),
            Host::Unix(_) => true,
        });
        // If the address names a certificate authority, local traffic is encrypted too: a local port may be a tunnel.
        match (stays_here && authorities.is_none(), config.get_ssl_mode()) {
            (false, _) => config.ssl_mode(SslMode::Require),
            // A local server usually shows a certificate that it signed itself, which proves nothing.
            (true, SslMode::Prefer) => config.ssl_mode(SslMode::Disable),
            (true, _) => &mut config,
        };
        Ok(Self { config, tls: Tls::new(authorities.as_deref().map(Path::new))?, name })
    }

    /// The same database with another schema.
    #[must_use]
    pub fn with_schema(&self, schema: &str) -> Self {
        let mut config = self.config.clone();
        config.options(format!("-csearch_path={schema}"));
        Self { config, tls: self.tls.clone(), name: self.name.clone() }
    }

    /// The folder of the server's socket; `None` if the address names no socket.
    pub fn socket_dir(&self) -> Option<PathBuf> {
        self.config.get_hosts().iter().find_map(|host| match host {
            Host::Unix(path) => Some(path.clone()),
            Host::Tcp(_) => None,
        })
    }

    /// Host and database, for people, without secrets.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns whether traffic to this host stays on this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Splits the parameter `sslrootcert`, which the client library doesn't know, from an address. Returns the rest of the address, and the
/// path that the parameter holds.
fn split_authorities(url: &str) -> (String, Option<String>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (authorities, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|part| part.starts_with("sslrootcert="));
    let path =
        authorities.first().and_then(|part| part.strip_prefix("sslrootcert=")).map(|path| path.replace("%2F", "/"));
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    (format!("{address}{query}"), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypts_every_connection_that_may_leave_this_machine() {
        for (url, mode) in [
            ("postgres://u@db.example.org/d", SslMode::Require),
            ("postgres://u@db.example.org/d?sslmode=disable", SslMode::Require),
            ("postgres://u@localhost,db.example.org/d", SslMode::Require),
            ("postgres://u@localhost/d", SslMode::Disable),
            ("postgres://u@127.0.0.1/d", SslMode::Disable),
            ("postgres://u@%2Frun%2Fpostgresql/d", SslMode::Disable),
            ("postgres://u@localhost/d?sslmode=require", SslMode::Require),
        ] {
            assert_eq!(DatabaseAddress::parse(url, None).unwrap().config.get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn splits_the_authorities_from_the_other_parameters() {
        for (url, rest, path) in [
            ("postgres://u@h/d", "postgres://u@h/d", None),
            ("postgres://u@h/d?sslrootcert=%2Fca.pem", "postgres://u@h/d", Some("/ca.pem")),
            ("postgres://u@h/d?a=1&sslrootcert=/ca.pem&b=2", "postgres://u@h/d?a=1&b=2", Some("/ca.pem")),
        ] {
            assert_eq!(split_authorities(url), (rest.to_owned(), path.map(str::to_owned)), "{url}");
        }
    }

    #[test]
    fn reveals_no_password() {
        let refused = DatabaseAddress::parse("postgres://u:secret@h/d", None).unwrap_err();
        assert!(refused.contains("DATABASE_PASSWORD_FILE") && !refused.contains("secret"), "{refused}");
        let address = DatabaseAddress::parse("postgres://u@h/d", Some("secret")).unwrap();
        assert_eq!((format!("{address:?}").as_str(), address.name()), ("postgres://h/d", "postgres://h/d"));
    }
}
