//! Google's Gemini API for embeddings.

use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};

use reveille_base::redact::Secret;

use super::{EmbedError, EmbedFuture, Embedded, Embedder, TextRole, http::EmbedServer, price};

/// A Gemini embedding model.
pub(super) struct GeminiEmbedder {
    server: EmbedServer,
    model: String,
    id: String,
    destination: Option<String>,
}

#[derive(Serialize)]
struct GeminiBatch<'a> {
    requests: Vec<GeminiRequest<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiRequest<'a> {
    model: String,
    content: GeminiContent<'a>,
    task_type: &'static str,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    parts: [GeminiPart<'a>; 1],
}

#[derive(Serialize)]
struct GeminiPart<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiAnswer {
    embeddings: Vec<GeminiVector>,
    usage_metadata: Option<GeminiUsage>,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Vec<f32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
}

impl GeminiEmbedder {
    pub(super) fn new(base_url: &str, key: &Secret, model: &str) -> Result<Self, EmbedError> {
        let url = format!("{base_url}/v1beta/models/{model}:batchEmbedContents");
        let server = EmbedServer::new(&url, Some((HeaderName::from_static("x-goog-api-key"), key.clone())))?;
        let host = server.host();
        let destination = (!server.is_here()).then(|| host.clone());
        Ok(Self { server, model: model.to_owned(), id: format!("gemini:{model}@{host}"), destination })
    }

    async fn send_request(&self, texts: &[String], role: TextRole) -> Result<Embedded, EmbedError> {
        let task_type = match role {
            TextRole::Query => "RETRIEVAL_QUERY",
            TextRole::Kept => "RETRIEVAL_DOCUMENT",
        };
        let request = |text| GeminiRequest {
            model: format!("models/{}", self.model),
            content: GeminiContent { parts: [GeminiPart { text }] },
            task_type,
        };
        let batch = GeminiBatch { requests: texts.iter().map(|text| request(text)).collect() };
        let GeminiAnswer { embeddings, usage_metadata } = self.server.send_request(&batch).await?;
        let vectors = embeddings.into_iter().map(|vector| vector.values).collect();
        Ok(Embedded { vectors, tokens: usage_metadata.and_then(|usage| usage.prompt_token_count) })
    }
}

impl Embedder for GeminiEmbedder {
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

    fn embed<'a>(&'a self, texts: &'a [String], role: TextRole) -> EmbedFuture<'a> {
        Box::pin(self.send_request(texts, role))
    }
}
