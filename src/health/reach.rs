//! Asks other servers whether Telegram accepts the token and delivers messages to us, and whether the model can be
//! reached. Only configured servers are asked, in parallel, each with a short time limit. Asking is free and changes
//! nothing. A missing answer isn't reported as a problem, because the network may be down while the settings are right.

use std::time::{Duration, Instant};

use reveille_base::approval_text::remove_hidden;
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{Config, Provider};

use crate::setup::{self, CheckReach, CheckTools, Checked, SetupStep};

/// Time limit for each server.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The answers of the servers. `None` if a server isn't configured, or asking it would cost money.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerAnswers {
    pub(super) bot: Option<TelegramAnswer>,
    pub(super) model: Option<Checked>,
}

/// Telegram's answer about the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TelegramAnswer {
    /// The token is valid, and no webhook takes the messages away from the bot, which polls for them.
    Fine {
        /// The name after the `@`.
        username: String,
    },
    /// Telegram rejects the token.
    Refused,
    /// Telegram sends the bot's messages to a webhook, so the bot gets none.
    Webhook {
        /// The webhook's host.
        host: String,
    },
    /// Telegram couldn't be asked.
    Unknown(String),
}

/// Asks all configured servers.
pub(super) fn ask_servers(config: &Config) -> ServerAnswers {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        // A failure here says nothing about the servers.
        Err(_) => return ServerAnswers::default(),
    };
    runtime.block_on(async {
        let (bot, model) = tokio::join!(ask_bot(config), ask_model(config));
        ServerAnswers { bot, model }
    })
}

async fn ask_bot(config: &Config) -> Option<TelegramAnswer> {
    let token = config.telegram_token.as_ref()?;
    let telegram = match Telegram::new(&config.telegram_api_url, token.expose().to_owned()) {
        Ok(telegram) => telegram.with_timeouts(TIME_LIMIT, TIME_LIMIT),
        Err(error) => return Some(to_unknown(&error)),
    };
    let answers = async {
        let (me, webhook) = tokio::join!(telegram.get_me(), telegram.get_webhook_info());
        Ok::<_, TelegramError>((me?, webhook?))
    };
    Some(match answers.await {
        Ok((me, webhook)) => match webhook.host() {
            Some(host) => TelegramAnswer::Webhook { host },
            None => TelegramAnswer::Fine { username: me.username },
        },
        Err(TelegramError::Unauthorized(_)) => TelegramAnswer::Refused,
        Err(error) => to_unknown(&error),
    })
}

fn to_unknown(error: &dyn std::fmt::Display) -> TelegramAnswer {
    TelegramAnswer::Unknown(remove_hidden(&error.to_string()).into_owned())
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
    let (start, temporary) = (Instant::now(), std::env::temp_dir());
    let is_over = || start.elapsed() >= TIME_LIMIT;
    let tools = CheckTools { temporary: &temporary, is_over: &is_over, reach: CheckReach::Others };
    let checked = tokio::time::timeout(TIME_LIMIT, setup::check_step(step, config, tools)).await;
    Some(checked.unwrap_or_else(|_| Checked::Unknown(format!("no answer within {} s", TIME_LIMIT.as_secs()))))
}
