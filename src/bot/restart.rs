//! Restarts the bot on `/restart`, with the program on disk and the current settings.
//!
//! 1. The order is stored with its batch and the next offset, so no later poll brings it again. Only the bot that
//!    stored it restarts.
//! 2. [`find_obstacle`] checks that a new bot could run, and [`check_new_token`] that Telegram knows a new token. If not, the
//!    chat is told and nothing changes.
//! 3. The bot ends as after a signal: it waits a while for a wake and closes the database.
//! 4. The new program replaces it under the same process id ([`reveille_base::process::start_anew`]). If that fails,
//!    the old bot continues.
//! 5. The next bot to start tells the chat that it is back, and closes the order's row, so this happens once.

use std::time::Duration;

use reveille_base::process::{self, Spec};
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{Config, GivenSettings, SettingChanges};

/// Time limit for a program to print its version, and for Telegram to answer about a token.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the reason why a new bot couldn't run. `None` if it could.
pub(super) fn find_obstacle(config: &Config) -> Option<String> {
    let given = GivenSettings::gather(config.named_env_file.as_deref());
    let settings = match given.resolve_with_changes(&SettingChanges::new()) {
        Ok(settings) => settings,
        Err(error) => {
            let problems: Vec<String> = error.problems.iter().map(|problem| format!("\n- {problem}")).collect();
            return Some(format!("the settings have errors:{}", problems.concat()));
        }
    };
    if let Err(error) = settings.require_telegram() {
        return Some(error.problems.iter().map(ToString::to_string).collect());
    }
    let program = match process::starting_program() {
        Ok(program) => program,
        Err(error) => return Some(format!("I can't find my own program: {error}")),
    };
    let probe = Spec::new(program.clone()).args(["--version"]).timeout(PROBE_TIMEOUT);
    match process::run(&probe) {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("`{}` failed: {}", program.display(), process::describe_exit(output.status))),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the reason to refuse the token in the current settings. `None` if it is unchanged, accepted, or Telegram
/// can't be reached.
pub(super) async fn check_new_token(config: &Config) -> Option<&'static str> {
    let settings =
        GivenSettings::gather(config.named_env_file.as_deref()).resolve_with_changes(&SettingChanges::new()).ok()?;
    let token = settings.telegram_token.as_ref().filter(|token| config.telegram_token.as_ref() != Some(*token))?;
    let refused = "Telegram doesn't accept the new TELEGRAM_BOT_TOKEN in the settings.";
    let Ok(telegram) = Telegram::new(&settings.telegram_api_url, token.expose().to_owned()) else {
        return Some(refused);
    };
    let answer = tokio::time::timeout(PROBE_TIMEOUT, telegram.get_me()).await;
    matches!(answer, Ok(Err(TelegramError::Unauthorized(_)))).then_some(refused)
}

/// The message to the chat if a restart isn't possible.
pub(super) fn render_refusal(why: &str) -> String {
    format!("I can't restart: {why}\n\nNothing was changed; I'm still running as before.")
}

/// The message to the chat after a restart.
pub(super) fn is_back() -> String {
    format!("I'm back (version {}).", crate::VERSION)
}
