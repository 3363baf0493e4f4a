//! Embeds questions for a search, which can't wait for long.

use std::{sync::Arc, time::Duration};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_store::{SpendCap, database};

use super::{EmbedContext, EmbedError, TextRole, create_embedder, embed_texts};
use crate::{Index, QueryVector};

/// The maximum wait of a search. Starting the encoder takes a tenth of a second.
const BOUND: Duration = Duration::from_secs(5);

/// Access to the configured embedder, if any.
#[derive(Clone, Default)]
pub struct Meaning(Option<Arc<Settings>>);

struct Settings {
    config: Config,
    redactor: Redactor,
    caps: Vec<SpendCap>,
    /// Whether remote embedders are excluded.
    stays_here: bool,
}

/// The embeddings of questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Meant {
    model: String,
    vectors: Vec<Vec<f32>>,
}

impl Meant {
    /// Returns the id of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the vectors of all questions.
    pub fn vectors(&self) -> &[Vec<f32>] {
        &self.vectors
    }

    /// Returns the vector of a question by its index.
    pub fn vector(&self, nth: usize) -> Option<QueryVector<'_>> {
        self.vectors.get(nth).map(|values| QueryVector { model: &self.model, values })
    }
}

impl Meaning {
    /// Creates the access without opening anything. `caps` limits the spending.
    pub fn new(config: &Config, redactor: &Redactor, caps: Vec<SpendCap>) -> Self {
        let settings = || Settings { config: config.clone(), redactor: redactor.clone(), caps, stays_here: false };
        Self(config.embed_model.is_some().then(|| Arc::new(settings())))
    }

    /// Restricts to embedders on this machine, for a local chat.
    #[must_use]
    pub fn kept_here(self) -> Self {
        let kept = |settings: Arc<Settings>| {
            let Settings { config, redactor, caps, .. } = settings.as_ref();
            let (config, redactor, caps) = (config.clone(), redactor.clone(), caps.clone());
            Arc::new(Settings { config, redactor, caps, stays_here: true })
        };
        Self(self.0.map(kept))
    }

    /// Embeds these questions. `None` without an embedder, or before it has embedded any text to compare with.
    ///
    /// # Errors
    /// See [`EmbedError`]. The search continues with keywords.
    pub fn embed_questions(&self, questions: &[String], index: &Index) -> Result<Option<Meant>, EmbedError> {
        let Some(settings) = &self.0 else { return Ok(None) };
        let Some(embedder) = create_embedder(&settings.config)? else { return Ok(None) };
        if settings.stays_here && embedder.destination().is_some() {
            return Ok(None);
        }
        let dims = index.count_dimensions(embedder.id()).map_err(|error| EmbedError::later(error.to_string()))?;
        if dims.is_none() {
            return Ok(None);
        }
        drop(embedder);
        // Tools run on the wake's only thread, inside its own runtime.
        let asked = std::thread::scope(|scope| scope.spawn(|| settings.embed(questions, dims)).join());
        asked.unwrap_or_else(|_| Err(EmbedError::later("embedding was interrupted"))).map(Some)
    }
}

impl Settings {
    fn embed(&self, questions: &[String], dims: Option<usize>) -> Result<Meant, EmbedError> {
        let missing = || EmbedError::SetUp("EMBED_MODEL isn't set".to_owned());
        let embedder = create_embedder(&self.config)?.ok_or_else(missing)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| EmbedError::later(error.to_string()))?;
        // A local embedder is free and needs no database.
        let mut store = match embedder.destination() {
            Some(_) => Some(database::open(&self.config)?),
            None => None,
        };
        let now = self.config.clock().now();
        let mut desk = EmbedContext { store: store.as_mut(), redactor: &self.redactor, caps: &self.caps, now };
        let asking = embed_texts(embedder.as_ref(), &mut desk, questions, (TextRole::Query, dims));
        let vectors = runtime
            .block_on(async { tokio::time::timeout(BOUND, asking).await })
            .map_err(|_| EmbedError::cut_off(format!("embedding took longer than {} s", BOUND.as_secs())))??;
        Ok(Meant { model: embedder.id().to_owned(), vectors })
    }
}
