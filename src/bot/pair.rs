//! `bot pair`: a code from another terminal, for the bot that runs. The two share only the store: this side puts a code's hash
//! there and waits to see who used it.

use std::time::Duration;

use tokio::sync::watch;

use reveille_base::clock::Clock;
use reveille_config::Config;
use reveille_store::{CodeState, Paired, wake_lock};

use super::{
    BotError, door,
    pairing::{CODE_LIFE, Code},
};

/// How often it is looked whether somebody used the code.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How the code is told from the running bot's own.
const MADE_BY: &str = "pair";

/// How waiting for somebody ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing {
    /// This person may speak from now on.
    Paired(Paired),
    /// Nobody sent it in time, or too many wrong ones came.
    Void,
    /// It was asked to end; the code is taken back.
    Stopped,
}

/// Offers a code, hands it to `show` with whether a bot runs that could accept it, and waits.
///
/// # Errors
/// The workspace's or the store's. The code pairs nobody then once its time is over.
pub async fn pair(
    config: &Config,
    clock: &dyn Clock,
    mut stop: watch::Receiver<bool>,
    show: impl FnOnce(&Code, bool),
) -> Result<Pairing, BotError> {
    reveille_cycle::workspace::prepare_workspace(config)?;
    let mut store = reveille_cycle::workspace::open(config)?;
    let bot_id = config.bot_id().unwrap_or_default();
    let (id, code) =
        door::offer(&mut store, bot_id, MADE_BY, clock.now()).map_err(|error| BotError::Code(error.to_string()))?;
    let is_bot_running = wake_lock::read(&config.bot_lock_path()).is_some_and(|holder| holder.identity().is_alive());
    show(&code, is_bot_running);
    let until = tokio::time::Instant::now() + CODE_LIFE.to_std().unwrap_or_default();
    loop {
        match store.code_state(id, clock.now())? {
            CodeState::Used(user_id) => {
                let nameless = Paired { user_id, name: String::new(), at: None };
                let person = store.paired()?.into_iter().find(|person| person.user_id == user_id);
                return Ok(Pairing::Paired(person.unwrap_or(nameless)));
            }
            CodeState::Void => return Ok(Pairing::Void),
            // The clock of the wall may stand still, or be set back.
            CodeState::Open if tokio::time::Instant::now() >= until => {
                store.withdraw_code(id)?;
                return Ok(Pairing::Void);
            }
            CodeState::Open => {}
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {
                store.withdraw_code(id)?;
                return Ok(Pairing::Stopped);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}
