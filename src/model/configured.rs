//! From a model's name and the settings to the model: the one place that knows every provider.

use std::time::Duration;

use super::{
    Model,
    anthropic::{Anthropic, AnthropicOptions},
    claude_code::{ClaudeCode, ClaudeCodeOptions, Login},
    offline::Offline,
    openai::{OpenAi, OpenAiOptions},
};
use crate::config::{Config, Provider};

/// The longest answer that is asked for, in tokens, thinking included.
const MAX_TOKENS: u64 = 16_000;
/// How long the model's server may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one turn may take.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a server of models may be silent: on a plain machine a long prompt takes minutes to read.
const LOCAL_IDLE_TIMEOUT: Duration = Duration::from_secs(480);

/// The model of this name; the offline one in place of one whose key isn't set. Nothing is connected yet.
///
/// # Errors
/// Which setting can't work, in words.
pub fn configured(name: &str, config: &Config) -> Result<Box<dyn Model>, String> {
    match (Provider::of(name), &config.anthropic_key) {
        (Provider::Offline, _) | (Provider::Anthropic, None) => Ok(Box::new(Offline::new(config.timezone))),
        (Provider::OpenAi, _) if !config.can_use(name) => Ok(Box::new(Offline::new(config.timezone))),
        (Provider::OpenAi, _) => openai(name, config).map(|model| Box::new(model) as Box<dyn Model>),
        (Provider::ClaudeCode, _) => Ok(Box::new(claude_code(config))),
        (Provider::Anthropic, Some(key)) => {
            let options = AnthropicOptions {
                base_url: config.anthropic_base_url.clone(),
                api_key: key.clone(),
                model: name.to_owned(),
                max_tokens: MAX_TOKENS,
                idle_timeout: IDLE_TIMEOUT,
                total_timeout: TURN_TIMEOUT,
                effort: None,
            };
            Anthropic::new(options).map(|model| Box::new(model) as Box<dyn Model>).map_err(|error| error.to_string())
        }
    }
}

/// A model of the OpenAI-compatible server that is set; or which setting can't work, in words.
fn openai(name: &str, config: &Config) -> Result<OpenAi, String> {
    OpenAi::new(OpenAiOptions {
        base_url: config.openai_base_url.clone(),
        api_key: config.openai_key.clone(),
        model: name.to_owned(),
        idle_timeout: LOCAL_IDLE_TIMEOUT,
        total_timeout: TURN_TIMEOUT,
    })
}

/// The Claude Code command as a model: with the key, else the token, else a login of its own.
fn claude_code(config: &Config) -> ClaudeCode {
    let login = match (&config.anthropic_key, &config.claude_code_token) {
        (Some(key), _) => Login::Key(key.clone()),
        (None, Some(token)) => Login::Token(token.clone()),
        (None, None) => Login::Own(config.home.clone()),
    };
    ClaudeCode::new(ClaudeCodeOptions {
        program: config.claude_code.clone(),
        model: config.claude_code_model.clone(),
        login,
        base_url: config.anthropic_base_url.clone(),
        dir: config.claude_code_dir(),
        max_tokens: MAX_TOKENS,
        turn_timeout: TURN_TIMEOUT,
        most_usd: config.daily_budget_usd,
    })
}
