//! Services with an OpenAI-compatible API for which a person may have a key. The table only helps `wake init`; any other address works too.

use reveille_config::{Config, DEFAULT_OPENAI_BASE_URL, Provider};
use reveille_model::openai;

/// A service of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// The service's own name.
    pub name: &'static str,
    /// The value of `OPENAI_BASE_URL`.
    pub url: &'static str,
    /// The proposed model. `wake init` asks the server whether it is available.
    pub usual_model: &'static str,
    /// `true` if the service lists models without a key. The list then proves nothing about the key.
    pub(super) lists_without_key: bool,
}

/// Addresses as each service documents them.
const KNOWN: [KnownServer; 7] = [
    KnownServer::new("OpenAI", DEFAULT_OPENAI_BASE_URL, "gpt-5"),
    KnownServer::new("Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-flash-latest"),
    KnownServer::new("Mistral", "https://api.mistral.ai/v1", "mistral-large-latest"),
    KnownServer::new("DeepSeek", "https://api.deepseek.com/v1", "deepseek-chat"),
    KnownServer::new("Groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
    KnownServer::new("xAI", "https://api.x.ai/v1", "grok-4"),
    KnownServer {
        lists_without_key: true,
        ..KnownServer::new("OpenRouter", "https://openrouter.ai/api/v1", "openrouter/auto")
    },
];
/// The placeholder for the address of a person's own server.
pub(super) const EXAMPLE_URL: &str = "https://models.example.com/v1";

impl KnownServer {
    const fn new(name: &'static str, url: &'static str, usual_model: &'static str) -> Self {
        Self { name, url, usual_model, lists_without_key: false }
    }

    /// Lists every service in order of presentation.
    pub fn all() -> &'static [Self] {
        &KNOWN
    }

    /// Finds the service at an address.
    pub fn find_by_url(url: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|server| server.url == url.trim_end_matches('/'))
    }
}

/// True if a configured model runs elsewhere. A model on this machine needs neither key nor price.
pub(super) fn is_elsewhere(config: &Config) -> bool {
    config.requested_models().any(|name| Provider::from_model(name) == Provider::OpenAi && !config.is_local(name))
}

/// Returns true while the person's own server has only the placeholder for an address.
pub fn is_example_server(config: &Config) -> bool {
    config.openai_base_url == EXAMPLE_URL
}

/// Returns the only configured model without its prefix, if it belongs to an OpenAI-compatible server.
pub(super) fn only_model(config: &Config) -> Option<&str> {
    config.model.strip_prefix(openai::PREFIX).filter(|name| !name.contains(','))
}
