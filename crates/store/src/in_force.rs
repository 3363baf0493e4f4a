//! The settings that are in force: what was configured, joined with the people who paired ([`crate::access`]) and with what the owner
//! has chosen in a chat.

use reveille_config::Config;

use crate::{Store, StoreError, access};

/// The settings in force now. What an owner chose holds until the settings say something else than they did then.
///
/// # Errors
/// The store's.
pub fn in_force(config: &Config, store: &Store) -> Result<Config, StoreError> {
    let chosen_model = store.chosen("MODEL", &config.model)?;
    Ok(Config { chosen_model, ..access::admitted(config, store)? })
}
