//! From a model's name and the settings to the model: the one place that knows every provider.

use std::time::Duration;

use super::{
    Model,
    anthropic::{Anthropic, AnthropicOptions, Effort},
    claude_code::{ClaudeCode, ClaudeCodeOptions, Login},
    offline::Offline,
};
use crate::config::{Config, Provider};

/// The longest answer that is asked for, in tokens, thinking included.
const MAX_TOKENS: u64 = 16_000;
/// How long the model's server may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one turn may take.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);

/// The model of this name; the offline one in place of one whose key isn't set. Nothing is connected yet.
///
/// # Errors
/// Which setting can't work, in words.
pub fn configured(name: &str, config: &Config) -> Result<Box<dyn Model>, String> {
    match (Provider::of(name), &config.anthropic_key) {
        (Provider::Offline, _) | (Provider::Anthropic, None) => Ok(Box::new(Offline::new(config.timezone))),
        (Provider::ClaudeCode, _) => Ok(Box::new(claude_code(config))),
        (Provider::Anthropic, Some(key)) => {
            let options = AnthropicOptions {
                base_url: config.anthropic_base_url.clone(),
                api_key: key.clone(),
                model: name.to_owned(),
                max_tokens: MAX_TOKENS,
                idle_timeout: IDLE_TIMEOUT,
                total_timeout: TURN_TIMEOUT,
                // One for the whole conversation: another effort in the middle would have its prompt written anew.
                effort: is_simple(name, config).then_some(Effort::Low),
            };
            Anthropic::new(options).map(|model| Box::new(model) as Box<dyn Model>).map_err(|error| error.to_string())
        }
    }
}

/// Whether a model only begins what is asked, and keeps what is quick.
fn is_simple(name: &str, config: &Config) -> bool {
    config.model_simple.as_deref() == Some(name) && !config.chain().contains(&name)
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
