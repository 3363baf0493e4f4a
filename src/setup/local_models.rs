//! Finds model servers on this machine at their usual ports. They are offered as choices, never used unasked: anybody on this machine may
//! listen there, and would read everything that the model is told.

use std::time::Duration;

use reveille_config::{GivenSettings, is_forwarded_to_cloud};
use reveille_model::openai::{OpenAi, OpenAiOptions, PREFIX};

/// The usual ports, and the server at each.
const PORTS: [(u16, &str); 2] = [(11434, "Ollama"), (8080, "llama.cpp")];
/// Time limit for a server's answer.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Maximum models shown of a server.
const MAX_MODELS: usize = 8;
/// Maximum bytes of a name shown.
const MAX_NAME_BYTES: usize = 100;

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// The usual server at this port.
    kind: &'static str,
    url: String,
    /// Names of the server's models.
    models: Vec<String>,
}

impl FoundServer {
    /// Asks the usual ports. Returns nothing if a key for such servers is set, since the unknown listener would get the key.
    pub async fn find_all(said: &GivenSettings) -> Vec<Self> {
        let has_key = ["OPENAI_API_KEY", "OPENAI_API_KEY_FILE"].iter().any(|name| said.get(name).is_some());
        let mut found = Vec::new();
        for (port, kind) in PORTS.into_iter().filter(|_| !has_key) {
            let url = format!("http://127.0.0.1:{port}/v1");
            let models = list_models(&url).await;
            if !models.is_empty() {
                found.push(Self { kind, url, models });
            }
        }
        found
    }

    /// Returns true for an address on this machine with a usual port.
    pub(super) fn is_usual_address(url: &str) -> bool {
        PORTS.iter().any(|(port, _)| url == format!("http://127.0.0.1:{port}/v1"))
    }

    /// Lists the server's models as choices: an answer and its label for each.
    pub(super) fn options(&self) -> impl Iterator<Item = (String, String)> {
        self.models.iter().map(|name| {
            let label = format!("{name}, from a server on this machine (probably {} at {})", self.kind, self.url);
            (format!("{PREFIX}{name}@{}", self.url), label)
        })
    }

    /// Splits such an answer into `MODEL` and `OPENAI_BASE_URL`.
    pub(super) fn split_answer(answer: &str) -> (&str, &str) {
        answer.rsplit_once('@').unwrap_or((answer, ""))
    }
}

/// Lists the names of the server's models, without those passed on to a cloud. Empty without a compatible server.
async fn list_models(url: &str) -> Vec<String> {
    let options = OpenAiOptions {
        base_url: url.to_owned(),
        api_key: None,
        model: "any".to_owned(),
        usd_per_million: None,
        idle_timeout: TIME_LIMIT,
        total_timeout: TIME_LIMIT,
    };
    let Ok(server) = OpenAi::new(options) else { return Vec::new() };
    let served = server.list_models().await.unwrap_or_default();
    // Names must be plain, since they become a setting and appear on the terminal.
    let is_plain = |name: &String| {
        (1..=MAX_NAME_BYTES).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b))
    };
    served
        .into_iter()
        .map(|model| model.id)
        .filter(is_plain)
        .filter(|name| !is_forwarded_to_cloud(name))
        .take(MAX_MODELS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_a_model_and_its_server() {
        let server = FoundServer {
            kind: "Ollama",
            url: "http://127.0.0.1:11434/v1".to_owned(),
            models: vec!["qwen3:8b".to_owned()],
        };
        let (answer, label) = server.options().next().unwrap();
        assert!(
            label.starts_with("qwen3:8b, from a server on this machine (probably Ollama at http://127.0.0.1:11434/v1"),
            "{label}"
        );
        assert_eq!(FoundServer::split_answer(&answer), ("openai:qwen3:8b", "http://127.0.0.1:11434/v1"));
    }
}
