//! The settings in force: the configuration, joined with the people who paired ([`crate::access`]) and with the owner's choices in a
//! chat.

use reveille_config::Config;

use crate::{Store, StoreError, access};

/// The settings in force now. An owner's choice holds until the configured value changes.
///
/// # Errors
/// The store's.
pub fn load_effective_config(config: &Config, store: &Store) -> Result<Config, StoreError> {
    let chosen_model = store.chats().find_chosen_value("MODEL", &config.model)?;
    Ok(Config { chosen_model, ..access::admit_paired_people(config, store)? })
}
