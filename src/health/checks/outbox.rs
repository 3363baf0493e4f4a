//! `outbox`: lists undelivered messages with the reasons. An attempt whose sender is dead or silent for minutes is in
//! doubt. It is planned once more and marked as a repeat, as the next wake would do.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::types::ChatRef;
use reveille_store::{PartState, Store, UnsentPart};

use crate::health::{
    finding::{Finding, Trouble},
    repair::RepairTools,
    scene::Scene,
    words::format_relative_time,
};

/// How long a failed message is reported.
const TELL_FAILED_FOR: TimeDelta = TimeDelta::days(7);

/// The state of a part, by the action it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It will be sent, or waits for the next wake in a terminal.
    Waits,
    /// A sender is working on it right now.
    UnderWay,
    /// Its sender is dead or silent, or an attempt ended in doubt and one more is allowed.
    InDoubt,
    /// It was tried and has to wait, or was left untried for long.
    Late,
    /// It won't be tried again.
    Lost,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    // During a stop of all work, waiting is intended.
    let late = match store.chats().find_stop_order()? {
        Some(_) => TimeDelta::MAX,
        None => TimeDelta::from_std(scene.config.stale_lock).unwrap_or(TimeDelta::MAX),
    };
    let parts = store.unsent_parts(scene.now)?.into_iter().map(|part| {
        let fate = decide_fate(&part, late, scene.now);
        (part, fate)
    });
    let parts = judge_parts(&parts.collect::<Vec<_>>(), scene.now);
    let lines = judge_lines(left_lines(store, late, scene.now)?);
    Ok(lines.into_iter().fold(parts, Finding::merge))
}

/// Counts the progress lines that are still in chats `late` after the end of their cycles. A bot deletes them with the
/// answer or at its next start.
fn left_lines(store: &Store, late: TimeDelta, now: DateTime<Utc>) -> Result<usize, Trouble> {
    let mut left = 0;
    for line in store.status_lines().status_lines()? {
        let cycle = store.cycles().find_cycle(&line.cycle_id)?;
        let is_left = cycle.is_none_or(|row| row.ended_at.is_some_and(|at| now.signed_duration_since(at) > late));
        left += usize::from(is_left);
    }
    Ok(left)
}

fn judge_lines(left: usize) -> Option<Finding> {
    (left > 0).then(|| {
        Finding::warn(
            format!("progress lines of finished work are still in chats: {left}"),
            "the bot removes them while it runs: check that it does",
        )
    })
}

fn decide_fate(part: &UnsentPart, late: TimeDelta, now: DateTime<Utc>) -> Fate {
    let age = part.created_at.map_or(TimeDelta::zero(), |at| now.signed_duration_since(at));
    match part.state {
        _ if part.chat == ChatRef::TERMINAL => Fate::Waits,
        PartState::Attempting if part.is_under_way => Fate::UnderWay,
        PartState::Attempting => Fate::InDoubt,
        PartState::Unknown if !part.is_repeat => Fate::InDoubt,
        PartState::Failed | PartState::Unknown if age > TELL_FAILED_FOR => Fate::Waits,
        PartState::Failed | PartState::Unknown => Fate::Lost,
        PartState::Planned | PartState::Sent if age > late => Fate::Late,
        PartState::Planned | PartState::Sent => Fate::Waits,
    }
}

fn judge_parts(parts: &[(UnsentPart, Fate)], now: DateTime<Utc>) -> Finding {
    let mut findings = Vec::new();
    for (part, fate) in parts {
        let id = part.outgoing_id;
        let why = part.error.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let to = format!("message {id} to chat {}", part.chat);
        let age = part.created_at.map(|at| format!(" ({})", format_relative_time(at, now))).unwrap_or_default();
        findings.extend(match fate {
            Fate::Waits | Fate::UnderWay => None,
            Fate::InDoubt => Some(Finding::repairable(
                format!("{to}{age} may or may not have arrived: its sender is gone or silent{why}"),
                "it is sent once more, marked as a repeat",
            )),
            Fate::Late => {
                let next = part
                    .not_before
                    .map(|at| format!("; retry due {}", format_relative_time(at, now)))
                    .unwrap_or_default();
                Some(Finding::warn_for_wake(
                    format!("{to}{age} still isn't delivered after {} tries{why}{next}", part.attempts),
                    "wake --once delivers what it can; check the token and the network",
                ))
            }
            Fate::Lost if part.state == PartState::Unknown => Some(Finding::warn(
                format!("{to}{age} was sent twice without confirmation, so I won't send it again{why}"),
                "check the chat; if the message isn't there, ask again",
            )),
            Fate::Lost => Some(Finding::warn(
                format!("{to}{age} can't be delivered{why}"),
                "check that the chat still exists and hasn't blocked the bot; then ask again",
            )),
        });
    }
    let waiting = parts.iter().filter(|(_, fate)| matches!(fate, Fate::Waits | Fate::UnderWay));
    let detail = match waiting.count() {
        0 => "everything is delivered".to_owned(),
        1 => "1 part waits to be delivered".to_owned(),
        n => format!("{n} parts wait to be delivered"),
    };
    Finding::merge_all(findings, Finding::ok(detail))
}

pub(super) fn repair(tools: &mut RepairTools<'_>) -> Result<Vec<String>, Trouble> {
    let Some(mut store) = tools.store() else {
        return Ok(Vec::new());
    };
    Ok(match store.outbox_mut().recover_outbox()? {
        0 => Vec::new(),
        1 => vec!["a message whose sender was gone or silent is sent once more, marked as a repeat".to_owned()],
        n => vec![format!("{n} messages whose sender was gone or silent are sent once more, marked as repeats")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T12:00:00Z").unwrap()
    }

    fn part(state: PartState, is_repeat: bool, created_at: &str) -> UnsentPart {
        UnsentPart {
            outgoing_id: 1,
            chat: ChatRef::from_telegram(7),
            state,
            is_repeat,
            attempts: 1,
            created_at: parse_time(created_at),
            not_before: None,
            error: Some("no network".to_owned()),
            is_under_way: false,
        }
    }

    fn fate_of(part: &UnsentPart) -> Fate {
        decide_fate(part, TimeDelta::minutes(15), now())
    }

    #[test]
    fn each_state_has_its_fate() {
        const FRESH: &str = "2026-11-21T11:59:00Z";
        const OLD: &str = "2026-11-21T11:00:00Z";
        const ANCIENT: &str = "2026-11-01T11:00:00Z";
        assert_eq!(fate_of(&part(PartState::Planned, false, FRESH)), Fate::Waits);
        assert_eq!(fate_of(&part(PartState::Planned, false, OLD)), Fate::Late);
        let under_way = UnsentPart { is_under_way: true, ..part(PartState::Attempting, false, OLD) };
        assert_eq!(fate_of(&under_way), Fate::UnderWay);
        assert_eq!(fate_of(&part(PartState::Attempting, false, FRESH)), Fate::InDoubt);
        assert_eq!(fate_of(&part(PartState::Unknown, false, FRESH)), Fate::InDoubt);
        assert_eq!(fate_of(&part(PartState::Unknown, true, FRESH)), Fate::Lost);
        assert_eq!(fate_of(&part(PartState::Failed, false, OLD)), Fate::Lost);
        assert_eq!(fate_of(&part(PartState::Failed, false, ANCIENT)), Fate::Waits);
        let console = UnsentPart { chat: ChatRef::TERMINAL, ..part(PartState::Planned, false, ANCIENT) };
        assert_eq!(fate_of(&console), Fate::Waits);
    }

    #[test]
    fn each_undelivered_message_is_told_with_its_reason() {
        let failed = part(PartState::Failed, false, "2026-11-21T11:00:00Z");
        let finding = judge_parts(&[(failed.clone(), Fate::Lost), (failed, Fate::InDoubt)], now());
        assert_eq!(finding.status, Status::Warn);
        assert!(finding.repair.is_some() && finding.detail.matches("no network").count() == 2);
        assert_eq!(judge_parts(&[], now()).detail, "everything is delivered");
    }
}
