//! The queue's messages: those to be answered now, those joining a running cycle, and the causes of waiting.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use reveille_base::{clock::is_over, types::ChatRef, zone::Tz};
use reveille_config::OFFLINE_MODEL;
use reveille_store::{Cap, CycleRow, Incoming, NewCycle};

use crate::decide::{
    brief::MAX_MESSAGES,
    gate::list_waiting_for_files,
    lineup::{ModelState, RankedModel},
    situation::{Reason, Situation},
    stale,
};

/// Returns `true` if a model can be given this message now, or the fallback grammar if no model can be asked.
pub fn is_answerable(message: &Incoming, model: &ModelState, now: DateTime<Utc>) -> bool {
    let is_for = |asked: &RankedModel| message.held_for.as_deref() != Some(&asked.name);
    is_ready(message, now) && model.find_model(message.chat).map_or_else(|| model.grammar_takes(message), is_for)
}

/// Returns `true` if the message itself doesn't have to wait.
fn is_ready(message: &Incoming, now: DateTime<Utc>) -> bool {
    !message.awaits_files && message.not_before.is_none_or(|at| is_over(at, now))
}

/// Returns `true` if a cycle's model can be given this message. The fallback grammar gets only messages it understands.
fn may_join(message: &Incoming, cycle: &NewCycle, model: &ModelState, now: DateTime<Utc>) -> bool {
    let stands_in = cycle.model == OFFLINE_MODEL && model.grammar.is_some();
    let is_kept = message.held_for.as_deref() == Some(&cycle.model);
    is_ready(message, now) && !is_kept && (!stands_in || model.is_understood(message))
}

/// Returns the messages with these `ids` if all of them may still go to the model. An edit or another album picture may have brought files
/// that are still loading, or a person may have removed a message from the queue. `None` otherwise.
pub fn find_still_due<'a>(
    queued: &'a [Incoming],
    ids: &[i64],
    model: &ModelState,
    now: DateTime<Utc>,
) -> Option<Vec<&'a Incoming>> {
    let waiting = list_waiting_for_files(queued, now);
    let is_due = |message: &&Incoming| !waiting.contains(&message.id) && is_answerable(message, model, now);
    ids.iter().map(|id| queued.iter().find(|message| message.id == *id).filter(is_due)).collect()
}

/// Lists messages that arrived for the chat and terminal of a running `cycle`, oldest first. Messages that it `knows` and those of another
/// open cycle are left out. A cycle with its full share of messages gets no more while another chat waits.
pub fn list_new_messages<'a>(
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
    let waiting = list_waiting_for_files(queued, now);
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

/// The key of the notice that a chat's messages wait for a budget, sent once per day on which more arrive.
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

/// The standing of a queued message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// To be answered now.
    Due,
    /// In a cycle.
    InHand,
    /// Waiting for files, its own or an earlier message's.
    Files,
    /// The current model is known not to answer it; another may.
    ModelState,
    /// A budget is spent.
    Budget,
    /// The message or the model is tried again later.
    BackOff,
}

/// Lists the standing of each queued message.
pub fn list_standings(observed: &Situation) -> impl Iterator<Item = (&Incoming, Standing)> {
    compute_standings(&observed.messages, &observed.open_cycles, &observed.model, observed.now)
}

/// Returns `true` if a queued message is to be answered now.
pub fn is_any_due(queued: &[Incoming], open_cycles: &[CycleRow], model: &ModelState, now: DateTime<Utc>) -> bool {
    compute_standings(queued, open_cycles, model, now).any(|(_, standing)| standing == Standing::Due)
}

fn compute_standings<'a>(
    queued: &'a [Incoming],
    open_cycles: &'a [CycleRow],
    model: &'a ModelState,
    now: DateTime<Utc>,
) -> impl Iterator<Item = (&'a Incoming, Standing)> {
    let waiting = list_waiting_for_files(queued, now);
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

/// Returns `true` if an interrupted cycle holds the message and will answer it.
fn is_taken(message: &Incoming, open_cycles: &[CycleRow]) -> bool {
    message.cycle_id.as_ref().is_some_and(|id| open_cycles.iter().any(|open| open.cycle.id == *id))
}

/// The place of a message's answer: chat, topic, waiting terminal.
type Place<'a> = (ChatRef, Option<i64>, Option<&'a str>);

fn locate_message(message: &Incoming) -> Place<'_> {
    (message.chat, message.thread_id, message.session.as_deref())
}

/// Lists the messages to be answered now, by chat and by waiting terminal. Messages that have become stale come first, to be closed.
pub(crate) fn list_due_messages(observed: &Situation) -> Vec<Reason> {
    let due = list_standings(observed).filter(|(_, standing)| *standing == Standing::Due).map(|(message, _)| message);
    let is_thought_about = |chat| observed.model.find_model(chat).is_some_and(|model| model.is_thinking);
    let is_stale = |message: &&Incoming| is_thought_about(message.chat) && stale::is_stale(message, observed.now);
    let (stale, due): (Vec<_>, Vec<_>) = due.partition(is_stale);
    let stale =
        group_by_place(&stale).into_iter().map(|((chat, thread_id, _), ids)| Reason::Stale { chat, thread_id, ids });
    let due =
        group_by_place(&due).into_iter().map(|((chat, thread_id, _), ids)| Reason::Messages { chat, thread_id, ids });
    stale.chain(due).collect()
}

/// Groups messages by place, up to one cycle's number.
fn group_by_place<'a>(messages: &[&'a Incoming]) -> Vec<(Place<'a>, Vec<i64>)> {
    let mut places: Vec<(Place<'_>, Vec<i64>)> = Vec::new();
    for message in messages {
        match places.iter_mut().find(|(place, _)| *place == locate_message(message)) {
            Some((_, ids)) if ids.len() >= MAX_MESSAGES => {}
            Some((_, ids)) => ids.push(message.id),
            None => places.push((locate_message(message), vec![message.id])),
        }
    }
    places
}

/// Lists the chats to be told that their messages wait for a budget: at the first waiting message, then once a day.
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

/// Returns the channel's id of the last of these messages, as a target for replies.
pub fn last_channel_id(messages: &[Incoming], ids: &[i64]) -> Option<i64> {
    messages.iter().rev().find(|message| ids.contains(&message.id)).and_then(|message| message.channel_message_id)
}
