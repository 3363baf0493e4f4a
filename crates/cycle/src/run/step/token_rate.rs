//! The measured bytes per token of each model, stored with the handled keys in one row per model.

use reveille_store::StoreError;

use crate::{
    context::WakeError,
    decide::tokens::TokenRate,
    session::{Live, Session},
};

fn format_key(model: &str) -> String {
    format!("token-rate/{model}")
}

/// Returns the current model's rate, or a safe default before any measurement.
pub(crate) fn read_rate(session: &Session<'_>) -> Result<TokenRate, StoreError> {
    let kept = session.store.maintenance().find_handled_value(&format_key(session.context.model.name()))?;
    Ok(kept.map_or_else(TokenRate::default, |kept| TokenRate::parse(&kept)))
}

/// Stores a conversation's measured rate if it has changed. A model without a window counts its own tokens.
pub(crate) fn save_rate(session: &mut Session<'_>, live: &Live) -> Result<(), WakeError> {
    let measured = live.state.folding.rate();
    let has_window = session.context.model.context_window().is_some();
    if has_window && measured != TokenRate::default() && measured.is_changed_from(&read_rate(session)?) {
        session
            .store
            .maintenance_mut()
            .set_handled_value(&format_key(session.context.model.name()), &measured.to_text())?;
    }
    Ok(())
}
