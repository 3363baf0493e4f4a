//! Which models a server has, and how much they can take: requests that cost nothing.

use serde_json::Value;

use super::OpenAi;
use crate::ModelError;

/// Names by which servers tell a model's window.
const WINDOWS: [&str; 5] = ["n_ctx", "max_model_len", "context_length", "max_context_length", "context_window"];

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// Its name there.
    pub id: String,
    /// Tokens that it can take, where the server tells it.
    pub window: Option<u64>,
}

impl OpenAi {
    /// The models that the server has.
    ///
    /// # Errors
    /// As a turn's: a refused key, a server that can't be reached, one that has no such list.
    pub async fn served(&self) -> Result<Vec<ServedModel>, ModelError> {
        Ok(served(&self.server.get("models").await?))
    }

    /// The window of our model at a server on this machine; none: it isn't told.
    pub(super) async fn window_here(&self) -> Option<u64> {
        // Some servers end a connection with each answer, while the client takes it for open: the second request has a new one.
        let listed = match self.served().await {
            Ok(listed) => listed,
            Err(_) => self.served().await.unwrap_or_default(),
        };
        // llama.cpp has one model, by whatever name it is asked for.
        let ours = listed.iter().find(|model| model.id == self.model).or(listed.first().filter(|_| listed.len() == 1));
        if let Some(window) = ours.and_then(|model| model.window) {
            return Some(window);
        }
        // Ollama tells it of what it has loaded.
        let loaded = self.server.get("/api/ps").await.ok()?;
        let loaded = loaded.get("models")?.as_array()?;
        let ours = loaded
            .iter()
            .find(|model| model.get("name").and_then(Value::as_str).is_some_and(|name| is_same(name, &self.model)))?;
        window(ours)
    }
}

/// Ollama's `latest` needn't be said.
fn is_same(name: &str, wanted: &str) -> bool {
    name == wanted || name.strip_suffix(":latest") == Some(wanted)
}

fn served(list: &Value) -> Vec<ServedModel> {
    let models = list.get("data").and_then(Value::as_array).into_iter().flatten();
    let model = |model: &Value| {
        let id = model.get("id")?.as_str()?.to_owned();
        Some(ServedModel { id, window: window(model) })
    };
    models.filter_map(model).collect()
}

fn window(model: &Value) -> Option<u64> {
    let told = |of: &Value| WINDOWS.iter().find_map(|name| of.get(*name)?.as_u64()).filter(|tokens| *tokens > 0);
    told(model).or_else(|| model.get("meta").and_then(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_server_tells_of_its_models_in_its_own_words() {
        let list = json!({"object": "list", "data": [
            {"id": "smollm2", "meta": {"n_ctx": 4096, "n_ctx_train": 8192}},
            {"id": "vllm", "max_model_len": 32768},
            {"id": "openrouter", "context_length": 200_000},
            {"id": "ollama", "owned_by": "library"},
            {"no": "id"},
        ]});
        let told: Vec<(String, Option<u64>)> =
            served(&list).into_iter().map(|model| (model.id, model.window)).collect();
        let wanted = [("smollm2", Some(4096)), ("vllm", Some(32768)), ("openrouter", Some(200_000)), ("ollama", None)];
        assert_eq!(told, wanted.map(|(id, window)| (id.to_owned(), window)));
        assert_eq!(served(&json!([])), []);
        assert!(is_same("llama3.2:latest", "llama3.2") && !is_same("llama3.2:3b", "llama3.2"));
    }
}
