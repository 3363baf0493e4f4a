//! How many bytes make a token of a model, as its last conversations told: kept beside what was handled, a row a model.

use reveille_store::StoreError;

use crate::{
    context::WakeError,
    decide::tokens::TokenRate,
    session::{Live, Session},
};

fn key(model: &str) -> String {
    format!("token-rate/{model}")
}

/// Of the model that is asked now; a safe default until it was measured.
pub(crate) fn known(session: &Session<'_>) -> Result<TokenRate, StoreError> {
    let kept = session.store.handled(&key(session.context.model.name()))?;
    Ok(kept.map_or_else(TokenRate::default, |kept| TokenRate::read(&kept)))
}

/// Keeps what a conversation has told, if that is news. A model without a window counts for itself.
pub(crate) fn keep(session: &mut Session<'_>, live: &Live) -> Result<(), WakeError> {
    let measured = live.state.folding.rate();
    let has_window = session.context.model.context_window().is_some();
    if has_window && measured != TokenRate::default() && measured.is_news_to(&known(session)?) {
        session.store.set_handled(&key(session.context.model.name()), &measured.kept())?;
    }
    Ok(())
}
