//! Looks for what fits why a cycle is due: facts, entries of the log, what was said long ago. Its opening tells it, each with
//! where it comes from. Where nobody can look, the opening tells what it told before there was an index.

use reveille_base::words::shortened;
use reveille_config::OFFLINE_MODEL;
use reveille_index::{Recalled, embed::Meant};
use reveille_memory as memory;
use reveille_store::{Incoming, NewCycle, StoreError};
use reveille_tools::{World, hits};

use crate::{decide::brief::Recollection, session::Session};

/// Hits that are looked at: what has room of them is shown.
const HITS_MAX: usize = 40;
/// The longest question, in characters: what is said first and last of many words tells what they are about.
const QUESTION_CHARS_MAX: usize = 1_000;

/// What fits, the best first, and what was asked, as the embedder has it; none: nobody could look, or it makes no difference.
pub(crate) fn recalled(
    session: &Session<'_>,
    world: &World,
    cycle: &NewCycle,
    messages: &[&Incoming],
) -> Option<(Vec<Recollection>, Option<Meant>)> {
    // The offline model looks by itself, when it is asked.
    if session.context.model.name() == OFFLINE_MODEL {
        return None;
    }
    let questions = questions(&cycle.reasons, messages);
    match hits(world, Some(&session.store), &questions, None, HITS_MAX) {
        Ok(found) => {
            let mut recalled: Vec<Recollection> =
                one_after_the_other(found.answers).into_iter().map(recollection).collect();
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

/// Takes out what was said in the cycle's chat before it was begun afresh: that is found by who searches for it. What was written
/// down of it is the memory's, and stays.
fn leave_out_the_past(
    session: &Session<'_>,
    cycle: &NewCycle,
    recalled: &mut Vec<Recollection>,
) -> Result<(), StoreError> {
    let Some(chat) = cycle.chat else { return Ok(()) };
    let Some(start) = session.store.fresh_start(chat, cycle.thread_id)? else { return Ok(()) };
    for (folder, is_ours) in [("messages/", false), ("answers/", true)] {
        let row = |path: &str| path.strip_prefix(folder)?.parse::<i64>().ok();
        let rows: Vec<i64> = recalled.iter().filter_map(|one| row(&one.path)).collect();
        let old = session.store.said_before(start, chat, is_ours, &rows)?;
        recalled.retain(|one| row(&one.path).is_none_or(|row| !old.contains(&row)));
    }
    Ok(())
}

/// What is asked of the index: each message by itself, or the reasons where there is none.
fn questions(reasons: &[String], messages: &[&Incoming]) -> Vec<String> {
    let question = |text: &str| shortened(text, QUESTION_CHARS_MAX);
    let said = messages.iter().rev().take(QUESTIONS_MAX).rev();
    let said: Vec<String> = said
        .map(|message| question(&[message.text.as_str(), message.quoted.as_deref().unwrap_or_default()].join(" ")))
        .collect();
    if said.is_empty() { vec![question(&reasons.join(" "))] } else { said }
}
/// Messages that are asked about, the newest.
const QUESTIONS_MAX: usize = 4;

/// The best of each answer, then the second best, each place once.
fn one_after_the_other(answers: Vec<Vec<Recalled>>) -> Vec<Recalled> {
    let mut answers: Vec<_> = answers.into_iter().map(Vec::into_iter).collect();
    let mut all: Vec<Recalled> = Vec::new();
    loop {
        let round: Vec<Recalled> = answers.iter_mut().filter_map(Iterator::next).collect();
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

fn recollection(hit: Recalled) -> Recollection {
    let Recalled { path, line, text, heading, speaker, date, origin, taint, .. } = hit;
    // What the log's entries and facts end with for wakes is told as an attribute.
    let is_of_others = taint.is_some() || path == memory::CLAUDE;
    Recollection { path, line, text, heading, speaker, date, origin: (origin.wake, origin.message), is_of_others }
}
