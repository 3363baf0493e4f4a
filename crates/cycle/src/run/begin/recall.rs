//! Searches the memory for a cycle's subject: facts, log entries, old messages. The opening shows each result with its origin. Without a
//! search the opening shows a fixed part of each document instead.

use reveille_base::words::truncate_text;
use reveille_config::OFFLINE_MODEL;
use reveille_index::{SearchHit, embed::Meant};
use reveille_memory as memory;
use reveille_store::{Incoming, NewCycle, StoreError};
use reveille_tools::{World, find_hits};

use crate::{decide::brief::Recollection, session::Session};

/// The maximum number of results considered. The opening shows as many as fit.
const HITS_MAX: usize = 40;
/// The maximum length of a query, in characters. Of a longer text only the beginning is used.
const QUERY_CHARS_MAX: usize = 1_000;
/// The number of messages used as queries; the newest are used.
const MAX_QUERIES: usize = 4;

/// Returns the results, best first, and the embedded query. `None` if no search is possible or useful.
pub(crate) fn search_memory(
    session: &Session<'_>,
    world: &World,
    cycle: &NewCycle,
    messages: &[&Incoming],
) -> Option<(Vec<Recollection>, Option<Meant>)> {
    // The fallback grammar searches only when the person asks, so results in advance are useless to it.
    if session.context.model.name() == OFFLINE_MODEL {
        return None;
    }
    let queries = build_queries(&cycle.reasons, messages);
    match find_hits(world, Some(&session.store), &queries, None, HITS_MAX) {
        Ok(found) => {
            let mut recalled: Vec<Recollection> =
                interleave_answers(found.answers).into_iter().map(to_recollection).collect();
            if let Err(error) = remove_messages_before_fresh_start(session, cycle, &mut recalled) {
                tracing::warn!(%error, "nothing was recalled");
                return None;
            }
            Some((recalled, found.meant))
        }
        Err(error) => {
            tracing::warn!(%error, "nothing was recalled");
            None
        }
    }
}

/// Removes messages that the cycle's chat exchanged before its fresh start: only an explicit search finds these. Notes about them belong to
/// the memory and stay.
fn remove_messages_before_fresh_start(
    session: &Session<'_>,
    cycle: &NewCycle,
    recalled: &mut Vec<Recollection>,
) -> Result<(), StoreError> {
    let Some(chat) = cycle.chat else { return Ok(()) };
    let Some(start) = session.store.inbox().fresh_start(chat, cycle.thread_id)? else { return Ok(()) };
    // `is_ours` is true for the assistant's own messages.
    for (folder, is_ours) in [("messages/", false), ("answers/", true)] {
        let row = |path: &str| path.strip_prefix(folder)?.parse::<i64>().ok();
        let rows: Vec<i64> = recalled.iter().filter_map(|one| row(&one.path)).collect();
        let old = session.store.inbox().filter_old_rows(start, chat, is_ours, &rows)?;
        recalled.retain(|one| row(&one.path).is_none_or(|row| !old.contains(&row)));
    }
    Ok(())
}

/// Builds the queries: one per message, or the reasons if there are no messages.
fn build_queries(reasons: &[String], messages: &[&Incoming]) -> Vec<String> {
    let shorten = |text: &str| truncate_text(text, QUERY_CHARS_MAX);
    let newest = messages.iter().rev().take(MAX_QUERIES).rev();
    let queries: Vec<String> = newest
        .map(|message| shorten(&[message.text.as_str(), message.quoted.as_deref().unwrap_or_default()].join(" ")))
        .collect();
    if queries.is_empty() { vec![shorten(&reasons.join(" "))] } else { queries }
}

/// Interleaves the answers: the best of each, then the second best, each place once.
fn interleave_answers(answers: Vec<Vec<SearchHit>>) -> Vec<SearchHit> {
    let mut answers: Vec<_> = answers.into_iter().map(Vec::into_iter).collect();
    let mut all: Vec<SearchHit> = Vec::new();
    loop {
        let round: Vec<SearchHit> = answers.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            return all;
        }
        for hit in round {
            if !all.iter().any(|known| (&known.path, known.line) == (&hit.path, hit.line)) {
                all.push(hit);
            }
        }
    }
}

fn to_recollection(hit: SearchHit) -> Recollection {
    let SearchHit { path, line, text, heading, speaker, date, origin, taint, .. } = hit;
    let is_of_others = taint.is_some() || path == memory::CLAUDE;
    Recollection { path, line, text, heading, speaker, date, origin: (origin.wake, origin.message), is_of_others }
}
