//! `jobs`: checks that the standing jobs are understood and don't fail repeatedly. A job that isn't understood never
//! runs, and only this check reports it.

use std::collections::BTreeMap;

use reveille_memory::job::{JOBS_DIR, Jobs};
use reveille_store::JobRow;

use super::wakes::MANY;
use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::{format_count, format_list},
};

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(repo) = scene.repo()? else {
        return Ok(Finding::nothing_yet());
    };
    let paths = repo.list_markdown(&[JOBS_DIR])?;
    let mut texts = BTreeMap::new();
    for path in &paths {
        texts.insert(path.as_str(), repo.read_work_tree(path)?.unwrap_or_default());
    }
    let now = scene.now.with_timezone(&scene.config.timezone);
    let jobs = Jobs::collect(&paths, |path| texts.get(path).cloned().unwrap_or_default(), now);
    let rows = match scene.store()? {
        Some(store) => store.jobs().list_jobs()?,
        None => Vec::new(),
    };
    Ok(judge_jobs(&jobs, &rows))
}

fn judge_jobs(jobs: &Jobs, rows: &[JobRow]) -> Finding {
    let mut problems = Vec::new();
    if !jobs.damaged.is_empty() {
        let damaged: Vec<String> = jobs.damaged.iter().map(ToString::to_string).collect();
        problems.push(Finding::warn(
            format_list(&damaged),
            "correct what is named; I leave it as it is, and the other jobs run",
        ));
    }
    for row in rows.iter().filter(|row| row.failures >= MANY) {
        let why = row.error.as_deref().unwrap_or("reason unknown");
        problems.push(Finding::warn(
            format!("the job {} has failed {} in a row: {why}", row.name, format_count(row.failures as usize, "time")),
            format!("fix what it names, or `wake jobs pause {0}`; `wake jobs log {0}` says more", row.name),
        ));
    }
    let all_well = match jobs.usable.len() {
        0 => "none".to_owned(),
        n => format!("{}; `wake jobs list` shows when they run", format_count(n, "job")),
    };
    Finding::merge_all(problems, Finding::ok(all_well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::{clock::parse_time, zone::Tz};

    #[test]
    fn damaged_and_repeatedly_failing_jobs_are_named() {
        let now = parse_time("2026-11-21T14:00:00Z").unwrap().with_timezone(&Tz::UTC);
        let jobs = |text: &'static str| Jobs::collect(&["memory/jobs/a.md".to_owned()], |_| text.to_owned(), now);
        let good = jobs("---\nwhen: every day at 9\n---\nDo it.");
        assert_eq!(judge_jobs(&good, &[]).status, Status::Ok);
        let finding = judge_jobs(&jobs("---\nwhen: whenever\n---\nDo it."), &[]);
        assert!(
            finding.status == Status::Warn && finding.detail.contains("memory/jobs/a.md isn't run: line 2"),
            "{finding:?}"
        );
        let row = |failures| JobRow {
            name: "a".to_owned(),
            read_from: String::new(),
            gate: String::new(),
            rule: None,
            zone: "UTC".to_owned(),
            next: None,
            is_asked: false,
            created_at: None,
            written_at: None,
            seen: None,
            failures,
            error: Some("no answer".to_owned()),
        };
        assert_eq!(judge_jobs(&good, &[row(2)]).status, Status::Ok);
        let finding = judge_jobs(&good, &[row(3)]);
        assert!(finding.detail.contains("the job a has failed 3 times in a row: no answer"), "{finding:?}");
    }
}
