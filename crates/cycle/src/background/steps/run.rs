//! A step of a long task in its cycle: the start, the allowed tools, the limits and the conclusion.

use std::collections::BTreeSet;

use reveille_base::types::OwnWork;
use reveille_git::Repo;
use reveille_memory::steps::{StepReport, StepState, TaskSteps, steps_path};
use reveille_store::{Entry, StoreError};
use reveille_tools as tool;
use reveille_tools::{Assignment, BUDGET_USD, Documents, StepInHand};

use crate::run::record::{self, lasting::list_lasting_receipts};
use crate::{
    background::{
        begun::StartedJob,
        steps::{
            decide::{StepStanding, Unreported},
            words,
        },
    },
    context::WakeError,
    session::{Live, Session},
};

/// The number of effects of earlier tries named.
const DONE_MAX: usize = 30;
/// The tool that ends a step's cycle.
const STEP_END: &str = "step_end";

/// Builds the start of the step's cycle.
pub(crate) fn begin(session: &Session<'_>, repo: &Repo, plan: &str, number: u32) -> Result<StartedJob, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let text = steps_path(plan).map(|path| documents.text(&path)).unwrap_or_default();
    crate::context::check_readable(&documents)?;
    let steps = TaskSteps::parse(&text).0;
    let Some(step) = steps.find_step(number) else { return Ok(StartedJob::default()) };
    let before = list_earlier_effects(session, plan, number)?;
    Ok(StartedJob { block: words::render_step(plan, &steps, step, &before), ..StartedJob::default() })
}

/// Lists the lasting effects of earlier runs of the step that weren't undone.
fn list_earlier_effects(session: &Session<'_>, plan: &str, number: u32) -> Result<Vec<String>, WakeError> {
    let mut done = Vec::new();
    for row in session.store.cycles().ended_work(&format!("{}{number}/", OwnWork::plan_prefix(plan)))? {
        if session.store.undos().find_undo_state(&row.cycle.id)? == Some(true) {
            continue;
        }
        let journal = match session.store.journal().read_journal(&row.cycle.id) {
            Err(StoreError::Damaged(_)) => continue,
            journal => journal?,
        };
        // A receipt of a tainted run may contain untrusted text, so only the run is named.
        if session.store.outbox().find_cycle_taints(&row.cycle.id)?.is_none() {
            done.extend(list_lasting_receipts(&journal, &session.tooling().registry).into_iter().map(str::to_owned));
        } else {
            done.push(format!(
                "Something (wake {}, which had read untrusted text: check before you repeat it)",
                row.cycle.id
            ));
        }
    }
    let first = done.len().saturating_sub(DONE_MAX);
    Ok(done.split_off(first))
}

/// Returns the assignment for the step's tools.
pub(crate) fn build_assignment(plan: &str, step: u32) -> Assignment {
    Assignment::Step(StepInHand { plan: plan.to_owned(), step, done: BTreeSet::new() })
}

fn has_ended(live: &Live) -> bool {
    live.state.receipts.iter().any(|receipt| receipt.tool == STEP_END)
}

/// Reads the facts about the step in progress.
fn read_standing(session: &Session<'_>, live: &Live, plan: &str) -> Result<StepStanding, WakeError> {
    Ok(StepStanding {
        is_reported: has_ended(live),
        is_in_hand: tool::is_in_hand(&live.world, plan),
        spent: find_spent_budget(session, live, plan)?,
    })
}

/// Returns `true` if the model has reported the step's result, the person has stopped the task, or the budget is spent.
pub(crate) fn is_over(session: &Session<'_>, live: &Live, plan: &str) -> Result<bool, WakeError> {
    Ok(has_ended(live) || read_standing(session, live, plan)?.is_over())
}

/// Returns the spending and the budget, once the budget is spent.
fn find_spent_budget(session: &Session<'_>, live: &Live, plan: &str) -> Result<Option<(f64, f64)>, WakeError> {
    let text = steps_path(plan).map(|path| live.world.memory.documents.text(&path)).unwrap_or_default();
    let budget = TaskSteps::parse(&text).0.budget_usd().unwrap_or(BUDGET_USD);
    let spent = session.store.ledger().sum_job_cost(&OwnWork::plan_prefix(plan))?.cost_usd;
    Ok((spent > 0.0 && spent >= budget).then_some((spent, budget)))
}

/// Returns the single request to a model that ends its turn without reporting a result.
pub(crate) fn find_missing_report(live: &Live) -> Option<&'static str> {
    (!has_ended(live) && !live.state.was_asked_for_more()).then_some(words::REPORT_MISSING)
}

/// Concludes a step without a report: a spent budget pauses the task, otherwise the person is asked.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live, plan: &str, number: u32) -> Result<(), WakeError> {
    if has_ended(live) {
        return Ok(());
    }
    let Some(unreported) = read_standing(session, live, plan)?.find_unreported() else { return Ok(()) };
    let hand = StepInHand { plan: plan.to_owned(), step: number, done: BTreeSet::new() };
    live.world.clock.now = session.now();
    let ended = match unreported {
        Unreported::Stopped => tool::put_back(&live.world, &hand),
        Unreported::OutOfMoney { spent, budget } => tool::out_of_money(&live.world, &hand, (spent, budget)),
        Unreported::Silent => {
            let report = StepReport {
                state: StepState::Stuck,
                has_failed: true,
                result: words::UNREPORTED.to_owned(),
                learned: None,
                is_tainted: false,
            };
            tool::record_step_end(&live.world, &hand, &report, &[])
        }
    };
    // A step removed by the person meanwhile needs no conclusion.
    let Ok(ended) = ended else { return Ok(()) };
    let receipt = session.context.redactor.redact(&ended.told);
    let done = Entry::ByRule { receipts: vec![receipt], handles: Vec::new(), head: live.state.head_shown.clone() };
    let changes = record::mask_changes(session, ended.changes);
    record::record_entry(session, live, &done, &changes)
}
