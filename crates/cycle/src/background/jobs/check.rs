//! The part of standing jobs that needs no model: the job files are read if the folder has changed, due gates are checked, and findings are
//! reported by rule. An open gate with work for the model creates a run, which waits for a cycle of its own.
//!
//! All this is upkeep: it runs when nothing else is due, each check has a time limit, and all of it gives way to new messages.

use reveille_base::schedule::{Missed, Slot};
use reveille_git::Repo;
use reveille_memory::job::{JOBS_DIR, Job, JobGate, Jobs};
use reveille_policy as policy;
use reveille_sandbox::{exec::Exec, web::FetchLimits};
use reveille_store::{JobLook, JobPlan, JobRow, JobState, MessageTime, NewJobRun, NewOutgoing};

use crate::{
    background::jobs::{
        self,
        gate::{GATE_BOUND, GateResult, check_gate},
        words::{self, format_span, format_time, render_report},
    },
    context::WakeError,
    lease,
    maintain::sync,
    session::Session,
};

/// The maximum number of jobs checked per round. The next round continues with the others.
const LOOKS_MAX: usize = 10;
/// The number of consecutive failures before a person is told.
const TELL_AFTER: u32 = 3;
/// After the clock was set back, the history is read from this long before the present time. Time zones differ by less than this.
const HISTORY: chrono::TimeDelta = chrono::TimeDelta::days(2);

/// Checks the due jobs. Returns `true` if there was anything to do.
pub(crate) async fn check_due_jobs(session: &mut Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if session.find_interrupt()?.is_some()
        || session.is_stopped()?
        || !jobs::look::is_due(&session.store, session.context)?
    {
        return Ok(false);
    }
    let sign = jobs::look::compute_signature(session.context.config);
    // Another machine may check the jobs; findings from here are still reported.
    let is_on_duty = lease::is_on_duty(session.context.config);
    let found = if is_on_duty { read_jobs(session, repo)? } else { Jobs::default() };
    if is_on_duty {
        plan_jobs(session, &found, &sign)?;
        session.store.jobs_mut().fail_lost_job_runs()?;
        recompute_slots(session)?;
    }
    let is_quiet = jobs::look::is_quiet(session.context.config, session.now());
    let mut has_said = !is_quiet
        && session.store.jobs().has_held_job_message()?
        && session.store.jobs_mut().say_held_job_messages()?;
    let now = session.now();
    let due: Vec<JobRow> = session.store.jobs().list_jobs()?.into_iter().filter(|row| row.is_due(now)).collect();
    let mut exec = None;
    for row in due.iter().take(LOOKS_MAX) {
        let Some(job) = found.get(&row.name) else { continue };
        if session.find_interrupt()?.is_some() || sync::is_somebody_waiting(session, repo)? {
            break;
        }
        let exec: &Exec = exec.get_or_insert_with(|| build_exec(session));
        match check_job(session, repo, exec, job, row).await? {
            Some(look) => {
                has_said |= look.message.as_ref().is_some_and(|(_, time)| *time == MessageTime::Now);
                session.store.jobs_mut().record_job_look(&look)?;
            }
            None => break,
        }
    }
    if has_said {
        sync::deliver(session).await?;
    }
    Ok(true)
}

/// Reads the jobs from their files.
fn read_jobs(session: &mut Session<'_>, repo: &Repo) -> Result<Jobs, WakeError> {
    let paths = repo.list_markdown(&[JOBS_DIR])?;
    let mut texts = std::collections::BTreeMap::new();
    for path in &paths {
        texts.insert(path.as_str(), repo.read_work_tree(path)?.unwrap_or_default());
    }
    let now = session.now().with_timezone(&session.context.config.timezone);
    let found = Jobs::collect(&paths, |path| texts.get(path).cloned().unwrap_or_default(), now);
    session.report.notes.extend(found.damaged.iter().map(ToString::to_string));
    Ok(found)
}

fn plan_jobs(session: &mut Session<'_>, found: &Jobs, sign: &str) -> Result<(), WakeError> {
    let zone = session.context.config.timezone;
    let now = session.now().with_timezone(&zone);
    let plan = |job: &Job| {
        let planned = job.resolve_schedule(now).ok()?;
        Some(JobPlan {
            name: job.name.clone(),
            read_from: if job.is_paused { format!("paused: {}", job.when) } else { job.when.clone() },
            gate: job.gate.as_ref().map(ToString::to_string).unwrap_or_default(),
            rule: planned.rule,
            zone: zone.name().to_owned(),
            next: planned.next.filter(|_| !job.is_paused),
        })
    };
    let plans: Vec<JobPlan> = found.usable.iter().filter_map(plan).collect();
    Ok(session.store.jobs_mut().plan_jobs(&plans, (jobs::look::PLANNED, sign))?)
}

/// Computes the next slots again after the clock was set back.
fn recompute_slots(session: &mut Session<'_>) -> Result<(), WakeError> {
    let (now, tz) = (session.now(), session.context.config.timezone);
    for row in session.store.jobs().list_jobs()?.iter().filter(|row| row.is_set_back(now)) {
        let Some(next) = row.next else { continue };
        let history = session.store.jobs().job_history(&row.name, (now - HISTORY).naive_utc())?;
        let created = row.created_at.unwrap_or(next.at);
        let rewound = row.series(next, Missed::Run, tz).find_rewound_slot(&history, created, now).unwrap_or(next);
        session.store.jobs_mut().set_next_job_slot(&row.name, Some(rewound))?;
    }
    Ok(())
}

/// Builds the tools for the checks.
fn build_exec(session: &Session<'_>) -> Exec {
    let config = session.context.config;
    let rules = policy::load(&config.policy_path(), config.home.as_deref()).rules.with_scratch(&config.scratch_dir());
    let exec = Exec::new(session.build_shelter(&rules), rules);
    let web = exec.web().clone().with_limits(FetchLimits { timeout: GATE_BOUND, ..FetchLimits::default() });
    exec.with_web(web)
}

/// Checks one due job. `None` if a person waits.
async fn check_job(
    session: &Session<'_>,
    repo: &Repo,
    exec: &Exec,
    job: &Job,
    row: &JobRow,
) -> Result<Option<JobLook>, WakeError> {
    let (now, tz) = (session.now(), session.context.config.timezone);
    let mut look =
        JobLook { name: row.name.clone(), next: row.next, runs: Vec::new(), seen: None, ended: None, message: None };
    let mut slot = None;
    let mut late = None;
    if let Some(next) = row.next.filter(|slot| slot.at <= now) {
        let history = session.store.jobs().job_history(&row.name, next.civil)?;
        let turn = row.series(next, job.missed, tz).decide_turn(&history, now);
        (slot, look.next) = (turn.happens, turn.next);
        late = slot.filter(|_| turn.is_late).map(|slot| format_time(slot, row, tz));
        if let Some(passed) = turn.passed.filter(|_| turn.has_missed(now) || turn.happens.is_none()) {
            let span = format_span(passed, row, tz);
            look.runs.push(run(Some(passed.last), JobState::Missed, None, Some(format!("it was due {span}"))));
            if job.missed == Missed::Tell && slot.is_none() {
                let text = words::render_missed(job, &span);
                look.message = Some(build_message(
                    session,
                    &text,
                    None,
                    jobs::look::choose_message_time(session.context.config, now),
                ));
            }
        }
    }
    if slot.is_none() && !row.is_asked && !row.is_new_watch() {
        return Ok(Some(look));
    }
    if session.store.jobs().has_open_job_run(&row.name)? {
        let why = "its previous run wasn't over".to_owned();
        look.message = row.is_asked.then(|| {
            let text = words::render_still_running(job);
            build_message(session, &text, None, MessageTime::Now)
        });
        look.runs.push(run(slot, JobState::Missed, None, Some(why)));
        return Ok(Some(look));
    }
    // A person who asked for the run is awake.
    let time =
        if row.is_asked { MessageTime::Now } else { jobs::look::choose_message_time(session.context.config, now) };
    match check_gate(session, repo, exec, job, row).await? {
        GateResult::GivesWay => return Ok(None),
        GateResult::Shut { why, seen } => {
            look.seen = seen;
            look.ended = Some(Ok(()));
            look.message = look.message.or_else(|| {
                let text = words::render_nothing_to_report(job, &why);
                row.is_asked.then(|| build_message(session, &text, None, MessageTime::Now))
            });
            look.runs.push(run(slot, JobState::Nothing, None, Some(why)));
        }
        GateResult::Failed(why) => {
            let why = session.context.redactor.redact(&why);
            // A target that was never read may have a wrong address, so its first failure is reported at once.
            let is_new = row.seen.is_none() && matches!(job.gate, Some(JobGate::Watch(_)));
            let tell_after = if is_new { 1 } else { TELL_AFTER };
            let is_told = row.failures + 1 == tell_after || look.next.is_none() || row.is_asked;
            if is_told || row.failures == 0 && is_without_sandbox(job, exec) {
                let text = words::render_failure(job, &why, look.next);
                look.message = Some(build_message(session, &text, None, time));
            }
            look.runs.push(run(slot, JobState::Failed, None, Some(why.clone())));
            look.ended = Some(Err(why));
        }
        GateResult::Open(opened) if job.body.is_some() => {
            look.seen = opened.seen;
            look.runs.push(run(slot, JobState::Open, opened.found, None));
        }
        GateResult::Open(opened) => {
            let found = opened.found.unwrap_or_default();
            let before = session.store.jobs().last_job_output(&row.name, i64::MAX)?;
            // A watch's finding is a change by itself.
            let before = before.filter(|_| matches!(job.gate, Some(JobGate::If(_))));
            look.seen = opened.seen;
            look.ended = Some(Ok(()));
            if row.is_asked || jobs::decide::is_reportable(job.notify, &found, before.as_deref()) {
                let text = render_report(job, &found, opened.is_feed, late.as_deref());
                look.message = Some(build_message(session, &text, Some(opened.origin), time));
            }
            look.runs.push(run(slot, JobState::Told, None, Some(found)));
        }
    }
    Ok(Some(look))
}

fn run(slot: Option<Slot>, state: JobState, found: Option<String>, output: Option<String>) -> NewJobRun {
    NewJobRun { slot: slot.map(|slot| slot.civil), state, found, output }
}

/// Builds a message to the owner. `origin` is the origin of its untrusted text.
fn build_message(
    session: &Session<'_>,
    text: &str,
    origin: Option<String>,
    time: MessageTime,
) -> (NewOutgoing, MessageTime) {
    let text = session.context.redactor.redact(text);
    let notice = NewOutgoing::notice(session.context.config.owner_chat, text);
    (NewOutgoing { links_as_text: origin.is_some(), taint: origin, ..notice }, time)
}

fn is_without_sandbox(job: &Job, exec: &Exec) -> bool {
    job.gate.as_ref().is_some_and(|gate| gate.command().is_some()) && !exec.shelter().is_there()
}
