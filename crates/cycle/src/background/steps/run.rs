//! A step of a long task: the start of its cycle, with a short account of the whole task, and its conclusion.

use std::collections::BTreeSet;

use reveille_base::types::OwnWork;
use reveille_git::Repo;
use reveille_memory::steps::{StepReport, StepState, TaskStep, TaskSteps, steps_path};
use reveille_store::{Entry, StoreError};
use reveille_tools as tool;
use reveille_tools::{Assignment, BUDGET_USD, Documents, StepInHand};

use crate::run::record::{self, lasting::list_lasting_receipts};
use crate::{
    background::begun::StartedJob,
    context::WakeError,
    decide::brief::escape,
    session::{Live, Session},
};

/// The number of shown results of earlier steps, the latest ones. Steps needed by this one come in addition.
const BEFORE_MAX: usize = 12;
/// The maximum length of shown lessons, in characters; the newest are shown.
const LEARNED_CHARS_MAX: usize = 4_000;
/// The number of later steps named.
const AFTER_MAX: usize = 3;
/// The number of effects of earlier tries named.
const DONE_MAX: usize = 30;
/// The tool that ends a step's cycle.
const STEP_END: &str = "step_end";

/// The request to the model.
const ASKED: &str = "\
Nobody waits for you: take this one step of a long task, and no other. The plan below is your own, made at your person's wish; each step \
has a conversation of its own, and only what you give `step_end` reaches the next. Do the step with your tools, check it, and call \
`step_end`: `done` with what is there now; `failed` with what to try instead; `stuck` with the question, if only your person can say how to go on. \
Don't write to your person otherwise.";

/// Builds the start of the step's cycle.
pub(crate) fn begin(session: &Session<'_>, repo: &Repo, plan: &str, number: u32) -> Result<StartedJob, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let text = steps_path(plan).map(|path| documents.text(&path)).unwrap_or_default();
    crate::context::check_readable(&documents)?;
    let steps = TaskSteps::parse(&text).0;
    let Some(step) = steps.find_step(number) else { return Ok(StartedJob::default()) };
    let before = list_earlier_effects(session, plan, number)?;
    Ok(StartedJob { block: render_step(plan, &steps, step, &before), ..StartedJob::default() })
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

/// Renders the opening's block, whose length doesn't grow with the number of steps.
fn render_step(plan: &str, steps: &TaskSteps, step: &TaskStep, done_before: &[String]) -> String {
    let all = steps.steps();
    let mut text = format!(
        "<long_task name=\"{plan}\" step=\"{}\" of=\"{}\">\n{ASKED}\n<goal>{}</goal>",
        step.number,
        all.len(),
        escape(steps.goal().unwrap_or("(none is written down)"))
    );
    let at = all.iter().position(|one| one.number == step.number).unwrap_or(0);
    let is_near = |index: usize| index < at && at - index <= BEFORE_MAX;
    let over = all.iter().enumerate().filter(|(index, one)| {
        matches!(one.state, StepState::Done | StepState::Skipped)
            && (is_near(*index) || steps.is_needed_by(one.number, step))
    });
    let over: Vec<String> = over.map(|(_, one)| format_step(one)).collect();
    if !over.is_empty() {
        text.push_str(&format!("\n<done count=\"{}\">\n{}\n</done>", steps.n_over(), over.join("\n")));
    }
    let learned = render_lessons(all);
    if !learned.is_empty() {
        text.push_str(&format!("\n<learned>\n{learned}\n</learned>"));
    }
    text.push_str(&format!("\n<step n=\"{}\">{}", step.number, escape(&step.what)));
    for (what, value) in [("Tool", &step.tool), ("Done when", &step.done_when), ("Your person says", &step.advice)] {
        if let Some(value) = value {
            text.push_str(&format!("\n{what}: {}", escape(value)));
        }
    }
    if let Some(result) = step.result.as_deref() {
        let result = if step.is_tainted { "it isn't shown here: it may contain untrusted text" } else { result };
        let other = if step.failures > 0 { " Take another way." } else { "" };
        text.push_str(&format!("\nTried before: {}.{other}", escape(result)));
    }
    for done in done_before {
        text.push_str(&format!("\nAlready done, not to be done again: {}", escape(done)));
    }
    text.push_str("\n</step>");
    let next: Vec<String> =
        all.iter().skip(at + 1).take(AFTER_MAX).map(|one| format!("{}. {}", one.number, escape(&one.what))).collect();
    if !next.is_empty() {
        text.push_str(&format!("\n<later>\n{}\n</later>", next.join("\n")));
    }
    text.push_str("\n</long_task>");
    text
}

fn format_step(step: &TaskStep) -> String {
    let result = match &step.result {
        Some(result) if step.is_tainted => {
            format!(
                "(the result may contain untrusted text, {} characters: `look_up` file shows them)",
                result.chars().count()
            )
        }
        Some(result) => escape(result),
        None => step.state.name().to_owned(),
    };
    format!("{}. {}: {result}", step.number, escape(&step.what))
}

/// Renders the lessons so far, the newest if there are too many.
fn render_lessons(steps: &[TaskStep]) -> String {
    let own = steps
        .iter()
        .rev()
        .filter(|step| !step.is_tainted)
        .filter_map(|step| step.learned.as_deref().map(|text| (step.number, text)));
    let (mut lines, mut chars) = (Vec::new(), 0);
    for (number, text) in own {
        chars += text.chars().count();
        if chars > LEARNED_CHARS_MAX {
            break;
        }
        lines.push(format!("{number}: {}", escape(text)));
    }
    lines.reverse();
    lines.join("\n")
}

/// Returns the assignment for the step's tools.
pub(crate) fn build_assignment(plan: &str, step: u32) -> Assignment {
    Assignment::Step(StepInHand { plan: plan.to_owned(), step, done: BTreeSet::new() })
}

fn has_ended(live: &Live) -> bool {
    live.state.receipts.iter().any(|receipt| receipt.tool == STEP_END)
}

/// Returns `true` if the model has reported the step's result, the person has stopped the task, or the budget is spent.
pub(crate) fn is_over(session: &Session<'_>, live: &Live, plan: &str) -> Result<bool, WakeError> {
    Ok(has_ended(live) || !tool::is_in_hand(&live.world, plan) || find_spent_budget(session, live, plan)?.is_some())
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
    (!has_ended(live) && !live.state.was_asked_for_more())
        .then_some("(Say what came of the step with `step_end`. What isn't said there is lost.)")
}

/// Concludes a step without a report: a spent budget pauses the task, otherwise the person is asked.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live, plan: &str, number: u32) -> Result<(), WakeError> {
    if has_ended(live) {
        return Ok(());
    }
    let hand = StepInHand { plan: plan.to_owned(), step: number, done: BTreeSet::new() };
    let spent = find_spent_budget(session, live, plan)?;
    live.world.clock.now = session.now();
    let ended = match spent {
        _ if !tool::is_in_hand(&live.world, plan) => tool::put_back(&live.world, &hand),
        Some(spent) => tool::out_of_money(&live.world, &hand, spent),
        None => {
            let report = StepReport {
                state: StepState::Stuck,
                has_failed: true,
                result: "my AI model ended without reporting a result; the wake's log shows what it did".to_owned(),
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
