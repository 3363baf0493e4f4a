//! A wake with the lock: settles open work, then runs cycles until nothing is due.
//!
//! 1. **Settle.** Stale locks are removed, a half-done move of the branch is completed, and parts of messages in doubt are planned again
//!    or given up. Nothing is read or sent before this.
//! 2. **Catch up**, unless all work is stopped: work parked on branches is merged, and reminders follow a changed clock or zone.
//! 3. **Deliver** the answers of earlier wakes.
//! 4. **Work.** Each round reads the situation, chooses the most urgent work, and runs one cycle for it: an undo, a resumed cycle, a rule,
//!    or a model ([`run_model_cycle`]). The rounds end when nothing is due, or at the deadline, a stop order or a lost lease; work that
//!    hasn't begun is left for the next wake.
//! 5. **Check standing jobs**, if nothing else is due. A gate that opens is work for the next look.
//! 6. **Push and fetch**, if nobody waits, since a remote may be slow.
//! 7. **Delete old records**, about once a day.
//! 8. **Keep house**: git's own upkeep, the search index, and vectors for new texts, after everything is sent.
//!
//! A kill anywhere leaves a journal or a note from which step 1 or a resumed cycle continues.

use std::time::Duration;

use reveille_base::types::OwnWork;
use reveille_channels::delivery;
use reveille_git::{MAINTAIN_COMMANDS, MAINTAIN_TIMEOUT, REMOTE_TIMEOUT, Repo};
use reveille_store::{Change, Entry, HEAD_SEEN, wake_lock};

use crate::{
    background::{self, jobs},
    context::{WakeError, WakeOutcome},
    decide::{
        lineup::ModelState,
        machine::Cycle,
        orient::{self, Backlog, Work},
        situation::{Reason, Situation},
        verify::Account,
    },
    lease,
    look::observe,
    maintain::{embed, index, ready, retention, sync},
    run::{
        ask::proposal,
        begin::{
            given_up::{self, Notifier},
            live, prepare, resume,
        },
        by_rule::{self, remind, undo},
        finish,
        step::fallback,
    },
    session::{Live, Next, Session},
};

/// The maximum number of cycles in one wake. The next wake continues.
const MAX_CYCLES: u32 = 50;
/// The time that a wake may take beyond its time limit to end started work: a delivery with the send in progress, two pushes of two tries
/// each with a fetch in between, housekeeping, and embedding. The wake keeps its heartbeat for as long.
const ENDING_BOUND: Duration = Duration::from_secs(
    2 * delivery::BOUND.as_secs()
        + 5 * REMOTE_TIMEOUT.as_secs()
        + MAINTAIN_COMMANDS * MAINTAIN_TIMEOUT.as_secs()
        + embed::BOUND.as_secs(),
);

/// Records the cycle in which the last holder was killed. Then writes this holder into the lock file, and keeps the heartbeat for the
/// wake's maximum duration. The order matters, since the old line is the only evidence of that kill.
pub(crate) fn register_holder(session: &mut Session<'_>) -> Result<(), WakeError> {
    let (me, now) = (session.me.clone(), session.now());
    reveille_live::remove_stale(&session.context.config.live_path());
    if let Some((left, cycle_id)) = session.lock.cut_off(&me) {
        let teller = Notifier { owner_chat: session.context.config.owner_chat, redactor: session.context.redactor };
        given_up::note_cut_off(&mut session.store, left, cycle_id, teller)?;
    }
    session.lock.write_holder(&me, now, wake_lock::LockedWork::default()).map_err(WakeError::Lock)?;
    session.lock.show_life(session.context.config.wake_timeout + ENDING_BOUND);
    Ok(())
}

/// Does upkeep, then runs cycles. Returns `true` if anything was done, so that an empty look ends the wake.
pub(crate) async fn run(session: &mut Session<'_>, settles_doubts: bool) -> Result<bool, WakeError> {
    let repo = ready::open_repo(session)?;
    // The lock of a killed git would otherwise block every fetch.
    let removed = repo.housekeeping().remove_stale_locks();
    if !removed.is_empty() {
        tracing::warn!(?removed, "locks of dead git programs are removed");
    }
    ready::finish_interrupted_commit(session, &repo)?;
    if session.store.maintenance().find_handled_value(HEAD_SEEN)?.is_none() {
        finish::mark_head_as_seen(session, &repo)?;
    }
    if settles_doubts {
        session.store.outbox_mut().recover_outbox()?;
    }
    ready::clear_plan_files(session)?;
    let mut has_brought_in = false;
    if !session.is_stopped()? {
        has_brought_in = sync::commit_parked_work(session, &repo)?;
        remind::rewind_reminders(session)?;
        remind::tell_of_zone(session)?;
    }
    let mut has_worked = sync::deliver_pending(session).await? || has_brought_in;
    let (mut is_quiet, mut backlog) = (false, Backlog::default());
    let mut cycles_left = if session.context.is_turn { 1 } else { MAX_CYCLES };
    while cycles_left > 0 {
        cycles_left -= 1;
        let observation = Situation::read(&session.store, Some(&repo), session.context)?;
        session.set_models(observation.model.clone());
        let (reasons, is_more_due) = orient::without_backlog(orient::list_due_reasons(&observation), backlog);
        let Some(work) = orient::choose(reasons, &observation.model, session.context.config.owner_chat) else {
            is_quiet = true;
            break;
        };
        // Work that hasn't started loses nothing by waiting for the next wake.
        let is_to_end = *session.context.stop.borrow() || session.sharing.is_lost();
        if is_to_end || tokio::time::Instant::now() >= session.deadline {
            break;
        }
        has_worked = true;
        // Long work must not delay scheduled jobs.
        if orient::is_background_job(&work, &observation.open_cycles) {
            jobs::check::check_due_jobs(session, &repo).await?;
        }
        let is_answer = work.is_answer();
        // A turn among many assistants covers an answer and some of the reminders behind it. Otherwise no reminder would ever come.
        cycles_left += u32::from(session.context.is_turn && is_answer && is_more_due);
        backlog = if is_answer { Backlog::HasTurn } else { Backlog::GivesWay };
        let next = match work {
            Work::Resume { cycle_id, has_crashed } => resume::run(session, &repo, &cycle_id, has_crashed).await?,
            Work::Undo(undo) => undo::run(session, &repo, &undo).await.map(|()| Next::Continue)?,
            Work::Mechanical(reasons) => {
                by_rule::run(session, &repo, &observation, &reasons).await.map(|()| Next::Continue)?
            }
            Work::Think { reasons } => run_model_cycle(session, &repo, observation, &reasons).await?,
        };
        if next == Next::Stop {
            break;
        }
    }
    proposal::delete_old_branches(session, &repo)?;
    // Only while nobody waits. The next look finds work for the model.
    if is_quiet {
        has_worked |= jobs::check::check_due_jobs(session, &repo).await?;
    }
    // Last, after all answers.
    if is_quiet || !sync::has_due_work(session, &repo)? {
        has_worked |= sync::run_slow_work(session, &repo)?;
    }
    if session.report.outcome != WakeOutcome::Failed && !session.is_stopped()? && retention::forget_old(session).await?
    {
        session.sync.is_indexed.set(false);
        has_worked = true;
    }
    // The machine on duty handles people's commits.
    if !lease::is_on_duty(session.context.config) {
        finish::mark_head_as_seen(session, &repo)?;
    }
    if has_worked && session.report.outcome == WakeOutcome::Idle {
        session.report.outcome = WakeOutcome::Worked;
    }
    if session.report.outcome == WakeOutcome::Worked && session.find_interrupt()?.is_none() {
        sync::maintain_repo(session, &repo)?;
        if !session.sync.is_indexed.get() {
            index::update_index(session, &repo);
        }
        embed::embed_new_texts(session, &repo).await?;
    }
    Ok(has_worked)
}

/// Returns the name of the model that begins a cycle.
fn choose_model(lineup: &ModelState, reasons: &[Reason]) -> String {
    let chat = reasons.iter().find_map(|reason| match reason {
        Reason::Messages { chat, .. } => Some(*chat),
        _ => None,
    });
    let is_reflection = match reasons {
        [Reason::Own { due }] => matches!(due.work, OwnWork::Initiative { .. }),
        reasons => matches!(reasons, [Reason::Reflection { .. }]),
    };
    let own = || if is_reflection { lineup.for_reflection() } else { lineup.find_background_model() };
    let own = || own().map_or(lineup.name(), |model| &model.name);
    chat.map_or_else(own, |chat| lineup.choose_starting_model(chat)).to_owned()
}

/// Runs a cycle with the model.
async fn run_model_cycle(
    session: &mut Session<'_>,
    repo: &Repo,
    mut observation: Situation,
    reasons: &[Reason],
) -> Result<Next, WakeError> {
    let reported = (session.report.cycle_id.clone(), session.report.reasons.len());
    let model = choose_model(&observation.model, reasons);
    if let Some(why) = session.try_model(&model)? {
        let asking = reasons.iter().find_map(|reason| match reason {
            Reason::Messages { chat, thread_id, .. } => Some((*chat, *thread_id)),
            _ => None,
        });
        let first = reasons.iter().flat_map(Reason::messages).next().copied();
        fallback::say_unusable(session, asking, first, &why)?;
        return sync::deliver(session).await.map(|()| Next::Continue);
    }
    let mut cycle = session.new_cycle(reasons, &model)?;
    let ids: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
    let plan_file = session.open_plan_file(&cycle, &ids)?;
    let mut account = Account::default();
    sync::pull(session, repo, &mut account)?;
    observation.person_commits = observe::person_commits(&session.store, repo)?;
    observation.head = observe::read_head(repo)?;
    observation.reread_messages(&session.store)?;
    let now = session.now();
    let Some(seen) = orient::find_still_due(&observation.messages, &ids, &observation.model, now) else {
        return session.drop_unstarted_cycle(&plan_file, reported).map(|()| Next::Continue);
    };
    let mut world =
        prepare::build_world(session, repo, &cycle, &observation.model, (&observation.messages, &ids), &mut account)?;
    let mut begun = background::run::begin(session, repo, &cycle, reasons)?;
    let rule = std::mem::take(&mut begun.rule);
    for change in &rule.changes {
        match change {
            Change::File(file) => world.memory.documents.apply(file),
            // The rules' question counts towards the daily limit, even if a reminder asks it later.
            Change::Send(_) | Change::AddReminder(_) => world.unasked.told_today += 1,
            _ => {}
        }
    }
    world.unasked.told_keys.extend(rule.handles.iter().cloned());
    let opening = prepare::build_opening(session, &mut cycle, &world, &observation, reasons, &begun)?;
    crate::context::check_readable(&world.memory.documents)?;
    let mut entries = vec![opening];
    if cycle.work.is_none() {
        if !entries
            .first()
            .map_or(Ok(false), |opening| session.store.cycles_mut().begin_message_cycle(&cycle, opening, &seen))?
        {
            return session.drop_unstarted_cycle(&plan_file, reported).map(|()| Next::Continue);
        }
    } else {
        // The rules' effects precede the model's opening, in the same transaction.
        let receipts: Vec<String> = rule.receipts.iter().map(|what| session.context.redactor.redact(what)).collect();
        if !receipts.is_empty() || !rule.changes.is_empty() || !rule.handles.is_empty() {
            entries.insert(0, Entry::ByRule { receipts, handles: rule.handles, head: None });
        }
        session.store.cycles_mut().begin_cycle(&cycle, &entries, &rule.changes)?;
    }
    if let Some(chat) = cycle.chat
        && let Some(notice) = fallback::build_notice(session, &observation.model, (chat, cycle.thread_id), &model)?
    {
        session.store.journal_mut().apply_changes(&cycle.id, &[notice])?;
    }
    let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
    entries.iter().for_each(|entry| state.apply(entry));
    let exec = session.build_exec(&world);
    live::drive_cycle(session, repo, Live::new(cycle, state, world, plan_file, account, exec)).await
}
