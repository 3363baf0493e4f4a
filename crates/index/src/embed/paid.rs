//! The only path to an embedder. Cuts and redacts the texts, checks the person's consent, reserves the maximum cost, and checks the result
//! before passing it on.

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, types::Usage};
use reveille_store::{SpendCap, Spent, Store};

use super::{EmbedError, Embedded, Embedder, MAX_BATCH, MAX_TEXT_BYTES, TextRole, price, vector};

/// The environment of an embedding call.
pub struct EmbedContext<'a> {
    /// The store for consent and costs; `None` allows only local embedders.
    pub store: Option<&'a mut Store>,
    /// Masks live secrets in the texts.
    pub redactor: &'a Redactor,
    /// The spending limits.
    pub caps: &'a [SpendCap],
    /// The current time.
    pub now: DateTime<Utc>,
}

/// Embeds at most [`MAX_BATCH`] texts. Returns one unit vector per text, in order. `dims` is the number of dimensions of the stored
/// vectors.
///
/// # Errors
/// See [`EmbedError`]; the whole batch then fails.
pub async fn embed_texts(
    embedder: &dyn Embedder,
    desk: &mut EmbedContext<'_>,
    texts: &[String],
    (role, dims): (TextRole, Option<usize>),
) -> Result<Vec<Vec<f32>>, EmbedError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    if texts.len() > MAX_BATCH {
        return Err(EmbedError::Refused(format!("{} texts at once, but at most {MAX_BATCH} are allowed", texts.len())));
    }
    let clean: Vec<String> = texts.iter().map(|text| prepare_text(text, desk.redactor)).collect();
    let came = match embedder.destination() {
        None => embedder.embed(&clean, role).await,
        Some(to) => {
            let Some(store) = desk.store.as_deref_mut() else {
                return Err(EmbedError::NotAllowed { to: to.to_owned() });
            };
            if store.maintenance().allowed_embedder()?.as_deref() != Some(embedder.id()) {
                return Err(EmbedError::NotAllowed { to: to.to_owned() });
            }
            let ledger = PayingLedger { store, caps: desk.caps, now: desk.now };
            embed_paid(embedder, ledger, &clean, role).await
        }
    };
    let Embedded { vectors, .. } = came.map_err(|error| redact_error(error, desk.redactor))?;
    vector::check_vectors(vectors, &vector::WantedVectors { embedder: embedder.id(), texts: texts.len(), dims })
}

/// The ledger that a paid call is booked in.
struct PayingLedger<'a> {
    store: &'a mut Store,
    caps: &'a [SpendCap],
    now: DateTime<Utc>,
}

/// Calls a paid embedder. The ledger reserves the maximum cost before any text leaves.
async fn embed_paid(
    embedder: &dyn Embedder,
    ledger: PayingLedger<'_>,
    texts: &[String],
    role: TextRole,
) -> Result<Embedded, EmbedError> {
    let PayingLedger { store, caps, now } = ledger;
    let rate = embedder.usd_per_million();
    let most = price::estimate_max_tokens(texts);
    let reserved = store.ledger_mut().reserve_apart(embedder.id(), price::compute_usd(most, rate), caps, now)?;
    let reservation = reserved.map_err(EmbedError::NoRoom)?;
    let came = embedder.embed(texts, role).await;
    let tokens = match &came {
        Ok(embedded) => embedded.tokens.unwrap_or(most),
        // The cost is unknown, so the reservation stays.
        Err(EmbedError::Later { may_have_cost: true, .. }) => return came,
        Err(_) => 0,
    };
    let spent =
        Spent { tokens: Usage { input: tokens, ..Usage::default() }, cost_usd: price::compute_usd(tokens, rate) };
    store.ledger_mut().settle_apart(reservation, &spent)?;
    came
}

/// Prepares a text for sending: without secrets, and cut to the maximum length.
fn prepare_text(text: &str, redactor: &Redactor) -> String {
    let mut clean = redactor.redact(text);
    clean.truncate(clean.floor_char_boundary(MAX_TEXT_BYTES));
    // Servers refuse an empty text together with its whole batch.
    if clean.trim().is_empty() { "-".to_owned() } else { clean }
}

/// Redacts an error, because the server may have quoted a secret.
fn redact_error(mut error: EmbedError, redactor: &Redactor) -> EmbedError {
    if let EmbedError::Later { why, .. } | EmbedError::SetUp(why) | EmbedError::Refused(why) = &mut error {
        *why = redactor.redact(why);
    }
    error
}

#[cfg(test)]
mod tests;
