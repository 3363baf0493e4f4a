//! Embeds the indexed texts without a vector, in batches. Each batch is stored before the next, so a kill loses at most one batch.

use std::collections::BTreeSet;

use super::{EmbedContext, EmbedError, Embedder, TextRole, embed_texts};
use crate::{ChunkKey, Index, IndexError};

/// The texts per batch: about a second's work for a slow machine.
const BATCH: usize = 16;

/// The progress of a backfill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backfilled {
    /// The number of embedded texts.
    pub embedded: usize,
    /// The number of texts refused by the embedder. They remain searchable by keywords and aren't sent again.
    pub refused: usize,
    /// Whether every text is done.
    pub is_whole: bool,
}

/// The reason a backfill ended early. Finished batches are kept.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// The embedder failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Embeds the texts without a vector of this embedder, newest first. `may_continue` gets the progress before each batch and may stop. Once
/// every text is done, the vectors of other models are deleted.
///
/// # Errors
/// The index's, or the embedder's.
pub async fn backfill_vectors(
    index: &mut Index,
    embedder: &dyn Embedder,
    desk: &mut EmbedContext<'_>,
    may_continue: &mut dyn FnMut(&Backfilled) -> bool,
) -> Result<Backfilled, BackfillError> {
    let mut done = Backfilled::default();
    while may_continue(&done) {
        // Content of local chats must stay on this machine.
        let left_out = match (embedder.destination(), desk.store.as_deref()) {
            (Some(_), Some(store)) => store.chats().local_chats().map_err(EmbedError::from)?,
            _ => BTreeSet::new(),
        };
        let batch = index.list_unembedded_except(embedder.id(), BATCH, &left_out)?;
        if batch.is_empty() {
            if index.stats()?.models.iter().any(|model| model.model != embedder.id()) {
                index.forget_other_models(embedder.id())?;
            }
            done.is_whole = true;
            break;
        }
        match embed_batch(index, embedder, desk, &batch).await {
            Ok(()) => done.embedded += batch.len(),
            // A single text may be at fault: embed the others without it.
            Err(BackfillError::Embed(error)) if is_of_texts(&error) => {
                embed_each(index, embedder, desk, &batch, &mut done).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Embeds texts singly, and records the refused ones.
async fn embed_each(
    index: &mut Index,
    embedder: &dyn Embedder,
    desk: &mut EmbedContext<'_>,
    batch: &[(ChunkKey, String)],
    done: &mut Backfilled,
) -> Result<(), BackfillError> {
    let (mut refused, mut last) = (Vec::new(), None);
    for one in batch {
        match embed_batch(index, embedder, desk, std::slice::from_ref(one)).await {
            Ok(()) => done.embedded += 1,
            Err(BackfillError::Embed(error)) if is_of_texts(&error) => {
                tracing::warn!(%error, "a text isn't embedded");
                refused.push(one.0);
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
        if index.count_dimensions(embedder.id())?.is_some() {
            index.put_refused(embedder.id(), &refused)?;
            done.refused += refused.len();
            refused.clear();
        }
    }
    match last {
        // If nothing was ever embedded, the fault isn't in the texts.
        Some(error) if !refused.is_empty() => Err(error.into()),
        _ => Ok(()),
    }
}

async fn embed_batch(
    index: &mut Index,
    embedder: &dyn Embedder,
    desk: &mut EmbedContext<'_>,
    batch: &[(ChunkKey, String)],
) -> Result<(), BackfillError> {
    let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
    let known = index.count_dimensions(embedder.id())?;
    let vectors = embed_texts(embedder, desk, &texts, (TextRole::Kept, known)).await?;
    let Some(dims) = vectors.first().map(Vec::len) else { return Ok(()) };
    let kept: Vec<(ChunkKey, Vec<f32>)> = batch.iter().map(|(key, _)| *key).zip(vectors).collect();
    Ok(index.put_vectors(embedder.id(), dims, &kept)?)
}

/// Returns whether a single text of several may be at fault.
pub fn is_of_texts(error: &EmbedError) -> bool {
    matches!(error, EmbedError::Refused(_) | EmbedError::Unusable { .. })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{
        Ready, Sources,
        embed::{EmbedFuture, Embedded},
    };
    use reveille_base::redact::Redactor;

    /// Refuses what holds a word, and counts what it was asked.
    struct Picky {
        id: &'static str,
        refuses: &'static str,
        batches: RefCell<Vec<usize>>,
    }

    impl Embedder for Picky {
        fn id(&self) -> &str {
            self.id
        }

        fn destination(&self) -> Option<&str> {
            None
        }

        fn usd_per_million(&self) -> f64 {
            0.0
        }

        fn embed<'a>(&'a self, texts: &'a [String], _role: TextRole) -> EmbedFuture<'a> {
            self.batches.borrow_mut().push(texts.len());
            let is_bad = texts.iter().any(|text| text.contains(self.refuses));
            Box::pin(async move {
                let value = if is_bad { f32::NAN } else { 1.0 };
                Ok(Embedded {
                    vectors: texts.iter().map(|text| vec![text.len() as f32, value]).collect(),
                    tokens: None,
                })
            })
        }
    }

    fn picky(id: &'static str, refuses: &'static str) -> Picky {
        Picky { id, refuses, batches: RefCell::default() }
    }

    fn index(facts: usize) -> (tempfile::TempDir, Index) {
        let dir = tempfile::tempdir().unwrap();
        let memory = dir.path().join("brain/memory");
        std::fs::create_dir_all(&memory).unwrap();
        let text: String = (0..facts).map(|n| format!("- The number of door {n} is {}.\n", n * 7)).collect();
        std::fs::write(memory.join("facts.md"), text).unwrap();
        let sources = Sources { brain: &dir.path().join("brain"), store: None, zone: reveille_base::zone::Tz::UTC };
        let ready = Ready::open(&dir.path().join("index.db"), &sources, None).unwrap();
        (dir, ready.index)
    }

    fn filled(index: &mut Index, embedder: &Picky, batches: usize) -> Result<Backfilled, BackfillError> {
        let redactor = Redactor::default();
        let now = reveille_base::clock::parse_time("2026-11-24T10:00:00Z").unwrap();
        let mut desk = EmbedContext { store: None, redactor: &redactor, caps: &[], now };
        let mut left = batches;
        let mut may_continue = |_: &Backfilled| left.checked_sub(1).map(|less| left = less).is_some();
        let filling = backfill_vectors(index, embedder, &mut desk, &mut may_continue);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(filling)
    }

    #[test]
    fn each_batch_is_kept_before_the_next_and_gone_on_from() {
        let (_dir, mut index) = index(40);
        let embedder = picky("one", "nothing");
        let first = filled(&mut index, &embedder, 1).unwrap();
        assert_eq!((first.embedded, first.is_whole), (BATCH, false));
        assert_eq!(index.stats().unwrap().models[0].embedded, BATCH as i64);
        let rest = filled(&mut index, &embedder, 100).unwrap();
        assert!(rest.is_whole && index.stats().unwrap().models[0].missing == 0, "{rest:?}");
        let asked: usize = embedder.batches.borrow().iter().sum();
        assert_eq!(asked, first.embedded + rest.embedded, "nothing is embedded twice");
    }

    #[test]
    fn one_text_that_is_refused_holds_up_no_other() {
        let (_dir, mut index) = index(40);
        let embedder = picky("one", "door 33 ");
        let done = filled(&mut index, &embedder, 100).unwrap();
        assert_eq!((done.refused, done.is_whole), (1, true));
        assert_eq!(index.stats().unwrap().models[0].missing, 0);
        // It isn't asked for it again.
        let asked = embedder.batches.borrow().len();
        assert_eq!(filled(&mut index, &embedder, 100).unwrap(), Backfilled { is_whole: true, ..Backfilled::default() });
        assert_eq!(embedder.batches.borrow().len(), asked);
        // Where all are, it isn't the texts.
        let error = filled(&mut index, &picky("another", "door"), 100).unwrap_err();
        assert!(error.to_string().contains("another returned unusable vectors"), "{error}");
    }

    #[test]
    fn the_last_text_may_be_refused() {
        let (dir, mut index) = index(40);
        let embedder = picky("one", "elephant");
        filled(&mut index, &embedder, 100).unwrap();
        std::fs::write(dir.path().join("brain/memory/new.md"), "- an elephant\n").unwrap();
        let sources = Sources { brain: &dir.path().join("brain"), store: None, zone: reveille_base::zone::Tz::UTC };
        index.refresh(&sources, None).unwrap();
        let done = filled(&mut index, &embedder, 100).unwrap();
        assert_eq!((done.refused, done.is_whole), (1, true));
    }

    #[test]
    fn another_models_vectors_go_when_the_new_ones_are_whole_and_not_before() {
        let (_dir, mut index) = index(40);
        filled(&mut index, &picky("old", "nothing"), 100).unwrap();
        let models = |index: &Index| -> Vec<String> {
            index.stats().unwrap().models.into_iter().map(|model| model.model).collect()
        };
        filled(&mut index, &picky("new", "nothing"), 1).unwrap();
        assert_eq!(models(&index), ["old", "new"]);
        filled(&mut index, &picky("new", "nothing"), 100).unwrap();
        assert_eq!(models(&index), ["new"]);
    }
}
