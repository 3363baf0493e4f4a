//! Access: the settings joined with the people who paired. The rest of the program gets settings that already hold both.

use reveille_base::types::ChatRef;
use reveille_config::Config;

use crate::{Store, StoreError};

/// The settings with everyone who has paired added to [`Config::allowed_chats`]. If the settings name no owner, the first person who
/// paired is the owner.
///
/// # Errors
/// The store's.
pub fn admit_paired_people(config: &Config, store: &Store) -> Result<Config, StoreError> {
    let paired: Vec<i64> = store.people().list_paired_people()?.into_iter().map(|person| person.user_id).collect();
    Ok(add_paired_chats(config.clone(), &paired))
}

/// Returns whether anyone may speak. Groups don't count: the speaker in a group must be listed, too.
pub fn is_anybody_admitted(config: &Config) -> bool {
    config.allowed_chats.iter().any(|chat| !chat.is_group())
}

fn add_paired_chats(mut config: Config, paired: &[i64]) -> Config {
    let paired: Vec<ChatRef> = paired.iter().copied().map(ChatRef::from_telegram).collect();
    for chat in &paired {
        if !config.allowed_chats.contains(chat) {
            config.allowed_chats.push(*chat);
        }
    }
    if config.owner_chat == ChatRef::TERMINAL && !config.is_owner_chosen {
        config.owner_chat = paired.first().copied().unwrap_or(ChatRef::TERMINAL);
    }
    config
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let mut env: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        env.insert("WORKSPACE_DIR".to_owned(), "/nowhere/reveille".to_owned());
        Config::from_sources(&env, None, Some("UTC")).unwrap()
    }

    fn admitted(settings: &[(&str, &str)], paired: &[i64]) -> (Vec<i64>, i64) {
        let config = add_paired_chats(config(settings), paired);
        (config.allowed_chats.into_iter().map(ChatRef::number).collect(), config.owner_chat.number())
    }

    #[test]
    fn the_first_who_pairs_is_the_owner_where_the_settings_name_none() {
        assert_eq!(admitted(&[], &[]), (vec![], 0));
        assert_eq!(admitted(&[], &[7, 9]), (vec![7, 9], 7));
        assert_eq!(admitted(&[("ALLOWED_CHAT_IDS", "-5")], &[7]), (vec![-5, 7], 7));
        assert_eq!(admitted(&[("ALLOWED_CHAT_IDS", "42,7")], &[7, 9]), (vec![42, 7, 9], 42));
        let console = [("ALLOWED_CHAT_IDS", "42"), ("OWNER_CHAT_ID", "0")];
        assert_eq!(admitted(&console, &[7]), (vec![42, 7], 0));
    }

    #[test]
    fn a_group_alone_lets_nobody_speak() {
        assert!(!is_anybody_admitted(&config(&[("ALLOWED_CHAT_IDS", "-5")])));
        assert!(is_anybody_admitted(&add_paired_chats(config(&[]), &[7])));
    }
}
