//! Registers the command menu that Telegram offers while people type, once the bot knows its identity.
//!
//! Retries until it works. Commands work without the menu, so nothing waits for it.

use std::time::Duration;

use tokio::sync::watch;

use reveille_channels::telegram::{Command, Telegram, TelegramError};

/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, unless Telegram asks for a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Retries until the menu is registered or refused, or the sender of `is_known` is dropped.
pub(super) async fn register(telegram: &Telegram, mut is_known: watch::Receiver<bool>) {
    if is_known.wait_for(|is_known| *is_known).await.is_err() {
        return;
    }
    let (menu, mut failures) = (Command::menu(), 0);
    loop {
        let tried = tokio::select! {
            tried = telegram.set_my_commands(&menu) => tried,
            _ = is_known.changed() => return,
        };
        let Err(error) = tried else { return };
        if failures == 0 {
            tracing::info!(%error, "the menu of commands was not registered; they work all the same");
        }
        let Some(wait) = compute_wait(failures, &error, fastrand::f64()) else { return };
        failures += 1;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = is_known.changed() => return,
        }
    }
}

/// Returns the wait after `failures` earlier failures. `jitter` is random, from 0 to 1. `None` if a retry is useless.
fn compute_wait(failures: u32, error: &TelegramError, jitter: f64) -> Option<Duration> {
    let wait = (FIRST_WAIT * (1 << failures.min(16))).min(LONGEST_WAIT).mul_f64(0.5 + jitter / 2.0);
    match error {
        TelegramError::RetryAfter(after) => Some(wait.max(*after)),
        // A token can be replaced, and a network can recover.
        TelegramError::NotSent { .. }
        | TelegramError::Ambiguous { .. }
        | TelegramError::Unauthorized(_)
        | TelegramError::Conflict(_) => Some(wait),
        TelegramError::MigratedTo(_) | TelegramError::ChatGone(_) | TelegramError::Rejected { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_ten_minutes_and_telegrams_wish_is_obeyed() {
        let down = TelegramError::NotSent { why: "no route".to_owned() };
        let waits = (0..12).map(|failures| compute_wait(failures, &down, 1.0).unwrap().as_secs()).collect::<Vec<_>>();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(compute_wait(0, &down, 0.0), Some(FIRST_WAIT / 2));
        let hour = Duration::from_secs(3600);
        assert_eq!(compute_wait(0, &TelegramError::RetryAfter(hour), 0.0), Some(hour));
    }

    #[test]
    fn what_telegram_will_not_take_is_not_asked_again() {
        let refused = TelegramError::Rejected { code: 400, description: "BOT_COMMAND_INVALID".to_owned() };
        assert_eq!(compute_wait(0, &refused, 1.0), None);
    }
}
