//! Interrupted cycles: resumed from their journals, or given up with all their messages kept.

use reveille_git::{Condition, Repo, RepoError};
use reveille_store::{
    CycleRow, Incoming, StoreError,
    wake_lock::{self},
};

use crate::{
    context::{WakeError, WakeOutcome},
    decide::{
        lineup::ModelState,
        machine::Cycle,
        uptake::{CutOff, GivingUp, MAX_TRIES, Uptake, decide_resumption},
        verify::Account,
    },
    maintain::sync,
    plan_file::PlanFile,
    run::{
        begin::{interrupted, live, prepare},
        finish,
        step::fallback,
    },
    session::{Ending, Live, Next, Session},
};

/// Resumes an interrupted cycle from its journal.
pub(crate) async fn run(
    session: &mut Session<'_>,
    repo: &Repo,
    cycle_id: &str,
    has_crashed: bool,
) -> Result<Next, WakeError> {
    let Some(row) = session.store.cycles().find_cycle(cycle_id)? else {
        return Ok(Next::Continue);
    };
    // Named in the lock first, so that any crash from here on is attributed to this cycle.
    let (me, now) = (session.me.clone(), session.now());
    let (chat, thread_id) = (row.cycle.chat, row.cycle.thread_id);
    let work = wake_lock::LockedWork { cycle_id: Some(cycle_id), chat, thread_id, messages: &[] };
    session.lock.write_holder(&me, now, work).map_err(WakeError::Lock)?;
    if has_crashed {
        session.store.cycles_mut().count_try(cycle_id)?;
    }
    let plan_file = PlanFile::reopen(&session.context.config.workspace_dir, cycle_id);
    if session.report.outcome == WakeOutcome::Parked && session.report.cycle_id.as_deref() == Some(cycle_id) {
        // This wake's own question is already decided, so nothing waits.
        session.report.outcome = WakeOutcome::Worked;
    }
    session.report.cycle_id = Some(cycle_id.to_owned());
    session.report.reasons.push(format!("resume {cycle_id}"));
    let cuts = row.tries + u32::from(has_crashed);
    let journal = match session.store.journal().read_journal(cycle_id) {
        // An earlier attempt to give the cycle up was interrupted too, perhaps by the cycle's content. Or a cycle by rule, which only lacks
        // its commit, has killed this many wakes.
        _ if cuts > MAX_TRIES => {
            let state = rebuild_without_journal(session, cycle_id)?;
            return interrupted::give_up(session, repo, cycle_id, &state, &plan_file, GivingUp::cut_off(cuts))
                .await
                .map(|()| Next::Continue);
        }
        Ok(journal) => journal,
        Err(StoreError::Damaged(why)) => {
            let state = rebuild_without_journal(session, cycle_id)?;
            let giving_up = GivingUp::without_blame(format!("its journal can't be read ({why})"));
            return interrupted::give_up(session, repo, cycle_id, &state, &plan_file, giving_up)
                .await
                .map(|()| Next::Continue);
        }
        Err(error) => return Err(error.into()),
    };
    // fault: conversation-goes-last-entry
    let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
    // fault: cycle-goes-doesnt-look
    let commit = repo.history().wake_commit(cycle_id)?;
    // fault end: conversation-goes-last-entry
    if commit.is_none()
        && let Some((branch, commit)) = repo.parked_work().find_parked_branch(cycle_id)?
    {
        // The cycle was cut off after parking its work, perhaps before the report.
        finish::report_parked_branch(session, repo, &branch, row.cycle.chat, &explain_parking(repo)?)?;
        return finish::conclude_cycle(session, repo, &state, cycle_id, commit, &plan_file)
            .await
            .map(|()| Next::Continue);
    }
    let is_dropped = commit.is_none() && !state.open.is_empty() && session.store.inbox().is_dropped(&state.open)?;
    // Earlier answers stay valid, so the changes they mention must be committed.
    // fault: message-taken-out-queue
    let has_answered = state.messages.iter().any(|id| !state.open.contains(id));
    if is_dropped && !has_answered {
        return interrupted::give_up(session, repo, cycle_id, &state, &plan_file, GivingUp::Dropped)
            .await
            .map(|()| Next::Continue);
    }
    // The checks of standing jobs may have taken a while since the look.
    session.refresh_models()?;
    let lineup = session.models();
    let model = choose_model(&lineup, &row);
    let unusable = session.try_model(model)?;
    let uptake = decide_resumption(&row, &journal, model, CutOff { is_committed: commit.is_some(), has_crashed });
    let is_done = match (uptake, commit) {
        (Uptake::Conclude, Some(commit)) => {
            return finish::conclude_cycle(session, repo, &state, cycle_id, commit, &plan_file)
                .await
                .map(|()| Next::Continue);
        }
        (Uptake::GiveUp(giving_up), _) if !is_dropped => {
            return interrupted::give_up(session, repo, cycle_id, &state, &plan_file, giving_up)
                .await
                .map(|()| Next::Continue);
        }
        (uptake, _) => uptake == Uptake::Publish,
    };
    if let Some(why) = unusable.filter(|_| !is_done && !is_dropped) {
        let now = session.now();
        session.store.cycles_mut().pause_cycle(cycle_id, now, &why)?;
        let asking = row.cycle.chat.map(|chat| (chat, row.cycle.thread_id));
        fallback::say_unusable(session, asking, state.open.first().copied(), &why)?;
        session.remove_cycle_from_lock();
        return sync::deliver(session).await.map(|()| Next::Continue);
    }
    // fault: going-takes-longer-anybody
    session.store.cycles_mut().resume_cycle(cycle_id)?;
    let mut account = Account::default();
    account.notes.push(format!("Resumed the wake {cycle_id}, which was interrupted."));
    sync::take_in_person_edits(session, repo, &mut account)?;
    if is_done {
        let staged = session.store.journal().list_staged_files(cycle_id)?;
        return finish::run(session, repo, Ending { staged, ..Ending::new(row.cycle, state, plan_file, account) })
            .await
            .map(|()| Next::Continue);
    }
    let messages = session.store.inbox().list_queued_messages()?;
    let mut world = prepare::build_world(session, repo, &row.cycle, &lineup, (&messages, &state.open), &mut account)?;
    world.cycle.replies = state.replies;
    world.unasked.told_keys.extend(state.handles.iter().cloned());
    let exec = session.build_exec(&world);
    let live = Live::new(row.cycle, state, world, plan_file, account, exec);
    if is_dropped {
        return Box::pin(live::complete_cycle(session, repo, live)).await.map(|()| Next::Continue);
    }
    live::drive_cycle(session, repo, live).await
}

/// Returns the model that resumes a cycle. If none can be asked now, the model that began it, provided it is still configured.
fn choose_model<'l>(lineup: &'l ModelState, row: &'l CycleRow) -> &'l str {
    let begun_by = row.cycle.model.as_str();
    let of_tasks = lineup.simple.iter().chain(&lineup.reflect);
    let is_configured = lineup.lineup.iter().chain(of_tasks).any(|model| model.name == begun_by);
    let otherwise = if is_configured { begun_by } else { lineup.name() };
    lineup.find_resuming_model(begun_by, row.cycle.chat).unwrap_or(otherwise)
}

/// Reconstructs a cycle without its journal, from the queue and the reasons given to it.
fn rebuild_without_journal(session: &Session<'_>, cycle_id: &str) -> Result<Cycle, WakeError> {
    let mut state = Cycle::new(String::new(), String::new());
    let reports = session.store.cycles().read_cycle_reports(cycle_id)?;
    state.handles = reports.handles.into_iter().collect();
    state.head_shown = reports.heads.into_iter().next_back();
    // fault: cycle-given-up-twice
    let taken = |message: &Incoming| message.cycle_id.as_deref() == Some(cycle_id);
    state.open = session
        .store
        .inbox()
        .list_queued_messages()?
        .iter()
        .filter(|message| taken(message))
        .map(|message| message.id)
        .collect();
    Ok(state)
}

/// Returns the reason why an interrupted cycle had parked its work, as far as HEAD still shows it.
fn explain_parking(repo: &Repo) -> Result<String, RepoError> {
    Ok(match repo.read_condition()? {
        Condition::Normal | Condition::Unborn => {
            "something went wrong, and I was cut off before I could say what".to_owned()
        }
        condition => RepoError::NotOnBranch { condition, branch: repo.branch().to_owned() }.to_string(),
    })
}
