//! Texts as vectors, for the memory's search: texts that mean the same lie close to each other.
//!
//! Three make them, by configuration alone and never one in place of another: a sentence encoder on this machine (`local`, which
//! starts `reveille-embedder`, of the crate `encoder`), an OpenAI-compatible server (`openai`), and Gemini
//! (`gemini`). [`embed`] is the one way to any of them: it redacts, asks whether texts may leave, sets money aside, and checks what comes.
//!
//! Without one, or while it fails, keywords serve.

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

pub use backfill::{BackfillError, Backfilled, backfill, is_of_texts};
pub use error::EmbedError;
pub use meaning::{Meaning, Meant};
pub use paid::{EmbedDesk, embed};

/// Texts that are embedded at once at most.
pub const MAX_BATCH: usize = 64;
/// What counts of a text, in bytes: more than any of the models reads, and no more than all their servers take.
pub const MAX_TEXT_BYTES: usize = 8_000;
/// Numbers that a vector has at most.
pub const MAX_DIMS: usize = 4_096;

/// What a text is to be: some models tell the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// What is looked for.
    Query,
    /// What is found.
    Kept,
}

/// What came of some texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// A vector for each, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens that are paid for, where whoever embedded says so.
    pub tokens: Option<u64>,
}

/// A future that stays on its thread: the wake runs on one.
pub type EmbedFuture<'a> = Pin<Box<dyn Future<Output = Result<Embedded, EmbedError>> + 'a>>;

/// Something that makes vectors of texts.
pub trait Embedder {
    /// Under which name its vectors are kept: another name's vectors can't be compared with them.
    fn id(&self) -> &str;

    /// Where texts go, if they leave this machine, for people; none: they stay.
    fn leaves_for(&self) -> Option<&str>;

    /// What a million tokens cost, in US dollars.
    fn usd_per_million(&self) -> f64;

    /// Makes one vector of each text, at most [`MAX_BATCH`] of them. No retries, no checks: see [`embed`].
    fn embed<'a>(&'a self, texts: &'a [String], role: TextRole) -> EmbedFuture<'a>;
}

/// The embedder that the settings name; none: keywords alone.
///
/// # Errors
/// [`EmbedError::SetUp`] where the settings can't work.
pub fn of(config: &Config) -> Result<Option<Box<dyn Embedder>>, EmbedError> {
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
