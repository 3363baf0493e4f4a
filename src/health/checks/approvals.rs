//! `approvals`: cycles that wait for a person. Waiting is normal. Problems are a question that wasn't delivered or is
//! lost, and an answer without a wake that resumes the cycle.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_store::{Approval, ApprovalState, ParkedCycle};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_relative_time,
};

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let parked = store.cycles().parked_cycles()?;
    if store.chats().find_stop_order()?.is_some() && !parked.is_empty() {
        return Ok(Finding::ok(format!("{} parked; all work is stopped; to continue: wake resume", parked.len())));
    }
    let overdue = TimeDelta::from_std(scene.config.stale_lock).unwrap_or(TimeDelta::MAX);
    let model = scene.model_state(store)?;
    let is_available = !model.is_thinking() || model.find_background_model().is_some();
    let context = ParkedContext { overdue, is_wake_running: scene.is_wake_running(), is_model_available: is_available };
    let findings = parked.iter().map(|parked| judge_parked(parked, scene.now, context));
    Ok(Finding::merge_all(findings.collect(), Finding::ok("no open questions")))
}

/// The circumstances in which parked cycles are judged.
#[derive(Clone, Copy)]
struct ParkedContext {
    /// The time allowed for delivering a question or resuming after its answer.
    overdue: TimeDelta,
    is_wake_running: bool,
    is_model_available: bool,
}

fn judge_parked(parked: &ParkedCycle, now: DateTime<Utc>, context: ParkedContext) -> Finding {
    let ParkedContext { overdue, is_wake_running, is_model_available } = context;
    let ParkedCycle { cycle_id, started_at, question, is_delivered } = parked;
    let is_late = |since: Option<DateTime<Utc>>| {
        !is_wake_running && since.is_none_or(|at| now.signed_duration_since(at) > overdue)
    };
    let Some(question) = question else {
        let detail = format!("{cycle_id} waits for an answer, but its question is gone");
        let fix = "the next wake treats it as refused and continues: wake --once";
        return if is_late(*started_at) { Finding::warn_for_wake(detail, fix) } else { Finding::ok(detail) };
    };
    let Approval { id, tool, asked_at, expires_at, decided_at, state, .. } = question;
    let asked = asked_at.map_or_else(String::new, |at| format!(", asked {}", format_relative_time(at, now)));
    if !question.is_expired(now) && *state == ApprovalState::Pending {
        let until = expires_at.map_or_else(String::new, |at| format!(", expires {}", format_relative_time(at, now)));
        let detail = format!("question {id} ({tool}) waits for your answer{asked}{until}");
        return if *is_delivered || !is_late(*asked_at) {
            Finding::ok(detail)
        } else {
            Finding::warn(
                format!("{detail}; it hasn't reached you"),
                format!("see the check `outbox`, or decide here: wake approvals list, then approve {id} or deny {id}"),
            )
        };
    }
    let (outcome, since) = match state {
        ApprovalState::Pending => ("expired without an answer, and nobody was told".to_owned(), *expires_at),
        state => (format!("was {}", state.as_str()), *decided_at),
    };
    let detail = format!(
        "question {id} ({tool}) {outcome}{}",
        since.map_or_else(String::new, |at| format!(", {}", format_relative_time(at, now)))
    );
    if is_late(since) && is_model_available {
        Finding::warn_for_wake(
            format!("{detail}; no wake has resumed its work"),
            "wake --once does that; check that cron or the bot starts wakes",
        )
    } else {
        Finding::ok(format!("{detail}; the next wake resumes its work"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;
    use reveille_base::types::ChatRef;

    fn at(text: &str) -> Option<DateTime<Utc>> {
        Some(parse_time(&format!("2026-11-21T{text}Z")).unwrap())
    }

    /// Asked at 14:00, open until 20:00.
    fn question(state: ApprovalState, decided_at: Option<DateTime<Utc>>) -> ParkedCycle {
        let question = Approval {
            id: 3,
            cycle_id: "c1".to_owned(),
            call: "t1".to_owned(),
            tool: "bash".to_owned(),
            action: "{}".to_owned(),
            risk: "dangerous".to_owned(),
            reasons: Vec::new(),
            origin: None,
            chat: ChatRef::from_telegram(7),
            state,
            asked_at: at("14:00:00"),
            expires_at: at("20:00:00"),
            decided_at,
            decided_by: None,
            used_at: None,
            rule: None,
            named: reveille_base::types::BoundFiles::default(),
            consents: Vec::new(),
        };
        ParkedCycle {
            cycle_id: "c1".to_owned(),
            started_at: at("13:59:00"),
            question: Some(question),
            is_delivered: true,
        }
    }

    const IDLE: ParkedContext =
        ParkedContext { overdue: TimeDelta::minutes(15), is_wake_running: false, is_model_available: true };

    fn status(parked: &ParkedCycle, now: &str) -> Status {
        judge_parked(parked, at(now).unwrap(), IDLE).status
    }

    #[test]
    fn waiting_is_fine_until_the_question_expires_and_no_wake_resumes_the_cycle() {
        let waits = question(ApprovalState::Pending, None);
        assert_eq!(["14:01:00", "19:59:00", "20:01:00"].map(|now| status(&waits, now)), [Status::Ok; 3]);
        assert_eq!(status(&waits, "20:16:00"), Status::Warn);
        let late = judge_parked(&waits, at("20:16:00").unwrap(), IDLE);
        assert!(late.detail.contains("expired without an answer, and nobody was told"), "{}", late.detail);
        let busy = ParkedContext { is_wake_running: true, ..IDLE };
        assert_eq!(judge_parked(&waits, at("20:16:00").unwrap(), busy).status, Status::Ok);
    }

    #[test]
    fn an_answer_needs_a_wake_soon_unless_the_model_is_unavailable() {
        for state in [ApprovalState::Approved, ApprovalState::Denied, ApprovalState::Expired] {
            let decided = question(state, at("15:00:00"));
            assert_eq!(["15:14:00", "15:16:00"].map(|now| status(&decided, now)), [Status::Ok, Status::Warn]);
            let without_model = ParkedContext { is_model_available: false, ..IDLE };
            assert_eq!(judge_parked(&decided, at("15:16:00").unwrap(), without_model).status, Status::Ok);
        }
    }

    #[test]
    fn a_lost_or_undelivered_question_is_reported() {
        let unsent = ParkedCycle { is_delivered: false, ..question(ApprovalState::Pending, None) };
        assert_eq!(["14:14:00", "14:16:00"].map(|now| status(&unsent, now)), [Status::Ok, Status::Warn]);
        let gone = ParkedCycle { question: None, ..unsent };
        assert_eq!(["14:13:00", "14:16:00"].map(|now| status(&gone, now)), [Status::Ok, Status::Warn]);
    }
}
