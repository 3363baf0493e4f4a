//! Servers of models that run on this machine, at the ports where such servers usually listen. They are shown and asked for, never taken:
//! anybody on this machine may listen there, and would read all that the model is told.

use std::time::Duration;

use reveille_config::{SaidSettings, is_passed_on};
use reveille_model::openai::{OpenAi, OpenAiOptions, PREFIX};

/// Where they usually listen, and what does.
const PORTS: [(u16, &str); 2] = [(11434, "Ollama"), (8080, "llama.cpp")];
/// How long each is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Models of one server that are shown.
const MAX_MODELS: usize = 8;
/// The longest name that is shown, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// A server that has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// What usually listens there.
    kind: &'static str,
    url: String,
    /// Names of its models.
    models: Vec<String>,
}

impl FoundServer {
    /// Asks the usual ports. Nothing is offered where there is a key for such a server: whoever listens there would get it.
    pub async fn all(said: &SaidSettings) -> Vec<Self> {
        let has_key = ["OPENAI_API_KEY", "OPENAI_API_KEY_FILE"].iter().any(|name| said.get(name).is_some());
        let mut found = Vec::new();
        for (port, kind) in PORTS.into_iter().filter(|_| !has_key) {
            let url = format!("http://127.0.0.1:{port}/v1");
            let models = models_at(&url).await;
            if !models.is_empty() {
                found.push(Self { kind, url, models });
            }
        }
        found
    }

    /// Whether an address is one of those that are looked at.
    pub(super) fn is_usual(url: &str) -> bool {
        PORTS.iter().any(|(port, _)| url == format!("http://127.0.0.1:{port}/v1"))
    }

    /// The choices that it gives: an answer, and what is shown of it.
    pub(super) fn options(&self) -> impl Iterator<Item = (String, String)> {
        self.models.iter().map(|name| {
            let label = format!("{name}, which a server on this machine has ({} at {}, it seems)", self.kind, self.url);
            (format!("{PREFIX}{name}@{}", self.url), label)
        })
    }

    /// `MODEL` and `OPENAI_BASE_URL` of such an answer.
    pub(super) fn chosen(answer: &str) -> (&str, &str) {
        answer.rsplit_once('@').unwrap_or((answer, ""))
    }
}

/// The names of the models that whoever listens there has, without those that are passed on to a cloud; none: nobody does, or they speak otherwise.
async fn models_at(url: &str) -> Vec<String> {
    let options = OpenAiOptions {
        base_url: url.to_owned(),
        api_key: None,
        model: "any".to_owned(),
        usd_per_million: None,
        idle_timeout: PATIENCE,
        total_timeout: PATIENCE,
    };
    let Ok(server) = OpenAi::new(options) else { return Vec::new() };
    let served = server.served().await.unwrap_or_default();
    // They become a setting, and stand on the terminal.
    let is_plain = |name: &String| {
        (1..=MAX_NAME_BYTES).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b))
    };
    served
        .into_iter()
        .map(|model| model.id)
        .filter(is_plain)
        .filter(|name| !is_passed_on(name))
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
            label.starts_with("qwen3:8b, which a server on this machine has (Ollama at http://127.0.0.1:11434/v1"),
            "{label}"
        );
        assert_eq!(FoundServer::chosen(&answer), ("openai:qwen3:8b", "http://127.0.0.1:11434/v1"));
    }
}
