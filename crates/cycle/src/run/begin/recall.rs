//! Searches the memory for a cycle's subject: facts, log entries, old messages. The opening shows each result with its origin. Without a
//! search the opening shows its older, fixed selection.

use reveille_base::words::truncate_text;
use reveille_config::OFFLINE_MODEL;
use reveille_index::{SearchHit, embed::Meant};
use reveille_memory as memory;
use reveille_store::{Incoming, NewCycle, StoreError};
use reveille_tools::{World, find_hits};

use crate::{decide::brief::Recollection, session::Session};

/// The number of results considered; those with room are shown.
const HITS_MAX: usize = 40;
/// The maximum length of a query, in characters. Of a longer text only the beginning is used.
const QUESTION_CHARS_MAX: usize = 1_000;

/// Returns the results, best first, and the embedded query. `None` if no search is possible or useful.
pub(crate) fn search_memory(
    session: &Session<'_>,
    world: &World,
    cycle: &NewCycle,
    messages: &[&Incoming],
) -> Option<(Vec<Recollection>, Option<Meant>)> {
    // The offline model searches by itself when asked.
    if session.context.model.name() == OFFLINE_MODEL {
        return None;
    }
    let questions = build_queries(&cycle.reasons, messages);
    match find_hits(world, Some(&session.store), &questions, None, HITS_MAX) {
        Ok(found) => {
            let mut recalled: Vec<Recollection> =
                one_after_the_other(found.answers).into_iter().map(to_recollection).collect();
            if let Err(error) = leave_out_the_past(session, cycle, &mut recalled) {
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

/// Removes messages of the cycle's chat from before its fresh start, which only an explicit search finds. Notes about them belong to the
/// memory and stay.
fn leave_out_the_past(
    session: &Session<'_>,
    cycle: &NewCycle,
    recalled: &mut Vec<Recollection>,
) -> Result<(), StoreError> {
    let Some(chat) = cycle.chat else { return Ok(()) };
    let Some(start) = session.store.inbox().fresh_start(chat, cycle.thread_id)? else { return Ok(()) };
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
    let question = |text: &str| truncate_text(text, QUESTION_CHARS_MAX);
    let said = messages.iter().rev().take(QUESTIONS_MAX).rev();
    let said: Vec<String> = said
        .map(|message| question(&[message.text.as_str(), message.quoted.as_deref().unwrap_or_default()].join(" ")))
        .collect();
    if said.is_empty() { vec![question(&reasons.join(" "))] } else { said }
}
/// The number of messages used as queries; the newest are used.
const QUESTIONS_MAX: usize = 4;

/// Interleaves the answers: the best of each, then the second best, each place once.
fn one_after_the_other(answers: Vec<Vec<SearchHit>>) -> Vec<SearchHit> {
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
    // Wake ids at the end of log entries and facts are shown as an attribute.
    let is_of_others = taint.is_some() || path == memory::CLAUDE;
    Recollection { path, line, text, heading, speaker, date, origin: (origin.wake, origin.message), is_of_others }
}
