//! A fleet in a PostgreSQL: a schema for the list, and for each assistant a schema with a role that may do nothing elsewhere.
//!
//! The server itself keeps them apart: a statement of one assistant that names another's tables is refused, whoever wrote it.

use reveille_base::{redact::Secret, types::AssistantName};
use reveille_postgres::{DatabaseAddress, Postgres};

use super::FleetRegistry;
use crate::{Result, StoreError, sql::SqlConnection};

/// The schema of the list.
const REGISTRY: &str = "reveille_fleet";
/// By this name workers hear that somebody is due. All roles may notify: what is heard only makes them look.
const CHANNEL: &str = "reveille_due";
/// What stands before an assistant's name in those of its role and its schema.
const PREFIX: &str = "reveille_a_";

/// The list's own connection.
pub(super) fn registry(address: &DatabaseAddress) -> Result<SqlConnection> {
    let plain = connect(address);
    plain.execute_batch(&format!("CREATE SCHEMA IF NOT EXISTS {REGISTRY}"))?;
    Ok(Postgres::new(&address.in_schema(REGISTRY), false).with_channel(CHANNEL).into())
}

fn connect(address: &DatabaseAddress) -> SqlConnection {
    Postgres::new(address, false).into()
}

impl FleetRegistry {
    /// Makes the role and the schema of an assistant, or gives the role this password. Says what the role is called.
    ///
    /// # Errors
    /// The role of this connection may make none, or the server's.
    pub fn make_role(address: &DatabaseAddress, name: &AssistantName, password: &Secret) -> Result<String> {
        let role = format!("{PREFIX}{name}");
        // Both are ours, and made of letters, digits and marks that no literal ends with.
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_plain(&role) || !is_plain(password.expose()) {
            return Err(StoreError::Server("a role's name or password isn't plain".to_owned()));
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

    /// Ends the role of an assistant, with all that is in its schema.
    ///
    /// # Errors
    /// The server's.
    pub fn drop_role(address: &DatabaseAddress, name: &AssistantName) -> Result<()> {
        let role = format!("{PREFIX}{name}");
        let there = connect(address);
        Ok(there.execute_batch(&format!("DROP SCHEMA IF EXISTS {role} CASCADE; DROP ROLE IF EXISTS {role}"))?)
    }
}
