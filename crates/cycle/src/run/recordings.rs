//! Recordings where they are made and used: what of a cycle is kept with its end, and what of them its opening is shown.

use reveille_base::types::{ChatRef, Effect};
use reveille_index::embed::Meant;
use reveille_memory::view;
use reveille_store::{NewCycle, NewRecording, Recording, StoreError};

use crate::{
    context::WakeError,
    decide::{
        recording::{recording, words_of},
        similar::{self, Likeness},
    },
    session::Session,
};

/// What is kept of a cycle that ends; none if it did nothing that could be an example. A journal that can't be read is none.
pub(crate) fn of_cycle(
    session: &Session<'_>,
    cycle: &NewCycle,
    messages: &[i64],
) -> Result<Option<NewRecording>, WakeError> {
    if cycle.is_by_rule() {
        return Ok(None);
    }
    let journal = match session.store.journal(&cycle.id) {
        Err(StoreError::Damaged(_)) => return Ok(None),
        journal => journal?,
    };
    // What others wrote is no request: a later cycle, which has read nothing of theirs, is shown it.
    let own = session.store.messages(messages)?.into_iter().filter(|message| message.words_of_others().is_none());
    let request: Vec<String> = own.map(|message| message.text).collect();
    // The tools are read only where something might be kept.
    let acts = |name: &str| session.tooling().registry.get(name).is_none_or(|tool| tool.effect != Effect::Read);
    Ok(recording(cycle, &journal, &request, acts, session.context.redactor))
}

/// The block of an opening that tells what was done for similar requests: a guest's own for a guest, the owner's for the owner. Empty
/// for none. `meant`: what is asked, by the embedder that is set up.
pub(crate) fn similar_work(
    session: &Session<'_>,
    cycle: &NewCycle,
    messages: &[i64],
    meant: Option<&Meant>,
) -> Result<String, WakeError> {
    let config = session.context.config;
    let encoder = meant.map(Meant::model);
    let recorded = match view::foreign_chat(cycle.chat, config.owner_chat) {
        Some(guest) => session.store.recorded_requests(&[guest], false, encoder)?,
        None => session.store.recorded_requests(&[config.owner_chat, ChatRef::TERMINAL], true, encoder)?,
    };
    if recorded.is_empty() {
        return Ok(String::new());
    }
    let said: Vec<String> = session.store.messages(messages)?.into_iter().map(|message| message.text).collect();
    let request = if said.is_empty() { cycle.reasons.join("; ") } else { said.join("\n\n") };
    let chosen = similar::choose(&words_of(&request), meant.map(Meant::vectors).unwrap_or_default(), &recorded);
    let mut found: Vec<(Likeness, Recording)> = Vec::new();
    let start = match cycle.chat {
        Some(chat) => session.store.fresh_start(chat, cycle.thread_id)?,
        None => None,
    };
    // What was done here before the chat was begun afresh is a part of what is left out.
    let is_left_out = |recording: &Recording| {
        let start = start.filter(|_| recording.kept.chat == cycle.chat).and_then(|start| start.at);
        start.is_some_and(|start| recording.at.is_none_or(|at| at <= start))
    };
    for likeness in chosen {
        let recording = session.store.recording(likeness.id)?.filter(|recording| !is_left_out(recording));
        found.extend(recording.map(|recording| (likeness, recording)));
    }
    Ok(similar::block(&found, config.timezone))
}
