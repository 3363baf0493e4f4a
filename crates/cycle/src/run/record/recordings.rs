//! The use of recordings: storing one at a cycle's end, and showing similar ones in an opening.

use reveille_base::types::{ChatRef, Effect};
use reveille_index::embed::Meant;
use reveille_memory::view;
use reveille_store::{NewCycle, NewRecording, Recording, StoreError};

use crate::{
    context::WakeError,
    decide::{
        recording::{build_recording, extract_terms},
        similar::{self, Likeness},
    },
    session::Session,
};

/// Builds the recording of a finished cycle. `None` if the cycle did nothing exemplary, or its journal can't be read.
pub(crate) fn record_cycle(
    session: &Session<'_>,
    cycle: &NewCycle,
    messages: &[i64],
) -> Result<Option<NewRecording>, WakeError> {
    if cycle.is_by_rule() {
        return Ok(None);
    }
    let journal = match session.store.journal().read_journal(&cycle.id) {
        Err(StoreError::Damaged(_)) => return Ok(None),
        journal => journal?,
    };
    // Untrusted text is no request, because later untainted cycles will see the recording.
    let own = session
        .store
        .inbox()
        .list_messages(messages)?
        .into_iter()
        .filter(|message| message.words_of_others().is_none());
    let request: Vec<String> = own.map(|message| message.text).collect();
    // The tools are read only if something might be kept.
    let acts = |name: &str| session.tooling().registry.get(name).is_none_or(|tool| tool.effect != Effect::Read);
    Ok(build_recording(cycle, &journal, &request, acts, session.context.redactor))
}

/// Renders the block about work done for similar requests: a guest's own for a guest, the owner's for the owner. Empty without any. `meant`
/// is the embedded query, if an embedder is set up.
pub(crate) fn render_similar_work(
    session: &Session<'_>,
    cycle: &NewCycle,
    messages: &[i64],
    meant: Option<&Meant>,
) -> Result<String, WakeError> {
    let config = session.context.config;
    let encoder = meant.map(Meant::model);
    let chats = match view::foreign_chat(cycle.chat, config.owner_chat) {
        Some(guest) => vec![Some(guest)],
        None => vec![Some(config.owner_chat), Some(ChatRef::TERMINAL), None],
    };
    let recorded = session.store.recordings().recorded_requests(&chats, encoder)?;
    if recorded.is_empty() {
        return Ok(String::new());
    }
    let said: Vec<String> =
        session.store.inbox().list_messages(messages)?.into_iter().map(|message| message.text).collect();
    let request = if said.is_empty() { cycle.reasons.join("; ") } else { said.join("\n\n") };
    let chosen = similar::choose(&extract_terms(&request), meant.map(Meant::vectors).unwrap_or_default(), &recorded);
    let mut found: Vec<(Likeness, Recording)> = Vec::new();
    let start = match cycle.chat {
        Some(chat) => session.store.inbox().fresh_start(chat, cycle.thread_id)?,
        None => None,
    };
    // Work from before the chat's fresh start belongs to the hidden past.
    let is_left_out = |recording: &Recording| {
        let start = start.filter(|_| recording.kept.chat == cycle.chat).and_then(|start| start.at);
        start.is_some_and(|start| recording.at.is_none_or(|at| at <= start))
    };
    for likeness in chosen {
        let recording =
            session.store.recordings().find_recording(likeness.id)?.filter(|recording| !is_left_out(recording));
        found.extend(recording.map(|recording| (likeness, recording)));
    }
    Ok(similar::render_block(&found, config.timezone))
}
