//! `queue`: finds messages that could be answered but aren't. Messages that the present model can't answer are counted
//! separately, since they rightly wait for another.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_cycle::decide::{lineup::ModelState, orient::is_answerable};
use reveille_store::{Incoming, MAX_ATTEMPTS, OddRow};

use crate::health::{
    finding::{Finding, Trouble},
    remedy::Remedy,
    scene::Scene,
    words::{format_count, format_relative_time},
};

/// Number of answerable messages above which the queue isn't keeping up.
const MAX_DEPTH: usize = 50;
/// Maximum number of listed failed messages.
const MAX_NAMED: usize = 5;
/// Age above which an answerable message was overlooked.
const MAX_AGE: TimeDelta = TimeDelta::hours(1);

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    // Messages of a parked cycle wait for a person, as `approvals` reports. People who have stopped their own chat
    // resume it themselves.
    let (asked, queued): (Vec<Incoming>, Vec<Incoming>) = {
        let parked = store.cycles().parked_cycles()?;
        let stopped_chats = store.chats().stopped_chats()?;
        let is_asked = |message: &Incoming| {
            stopped_chats.contains_key(&message.chat)
                || parked.iter().any(|cycle| message.cycle_id.as_ref() == Some(&cycle.cycle_id))
        };
        store.inbox().list_queued_messages()?.into_iter().partition(is_asked)
    };
    let beyond =
        usize::try_from(store.inbox().queue_depth()?.0).unwrap_or(0).saturating_sub(queued.len() + asked.len());
    let odd = store.odd_rows()?;
    let beyond = beyond.saturating_sub(odd.iter().filter(|row| row.table == "incoming_messages").count());
    let mut found = match store.chats().find_stop_order()? {
        Some(_) => {
            Finding::ok(format!("{} waiting; all work is stopped; to continue: wake resume", queued.len() + beyond))
        }
        None => judge_queue(&queued, beyond, &scene.model_state(store)?, scene.is_wake_running(), scene.now),
    };
    if !asked.is_empty() {
        let what = format_count(asked.len(), "message");
        found.detail.push_str(&format!("; {what} waiting for your answer to a question (wake approvals list)"));
    }
    let others = [judge_given_up(&store.inbox().dead_letters()?), judge_odd(&odd)];
    Ok(others.into_iter().flatten().fold(found, Finding::merge))
}

/// Reports rows that were inserted by hand and can't be read. They are skipped, so they don't delay others.
fn judge_odd(odd: &[OddRow]) -> Option<Finding> {
    let first = odd.first()?;
    let named = odd.iter().take(MAX_NAMED).map(|row| format!("{} {} {}", row.table, row.id, row.describe()));
    let more = if odd.len() > MAX_NAMED { "; …" } else { "" };
    Some(Finding::warn(
        format!("{}{more}", named.collect::<Vec<_>>().join("; ")),
        format!("nothing is lost; repair each one like this: {}", first.repair_statement()),
    ))
}

/// Reports messages that too many wakes failed on, until a person decides. Nothing retries them automatically.
fn judge_given_up(dead: &[Incoming]) -> Option<Finding> {
    let first = dead.first()?;
    let ids: Vec<String> = dead.iter().take(MAX_NAMED).map(|message| message.id.to_string()).collect();
    let more = if dead.len() > MAX_NAMED { ", …" } else { "" };
    let count = format_count(dead.len(), "message");
    let finding = Finding::warn(
        format!("{count} given up after {MAX_ATTEMPTS} tries ({}{more})", ids.join(", ")),
        format!("see wake queue list; then for each: wake queue retry {0}, or wake queue drop {0}", first.id),
    );
    let retried = |finding: Finding, message: &Incoming| finding.with_remedy(Remedy::RetryMessage { id: message.id });
    Some(dead.iter().fold(finding, retried))
}

/// `beyond` is the number of messages beyond the read limit.
fn judge_queue(
    queued: &[Incoming],
    beyond: usize,
    model: &ModelState,
    is_wake_running: bool,
    now: DateTime<Utc>,
) -> Finding {
    let (answerable, held): (Vec<&Incoming>, Vec<&Incoming>) =
        queued.iter().partition(|message| is_answerable(message, model, now));
    let (files, held): (Vec<&Incoming>, Vec<&Incoming>) = held.into_iter().partition(|message| message.awaits_files);
    let depth = answerable.len() + beyond;
    let oldest = answerable.iter().filter_map(|message| message.received_at).min();
    let mut detail = match (depth, oldest) {
        (0, _) => "empty".to_owned(),
        (n, None) => format!("{n} waiting"),
        (n, Some(at)) => format!("{n} waiting, the oldest came {}", format_relative_time(at, now)),
    };
    let (for_model, held): (Vec<&Incoming>, Vec<&Incoming>) =
        held.into_iter().partition(|message| message.held_for.as_deref() == Some(model.who_answers(message.chat)));
    let (for_budget, later): (Vec<&Incoming>, Vec<&Incoming>) =
        held.into_iter().partition(|message| model.out_of_budget(Some(message.chat)).is_some());
    for (which, what) in [
        (for_model, "kept until an AI model can answer"),
        (for_budget, "waiting for the budget"),
        (later, "to be tried again later"),
        (files, "waiting for files"),
    ] {
        if !which.is_empty() {
            detail.push_str(&format!("; {} {what}", which.len()));
        }
    }
    let is_old = oldest.is_some_and(|at| now.signed_duration_since(at) > MAX_AGE);
    if depth > MAX_DEPTH || is_old {
        let fix = if is_wake_running {
            "a wake is working on it; check again when it has ended"
        } else {
            "wake --once answers it; check that cron or the bot starts wakes"
        };
        return if is_wake_running { Finding::warn(detail, fix) } else { Finding::warn_for_wake(detail, fix) };
    }
    Finding::ok(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;
    use reveille_base::types::ChatRef;

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T12:00:00Z").unwrap()
    }

    fn message(received_at: &str, held_for: Option<&str>) -> Incoming {
        Incoming {
            id: 1,
            chat: ChatRef::TERMINAL,
            text: "hello".to_owned(),
            received_at: parse_time(received_at),
            kind: "text".to_owned(),
            held_for: held_for.map(str::to_owned),
            ..Incoming::default()
        }
    }

    fn judged(queued: &[Incoming], is_available: bool) -> Finding {
        let model = ModelState::for_model("offline");
        let model = if is_available { model } else { model.out_of_reach() };
        judge_queue(queued, 0, &model, false, now())
    }

    #[test]
    fn old_and_many_are_told_and_held_ones_counted_apart() {
        let fresh = message("2026-11-21T11:30:00Z", None);
        let old = message("2026-11-21T10:59:00Z", None);
        let held = message("2026-11-20T10:00:00Z", Some("offline"));
        assert_eq!(judged(&[], true).status, Status::Ok);
        assert_eq!(judged(&vec![fresh.clone(); MAX_DEPTH], true).status, Status::Ok);
        assert_eq!(judged(&vec![fresh; MAX_DEPTH + 1], true).status, Status::Warn);
        assert_eq!(judged(std::slice::from_ref(&old), true).status, Status::Warn);
        // No model could answer it now, which another check reports.
        assert_eq!(judged(&[old], false).status, Status::Ok);
        let finding = judged(&[held], true);
        assert_eq!(
            (finding.status, finding.detail.as_str()),
            (Status::Ok, "empty; 1 kept until an AI model can answer")
        );
        let awaits = Incoming { awaits_files: true, ..message("2026-11-20T10:00:00Z", None) };
        let finding = judged(&[awaits], true);
        assert_eq!((finding.status, finding.detail.as_str()), (Status::Ok, "empty; 1 waiting for files"));
    }
    #[test]
    fn abandoned_messages_are_reported_until_a_person_decides() {
        assert_eq!(judge_given_up(&[]), None);
        let dead: Vec<Incoming> = (1..=7).map(|id| Incoming { id, ..message("2026-11-21T11:30:00Z", None) }).collect();
        let finding = judge_given_up(&dead).unwrap();
        assert_eq!(finding.status, Status::Warn);
        assert_eq!(finding.detail, "7 messages given up after 3 tries (1, 2, 3, 4, 5, …)");
        assert!(finding.fix.unwrap().contains("wake queue retry 1"));
    }
}
