//! Folding: its requests follow the results of calls, and its summary begins a new conversation. The journal keeps both, and the old
//! conversation too. The machine decides when to fold (`decide/fold`).

use reveille_store::Entry;

use crate::{
    context::WakeError,
    decide::{
        brief::{self, FoldedBrief},
        fold,
        limits::Limits,
        machine::Summary,
    },
    run::record,
    session::{Live, Session},
};

/// Appends the folding request to a user message, and returns its journal entry.
pub(crate) fn append_fold_request(live: &Live, limits: &Limits, raw: String) -> (String, Vec<Entry>) {
    let Some(ask) = live.state.fold_ask(limits, &raw) else { return (raw, Vec::new()) };
    let tokens = live.state.folding.count_with(&raw);
    match brief::with_text(&raw, &fold::render_ask(ask, tokens)) {
        Some(asking) => (asking, vec![Entry::FoldAsked { ask, tokens }]),
        None => (raw, Vec::new()),
    }
}

/// The maximum number of forced foldings between two turns of the model. Each aims to halve the removable part.
const MAX_FORCED: u32 = 12;

/// Shortens the conversation because its model found it too long. `false` if nothing more can be left out.
pub(crate) fn shorten(session: &mut Session<'_>, live: &mut Live) -> Result<bool, WakeError> {
    if live.state.forced_in_a_row() >= MAX_FORCED {
        return Ok(false);
    }
    let summary = live.state.forced_summary();
    fold_conversation(session, live, &summary)
}

/// Begins a new conversation with the summary of the old one. If the old one is only its first message, that message is shortened; `false`
/// if it can't be.
pub(crate) fn fold_conversation(
    session: &mut Session<'_>,
    live: &mut Live,
    summary: &Summary,
) -> Result<bool, WakeError> {
    if let (true, [first]) = (summary.is_forced, live.state.conversation.messages.as_slice()) {
        let Some(raw) = brief::shrink_message(first) else { return Ok(false) };
        return begin_conversation(session, live, raw).map(|()| true);
    }
    let Live { state, world, .. } = &*live;
    let raw = brief::render_folded_opening(&FoldedBrief {
        state,
        summary: Some(summary),
        now: session.now(),
        tz: world.clock.tz,
        documents: &world.memory.documents,
        reader: world.foreign_chat(),
    });
    let raw = session.context.redactor.redact_json(&raw);
    let conversation = &state.conversation;
    // The content went through the redactor when it arrived.
    let raw = brief::carry_over_blocks(&raw, &conversation.messages, &state.open).unwrap_or(raw);
    // An earlier forced folding gained nothing.
    let is_again = summary.is_forced && state.forced_in_a_row() > 0;
    let raw = if is_again { brief::shrink_message(&raw).unwrap_or(raw) } else { raw };
    begin_conversation(session, live, raw).map(|()| true)
}

/// Begins a new conversation with this message.
fn begin_conversation(session: &mut Session<'_>, live: &mut Live, raw: String) -> Result<(), WakeError> {
    let state = &live.state;
    let conversation = &state.conversation;
    let before = state.folding.tokens();
    let after = state.folding.count_new_conversation(&conversation.system, &conversation.tools, &raw);
    let messages = conversation.messages.len();
    record::record_entry(session, live, &Entry::Folded { raw, messages, before, after }, &[])?;
    tracing::info!(messages, before, after, "the conversation was folded");
    let line = format!("folded: {messages} messages, {before} tokens before, {after} after");
    if let Err(error) = live.plan_file.append_progress(session.now(), &line) {
        tracing::warn!(%error, "the plan file could not be written");
    }
    Ok(())
}
