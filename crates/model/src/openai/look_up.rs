//! Queries a server for its models and their windows. These requests are free.

use serde_json::Value;

use super::OpenAi;
use crate::ModelError;

/// Fields in which servers report a model's window.
const WINDOWS: [&str; 5] = ["n_ctx", "max_model_len", "context_length", "max_context_length", "context_window"];

/// A model available at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedModel {
    /// The name at the server.
    pub id: String,
    /// The window in tokens, if the server reports one.
    pub window: Option<u64>,
}

impl OpenAi {
    /// Lists the server's models.
    ///
    /// # Errors
    /// Same as for a turn: a refused key, an unreachable server, or a server without such a list.
    pub async fn list_models(&self) -> Result<Vec<ServedModel>, ModelError> {
        Ok(parse_models(&self.server.get("models").await?))
    }

    /// Asks a server on this machine for the window of our model. `None` if the server doesn't report one.
    pub(super) async fn find_local_window(&self) -> Option<u64> {
        // Some servers close the connection after each answer while the client believes it open. A second request opens a new one.
        let listed = match self.list_models().await {
            Ok(listed) => listed,
            Err(_) => self.list_models().await.unwrap_or_default(),
        };
        // llama.cpp serves a single model under any requested name.
        let ours = listed.iter().find(|model| model.id == self.model).or(listed.first().filter(|_| listed.len() == 1));
        if let Some(window) = ours.and_then(|model| model.window) {
            return Some(window);
        }
        // Ollama reports the window of loaded models only.
        let loaded = self.server.get("/api/ps").await.ok()?;
        let loaded = loaded.get("models")?.as_array()?;
        let ours = loaded
            .iter()
            .find(|model| model.get("name").and_then(Value::as_str).is_some_and(|name| is_same(name, &self.model)))?;
        find_window(ours)
    }
}

/// Compares names as Ollama does: the tag `latest` is optional.
fn is_same(name: &str, wanted: &str) -> bool {
    name == wanted || name.strip_suffix(":latest") == Some(wanted)
}

fn parse_models(list: &Value) -> Vec<ServedModel> {
    let models = list.get("data").and_then(Value::as_array).into_iter().flatten();
    let model = |model: &Value| {
        let id = model.get("id")?.as_str()?.to_owned();
        Some(ServedModel { id, window: find_window(model) })
    };
    models.filter_map(model).collect()
}

fn find_window(model: &Value) -> Option<u64> {
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
            parse_models(&list).into_iter().map(|model| (model.id, model.window)).collect();
        let wanted = [("smollm2", Some(4096)), ("vllm", Some(32768)), ("openrouter", Some(200_000)), ("ollama", None)];
        assert_eq!(told, wanted.map(|(id, window)| (id.to_owned(), window)));
        assert_eq!(parse_models(&json!([])), []);
        assert!(is_same("llama3.2:latest", "llama3.2") && !is_same("llama3.2:3b", "llama3.2"));
    }
}
