//! A cycle that stopped early: its record, its notices, and the decision to give it up.

use reveille_git::{Parked, Parking, Publish, Repo};
use reveille_store::{Change, CycleEnd, CycleState, NewOutgoing};
use reveille_tools::Complexity;

use crate::{
    context::{WakeError, WakeOutcome},
    decide::{
        budget::{self, Budget, Waits},
        interrupt::Interrupt,
        lineup::WorkStage,
        machine::Cycle,
        merge::merge_texts,
        orient,
        uptake::GivingUp,
    },
    maintain::sync,
    plan_file::PlanFile,
    run::{begin::given_up, finish, step::turn},
    session::{Live, Next, Session},
};

/// Records the reason for the stop. Messages stay queued, and paid turns stay in the journal.
pub(crate) async fn record_interrupt(
    session: &mut Session<'_>,
    repo: &Repo,
    live: &Live,
    interrupt: Interrupt,
) -> Result<Next, WakeError> {
    let Live { cycle, state, plan_file, .. } = live;
    let now = session.now();
    let why = session.context.redactor.redact(&interrupt.to_string());
    if interrupt == Interrupt::Halted {
        tracing::info!(cycle = %cycle.id, %why, "the cycle was interrupted");
        session.report.outcome = WakeOutcome::Parked;
        session.store.cycles_mut().pause_cycle(&cycle.id, now, &why)?;
        return Ok(Next::Continue);
    }
    tracing::warn!(cycle = %cycle.id, %why, "the cycle was interrupted");
    let before = (session.report.outcome, session.report.error.clone());
    session.report.outcome = WakeOutcome::Failed;
    session.report.error = Some(why.clone());
    match &interrupt {
        Interrupt::Stopped | Interrupt::LeaseLost => {
            session.store.cycles_mut().pause_cycle(&cycle.id, now, &why)?;
            return Ok(Next::Stop);
        }
        // A timed-out cycle stays marked as running, so that the next wake counts a try. Background work with progress is paused instead,
        // since it may take any number of wakes.
        Interrupt::OutOfTime if live.has_progressed() && state.meter.complexity() == Complexity::Background => {
            session.store.cycles_mut().pause_cycle(&cycle.id, now, &why)?;
            return Ok(Next::Stop);
        }
        Interrupt::OutOfTime => {
            session.store.cycles_mut().note_cut_off(&cycle.id, &[], None)?;
            return Ok(Next::Stop);
        }
        Interrupt::Rejected(_) => {
            // The server has answered, even though it rejected this request.
            session.store.maintenance_mut().record_model_answer(&cycle.model)?;
            return give_up(session, repo, &cycle.id, state, plan_file, GivingUp::Failed(why))
                .await
                .map(|()| Next::Stop);
        }
        Interrupt::TooLong(_) => {
            return give_up(session, repo, &cycle.id, state, plan_file, GivingUp::TooLong(why))
                .await
                .map(|()| Next::Continue);
        }
        Interrupt::Unavailable { retry_after, fault, is_model_gone, .. } => {
            let at_least = retry_after.and_then(|wait| chrono::TimeDelta::from_std(wait).ok());
            session.store.maintenance_mut().record_model_failure(&cycle.model, *fault, &why, at_least)?;
            session.refresh_models()?;
            let is_missing = *is_model_gone && state.turns > 0;
            if is_missing && find_takeover(session, live)? == Takeover::Not {
                let when = "as soon as MODEL names one that exists";
                return give_up(session, repo, &cycle.id, state, plan_file, GivingUp::Blameless { why, when })
                    .await
                    .map(|()| Next::Stop);
            }
            if is_missing {
                tell_owner_of_missing_model(session, live, &why)?;
            }
        }
        Interrupt::OverBudget { cap, most_usd } => {
            let mark = Budget::read(&session.store, session.context.config, now)?.format_request_mark(*cap, *most_usd);
            let no_room = Change::Handled { key: budget::no_room_key(cycle.chat), value: mark };
            session.store.journal_mut().apply_changes(&cycle.id, &[no_room])?;
        }
        Interrupt::KeptLocal | Interrupt::Halted => {}
    }
    // The failure, a spent budget or a `/local` sent meanwhile may have changed the choice.
    session.refresh_models()?;
    let takeover = find_takeover(session, live)?;
    match takeover {
        Takeover::Whole => (session.report.outcome, session.report.error) = before,
        Takeover::Not | Takeover::InPart if interrupt == Interrupt::KeptLocal => {
            (session.report.outcome, session.report.error) = before;
            tell_once_of_wait(session, live, &interrupt)?;
        }
        Takeover::Not | Takeover::InPart => tell_once_of_wait(session, live, &interrupt)?,
    }
    if state.turns > 0 || orient::is_begun_by_rule(cycle) {
        session.store.cycles_mut().pause_cycle(&cycle.id, now, &why)?;
    } else {
        let has_copies = session.has_copies(&cycle.id);
        let end = CycleEnd { error: Some(&why), has_copies, ..CycleEnd::new(CycleState::Failed) };
        session.store.cycles_mut().end_cycle(&cycle.id, &end)?;
        session.remove_plan_file(plan_file);
    }
    session.remove_cycle_from_lock();
    sync::deliver(session).await?;
    // Other chats' requests may cost less.
    let is_its_own = matches!(interrupt, Interrupt::OverBudget { .. } | Interrupt::KeptLocal);
    Ok(if is_its_own || takeover != Takeover::Not { Next::Continue } else { Next::Stop })
}

/// The part of a cycle continued by another model at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takeover {
    /// Nothing: the cycle waits.
    Not,
    /// The fallback grammar answers the messages it understands, and the rest waits.
    InPart,
    /// All of it.
    Whole,
}

/// Finds another model for the cycle or its messages. The asking chat is told when that model begins.
fn find_takeover(session: &Session<'_>, live: &Live) -> Result<Takeover, WakeError> {
    let Live { cycle, state, .. } = live;
    let lineup = session.models();
    let has_begun = state.turns > 0 || orient::is_begun_by_rule(cycle);
    let others = lineup.without_model(&cycle.model);
    let stage = if has_begun { WorkStage::Begun } else { WorkStage::New };
    if others.has_other_model(stage, cycle.chat) {
        return Ok(Takeover::Whole);
    }
    if has_begun {
        return Ok(Takeover::Not);
    }
    if turn::is_all_understood(session, live, &lineup)? {
        return Ok(Takeover::Whole);
    }
    let queued = session.store.inbox().list_queued_messages()?;
    let is_understood = |id: &i64| queued.iter().any(|message| message.id == *id && lineup.is_understood(message));
    Ok(if state.open.iter().any(is_understood) { Takeover::InPart } else { Takeover::Not })
}

/// Tells the owner that a model doesn't exist and another replaces it, because only they can correct the setting. A chat that learns of it
/// from the switch itself isn't told twice.
fn tell_owner_of_missing_model(session: &mut Session<'_>, live: &Live, why: &str) -> Result<(), WakeError> {
    let model = &live.cycle.model;
    if session.models().name() == model && live.cycle.chat == Some(session.context.config.owner_chat) {
        return Ok(());
    }
    let since =
        session.store.maintenance().find_breaker(model)?.and_then(|breaker| breaker.since).map(|at| at.to_rfc3339());
    let key = format!("missing-model/{model}/{}", since.unwrap_or_default());
    let text = format!(
        "My AI model `{model}` can't be found: {why}. Another one answers meanwhile. Please check the model settings."
    );
    session.alarm(&key, text).map(|_| ())
}

/// Tells the asking chat once per period of trouble that its message is kept. Waiting for a budget takes long, so the chat concerned, or
/// the owner, is told even without an open message.
fn tell_once_of_wait(session: &mut Session<'_>, live: &Live, interrupt: &Interrupt) -> Result<(), WakeError> {
    let Live { cycle, state, .. } = live;
    let chat = cycle.chat.unwrap_or(session.context.config.owner_chat);
    let mut changes = Vec::new();
    let (key, text) = match (interrupt, state.open.first()) {
        (Interrupt::OverBudget { cap, most_usd }, open) => {
            let budget = Budget::read(&session.store, session.context.config, session.now())?;
            match open {
                Some(_) => {
                    let queued = session.store.inbox().list_queued_messages()?;
                    let open = queued.iter().filter(|message| state.open.contains(&message.id));
                    let (now, tz) = (session.now(), session.context.config.timezone);
                    let key = orient::budget_key(chat, open, *cap, now, tz);
                    changes.push(Change::Handled { key: key.clone(), value: String::new() });
                    (key, budget.render_notice(*cap, *most_usd, Waits::Message))
                }
                // fault: work-waits-budget-waits
                None => (budget.work_key(chat, *cap), budget.render_notice(*cap, *most_usd, Waits::Work)),
            }
        }
        // fault: waits-mind-out-reach
        (_, Some(first)) => (format!("waits/{first}"), interrupt.render_notice()),
        (_, None) => return Ok(()),
    };
    changes.push(Change::Send(NewOutgoing {
        key: Some(key),
        thread_id: cycle.thread_id,
        ..NewOutgoing::notice(chat, text)
    }));
    Ok(session.store.journal_mut().apply_changes(&cycle.id, &changes)?)
}

/// Ends a cycle that can't be resumed: its messages return to the queue, its unpublished work goes to a separate branch, and its person is
/// told in one sentence.
pub(crate) async fn give_up(
    session: &mut Session<'_>,
    repo: &Repo,
    cycle_id: &str,
    state: &Cycle,
    plan_file: &PlanFile,
    giving_up: GivingUp,
) -> Result<(), WakeError> {
    let now = session.now();
    let staged = session.store.journal().list_staged_files(cycle_id)?;
    let mut parked = None;
    if !staged.is_empty() {
        let branch = format!("recovered/{cycle_id}");
        let message = format!("Unfinished work of the wake {cycle_id}\n");
        let redactor = session.context.redactor;
        let publish = Publish {
            changes: &finish::to_changes(&staged),
            message: &message,
            now,
            merge: &merge_texts,
            is_secret: &|text| redactor.contains_secret(text),
        };
        // fault: work-given-up-couldnt
        let Parked { branch, .. } = repo.parked_work().park(&branch, &publish, Parking::ForAPerson)?;
        session.report.notes.push(format!("Its unfinished work is on the branch {branch}."));
        parked = Some(branch);
    }
    let row = session
        .store
        .cycles()
        .find_cycle(cycle_id)?
        .filter(|_| !matches!(giving_up, GivingUp::Unheard | GivingUp::Dropped));
    let notice = row
        .map(|row| given_up::build_giving_up_notice(session, &row.cycle, state, &giving_up, parked.as_deref()))
        .transpose()?;
    let (counts, is_hopeless) = (giving_up.is_counted(), matches!(giving_up, GivingUp::TooLong(_)));
    // Without failing messages nothing else would end it, and the same reasons would be tried forever.
    let is_over = counts && state.open.is_empty();
    let head_seen = if is_over { finish::find_seen_commit(session, repo, state.head_shown.as_deref())? } else { None };
    let end = CycleEnd {
        error: Some(giving_up.reason()),
        handled: if is_over { &state.handles } else { &[] },
        head_seen: head_seen.as_deref(),
        failed_messages: if counts && !is_hopeless { &state.open } else { &[] },
        dead_messages: if is_hopeless { &state.open } else { &[] },
        notice: notice.as_ref(),
        has_copies: session.has_copies(cycle_id),
        ..CycleEnd::new(if giving_up == GivingUp::Unheard { CycleState::Failed } else { CycleState::Abandoned })
    };
    session.store.cycles_mut().end_cycle(cycle_id, &end)?;
    session.remove_plan_file(plan_file);
    session.remove_cycle_from_lock();
    sync::deliver(session).await
}
