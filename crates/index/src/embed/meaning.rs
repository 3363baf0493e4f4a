//! What a question means, for whoever asks in the middle of something and can't wait for long: a search.

use std::{sync::Arc, time::Duration};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_store::{SpendCap, database};

use super::{EmbedDesk, EmbedError, TextRole, embed, of};
use crate::{Index, QueryVector};

/// How long a search waits for it. Starting the encoder takes a tenth of a second.
const BOUND: Duration = Duration::from_secs(5);

/// The way to the embedder that the settings name, if they name one.
#[derive(Clone, Default)]
pub struct Meaning(Option<Arc<Settings>>);

struct Settings {
    config: Config,
    redactor: Redactor,
    caps: Vec<SpendCap>,
    /// Whether an embedder elsewhere isn't asked.
    stays_here: bool,
}

/// What questions mean, by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Meant {
    model: String,
    vectors: Vec<Vec<f32>>,
}

impl Meant {
    /// Whose vectors they are.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The vectors of all questions.
    pub fn vectors(&self) -> &[Vec<f32>] {
        &self.vectors
    }

    /// A question's vector, by its place.
    pub fn of(&self, nth: usize) -> Option<QueryVector<'_>> {
        self.vectors.get(nth).map(|values| QueryVector { model: &self.model, values })
    }
}

impl Meaning {
    /// Nothing is opened yet. `caps`: what may be spent.
    pub fn new(config: &Config, redactor: &Redactor, caps: Vec<SpendCap>) -> Self {
        let settings = || Settings { config: config.clone(), redactor: redactor.clone(), caps, stays_here: false };
        Self(config.embed_model.is_some().then(|| Arc::new(settings())))
    }

    /// The same for a chat that is kept on this machine: an embedder elsewhere isn't asked.
    #[must_use]
    pub fn kept_here(self) -> Self {
        let kept = |settings: Arc<Settings>| {
            let Settings { config, redactor, caps, .. } = settings.as_ref();
            let (config, redactor, caps) = (config.clone(), redactor.clone(), caps.clone());
            Arc::new(Settings { config, redactor, caps, stays_here: true })
        };
        Self(self.0.map(kept))
    }

    /// What these questions mean; none where no embedder is set up, or where it has embedded nothing yet that could be compared with
    /// them: then nobody is asked.
    ///
    /// # Errors
    /// By what should be done. The search goes on by keywords.
    pub fn of(&self, questions: &[String], index: &Index) -> Result<Option<Meant>, EmbedError> {
        let Some(settings) = &self.0 else { return Ok(None) };
        let Some(embedder) = of(&settings.config)? else { return Ok(None) };
        if settings.stays_here && embedder.leaves_for().is_some() {
            return Ok(None);
        }
        let dims = index.dims(embedder.id()).map_err(|error| EmbedError::later(error.to_string()))?;
        if dims.is_none() {
            return Ok(None);
        }
        drop(embedder);
        // Tools run on the wake's one thread, which is within its own runtime.
        let asked = std::thread::scope(|scope| scope.spawn(|| settings.ask(questions, dims)).join());
        asked.unwrap_or_else(|_| Err(EmbedError::later("embedding broke off"))).map(Some)
    }
}

impl Settings {
    fn ask(&self, questions: &[String], dims: Option<usize>) -> Result<Meant, EmbedError> {
        let missing = || EmbedError::SetUp("EMBED_MODEL isn't set".to_owned());
        let embedder = of(&self.config)?.ok_or_else(missing)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| EmbedError::later(error.to_string()))?;
        // What stays here costs nothing, and is asked without the database.
        let mut store = match embedder.leaves_for() {
            Some(_) => Some(database::open(&self.config)?),
            None => None,
        };
        let now = self.config.clock().now();
        let mut desk = EmbedDesk { store: store.as_mut(), redactor: &self.redactor, caps: &self.caps, now };
        let asking = embed(embedder.as_ref(), &mut desk, questions, (TextRole::Query, dims));
        let vectors = runtime
            .block_on(async { tokio::time::timeout(BOUND, asking).await })
            .map_err(|_| EmbedError::cut_off(format!("embedding took longer than {} s", BOUND.as_secs())))??;
        Ok(Meant { model: embedder.id().to_owned(), vectors })
    }
}
