//! The notices about given-up work, so that no person's message is dropped silently.

use reveille_base::{
    redact::Redactor,
    types::ChatRef,
    words::{one_line, truncate_text},
};
use reveille_store::{FencedStore, Incoming, MAX_ATTEMPTS, NewCycle, NewOutgoing, StoreError, wake_lock::Holder};

use crate::{
    context::WakeError,
    decide::{machine::Cycle, uptake::GivingUp},
    session::Session,
};

/// The recipient of notices about messages on hold, and the masking of their words.
#[derive(Clone, Copy)]
pub struct Notifier<'a> {
    /// The chat for notices that concern no chat.
    pub owner_chat: ChatRef,
    /// Masks the live secrets.
    pub redactor: &'a Redactor,
}

/// Records the cycle in which the last holder of the wake lock was killed. A cycle that wasn't journalled yet counts against its messages
/// at once. Otherwise a message that kills each wake would be retried forever.
pub fn note_cut_off(
    store: &mut FencedStore<'_>,
    left: &Holder,
    cycle_id: &str,
    teller: Notifier<'_>,
) -> Result<(), StoreError> {
    let queued = store.inbox().list_queued_messages()?;
    let about = queued.iter().filter(|message| left.messages.contains(&message.id));
    let dead: Vec<&str> = about.filter(|message| is_last(message)).map(|message| message.text.as_str()).collect();
    let notice = NewOutgoing {
        key: Some(format!("gave-up/{cycle_id}")),
        thread_id: left.thread_id,
        // The notice quotes the messages, and no journal tells whether they are trusted.
        taint: Some("messages that are on hold".to_owned()),
        ..NewOutgoing::notice(
            left.chat.unwrap_or(teller.owner_chat),
            teller.redactor.redact(&render_on_hold("each time I was cut off before I could begin", &dead, None)),
        )
    };
    store.cycles_mut().note_cut_off(cycle_id, &left.messages, (!dead.is_empty()).then_some(&notice))
}

/// Returns `true` if one more failure puts the message on hold.
fn is_last(message: &Incoming) -> bool {
    message.attempts + 1 >= MAX_ATTEMPTS
}

/// Builds the notice about a given-up cycle. A failure of its messages is reported once over all attempts, and again when they are put on
/// hold. Each branch with unfinished work is named.
pub(crate) fn build_giving_up_notice(
    session: &Session<'_>,
    cycle: &NewCycle,
    state: &Cycle,
    giving_up: &GivingUp,
    parked: Option<&str>,
) -> Result<NewOutgoing, WakeError> {
    let queued = session.store.inbox().list_queued_messages()?;
    let is_dead = |message: &&Incoming| state.open.contains(&message.id) && is_last(message);
    let dead: Vec<&str> = queued.iter().filter(is_dead).map(|message| message.text.as_str()).collect();
    let is_open = |message: &&Incoming| state.open.contains(&message.id);
    let (key, text) = match (giving_up, state.open.first()) {
        (GivingUp::TooLong(why), Some(_)) => {
            let open: Vec<&str> = queued.iter().filter(is_open).map(|message| message.text.as_str()).collect();
            (cycle.id.clone(), render_too_long(why, &open, parked))
        }
        (GivingUp::Failed(why), Some(first)) if dead.is_empty() => {
            // fault: branch-named-message-once
            let key = if parked.is_some() { cycle.id.clone() } else { first.to_string() };
            (key, render_restart(why, "soon", parked))
        }
        (GivingUp::Failed(why), Some(_)) => (cycle.id.clone(), render_on_hold(why, &dead, parked)),
        (GivingUp::Blameless { why, when }, Some(_)) => (cycle.id.clone(), render_restart(why, when, parked)),
        (GivingUp::Blameless { why, when }, None) if !state.handles.is_empty() => {
            (cycle.id.clone(), render_restart_of_work(&cycle.reasons, why, when, parked))
        }
        (GivingUp::Failed(why) | GivingUp::TooLong(why) | GivingUp::Blameless { why, .. }, None) => {
            (cycle.id.clone(), render_end_of_work(&cycle.reasons, why, parked))
        }
        (GivingUp::Unheard | GivingUp::Dropped, _) => (cycle.id.clone(), String::new()),
    };
    Ok(NewOutgoing {
        key: Some(format!("gave-up/{key}")),
        thread_id: cycle.thread_id,
        cycle_id: Some(cycle.id.clone()),
        ..NewOutgoing::notice(
            cycle.chat.unwrap_or(session.context.config.owner_chat),
            session.context.redactor.redact(&text),
        )
    })
}

fn render_branch(parked: Option<&str>) -> String {
    parked.map_or_else(String::new, |branch| format!(". What I had written by then is on the branch `{branch}`"))
}

fn render_restart(why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = render_branch(parked);
    format!(
        "I gave up my unfinished work because {why}. Your message is safe, and I'll start over with it {when}{parked}."
    )
}

fn render_restart_of_work(reasons: &[String], why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = render_branch(parked);
    format!("I gave up a piece of work ({}) because {why}. I'll start over with it {when}{parked}.", reasons.join("; "))
}

/// Reports work that won't be repeated. An answer may have called it done, so the notice says where it is.
fn render_end_of_work(reasons: &[String], why: &str, parked: Option<&str>) -> String {
    let parked = parked.map_or_else(String::new, |branch| {
        format!(
            " What it wrote isn't in my memory, even if I said so. It is on the branch `{branch}`; `git merge {branch}` brings it in."
        )
    });
    format!(
        "I gave up a piece of work ({}) because {why}. I won't try it again on my own, so ask me if it matters.{parked}",
        reasons.join("; ")
    )
}

fn render_on_hold(why: &str, dead: &[&str], parked: Option<&str>) -> String {
    let parked = render_branch(parked);
    format!(
        "I tried {MAX_ATTEMPTS} times and couldn't answer this: {why}. It is on hold. Please rephrase it and send it again, or \
         send /retry{parked}:\n\n{}",
        quote_messages(dead)
    )
}

fn render_too_long(why: &str, open: &[&str], parked: Option<&str>) -> String {
    let parked = render_branch(parked);
    format!(
        "This is too long for my AI model, even shortened as far as I can: {why}. It is on hold. Please send it in smaller parts, or \
         send /retry once MODEL names one that takes more{parked}:\n\n{}",
        quote_messages(open)
    )
}

fn quote_messages(messages: &[&str]) -> String {
    let quoted: Vec<String> = messages.iter().map(|text| truncate_text(&one_line(text), 200)).collect();
    format!("> {}", quoted.join("\n> "))
}
