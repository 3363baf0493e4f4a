//! A fleet in PostgreSQL: a schema for the registry, and per assistant a schema with a role that is confined to it.
//!
//! The server itself separates them: it refuses any statement of one assistant that names another's tables.

use reveille_base::{redact::Secret, types::AssistantName};
use reveille_postgres::{DatabaseAccess, DatabaseAddress, Postgres};

use super::FleetRegistry;
use crate::{Result, StoreError, sql::SqlConnection};

/// The schema of the registry.
const REGISTRY: &str = "reveille_fleet";
/// The channel on which workers hear of due assistants. All roles may notify, since a notification only makes workers look.
const CHANNEL: &str = "reveille_due";
/// The prefix of each assistant's role and schema.
const PREFIX: &str = "reveille_a_";

/// Creates the registry's schema if necessary, and connects to it.
pub(super) fn connect_registry(address: &DatabaseAddress) -> Result<SqlConnection> {
    let plain = connect(address);
    plain.execute_batch(&format!("CREATE SCHEMA IF NOT EXISTS {REGISTRY}"))?;
    Ok(Postgres::new(&address.with_schema(REGISTRY), DatabaseAccess::ReadWrite).with_channel(CHANNEL).into())
}

fn connect(address: &DatabaseAddress) -> SqlConnection {
    Postgres::new(address, DatabaseAccess::ReadWrite).into()
}

impl FleetRegistry {
    /// Creates the role and the schema of an assistant, or gives an existing role this password. Returns the role's name.
    ///
    /// # Errors
    /// The server's, for example if this connection's role may not create roles.
    pub fn make_role(address: &DatabaseAddress, name: &AssistantName, password: &Secret) -> Result<String> {
        let role = format!("{PREFIX}{name}");
        // Both are our own, and consist of characters that can't end a literal.
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_plain(&role) || !is_plain(password.expose()) {
            return Err(StoreError::Server("a role's name or password contains unsupported characters".to_owned()));
        }
        let there = connect(address);
        let knows = "SELECT count(*) FROM pg_roles WHERE rolname = ?1";
        let is_known = there.query_row(knows, [role.as_str()], |row| row.get::<_, i64>(0))? > 0;
        let begin = if is_known { "ALTER" } else { "CREATE" };
        let password = password.expose();
        there.execute_batch(&format!(
            "{begin} ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 20 PASSWORD '{password}';
             GRANT {role} TO CURRENT_USER;
             CREATE SCHEMA IF NOT EXISTS {role} AUTHORIZATION {role};
             ALTER ROLE {role} SET search_path = {role}"
        ))?;
        Ok(role)
    }

    /// Drops an assistant's role and everything in its schema.
    ///
    /// # Errors
    /// The server's.
    pub fn drop_role(address: &DatabaseAddress, name: &AssistantName) -> Result<()> {
        let role = format!("{PREFIX}{name}");
        let there = connect(address);
        Ok(there.execute_batch(&format!("DROP SCHEMA IF EXISTS {role} CASCADE; DROP ROLE IF EXISTS {role}"))?)
    }
}
