//! Folding: what it asks of the model goes behind results, and its summary begins a new conversation. The journal has both, and
//! the old conversation too; the machine knows when (`decide/fold`).

use crate::{
    cycle::{
        context::WakeError,
        decide::{
            brief::{self, FoldedBrief},
            fold,
            limits::Limits,
            machine::Summary,
        },
        run::record,
        session::{Live, Session},
    },
    store::Entry,
};

/// A user message with what is to be asked behind it, and the entry that says so.
pub(in crate::cycle) fn with_ask(live: &Live, limits: &Limits, raw: String) -> (String, Vec<Entry>) {
    let Some(ask) = live.state.fold_ask(limits, &raw) else { return (raw, Vec::new()) };
    let tokens = live.state.folding.with(&raw);
    match brief::with_text(&raw, &fold::words(ask, tokens)) {
        Some(asking) => (asking, vec![Entry::FoldAsked { ask, tokens }]),
        None => (raw, Vec::new()),
    }
}

/// Begins a new conversation with the summary of the one so far.
pub(in crate::cycle) fn begin_anew(
    session: &mut Session<'_>,
    live: &mut Live,
    summary: &Summary,
) -> Result<(), WakeError> {
    let Live { state, world, .. } = &*live;
    let raw = brief::folded(&FoldedBrief {
        state,
        summary: Some(summary),
        now: session.now(),
        tz: world.tz,
        documents: &world.documents,
        reader: world.foreign_chat(),
    });
    let raw = session.context.redactor.redact_json(&raw);
    let conversation = &state.conversation;
    // What was in it went through the redactor when it came.
    let raw = brief::carried(&raw, &conversation.messages, &state.open).unwrap_or(raw);
    let before = state.folding.tokens();
    let after = state.folding.tokens_of(&conversation.system, &conversation.tools, &raw);
    let messages = conversation.messages.len();
    record::record(session, live, &Entry::Folded { raw, messages, before, after }, &[])?;
    tracing::info!(messages, before, after, "the conversation was folded");
    let line = format!("folded: {messages} messages, {before} tokens before, {after} after");
    if let Err(error) = live.plan_file.progress(session.now(), &line) {
        tracing::warn!(%error, "the plan file could not be written");
    }
    Ok(())
}
