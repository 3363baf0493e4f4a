//! Who is let in while the bot runs: people who paired meanwhile are heard with the next batch, people who were unpaired aren't; and
//! as long as nobody may speak, a code in the terminal invites.

use std::{io::Write as _, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use reveille_channels::telegram::{Me, Speakers};
use reveille_config::Config;
use reveille_store::{CodeState, Store, StoreError, access, in_force::in_force};

use super::{
    BotContext,
    pairing::{self, CODE_LIFE, Code},
};

/// How the bot's own code is told from that of `bot pair`.
const MADE_BY: &str = "bot";
/// The shortest time between two codes in the terminal, however fast somebody spoils them.
const CODE_GAP: Duration = Duration::from_secs(30);

/// Who may speak now.
pub(super) struct Door {
    /// The settings in force: with those who paired, and what was chosen.
    pub(super) config: Config,
    /// The code that stands in the terminal, and since when.
    offered: Option<(i64, Instant)>,
    /// Whether the codes of this terminal are void, now that somebody may speak.
    is_shut: bool,
}

impl Door {
    pub(super) fn open(config: &Config, store: &Store) -> Result<Self, StoreError> {
        Ok(Self { config: in_force(config, store)?, offered: None, is_shut: false })
    }

    /// Takes in who was paired and unpaired since, and what was chosen.
    pub(super) fn look(&mut self, config: &Config, store: &Store) -> Result<(), StoreError> {
        self.config = in_force(config, store)?;
        Ok(())
    }

    /// Who may speak, for reading updates.
    pub(super) fn access(&self, me: &Me) -> Speakers {
        Speakers { allowed: self.config.allowed_chats.iter().map(|chat| chat.number()).collect(), me: me.clone() }
    }

    /// Shows a code in the terminal if nobody may speak and none stands there that is still good.
    pub(super) fn invite(&mut self, store: &mut Store, outside: BotContext<'_>, me: &Me) {
        if access::is_anybody_admitted(&self.config) {
            // By another code, or by the settings: what stands in the terminal, or stood there before, lets nobody in besides.
            self.is_shut = self.is_shut || store.withdraw_codes(MADE_BY).is_ok();
            return;
        }
        self.is_shut = false;
        let now = outside.clock.now();
        let is_needed = match self.offered {
            Some((id, since)) => {
                since.elapsed() >= CODE_GAP && !matches!(store.code_state(id, now), Ok(CodeState::Open))
            }
            None => true,
        };
        if !is_needed {
            return;
        }
        match offer(store, outside.telegram.bot_id(), MADE_BY, now) {
            Ok((id, code)) => {
                self.offered = Some((id, Instant::now()));
                show(&pairing::invitation(&code, &me.username, now + CODE_LIFE, &self.config));
            }
            Err(error) => tracing::warn!(%error, "no pairing code could be offered; it is tried again"),
        }
    }
}

/// Makes a code and stores its hash.
pub(super) fn offer(
    store: &mut Store,
    bot_id: i64,
    made_by: &str,
    now: DateTime<Utc>,
) -> Result<(i64, Code), Box<dyn std::error::Error>> {
    let code = Code::fresh()?;
    let id = store.offer_code(&code.hash(bot_id), made_by, now + CODE_LIFE, now)?;
    Ok((id, code))
}

/// For whoever sits at the terminal; where stderr goes into a log, it is for those who may read that. Whatever the level of the
/// log: without it nobody can begin.
fn show(text: &str) {
    writeln!(std::io::stderr().lock(), "\n{text}\n").ok();
}
