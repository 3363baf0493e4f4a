//! The effects of a button under a nudge, by rule: a task is finished, or nudges are turned off. Each is a commit of its own, so that it
//! can be undone.

use serde_json::json;

use reveille_base::types::NudgeAnswer;
use reveille_git::Repo;
use reveille_memory as memory;
use reveille_memory::{preferences, tasks::TaskList};
use reveille_store::{Change, NewCycle, NewOutgoing, OpenNudge};
use reveille_tools::{Documents, Registry};

use crate::run::{begin::prepare, record::effects::RuleEffects};
use crate::{
    context::WakeError,
    decide::{lineup::ModelState, verify::Account},
    session::Session,
};

/// Computes the effects of an answer.
pub(crate) fn compute_effects(
    session: &mut Session<'_>,
    repo: &Repo,
    (cycle, lineup): (&NewCycle, &ModelState),
    nudge: &OpenNudge,
) -> Result<RuleEffects, WakeError> {
    let mut effects = match (nudge.answer, &nudge.task) {
        (NudgeAnswer::Done, Some(title)) => finish_task(session, repo, (cycle, lineup), nudge, title)?,
        (NudgeAnswer::NoMore, _) => turn_off_nudges(repo)?,
        (NudgeAnswer::Done | NudgeAnswer::InTheMorning | NudgeAnswer::TakeBack, _) => RuleEffects::default(),
    };
    effects.changes.push(Change::NudgeDone { outgoing_id: nudge.outgoing_id });
    Ok(effects)
}

/// Finishes the task as the model's tool would, among the tasks that the chat may see.
fn finish_task(
    session: &mut Session<'_>,
    repo: &Repo,
    (cycle, lineup): (&NewCycle, &ModelState),
    nudge: &OpenNudge,
    title: &str,
) -> Result<RuleEffects, WakeError> {
    let chat_cycle = NewCycle { chat: Some(nudge.chat), thread_id: nudge.thread_id, ..cycle.clone() };
    let world = prepare::build_world(session, repo, &chat_cycle, lineup, (&[], &[]), &mut Account::default())?;
    // Quotation marks mean the whole title.
    let input = json!({"task": format!("“{title}”")}).to_string();
    let done = Registry::for_offline_model().call("task_done", &input, &world);
    crate::context::check_readable(&world.memory.documents)?;
    let why = match done {
        Ok(done) if !done.is_failure => {
            return Ok(RuleEffects {
                changes: done.changes,
                receipts: done.receipt.into_iter().collect(),
                ..RuleEffects::default()
            });
        }
        Ok(done) => done.content,
        Err(refusal) => refusal.to_string(),
    };
    let is_there = [memory::ACTIVE, memory::BACKLOG].iter().any(|list| {
        TaskList::parse(&world.memory.documents.text(list)).0.tasks().iter().any(|task| task.title == title)
    });
    let why = if is_there { why.trim_end_matches('.') } else { "that task no longer exists" };
    let text = format!("I couldn't finish “{title}”: {why}. Nothing was changed.");
    let text = session.context.redactor.redact(&text);
    let notice = NewOutgoing { thread_id: nudge.thread_id, ..NewOutgoing::notice(nudge.chat, text) };
    let told = format!("Told chat {} that its button couldn't finish a task", nudge.chat);
    Ok(RuleEffects { changes: vec![Change::Send(notice)], ..RuleEffects::from_receipts(vec![told]) })
}

/// Turns nudges off in the person's context.
fn turn_off_nudges(repo: &Repo) -> Result<RuleEffects, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let context = documents.text(memory::CONTEXT);
    crate::context::check_readable(&documents)?;
    let Some(without) = preferences::without_nudges(&context) else {
        return Ok(RuleEffects::from_receipts(vec!["Nudges were already off".to_owned()]));
    };
    let changes = vec![documents.stage(memory::CONTEXT, without)];
    Ok(RuleEffects { changes, ..RuleEffects::from_receipts(vec!["Turned nudges off, by button".to_owned()]) })
}
