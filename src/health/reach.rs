//! What has to be asked of others: whether Telegram takes the token and hands its messages to us, and whether the model can be
//! reached. Only what is set is asked, side by side, each within a short bound. It costs nothing and changes nothing. What can't be
//! known now isn't wrong: a network that is down is no fault of the settings.

use std::time::{Duration, Instant};

use reveille_base::approval_text::without_hidden;
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{Config, Provider};

use crate::setup::{self, CheckTools, Checked, SetupStep};

/// How long each is waited for.
const BOUND: Duration = Duration::from_secs(5);

/// What was found. None: it isn't set, or can't be asked without paying.
#[derive(Debug, Clone, Default)]
pub(super) struct OthersSaid {
    pub(super) bot: Option<BotReached>,
    pub(super) model: Option<Checked>,
}

/// What Telegram says of the bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BotReached {
    /// The token is good, and nothing but a poller gets its messages.
    Fine {
        /// The name after the `@`.
        username: String,
    },
    /// Telegram doesn't know the token.
    Refused,
    /// A webhook gets its messages.
    Webhook {
        /// Where it leads.
        host: String,
    },
    /// It couldn't be asked.
    Unknown(String),
}

/// Asks all of it.
pub(super) fn ask(config: &Config) -> OthersSaid {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        // Each says the same, and none of them is wrong for it.
        Err(_) => return OthersSaid::default(),
    };
    runtime.block_on(async {
        let (bot, model) = tokio::join!(bot(config), model(config));
        OthersSaid { bot, model }
    })
}

async fn bot(config: &Config) -> Option<BotReached> {
    let token = config.telegram_token.as_ref()?;
    let telegram = match Telegram::new(&config.telegram_api_url, token.expose().to_owned()) {
        Ok(telegram) => telegram.with_timeouts(BOUND, BOUND),
        Err(error) => return Some(unknown(&error)),
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
        Err(error) => unknown(&error),
    })
}

fn unknown(error: &dyn std::fmt::Display) -> BotReached {
    BotReached::Unknown(without_hidden(&error.to_string()).into_owned())
}

/// The model that is asked first, where asking is free: Anthropic's list of models, a server's, and what Claude Code says of itself.
async fn model(config: &Config) -> Option<Checked> {
    let step = match Provider::of(config.effective_model()) {
        Provider::Anthropic => SetupStep::Key,
        Provider::OpenAi => SetupStep::ServerModel,
        Provider::ClaudeCode => SetupStep::Model,
        Provider::Bedrock | Provider::Vertex | Provider::Offline => return None,
    };
    let (begun, temporary) = (Instant::now(), std::env::temp_dir());
    let is_over = || begun.elapsed() >= BOUND;
    let tools = CheckTools { temporary: &temporary, is_over: &is_over, asks_others: true };
    let asked = tokio::time::timeout(BOUND, setup::check(step, config, tools)).await;
    Some(asked.unwrap_or_else(|_| Checked::Unknown(format!("no answer within {} s", BOUND.as_secs()))))
}
