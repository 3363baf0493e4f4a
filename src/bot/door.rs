//! Tracks who may speak while the bot runs. Changes by pairing and unpairing take effect with the next batch. As long
//! as nobody may speak, a code in the terminal invites.

use std::{io::Write as _, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use reveille_channels::telegram::{Me, Speakers};
use reveille_config::Config;
use reveille_store::{CodeState, Store, StoreError, access, in_force::load_effective_config};

use super::{
    BotContext,
    pairing::{self, CODE_LIFE, Code},
};

/// Marks the bot's own codes, as opposed to those of `bot pair`.
const MADE_BY: &str = "bot";
/// Minimum time between two codes in the terminal, even if strangers use up the guesses quickly.
const CODE_GAP: Duration = Duration::from_secs(30);

/// Controls who may speak.
pub(super) struct Door {
    /// The settings in force, with paired people and chosen values.
    pub(super) config: Config,
    /// The code in the terminal, and the time it was shown.
    offered: Option<(i64, Instant)>,
    /// `true` once this terminal's codes were withdrawn because someone may speak.
    is_shut: bool,
}

impl Door {
    pub(super) fn open(config: &Config, store: &Store) -> Result<Self, StoreError> {
        Ok(Self { config: load_effective_config(config, store)?, offered: None, is_shut: false })
    }

    /// Refreshes the settings in force.
    pub(super) fn refresh(&mut self, config: &Config, store: &Store) -> Result<(), StoreError> {
        self.config = load_effective_config(config, store)?;
        Ok(())
    }

    /// Returns the people who may speak, for reading updates.
    pub(super) fn speakers(&self, me: &Me) -> Speakers {
        Speakers { allowed: self.config.allowed_chats.iter().map(|chat| chat.number()).collect(), me: me.clone() }
    }

    /// Shows a code in the terminal if nobody may speak and no earlier code is valid.
    pub(super) fn invite(&mut self, store: &mut Store, outside: BotContext<'_>, me: &Me) {
        if access::is_anybody_admitted(&self.config) {
            // Someone may speak by another code or by the settings, so no code of this terminal may let in more people.
            self.is_shut = self.is_shut || store.people_mut().withdraw_codes(MADE_BY).is_ok();
            return;
        }
        self.is_shut = false;
        let now = outside.clock.now();
        let is_needed = match self.offered {
            Some((id, since)) => {
                since.elapsed() >= CODE_GAP && !matches!(store.people().code_state(id, now), Ok(CodeState::Open))
            }
            None => true,
        };
        if !is_needed {
            return;
        }
        match offer_code(store, outside.telegram.bot_id(), MADE_BY, now) {
            Ok((id, code)) => {
                self.offered = Some((id, Instant::now()));
                print_to_person(&pairing::render_invitation(&code, &me.username, now + CODE_LIFE, &self.config));
            }
            Err(error) => tracing::warn!(%error, "no pairing code could be offered; it is tried again"),
        }
    }
}

/// Creates a code and stores its hash.
pub(super) fn offer_code(
    store: &mut Store,
    bot_id: i64,
    made_by: &str,
    now: DateTime<Utc>,
) -> Result<(i64, Code), Box<dyn std::error::Error>> {
    let code = Code::generate()?;
    let id = store.people_mut().offer_code(&code.hash(bot_id), made_by, now + CODE_LIFE, now)?;
    Ok((id, code))
}

/// Prints for the person at the terminal, or for those who may read the log in stderr. It ignores the log level:
/// without the code, nobody can start.
fn print_to_person(text: &str) {
    writeln!(std::io::stderr().lock(), "\n{text}\n").ok();
}
