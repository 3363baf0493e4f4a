//! The one way to an embedder: texts are cut and redacted, a person has allowed that they leave, the most that they may cost is set aside,
//! and what comes is checked before anybody has it.

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, types::Usage};
use reveille_store::{SpendCap, Spent, Store};

use super::{EmbedError, Embedded, Embedder, MAX_BATCH, MAX_TEXT_BYTES, TextRole, price, vector};

/// What embedding needs of its surroundings.
pub struct EmbedDesk<'a> {
    /// Where consent and costs are written; none: only what stays on this machine is asked.
    pub store: Option<&'a mut Store>,
    /// Masks the live secrets in whatever is embedded.
    pub redactor: &'a Redactor,
    /// What may be spent.
    pub caps: &'a [SpendCap],
    /// The time.
    pub now: DateTime<Utc>,
}

/// A vector of length 1 for each text, in their order; at most [`MAX_BATCH`] texts. `dims`: as many numbers as those that are kept have.
///
/// # Errors
/// By what should be done; no vector of the batch is had then.
pub async fn embed(
    embedder: &dyn Embedder,
    desk: &mut EmbedDesk<'_>,
    texts: &[String],
    (role, dims): (TextRole, Option<usize>),
) -> Result<Vec<Vec<f32>>, EmbedError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    if texts.len() > MAX_BATCH {
        return Err(EmbedError::Refused(format!("{} texts at once, and {MAX_BATCH} are taken", texts.len())));
    }
    let clean: Vec<String> = texts.iter().map(|text| sendable(text, desk.redactor)).collect();
    let came = match embedder.leaves_for() {
        None => embedder.embed(&clean, role).await,
        Some(to) => {
            let Some(store) = desk.store.as_deref_mut() else {
                return Err(EmbedError::NotAllowed { to: to.to_owned() });
            };
            if store.allowed_embedder()?.as_deref() != Some(embedder.id()) {
                return Err(EmbedError::NotAllowed { to: to.to_owned() });
            }
            paid(embedder, (store, desk.caps, desk.now), &clean, role).await
        }
    };
    let Embedded { vectors, .. } = came.map_err(|error| redacted(error, desk.redactor))?;
    vector::checked(vectors, (embedder.id(), texts.len(), dims))
}

/// Asks whoever wants to be paid: the most that it may cost stands in the ledger before it leaves.
async fn paid(
    embedder: &dyn Embedder,
    (store, caps, now): (&mut Store, &[SpendCap], DateTime<Utc>),
    texts: &[String],
    role: TextRole,
) -> Result<Embedded, EmbedError> {
    let rate = embedder.usd_per_million();
    let most = price::most_tokens(texts);
    let reserved = store.reserve_apart(embedder.id(), price::usd(most, rate), caps, now)?;
    let reservation = reserved.map_err(EmbedError::NoRoom)?;
    let came = embedder.embed(texts, role).await;
    let tokens = match &came {
        Ok(embedded) => embedded.tokens.unwrap_or(most),
        // Nobody knows what it cost: it stays set aside.
        Err(EmbedError::Later { may_have_cost: true, .. }) => return came,
        Err(_) => 0,
    };
    let spent = Spent { tokens: Usage { input: tokens, ..Usage::default() }, cost_usd: price::usd(tokens, rate) };
    store.settle_apart(reservation, &spent)?;
    came
}

/// A text as it may leave: without secrets, and no longer than what is read of it.
fn sendable(text: &str, redactor: &Redactor) -> String {
    let mut clean = redactor.redact(text);
    clean.truncate(clean.floor_char_boundary(MAX_TEXT_BYTES));
    // Servers refuse an empty text, and the whole batch with it.
    if clean.trim().is_empty() { "-".to_owned() } else { clean }
}

/// Whoever answered may have quoted a secret.
fn redacted(mut error: EmbedError, redactor: &Redactor) -> EmbedError {
    if let EmbedError::Later { why, .. } | EmbedError::SetUp(why) | EmbedError::Refused(why) = &mut error {
        *why = redactor.redact(why);
    }
    error
}

#[cfg(test)]
mod tests;
