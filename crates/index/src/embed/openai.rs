//! An OpenAI-compatible embedding server: OpenAI itself, or one of many with the same API.

use reqwest::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

use reveille_base::redact::Secret;

use super::{EmbedError, EmbedFuture, Embedded, Embedder, TextRole, http::EmbedServer, price};

/// A model on such a server.
pub(super) struct OpenAiEmbedder {
    server: EmbedServer,
    model: String,
    id: String,
    destination: Option<String>,
}

#[derive(Serialize)]
struct OpenAiRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    total_tokens: Option<u64>,
}

impl OpenAiEmbedder {
    /// Creates the embedder. The key, if any, is sent only to this server.
    pub(super) fn new(base_url: &str, key: Option<&Secret>, model: &str) -> Result<Self, EmbedError> {
        let key = key.map(|key| (AUTHORIZATION, Secret::new(format!("Bearer {}", key.expose()))));
        let server = EmbedServer::new(&format!("{base_url}/embeddings"), key)?;
        let host = server.host();
        let destination = (!server.is_here()).then(|| host.clone());
        Ok(Self { server, model: model.to_owned(), id: format!("openai:{model}@{host}"), destination })
    }

    async fn send_request(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        let request = OpenAiRequest { model: &self.model, input: texts, encoding_format: "float" };
        let OpenAiAnswer { mut data, usage } = self.server.send_request(&request).await?;
        data.sort_by_key(|vector| vector.index);
        if data.iter().zip(0..).any(|(vector, nth)| vector.index != nth) {
            let why = "their numbers don't match those of the texts".to_owned();
            return Err(EmbedError::Unusable { embedder: self.id.clone(), why });
        }
        let vectors = data.into_iter().map(|vector| vector.embedding).collect();
        Ok(Embedded { vectors, tokens: usage.and_then(|usage| usage.total_tokens) })
    }
}

impl Embedder for OpenAiEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn destination(&self) -> Option<&str> {
        self.destination.as_deref()
    }

    fn usd_per_million(&self) -> f64 {
        if self.destination.is_none() {
            0.0
        } else {
            price::find_price(&self.model).unwrap_or(price::UNKNOWN_USD_PER_MILLION)
        }
    }

    fn embed<'a>(&'a self, texts: &'a [String], _role: TextRole) -> EmbedFuture<'a> {
        Box::pin(self.send_request(texts))
    }
}
