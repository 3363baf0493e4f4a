//! Orders about standing jobs without a model: list them, run one now, pause and resume.

use chrono::{DateTime, NaiveDateTime, Utc};

use reveille_account::provenance::hand::PersonSession;
use reveille_base::{
    schedule::{self, Rule, Slot},
    words::{day_and_time, format_local_time, one_line, truncate_text},
    zone::Tz,
};
use reveille_git::FileChange;
use reveille_memory::{
    is_job,
    job::{Job, JobStatus, Jobs, job_path, with_status},
};
use reveille_store::{JobRow, JobRun, JobState, Store};
use reveille_tools::Documents;

use super::OrderError;

/// Maximum number of characters shown of an output.
const MAX_OUTPUT_CHARS: usize = 160;

/// A listed job. Scripts rely on the JSON names.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ListedJob {
    /// The job's name.
    pub name: String,
    /// `active`, `paused`, `over` (its only time has passed) or `damaged`.
    pub state: &'static str,
    /// The times, as written in the file.
    pub when: Option<String>,
    /// Time of the next run.
    pub next_at: Option<DateTime<Utc>>,
    /// The gate, as written in the file.
    pub gate: Option<String>,
    /// `true` if a model works on it.
    pub has_model: bool,
    /// Number of failed runs in a row.
    pub failures: u32,
    /// The reason why it doesn't run, or why its last run failed.
    pub problem: Option<String>,
}

/// A listed run. Scripts rely on the JSON names.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ListedRun {
    /// The run's number.
    pub id: i64,
    /// The job's name.
    pub job: String,
    /// Time of the start.
    pub started_at: Option<DateTime<Utc>>,
    /// The planned local time. `None` if a person asked for the run.
    pub slot: Option<NaiveDateTime>,
    /// The state.
    pub state: JobState,
    /// The wake that ran it.
    pub wake: Option<String>,
    /// The result.
    pub output: Option<String>,
}

/// Reads the jobs from their files.
pub fn read_jobs(documents: &Documents, now: DateTime<Tz>) -> Jobs {
    let paths: Vec<String> = documents.list().into_iter().filter(|path| is_job(path)).collect();
    Jobs::collect(&paths, |path| documents.text(path), now)
}

/// Lists all jobs by name, with the damaged ones last.
pub fn list_jobs(jobs: &Jobs, rows: &[JobRow], now: DateTime<Tz>) -> Vec<ListedJob> {
    let to_listed = |job: &Job| {
        let row = rows.iter().find(|row| row.name == job.name);
        let planned = || job.resolve_schedule(now).ok().and_then(|planned| planned.next);
        let next = row.map_or_else(planned, |row| row.next).filter(|_| !job.is_paused);
        ListedJob {
            name: job.name.clone(),
            state: match (job.is_paused, next) {
                (true, _) => "paused",
                (false, Some(_)) => "active",
                (false, None) => "over",
            },
            when: Some(job.when.clone()),
            next_at: next.map(|slot| slot.at),
            gate: job.gate.as_ref().map(ToString::to_string),
            has_model: job.body.is_some(),
            failures: row.map_or(0, |row| row.failures),
            problem: row.and_then(|row| row.error.clone()),
        }
    };
    let damaged = jobs.damaged.iter().map(|damaged| ListedJob {
        name: damaged.path.clone(),
        state: "damaged",
        when: None,
        next_at: None,
        gate: None,
        has_model: false,
        failures: 0,
        problem: Some(damaged.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    });
    jobs.usable.iter().map(to_listed).chain(damaged).collect()
}

/// Renders the jobs as Markdown.
pub fn render_jobs(listed: &[ListedJob], tz: Tz) -> String {
    let line = |job: &ListedJob| {
        let mut parts = Vec::new();
        match (job.state, job.next_at) {
            ("damaged", _) => {}
            (_, Some(at)) => {
                parts.push(format!("{}, next {}", job.when.as_deref().unwrap_or_default(), format_local_time(at, tz)));
            }
            (state, None) => parts.push(format!("{}, {state}", job.when.as_deref().unwrap_or_default())),
        }
        parts.extend(job.gate.as_ref().map(|gate| format!("`{}`", one_line(gate).replace('`', "'"))));
        match (&job.problem, job.failures) {
            (Some(problem), 0) => parts.push(format!("not run: {problem}")),
            (Some(problem), 1) => parts.push(format!("its last run failed: {problem}")),
            (Some(problem), n) => parts.push(format!("failed {n} times in a row: {problem}")),
            (None, _) => {}
        }
        format!("- **{}** — {}", job.name, parts.join(" · "))
    };
    match listed {
        [] => "No jobs yet. To add one, create a file `memory/jobs/<name>.md`; docs/JOBS.md shows how.".to_owned(),
        jobs => jobs.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

/// Lists runs for JSON. `rows` are the current jobs.
pub fn list_runs(runs: Vec<JobRun>, rows: &[JobRow], tz: Tz) -> Vec<ListedRun> {
    let to_listed = |run: JobRun| ListedRun {
        id: run.id,
        slot: run.slot.map(|key| {
            let row = rows.iter().find(|row| row.name == run.name);
            wall_time(key, row, run.started_at, tz)
        }),
        job: run.name,
        started_at: run.started_at,
        state: run.state,
        wake: run.cycle_id,
        output: run.output,
    };
    runs.into_iter().map(to_listed).collect()
}

/// Reconstructs the local time of a run's slot from its key. The key is in UTC if the job's rule was an interval, and in
/// local time otherwise. The job may be gone or changed by now, so both readings are tried. A reading is rejected if the run
/// would have started before it was due.
fn wall_time(key: NaiveDateTime, row: Option<&JobRow>, started_at: Option<DateTime<Utc>>, tz: Tz) -> NaiveDateTime {
    let tz = row.map_or(tz, |row| row.zone(tz));
    let (from_local, from_utc) = (schedule::resolve_local_time(key, tz), Slot::from_instant(key.and_utc(), tz));
    let is_interval = |row: &JobRow| matches!(row.rule, Some(Rule::Interval { .. }));
    let readings = match row.map(is_interval) {
        Some(true) => [from_utc, from_local],
        Some(false) => [from_local, from_utc],
        // Without the job, the later reading comes first, since a run starts soon after its due time.
        None if from_utc.at > from_local.at => [from_utc, from_local],
        None => [from_local, from_utc],
    };
    let has_come = |slot: &&Slot| started_at.is_none_or(|started| slot.at <= started);
    readings.iter().find(has_come).or(readings.first()).map_or(key, |slot| slot.civil)
}

/// Renders the runs as Markdown.
pub fn render_runs(runs: &[ListedRun], tz: Tz) -> String {
    let line = |run: &ListedRun| {
        let at = run.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| format_local_time(at, tz));
        let due = run.slot.map_or_else(|| "on request".to_owned(), |slot| format!("due {}", day_and_time(slot)));
        let state = match run.state {
            JobState::Open => "under way, or waiting for the model",
            JobState::Missed => "missed",
            JobState::Nothing => "nothing to do",
            JobState::Told => "found something",
            JobState::Worked => "done",
            JobState::Failed => "failed",
        };
        let output = run.output.as_deref().map(one_line).filter(|output| !output.is_empty());
        let output = output.map(|output| format!(": {}", truncate_text(&output, MAX_OUTPUT_CHARS))).unwrap_or_default();
        format!("- {at} **{}**, {due} — {state}{output}", run.job)
    };
    if runs.is_empty() { "No runs yet.".to_owned() } else { runs.iter().map(line).collect::<Vec<_>>().join("\n") }
}

/// Orders a run of the job with the next wake, whatever its schedule.
///
/// # Errors
/// If the job doesn't exist or is damaged.
pub fn order_run(store: &mut Store, jobs: &Jobs, name: &str, now: DateTime<Utc>) -> Result<String, OrderError> {
    find_job(jobs, name)?;
    store.jobs_mut().ask_for_job(name, now)?;
    Ok(format!("The job {name} will run with the next wake. To start one, run `wake --once`."))
}

/// A change of a job's schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSwitch {
    /// Stop its schedule.
    Pause,
    /// Continue its schedule.
    Resume,
}

/// Pauses or resumes a job, as a commit of the person.
///
/// # Errors
/// If the job doesn't exist, or its file can't be written.
pub fn switch_job(
    session: &mut PersonSession<'_>,
    now: DateTime<Tz>,
    name: &str,
    switch: JobSwitch,
) -> Result<String, OrderError> {
    let is_paused = switch == JobSwitch::Pause;
    let edits = session.commit_edits()?;
    let documents = Documents::new(session.repo.root(), Vec::new());
    let job = find_job(&read_jobs(&documents, now), name)?;
    if job.is_paused == is_paused {
        return Ok(format!("The job {name} {}.", if is_paused { "is already paused" } else { "isn't paused" }));
    }
    let path = job_path(name);
    if let Some(left) = edits.left_alone.iter().find(|left| left.path == path) {
        let why = format!("{path} has changes that I can't commit, because it {}. Nothing was done.", left.why);
        return Err(OrderError::Refused(why));
    }
    let text = documents.text(&path);
    let content = with_status(&text, if is_paused { JobStatus::Paused } else { JobStatus::Active });
    let content = content.ok_or_else(|| OrderError::Refused(format!("{path} can't be read. Nothing was done.")))?;
    let (verb, did) = match switch {
        JobSwitch::Pause => ("Pause", "paused"),
        JobSwitch::Resume => ("Resume", "resumed"),
    };
    let change = FileChange { path, base: Some(text), content: Some(content) };
    session.commit_step(&[change], &format!("{verb} the job {name}"), &format!("{did} the job {name}"))?;
    Ok(match switch {
        JobSwitch::Pause => format!("The job {name} is paused until you run `wake jobs resume {name}`."),
        JobSwitch::Resume => format!("The job {name} is back on its schedule."),
    })
}

/// Finds the job of this name.
fn find_job(jobs: &Jobs, name: &str) -> Result<Job, OrderError> {
    if let Some(job) = jobs.get(name) {
        return Ok(job.clone());
    }
    let damaged = jobs.damaged.iter().find(|damaged| damaged.path == job_path(name));
    Err(OrderError::Refused(match damaged {
        Some(damaged) => format!("{damaged}. Nothing was done."),
        None => format!("There's no job {name:?}. `wake jobs list` shows them. Nothing was done."),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    fn row(rule: Option<Rule>, zone: &str) -> JobRow {
        JobRow {
            name: "a".to_owned(),
            read_from: String::new(),
            gate: String::new(),
            rule,
            zone: zone.to_owned(),
            next: None,
            is_asked: false,
            created_at: None,
            written_at: None,
            seen: None,
            failures: 0,
            error: None,
        }
    }

    /// Each case has the key, the job's current rule and zone, the start of the run, and the local time shown.
    #[test]
    fn the_slot_of_a_run_is_shown_in_local_time() {
        let every = Some(Rule::Interval { minutes: 15, anchor: parse_time("2026-11-01T00:00:00Z").unwrap() });
        let daily = Some(Rule::Daily { at: "09:00:00".parse().unwrap() });
        for (key, row, started, shown) in [
            ("2026-11-28T09:00:00", Some(row(every.clone(), "Asia/Tokyo")), "2026-11-28T09:00:20Z", "18:00"),
            ("2026-11-28T09:00:00", Some(row(every.clone(), "America/New_York")), "2026-11-28T09:00:20Z", "04:00"),
            ("2026-11-28T09:00:00", Some(row(daily.clone(), "Asia/Tokyo")), "2026-11-28T00:00:20Z", "09:00"),
            // Hours late.
            ("2026-11-28T09:00:00", Some(row(every.clone(), "America/New_York")), "2026-11-28T18:00:00Z", "04:00"),
            // The rule was another one at that run.
            ("2026-11-28T09:00:00", Some(row(every, "Asia/Tokyo")), "2026-11-28T00:00:20Z", "09:00"),
            ("2026-11-28T09:00:00", Some(row(daily, "America/New_York")), "2026-11-28T09:00:20Z", "04:00"),
            // The job is gone.
            ("2026-11-28T09:00:00", None, "2026-11-28T09:00:20Z", "10:00"),
            ("2026-11-28T09:00:00", None, "2026-11-28T08:00:20Z", "09:00"),
        ] {
            let key = key.parse().unwrap();
            let wall = wall_time(key, row.as_ref(), parse_time(started), "Europe/Berlin".parse().unwrap());
            assert_eq!(wall.format("%H:%M").to_string(), shown, "{row:?}, started {started}");
        }
    }
}
