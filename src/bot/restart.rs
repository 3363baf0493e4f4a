//! The bot starts itself anew by `/restart`: with its own program, as that is on the disk now, and with the settings as they are now.
//!
//! 1. The order is stored with its batch and the next offset, so that no later poll brings it again. Who newly stored it restarts.
//! 2. It is looked whether a new bot could run ([`obstacle`]), and, with a new token, whether Telegram knows it. If not, the chat is told, and all stays as it is.
//! 3. The bot ends as by a signal: a wake is waited for a while, the database is closed.
//! 4. Its program takes its place, under the same process id ([`reveille_base::process::start_anew`]). If that fails the old one runs on.
//! 5. Whichever bot starts next tells the chat that it is back: once, since that closes the order's row.

use std::time::Duration;

use reveille_base::process::{self, Spec};
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{Config, SaidSettings, SettingChanges};

/// How long a program may take to say which version it is, and Telegram whether it knows a token.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a new bot couldn't run, if it couldn't.
pub(super) fn obstacle(config: &Config) -> Option<String> {
    let said = SaidSettings::gather(config.named_env_file.as_deref());
    let now = match said.with(&SettingChanges::new()) {
        Ok(now) => now,
        Err(error) => {
            let problems: Vec<String> = error.problems.iter().map(|problem| format!("\n- {problem}")).collect();
            return Some(format!("the settings need correcting:{}", problems.concat()));
        }
    };
    if let Err(error) = now.require_telegram() {
        return Some(error.problems.iter().map(ToString::to_string).collect());
    }
    let program = match process::starting_program() {
        Ok(program) => program,
        Err(error) => return Some(format!("my program isn't known: {error}")),
    };
    let probe = Spec::new(program.clone()).args(["--version"]).timeout(PROBE_TIMEOUT);
    match process::run(&probe) {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("`{}` ends with {}", program.display(), process::describe(output.status))),
        Err(error) => Some(error.to_string()),
    }
}

/// Why the token that the settings say now wouldn't do, if it is another one and Telegram refuses it. Trouble on the way is no refusal.
pub(super) async fn refused_token(config: &Config) -> Option<&'static str> {
    let now = SaidSettings::gather(config.named_env_file.as_deref()).with(&SettingChanges::new()).ok()?;
    let token = now.telegram_token.as_ref().filter(|token| config.telegram_token.as_ref() != Some(*token))?;
    let refused = "Telegram doesn't accept the TELEGRAM_BOT_TOKEN that the settings say now.";
    let Ok(telegram) = Telegram::new(&now.telegram_api_url, token.expose().to_owned()) else { return Some(refused) };
    let met = tokio::time::timeout(PROBE_TIMEOUT, telegram.get_me()).await;
    matches!(met, Ok(Err(TelegramError::Unauthorized(_)))).then_some(refused)
}

/// What is said when it can't be.
pub(super) fn refusal(why: &str) -> String {
    format!("I can't restart: {why}\n\nNothing was changed: I keep running as I am.")
}

/// What is said afterwards.
pub(super) fn is_back() -> String {
    format!("I'm back (version {}).", crate::VERSION)
}
