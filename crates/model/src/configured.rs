//! Creates a model from its name and the settings: the one place that knows every provider.

use std::{sync::Arc, time::Duration};

use reveille_config::{Config, Provider};

use super::{
    Model,
    anthropic::{Anthropic, AnthropicOptions, AwsKeys, BedrockLogin, ClaudeRoute, Effort},
    claude_code::{ClaudeCode, ClaudeCodeOptions, Login},
    offline::Offline,
    openai::{OpenAi, OpenAiOptions},
};

/// Maximum tokens of an answer, thinking included.
const MAX_TOKENS: u64 = 16_000;
/// Longest silence of a cloud model's server.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest duration of one turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest silence of an OpenAI-compatible server: reading a long prompt takes minutes on an ordinary computer.
const LOCAL_IDLE_TIMEOUT: Duration = Duration::from_secs(480);

/// Creates the model of this name, or the offline one if a needed key is missing. Connects to nothing yet.
///
/// # Errors
/// A message naming the unusable setting.
pub fn create_model(name: &str, config: &Config) -> Result<Box<dyn Model>, String> {
    let route = match Provider::from_model(name) {
        Provider::Offline => None,
        Provider::ClaudeCode => return Ok(Box::new(claude_code(config))),
        Provider::OpenAi if !config.can_use(name) => None,
        Provider::OpenAi => return create_openai(name, config).map(|model| Box::new(model) as Box<dyn Model>),
        Provider::Anthropic => config.anthropic_key.clone().map(|api_key| {
            let base_url = config.anthropic_base_url.clone();
            ClaudeRoute::Api { base_url, api_key }
        }),
        Provider::Bedrock => build_bedrock_route(config),
        Provider::Vertex => build_vertex_route(config),
    };
    let Some(route) = route else { return Ok(Box::new(Offline::new(config.timezone))) };
    let options = AnthropicOptions {
        route,
        model: name.to_owned(),
        max_tokens: MAX_TOKENS,
        idle_timeout: IDLE_TIMEOUT,
        total_timeout: TURN_TIMEOUT,
        // One effort for the whole conversation: a change midway would invalidate the prompt cache.
        effort: is_simple(name, config).then_some(Effort::Low),
    };
    Anthropic::new(options).map(|model| Box::new(model) as Box<dyn Model>).map_err(|error| error.to_string())
}

/// The route to Amazon Bedrock, authenticated by a bearer token or else by signed requests. `None` if a needed setting is missing.
fn build_bedrock_route(config: &Config) -> Option<ClaudeRoute> {
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

/// The route to Google Cloud. `None` if a needed setting is missing.
fn build_vertex_route(config: &Config) -> Option<ClaudeRoute> {
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

/// Creates a model of the OpenAI-compatible server, or names the unusable setting.
fn create_openai(name: &str, config: &Config) -> Result<OpenAi, String> {
    OpenAi::new(OpenAiOptions {
        base_url: config.openai_base_url.clone(),
        api_key: config.openai_key.clone(),
        model: name.to_owned(),
        usd_per_million: config.openai_price,
        idle_timeout: LOCAL_IDLE_TIMEOUT,
        total_timeout: TURN_TIMEOUT,
    })
}

/// True if the model is used for simple requests only: it starts each cycle, but finishes only quick ones.
fn is_simple(name: &str, config: &Config) -> bool {
    config.model_simple.as_deref() == Some(name) && !config.list_usable_models().contains(&name)
}

/// Creates the model that runs the Claude Code command. It logs in by key, else by token, else with the command's own login.
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
