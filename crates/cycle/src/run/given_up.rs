//! What is said when work is given up, and who is told: nothing that a person said goes without a word.

use reveille_base::{
    redact::Redactor,
    types::ChatRef,
    words::{one_line, shortened},
};
use reveille_store::{FencedStore, Incoming, MAX_ATTEMPTS, NewCycle, NewOutgoing, StoreError, wake_lock::Holder};

use crate::{
    context::WakeError,
    decide::{machine::Cycle, uptake::GivingUp},
    session::Session,
};

/// Who is told of messages that are put aside, and how their words are shown.
#[derive(Clone, Copy)]
pub struct Teller<'a> {
    /// Where what concerns no chat is told.
    pub owner_chat: ChatRef,
    /// Masks the live secrets.
    pub redactor: &'a Redactor,
}

/// Takes note of the cycle in which the last holder of the wake lock was killed. One that wasn't journalled yet counts against its
/// messages at once: nothing else will ever tell of it, and a message that kills whoever takes it up would be taken up for ever.
pub fn note_cut_off(
    store: &mut FencedStore<'_>,
    left: &Holder,
    cycle_id: &str,
    teller: Teller<'_>,
) -> Result<(), StoreError> {
    let queued = store.queued()?;
    let about = queued.iter().filter(|message| left.messages.contains(&message.id));
    let dead: Vec<&str> = about.filter(|message| is_last(message)).map(|message| message.text.as_str()).collect();
    let notice = NewOutgoing {
        key: Some(format!("gave-up/{cycle_id}")),
        thread_id: left.thread_id,
        // It quotes them, and no journal tells whose words they are.
        taint: Some("messages that are on hold".to_owned()),
        ..NewOutgoing::notice(
            left.chat.unwrap_or(teller.owner_chat),
            teller.redactor.redact(&put_aside("each time I was cut off before I could begin", &dead, None)),
        )
    };
    store.note_cut_off(cycle_id, &left.messages, (!dead.is_empty()).then_some(&notice))
}

/// Whether one more failure makes it a dead letter.
fn is_last(message: &Incoming) -> bool {
    message.attempts + 1 >= MAX_ATTEMPTS
}

/// What is said of a cycle that was given up. That its messages fail is said once, however often they are tried, and once
/// more when they are put aside; each branch with what it had written is named.
pub(crate) fn given_up(
    session: &Session<'_>,
    cycle: &NewCycle,
    state: &Cycle,
    giving_up: &GivingUp,
    parked: Option<&str>,
) -> Result<NewOutgoing, WakeError> {
    let queued = session.store.queued()?;
    let is_dead = |message: &&Incoming| state.open.contains(&message.id) && is_last(message);
    let dead: Vec<&str> = queued.iter().filter(is_dead).map(|message| message.text.as_str()).collect();
    let is_open = |message: &&Incoming| state.open.contains(&message.id);
    let (key, text) = match (giving_up, state.open.first()) {
        (GivingUp::TooLong(why), Some(_)) => {
            let open: Vec<&str> = queued.iter().filter(is_open).map(|message| message.text.as_str()).collect();
            (cycle.id.clone(), too_long(why, &open, parked))
        }
        (GivingUp::Failed(why), Some(first)) if dead.is_empty() => {
            // fault: branch-named-message-once
            let key = if parked.is_some() { cycle.id.clone() } else { first.to_string() };
            (key, begins_again(why, "soon", parked))
        }
        (GivingUp::Failed(why), Some(_)) => (cycle.id.clone(), put_aside(why, &dead, parked)),
        (GivingUp::Blameless { why, when }, Some(_)) => (cycle.id.clone(), begins_again(why, when, parked)),
        (GivingUp::Blameless { why, when }, None) if !state.handles.is_empty() => {
            (cycle.id.clone(), begins_work_again(&cycle.reasons, why, when, parked))
        }
        (GivingUp::Failed(why) | GivingUp::TooLong(why) | GivingUp::Blameless { why, .. }, None) => {
            (cycle.id.clone(), gives_work_up(&cycle.reasons, why, parked))
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

fn written_by_then(parked: Option<&str>) -> String {
    parked.map_or_else(String::new, |branch| format!(". What I had written by then is on the branch `{branch}`"))
}

fn begins_again(why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!(
        "I gave up my unfinished work because {why}. Your message is safe, and I'll start over with it {when}{parked}."
    )
}

fn begins_work_again(reasons: &[String], why: &str, when: &str, parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!("I gave up a piece of work ({}) because {why}. I'll start over with it {when}{parked}.", reasons.join("; "))
}

/// Nothing does this work again. What was answered may say of it that it was done, so it is said where it is.
fn gives_work_up(reasons: &[String], why: &str, parked: Option<&str>) -> String {
    let parked = parked.map_or_else(String::new, |branch| {
        format!(
            " What it wrote isn't in my memory, even if I said so. It is on the branch `{branch}`; `git merge {branch}` brings it in."
        )
    });
    format!(
        "I gave up a piece of work ({}) because {why}. I won't try it again by myself, so ask me if it matters.{parked}",
        reasons.join("; ")
    )
}

fn put_aside(why: &str, dead: &[&str], parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!(
        "I tried {MAX_ATTEMPTS} times and couldn't answer this: {why}. It is on hold. Please rephrase it and send it again, or \
         send /retry{parked}:\n\n{}",
        quoted(dead)
    )
}

fn too_long(why: &str, open: &[&str], parked: Option<&str>) -> String {
    let parked = written_by_then(parked);
    format!(
        "This is too long for my AI model, even shortened as far as I can: {why}. It is on hold. Please send it in smaller parts, or \
         send /retry once MODEL names one that takes more{parked}:\n\n{}",
        quoted(open)
    )
}

fn quoted(messages: &[&str]) -> String {
    let quoted: Vec<String> = messages.iter().map(|text| shortened(&one_line(text), 200)).collect();
    format!("> {}", quoted.join("\n> "))
}
