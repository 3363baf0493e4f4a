//! Asks other servers: if Telegram accepts the token and delivers messages to us, and if the model can be reached. Only
//! configured servers are asked, in parallel, each with a short time limit. Asking is free and changes nothing. An
//! unknown answer is no problem: a network that is down doesn't mean wrong settings.

use std::time::{Duration, Instant};

use reveille_base::approval_text::without_hidden;
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{Config, Provider};

use crate::setup::{self, CheckReach, CheckTools, Checked, SetupStep};

/// Time limit for each server.
const BOUND: Duration = Duration::from_secs(5);

/// The answers. `None` if a part isn't set, or asking would cost money.
#[derive(Debug, Clone, Default)]
pub(super) struct OthersSaid {
    pub(super) bot: Option<BotReached>,
    pub(super) model: Option<Checked>,
}

/// Telegram's answer about the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BotReached {
    /// The token is valid, and only pollers get messages.
    Fine {
        /// The name after the `@`.
        username: String,
    },
    /// Telegram rejects the token.
    Refused,
    /// A webhook gets the bot's messages.
    Webhook {
        /// The webhook's host.
        host: String,
    },
    /// Telegram couldn't be asked.
    Unknown(String),
}

/// Asks all configured servers.
pub(super) fn ask_servers(config: &Config) -> OthersSaid {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        // A failure here says nothing about the servers.
        Err(_) => return OthersSaid::default(),
    };
    runtime.block_on(async {
        let (bot, model) = tokio::join!(ask_bot(config), ask_model(config));
        OthersSaid { bot, model }
    })
}

async fn ask_bot(config: &Config) -> Option<BotReached> {
    let token = config.telegram_token.as_ref()?;
    let telegram = match Telegram::new(&config.telegram_api_url, token.expose().to_owned()) {
        Ok(telegram) => telegram.with_timeouts(BOUND, BOUND),
        Err(error) => return Some(to_unknown(&error)),
    };
    let asked = async {
        let (me, webhook) = tokio::join!(telegram.get_me(), telegram.get_webhook_info());
        Ok::<_, TelegramError>((me?, webhook?))
    };
    Some(match asked.await {
        Ok((me, webhook)) => match webhook.host() {
            Some(host) => BotReached::Webhook { host },
            None => BotReached::Fine { username: me.username },
        },
        Err(TelegramError::Unauthorized(_)) => BotReached::Refused,
        Err(error) => to_unknown(&error),
    })
}

fn to_unknown(error: &dyn std::fmt::Display) -> BotReached {
    BotReached::Unknown(without_hidden(&error.to_string()).into_owned())
}

/// Asks about the first model of the chain if that is free: Anthropic's model list, a server's list, or Claude Code's
/// own report.
async fn ask_model(config: &Config) -> Option<Checked> {
    let step = match Provider::from_model(config.effective_model()) {
        Provider::Anthropic => SetupStep::Key,
        Provider::OpenAi => SetupStep::ServerModel,
        Provider::ClaudeCode => SetupStep::Model,
        Provider::Bedrock | Provider::Vertex | Provider::Offline => return None,
    };
    let (begun, temporary) = (Instant::now(), std::env::temp_dir());
    let is_over = || begun.elapsed() >= BOUND;
    let tools = CheckTools { temporary: &temporary, is_over: &is_over, reach: CheckReach::Others };
    let asked = tokio::time::timeout(BOUND, setup::check_step(step, config, tools)).await;
    Some(asked.unwrap_or_else(|_| Checked::Unknown(format!("no answer within {} s", BOUND.as_secs()))))
}
