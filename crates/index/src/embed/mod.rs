//! Embeddings for the memory's search: texts with similar meaning get nearby vectors.
//!
//! The configuration selects one of three embedders, which never fall back to each other: a sentence encoder on this machine (`local`,
//! which starts `reveille-embedder` of the crate `encoder`), an OpenAI-compatible server (`openai`), or Gemini (`gemini`). All calls go
//! through [`embed_texts`], which redacts, checks that texts may be sent, reserves money, and checks the result.
//!
//! If there is no embedder or it fails, the search uses keywords.

mod backfill;
mod error;
mod gemini;
mod http;
mod local;
mod meaning;
mod openai;
mod paid;
pub mod price;
mod vector;

use std::{future::Future, pin::Pin};

use reveille_config::{Config, EmbedModel};
pub use reveille_encoder::IS_BUILT;

pub use backfill::{BackfillError, Backfilled, backfill_vectors, is_of_texts};
pub use error::EmbedError;
pub use meaning::{Meaning, Meant};
pub use paid::{EmbedContext, embed_texts};

/// The maximum number of texts per batch.
pub const MAX_BATCH: usize = 64;
/// The maximum text length, in bytes: more than any model reads, and accepted by all servers.
pub const MAX_TEXT_BYTES: usize = 8_000;
/// The maximum number of dimensions.
pub const MAX_DIMS: usize = 4_096;

/// The role of a text; some models distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// A search query.
    Query,
    /// A stored text.
    Kept,
}

/// The result for a batch of texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// One vector per text, in order.
    pub vectors: Vec<Vec<f32>>,
    /// The charged tokens, if the embedder reports them.
    pub tokens: Option<u64>,
}

/// A future that stays on its thread, since a wake runs on a single thread.
pub type EmbedFuture<'a> = Pin<Box<dyn Future<Output = Result<Embedded, EmbedError>> + 'a>>;

/// A source of embeddings.
pub trait Embedder {
    /// Returns the name under which vectors are stored. Vectors of different names can't be compared.
    fn id(&self) -> &str;

    /// Returns the destination of texts that leave this machine, for people. `None` if they stay.
    fn destination(&self) -> Option<&str>;

    /// Returns the price of a million tokens, in US dollars.
    fn usd_per_million(&self) -> f64;

    /// Embeds at most [`MAX_BATCH`] texts, without retries or checks: use [`embed_texts`].
    fn embed<'a>(&'a self, texts: &'a [String], role: TextRole) -> EmbedFuture<'a>;
}

/// Creates the configured embedder. `None` for keyword search alone.
///
/// # Errors
/// [`EmbedError::SetUp`] for settings that can't work.
pub fn create_embedder(config: &Config) -> Result<Option<Box<dyn Embedder>>, EmbedError> {
    Ok(match &config.embed_model {
        None => None,
        Some(EmbedModel::Folder(folder)) => Some(Box::new(local::LocalEmbedder::new(folder)?)),
        Some(EmbedModel::OpenAi(model)) => {
            let key = config.openai_key.as_ref();
            Some(Box::new(openai::OpenAiEmbedder::new(&config.openai_base_url, key, model)?))
        }
        Some(EmbedModel::Gemini(model)) => {
            let missing = || EmbedError::SetUp("GEMINI_API_KEY isn't set".to_owned());
            let key = config.gemini_key.as_ref().ok_or_else(missing)?;
            Some(Box::new(gemini::GeminiEmbedder::new(&config.gemini_base_url, key, model)?))
        }
    })
}
