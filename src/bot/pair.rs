//! `bot pair`: offers a code from another terminal for the running bot. Both share only the store: this process stores
//! the code's hash and waits for someone to use it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use reveille_base::clock::Clock;
use reveille_config::Config;
use reveille_store::{CodeState, Paired, wake_lock};

use super::{
    BotError, door,
    pairing::{CODE_LIFE, Code},
};

/// How often to check for a use of the code.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Marks these codes, as opposed to the running bot's own.
const MADE_BY: &str = "pair";

/// The outcome of the wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing {
    /// This person may speak from now on.
    Paired(Paired),
    /// No one sent the code in time, or there were too many wrong guesses.
    Void,
    /// The process was asked to end; the code is withdrawn.
    Stopped,
}

/// An offered code.
pub struct OfferedCode {
    /// The number of its row.
    pub id: i64,
    /// The code.
    pub code: Code,
    /// `true` if a running bot could accept it.
    pub is_bot_running: bool,
}

/// Offers a code, and waits for nobody. It expires by itself.
///
/// # Errors
/// If the workspace or the store fails.
pub fn offer(config: &Config, now: DateTime<Utc>) -> Result<OfferedCode, BotError> {
    reveille_cycle::workspace::prepare_workspace(config)?;
    let mut store = reveille_cycle::workspace::open_database(config)?;
    let (id, code) = door::offer_code(&mut store, config.bot_id().unwrap_or_default(), MADE_BY, now)
        .map_err(|error| BotError::Code(error.to_string()))?;
    Ok(OfferedCode { id, code, is_bot_running: is_bot_running(config) })
}

/// Returns `true` if a bot runs for this workspace.
pub fn is_bot_running(config: &Config) -> bool {
    wake_lock::read_holder(&config.bot_lock_path()).is_some_and(|holder| holder.identity().is_alive())
}

/// Offers a code and waits. Passes the code to `show`, with `true` if a running bot could accept it.
///
/// # Errors
/// If the workspace or the store fails. The code expires by itself then.
pub async fn pair(
    config: &Config,
    clock: &dyn Clock,
    mut stop: watch::Receiver<bool>,
    show: impl FnOnce(&Code, bool),
) -> Result<Pairing, BotError> {
    let OfferedCode { id, code, is_bot_running } = offer(config, clock.now())?;
    let mut store = reveille_cycle::workspace::open_database(config)?;
    show(&code, is_bot_running);
    let until = tokio::time::Instant::now() + CODE_LIFE.to_std().unwrap_or_default();
    loop {
        match store.people().code_state(id, clock.now())? {
            CodeState::Used(user_id) => {
                let nameless = Paired { user_id, name: String::new(), at: None };
                let person = store.people().list_paired_people()?.into_iter().find(|person| person.user_id == user_id);
                return Ok(Pairing::Paired(person.unwrap_or(nameless)));
            }
            CodeState::Void => return Ok(Pairing::Void),
            // The wall clock may stand still or be set back.
            CodeState::Open if tokio::time::Instant::now() >= until => {
                store.people_mut().withdraw_code(id)?;
                return Ok(Pairing::Void);
            }
            CodeState::Open => {}
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {
                store.people_mut().withdraw_code(id)?;
                return Ok(Pairing::Stopped);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}
