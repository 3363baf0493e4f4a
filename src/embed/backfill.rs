//! Embedding what the index holds and has no vector of: batch by batch, each kept before the next, so that a kill loses one at most.

use std::collections::BTreeSet;

use super::{EmbedDesk, EmbedError, Embedder, TextRole, embed};
use crate::index::{ChunkKey, Index, IndexError};

/// Texts of a batch: a second's work for a slow machine, and little to lose.
const BATCH: usize = 16;

/// How far it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backfilled {
    /// Texts that were embedded.
    pub embedded: usize,
    /// Texts that whoever embeds doesn't take. They are found by keywords.
    pub refused: usize,
    /// Whether nothing is left.
    pub is_whole: bool,
}

/// Why it ended early. What was embedded by then is kept.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// Whoever embeds.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The index.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Embeds what has no vector by this embedder, the newest first, for as long as `goes_on` says so before each batch, which is told how far
/// it came. Once nothing is left the vectors of other models go.
///
/// # Errors
/// The index's, or the embedder's.
pub async fn backfill(
    index: &mut Index,
    embedder: &dyn Embedder,
    desk: &mut EmbedDesk<'_>,
    goes_on: &mut dyn FnMut(&Backfilled) -> bool,
) -> Result<Backfilled, BackfillError> {
    let (mut done, mut refused) = (Backfilled::default(), BTreeSet::new());
    while goes_on(&done) {
        let found = index.without_vector(embedder.id(), BATCH + refused.len())?;
        let batch: Vec<(ChunkKey, String)> =
            found.into_iter().filter(|(key, _)| !refused.contains(key)).take(BATCH).collect();
        if batch.is_empty() {
            if index.stats()?.models.iter().any(|model| model.model != embedder.id()) {
                index.forget_other_models(embedder.id())?;
            }
            done.is_whole = true;
            break;
        }
        match embed_batch(index, embedder, desk, &batch).await {
            Ok(()) => done.embedded += batch.len(),
            // One of them is at fault: the others are embedded without it.
            Err(BackfillError::Embed(EmbedError::Refused(_))) => {
                for one in &batch {
                    match embed_batch(index, embedder, desk, std::slice::from_ref(one)).await {
                        Ok(()) => done.embedded += 1,
                        Err(BackfillError::Embed(EmbedError::Refused(why))) => {
                            tracing::warn!(why, "a text isn't embedded");
                            refused.insert(one.0);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        done.refused = refused.len();
    }
    Ok(done)
}

async fn embed_batch(
    index: &mut Index,
    embedder: &dyn Embedder,
    desk: &mut EmbedDesk<'_>,
    batch: &[(ChunkKey, String)],
) -> Result<(), BackfillError> {
    let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
    let known = index.dims(embedder.id())?;
    let vectors = embed(embedder, desk, &texts, (TextRole::Kept, known)).await?;
    let Some(dims) = vectors.first().map(Vec::len) else { return Ok(()) };
    let kept: Vec<(ChunkKey, Vec<f32>)> = batch.iter().map(|(key, _)| *key).zip(vectors).collect();
    Ok(index.put_vectors(embedder.id(), dims, &kept)?)
}
