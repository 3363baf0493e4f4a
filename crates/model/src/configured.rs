//! From a model's name and the settings to the model: the one place that knows every provider.

use std::{sync::Arc, time::Duration};

use reveille_config::{Config, Provider};

use super::{
    Model,
    anthropic::{Anthropic, AnthropicOptions, AwsKeys, BedrockLogin, ClaudeRoute, Effort},
    claude_code::{ClaudeCode, ClaudeCodeOptions, Login},
    offline::Offline,
    openai::{OpenAi, OpenAiOptions},
};

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
    let route = match Provider::of(name) {
        Provider::Offline => None,
        Provider::ClaudeCode => return Ok(Box::new(claude_code(config))),
        Provider::OpenAi if !config.can_use(name) => None,
        Provider::OpenAi => return openai(name, config).map(|model| Box::new(model) as Box<dyn Model>),
        Provider::Anthropic => config.anthropic_key.clone().map(|api_key| {
            let base_url = config.anthropic_base_url.clone();
            ClaudeRoute::Api { base_url, api_key }
        }),
        Provider::Bedrock => bedrock(config),
        Provider::Vertex => vertex(config),
    };
    let Some(route) = route else { return Ok(Box::new(Offline::new(config.timezone))) };
    let options = AnthropicOptions {
        route,
        model: name.to_owned(),
        max_tokens: MAX_TOKENS,
        idle_timeout: IDLE_TIMEOUT,
        total_timeout: TURN_TIMEOUT,
        // One for the whole conversation: another effort in the middle would have its prompt written anew.
        effort: is_simple(name, config).then_some(Effort::Low),
    };
    Anthropic::new(options).map(|model| Box::new(model) as Box<dyn Model>).map_err(|error| error.to_string())
}

/// The way to Amazon Bedrock, if what it needs is set: by its own key, else by signatures.
fn bedrock(config: &Config) -> Option<ClaudeRoute> {
    let settings = &config.bedrock;
    let signing = settings.access_key_id.clone().zip(settings.secret_access_key.clone());
    let login = settings.bearer_token.clone().map(BedrockLogin::Bearer).or_else(|| {
        let (access_key_id, secret_access_key) = signing?;
        let session_token = settings.session_token.clone();
        Some(BedrockLogin::Keys(AwsKeys { access_key_id, secret_access_key, session_token }))
    })?;
    let (region, base_url) = (settings.region.clone()?, settings.base_url.clone());
    Some(ClaudeRoute::Bedrock { region, base_url, login, clock: Arc::from(config.clock()) })
}

/// The way to Google Cloud, if what it needs is set.
fn vertex(config: &Config) -> Option<ClaudeRoute> {
    let settings = &config.vertex;
    Some(ClaudeRoute::Vertex {
        project: settings.project.clone()?,
        location: settings.location.clone(),
        workspace: settings.workspace.clone(),
        base_url: settings.base_url.clone(),
        login: settings.login.clone()?,
        clock: Arc::from(config.clock()),
    })
}

/// A model of the OpenAI-compatible server that is set; or which setting can't work, in words.
fn openai(name: &str, config: &Config) -> Result<OpenAi, String> {
    OpenAi::new(OpenAiOptions {
        base_url: config.openai_base_url.clone(),
        api_key: config.openai_key.clone(),
        model: name.to_owned(),
        usd_per_million: config.openai_price,
        idle_timeout: LOCAL_IDLE_TIMEOUT,
        total_timeout: TURN_TIMEOUT,
    })
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
