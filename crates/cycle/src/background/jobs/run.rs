//! A run of a standing job with the model: the job file's orders open the cycle, `tools` and `budget` limit it, and the last words are its
//! result.

use std::collections::BTreeSet;

use reveille_base::words::{one_line, truncate_text};
use reveille_git::Repo;
use reveille_memory::job::{Job, job_path};
use reveille_store::{Change, Entry, JobEnd, JobState, MessageTime, NewOutgoing};
use reveille_tools::{Assignment, Documents};

use crate::run::record::{self, effects::RuleEffects};
use crate::{
    background::{begun::StartedJob, jobs},
    context::WakeError,
    session::{Live, Session},
};

/// The maximum length of a kept result, in characters.
const OUTPUT_CHARS_MAX: usize = 8_000;
/// The maximum length of a result in the log, in characters.
const LOGGED_CHARS_MAX: usize = 120;
/// The model's answer for no report.
const SILENT: &str = "nothing";

/// Builds the start of the job's cycle.
pub(crate) fn begin(session: &Session<'_>, repo: &Repo, name: &str, run: i64) -> Result<StartedJob, WakeError> {
    let documents = Documents::new(repo.root(), Vec::new());
    let job = read_job(&documents, name);
    crate::context::check_readable(&documents)?;
    let (Some(job), Some(row)) = (job, session.store.jobs().job_run(run)?) else { return Ok(StartedJob::default()) };
    let orders = job.body.unwrap_or_default();
    let before = find_previous_result(session, name, run)?;
    let block = jobs::words::render_opening(name, &row, &orders, before.as_deref());
    let rule = RuleEffects { changes: vec![Change::TakeUpJob { run }], ..RuleEffects::default() };
    Ok(StartedJob { block, rule, taint: row.found.map(|_| format!("what the job {name} looks at")), words: orders })
}

/// Returns the result of the previous run, if it is untainted.
fn find_previous_result(session: &Session<'_>, name: &str, run: i64) -> Result<Option<String>, WakeError> {
    let last = session.store.jobs().job_runs(Some(name), 20)?;
    let Some(last) = last.into_iter().find(|row| row.id < run && row.state == JobState::Worked) else {
        return Ok(None);
    };
    let is_own = match &last.cycle_id {
        Some(cycle) => session.store.outbox().find_cycle_taints(cycle)?.is_none() && last.found.is_none(),
        None => false,
    };
    Ok(last.output.filter(|_| is_own))
}

fn read_job(documents: &Documents, name: &str) -> Option<Job> {
    Job::parse(name, &documents.get(&job_path(name))?).ok()
}

/// Returns the tools allowed for the job. An unreadable file allows none.
pub(crate) fn build_assignment(documents: &Documents, name: &str) -> Assignment {
    Assignment::Job(match read_job(documents, name) {
        Some(job) => job.tools.map(BTreeSet::from_iter),
        None => Some(BTreeSet::new()),
    })
}

/// Returns `true` if the run's budget is spent.
pub(crate) fn is_over(session: &Session<'_>, live: &Live, name: &str) -> Result<bool, WakeError> {
    Ok(find_spent_budget(session, live, name)?.is_some())
}

/// Returns the spending and the budget, once the budget is spent.
fn find_spent_budget(session: &Session<'_>, live: &Live, name: &str) -> Result<Option<(f64, f64)>, WakeError> {
    let budget = read_job(&live.world.memory.documents, name).map_or(0.0, |job| job.budget_usd);
    let spent = session.store.ledger().sum_cycle_cost(&live.cycle.id)?.cost_usd;
    Ok((spent > 0.0 && spent >= budget).then_some((spent, budget)))
}

/// Records the result, and reports it as the job's file says.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live, name: &str, run: i64) -> Result<(), WakeError> {
    let Some(row) = session.store.jobs().job_run(run)?.filter(|row| row.state == JobState::Open) else { return Ok(()) };
    let notify = read_job(&live.world.memory.documents, name).map(|job| job.notify).unwrap_or_default();
    let said = session.context.redactor.redact(live.state.last_text());
    // A run that ended by itself is complete, even if its last turn exceeded the budget.
    let spent = if live.state.is_at_rest() { None } else { find_spent_budget(session, live, name)? };
    let (state, output) = match spent {
        Some((spent, budget)) => {
            let why = format!(
                "It stopped: one run may cost ${budget:.2}, and it has cost ${spent:.2} (`budget` in its file)."
            );
            (JobState::Failed, format!("{why}\n\n{said}").trim_end().to_owned())
        }
        None if !live.state.is_at_rest() => {
            (JobState::Failed, format!("My AI model stopped before it was done.\n\n{said}").trim_end().to_owned())
        }
        None => (JobState::Worked, said),
    };
    let output = truncate_text(&output, OUTPUT_CHARS_MAX);
    let is_silent = output.is_empty() || output.trim_matches(['`', '.', '"']).eq_ignore_ascii_case(SILENT);
    let before = session.store.jobs().last_job_output(name, run)?;
    // A person who started a run gets its result, whatever the file says.
    let is_asked = row.slot.is_none();
    let is_told = is_asked || !is_silent && jobs::decide::is_reportable(notify, &output, before.as_deref());
    let message = is_told.then(|| {
        let owner = session.context.config.owner_chat;
        let output = if is_silent { "It ran and had nothing to report." } else { &output };
        let notice = NewOutgoing::notice(owner, format!("**{name}**\n\n{output}"));
        let time = if is_asked {
            MessageTime::Now
        } else {
            jobs::look::choose_message_time(session.context.config, session.now())
        };
        (NewOutgoing { links_as_text: !live.state.taints.is_empty(), ..notice }, time)
    });
    let told = if message.is_some() { "" } else { ", and told nobody" };
    let receipt = format!("Ran the job {name}{told}: {}", truncate_text(&one_line(&output), LOGGED_CHARS_MAX));
    let receipt = if is_silent { format!("Ran the job {name}: nothing to report") } else { receipt };
    let done = Entry::ByRule { receipts: vec![receipt], handles: Vec::new(), head: live.state.head_shown.clone() };
    let output = if is_silent { SILENT.to_owned() } else { output };
    record::record_entry(session, live, &done, &[Change::EndJob(JobEnd { run, state, output, message })])
}
