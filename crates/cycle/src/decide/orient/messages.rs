//! The queue's messages: which are to be answered now, which join a cycle that runs, and what the others wait for.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use reveille_base::{clock::is_over, types::ChatRef, zone::Tz};
use reveille_config::OFFLINE_MODEL;
use reveille_store::{Cap, CycleRow, Incoming, NewCycle};

use crate::decide::{
    brief::MAX_MESSAGES,
    gate::waiting_for_files,
    lineup::{LinedUp, ModelState},
    situation::{Reason, Situation},
    stale,
};

/// Whether somebody can be given this message now: a model, or where none can be asked the grammar that stands in.
pub fn is_answerable(message: &Incoming, model: &ModelState, now: DateTime<Utc>) -> bool {
    let is_for = |asked: &LinedUp| message.held_for.as_deref() != Some(&asked.name);
    is_ready(message, now) && model.asked(message.chat).map_or_else(|| model.grammar_takes(message), is_for)
}

/// Whether a message can be answered now, as far as the message itself tells.
fn is_ready(message: &Incoming, now: DateTime<Utc>) -> bool {
    !message.awaits_files && message.not_before.is_none_or(|at| is_over(at, now))
}

/// Whether a cycle's model can be given this message: the grammar that stands in has what it understands.
fn may_join(message: &Incoming, cycle: &NewCycle, model: &ModelState, now: DateTime<Utc>) -> bool {
    let stands_in = cycle.model == OFFLINE_MODEL && model.grammar.is_some();
    let is_kept = message.held_for.as_deref() == Some(&cycle.model);
    is_ready(message, now) && !is_kept && (!stands_in || model.is_understood(message))
}

/// The messages with these `ids`, if each of them may still be given to the model: an edit or a further part of an album may have
/// brought files that are on their way, a person may have taken one out of the queue.
pub fn still_due<'a>(
    queued: &'a [Incoming],
    ids: &[i64],
    model: &ModelState,
    now: DateTime<Utc>,
) -> Option<Vec<&'a Incoming>> {
    let waiting = waiting_for_files(queued, now);
    let is_due = |message: &&Incoming| !waiting.contains(&message.id) && is_answerable(message, model, now);
    ids.iter().map(|id| queued.iter().find(|message| message.id == *id).filter(is_due)).collect()
}

/// Messages that have come for the chat of `cycle`, and the terminal that it answers, while it runs, oldest first: not those it `knows`, nor those that stand in
/// the conversation of another one that will go on. A cycle that has had its share of messages ends when another chat waits.
pub fn joining<'a>(
    queued: &'a [Incoming],
    cycle: &NewCycle,
    session: Option<&str>,
    knows: &[i64],
    open_cycles: &[CycleRow],
    model: &ModelState,
    now: DateTime<Utc>,
) -> Vec<&'a Incoming> {
    let is_another_chats = |message: &Incoming| {
        Some(message.chat) != cycle.chat && !is_taken(message, open_cycles) && is_answerable(message, model, now)
    };
    if knows.len() >= MAX_MESSAGES && queued.iter().any(is_another_chats) {
        return Vec::new();
    }
    let waiting = waiting_for_files(queued, now);
    let is_new = |message: &&Incoming| {
        (Some(message.chat), message.thread_id) == (cycle.chat, cycle.thread_id)
            && message.session.as_deref() == session
            && !knows.contains(&message.id)
            && !is_taken(message, open_cycles)
            && !waiting.contains(&message.id)
            && may_join(message, cycle, model, now)
            && !stale::is_stale(message, now)
    };
    queued.iter().filter(is_new).take(MAX_MESSAGES).collect()
}

/// The key under which a chat was told that its messages wait for a budget: once for each day on which more of them come.
pub fn budget_key<'a>(
    chat: ChatRef,
    waiting: impl IntoIterator<Item = &'a Incoming>,
    cap: Cap,
    now: DateTime<Utc>,
    tz: Tz,
) -> String {
    let newest = waiting.into_iter().filter_map(|message| message.received_at).max().unwrap_or(now);
    let day = newest.with_timezone(&tz).date_naive();
    match cap {
        Cap::Day => format!("budget/{chat}/{day}"),
        Cap::Month => format!("budget/{chat}/{day}/month"),
    }
}

/// How it stands with a message of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is to be answered now.
    Due,
    /// A cycle has it.
    InHand,
    /// Files are waited for, its own or those of one before it.
    Files,
    /// The model is known not to answer it: another one may.
    ModelState,
    /// A budget is spent.
    Budget,
    /// It, or the model, is tried again later.
    BackOff,
}

/// How it stands with each message of the queue.
pub fn standings(observed: &Situation) -> impl Iterator<Item = (&Incoming, Standing)> {
    standings_of(&observed.messages, &observed.open_cycles, &observed.model, observed.now)
}

/// Whether a message of the queue is to be answered now.
pub fn is_any_due(queued: &[Incoming], open_cycles: &[CycleRow], model: &ModelState, now: DateTime<Utc>) -> bool {
    standings_of(queued, open_cycles, model, now).any(|(_, standing)| standing == Standing::Due)
}

fn standings_of<'a>(
    queued: &'a [Incoming],
    open_cycles: &'a [CycleRow],
    model: &'a ModelState,
    now: DateTime<Utc>,
) -> impl Iterator<Item = (&'a Incoming, Standing)> {
    let waiting = waiting_for_files(queued, now);
    queued.iter().map(move |message| {
        let standing = if is_taken(message, open_cycles) {
            Standing::InHand
        } else if waiting.contains(&message.id) {
            Standing::Files
        } else if is_answerable(message, model, now) {
            Standing::Due
        } else if message.held_for.as_deref() == Some(model.who_answers(message.chat)) {
            Standing::ModelState
        } else if model.out_of_budget(Some(message.chat)).is_some() {
            Standing::Budget
        } else {
            Standing::BackOff
        };
        (message, standing)
    })
}

/// What an interrupted cycle has in its conversation is answered by that cycle.
fn is_taken(message: &Incoming, open_cycles: &[CycleRow]) -> bool {
    message.cycle_id.as_ref().is_some_and(|id| open_cycles.iter().any(|open| open.cycle.id == *id))
}

/// Where a message is answered: a chat, a topic, a terminal that waits.
type Place<'a> = (ChatRef, Option<i64>, Option<&'a str>);

fn place_of(message: &Incoming) -> Place<'_> {
    (message.chat, message.thread_id, message.session.as_deref())
}

/// What is to be answered now, chat by chat, and each terminal that waits by itself; and first what isn't any more, because it was kept
/// for so long.
pub(crate) fn due(observed: &Situation) -> Vec<Reason> {
    let due = standings(observed).filter(|(_, standing)| *standing == Standing::Due).map(|(message, _)| message);
    let is_thought_about = |chat| observed.model.asked(chat).is_some_and(|model| model.is_thinking);
    let is_stale = |message: &&Incoming| is_thought_about(message.chat) && stale::is_stale(message, observed.now);
    let (stale, due): (Vec<_>, Vec<_>) = due.partition(is_stale);
    let stale = by_place(&stale).into_iter().map(|((chat, thread_id, _), ids)| Reason::Stale { chat, thread_id, ids });
    let due = by_place(&due).into_iter().map(|((chat, thread_id, _), ids)| Reason::Messages { chat, thread_id, ids });
    stale.chain(due).collect()
}

/// So many messages of each place as are looked at in one go.
fn by_place<'a>(messages: &[&'a Incoming]) -> Vec<(Place<'a>, Vec<i64>)> {
    let mut places: Vec<(Place<'_>, Vec<i64>)> = Vec::new();
    for message in messages {
        match places.iter_mut().find(|(place, _)| *place == place_of(message)) {
            Some((_, ids)) if ids.len() >= MAX_MESSAGES => {}
            Some((_, ids)) => ids.push(message.id),
            None => places.push((place_of(message), vec![message.id])),
        }
    }
    places
}

/// A chat is told when its first message waits, and then of the first one of each day.
pub(crate) fn over_budget(observed: &Situation) -> Vec<Reason> {
    let mut chats = BTreeSet::new();
    let model = &observed.model;
    let is_kept = |message: &Incoming| message.held_for.as_deref() == Some(model.who_answers(message.chat));
    let waiting = || observed.messages.iter().filter(|message| !is_kept(message) && !model.grammar_takes(message));
    waiting()
        .filter(|message| chats.insert(message.chat))
        .filter_map(|oldest| {
            let cap = model.out_of_budget(Some(oldest.chat))?;
            let of_chat = waiting().filter(|message| message.chat == oldest.chat);
            let key = budget_key(oldest.chat, of_chat, cap, observed.now, observed.tz);
            let (chat, thread_id) = (oldest.chat, oldest.thread_id);
            (!observed.handled.contains(&key)).then_some(Reason::OverBudget { cap, chat, thread_id, key })
        })
        .collect()
}

/// The channel's id of the last of these messages, to reply to.
pub fn last_channel_id(messages: &[Incoming], ids: &[i64]) -> Option<i64> {
    messages.iter().rev().find(|message| ids.contains(&message.id)).and_then(|message| message.channel_message_id)
}
