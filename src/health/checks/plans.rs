//! `plans`: a plan file without a running wake shows a crash. The file of a cycle that will be resumed stays. If the
//! cycle has ended or never began, the file moves to `logs/plans/`, since a person may need it.

use std::path::{Path, PathBuf};

use reveille_base::{file::create_private_dirs, types::is_cycle_id};
use reveille_cycle::plan_file;
use reveille_store::{CycleState, Store};

use crate::health::{
    finding::{Finding, Trouble},
    repair::RepairTools,
    scene::Scene,
    words::format_list,
};

/// Maximum numbered names to try for a moved file.
const MAX_NAMES: u32 = 100;

/// A leftover plan file.
#[derive(Debug)]
struct Plan {
    path: PathBuf,
    cycle_id: String,
    /// `None` if the database has no such cycle.
    state: Option<CycleState>,
}

impl Plan {
    /// Returns `true` if no wake will use it again.
    fn is_over(&self) -> bool {
        matches!(self.state, None | Some(CycleState::Done | CycleState::Failed | CycleState::Abandoned))
    }
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let plans = list_plans(&scene.config.workspace_dir, store)?;
    Ok(judge_plans(&plans, scene.is_wake_running()))
}

fn list_plans(workspace: &Path, store: &Store) -> Result<Vec<Plan>, Trouble> {
    let found = plan_file::left_over(workspace).map_err(Trouble::io("listing", workspace))?;
    let ours = found.into_iter().filter(|(_, id)| is_cycle_id(id));
    ours.map(|(path, cycle_id)| {
        let state = store.cycles().find_cycle(&cycle_id)?.map(|row| row.state);
        Ok(Plan { path, cycle_id, state })
    })
    .collect()
}

fn judge_plans(plans: &[Plan], is_wake_running: bool) -> Finding {
    let ids = |plans: &[&Plan]| format_list(plans.iter().map(|plan| &plan.cycle_id));
    if is_wake_running {
        let all: Vec<&Plan> = plans.iter().collect();
        return Finding::ok(match all.as_slice() {
            [] => "none".to_owned(),
            some => format!("in use by the running wake: {}", ids(some)),
        });
    }
    let (over, open): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| plan.is_over());
    let (parked, cut_off): (Vec<&Plan>, Vec<&Plan>) =
        open.into_iter().partition(|plan| plan.state == Some(CycleState::Parked));
    let mut findings = Vec::new();
    if !cut_off.is_empty() {
        findings.push(Finding::warn_for_wake(
            format!("left by a wake that was cut off: {}", ids(&cut_off)),
            "the next wake resumes it: wake --once",
        ));
    }
    if !over.is_empty() {
        findings.push(Finding::repairable(
            format!("left behind by a cycle that has ended: {}", ids(&over)),
            "moved to logs/plans",
        ));
    }
    Finding::merge_all(
        findings,
        Finding::ok(match parked.as_slice() {
            [] => "none left over".to_owned(),
            some => format!("waiting for your answer: {}", ids(some)),
        }),
    )
}

pub(super) fn repair(tools: &mut RepairTools<'_>) -> Result<Vec<String>, Trouble> {
    let config = tools.scene.config;
    let Some(store) = tools.store() else {
        return Ok(Vec::new());
    };
    let plans = list_plans(&config.workspace_dir, &store)?;
    let over = plans.iter().filter(|plan| plan.is_over());
    over.map(|plan| {
        let kept = put_away(&plan.path, &config.logs_dir().join("plans"))?;
        let kept = kept.strip_prefix(&config.workspace_dir).unwrap_or(&kept).display();
        Ok(format!("moved the left-over plan of {} to {kept}", plan.cycle_id))
    })
    .collect()
}

/// Moves a file into a directory under a free name, so no file is overwritten.
fn put_away(file: &Path, dir: &Path) -> Result<PathBuf, Trouble> {
    create_private_dirs(dir).map_err(Trouble::io("creating", dir))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let names = std::iter::once(format!("{stem}.md")).chain((2..MAX_NAMES).map(|n| format!("{stem}.{n}.md")));
    let free = names.map(|name| dir.join(name)).find(|kept| kept.symlink_metadata().is_err());
    let kept = free.unwrap_or_else(|| dir.join(format!("{stem}.last.md")));
    std::fs::rename(file, &kept).map_err(Trouble::io("moving", file))?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    fn plan(state: Option<CycleState>) -> Plan {
        Plan { path: "/w/plan-20261121T090300Z-812.md".into(), cycle_id: "20261121T090300Z-812".to_owned(), state }
    }

    #[test]
    fn plans_of_resumable_cycles_stay_and_finished_ones_are_removed() {
        use CycleState::{Abandoned, Done, Failed, Parked, Running, Waiting};
        for state in [Running, Waiting] {
            let finding = judge_plans(&[plan(Some(state))], false);
            assert_eq!((finding.status, finding.repair), (Status::Warn, None), "{state:?}");
        }
        assert_eq!(judge_plans(&[plan(Some(Parked))], false).status, Status::Ok);
        for state in [Some(Done), Some(Failed), Some(Abandoned), None] {
            assert!(judge_plans(&[plan(state)], false).repair.is_some(), "{state:?}");
            assert_eq!(judge_plans(&[plan(state)], true).status, Status::Ok, "{state:?}");
        }
        let both = judge_plans(&[plan(Some(Running)), plan(None)], false);
        assert!(both.repair.is_some() && both.detail.contains("cut off"));
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan-x.md");
        let logs = dir.path().join("logs/plans");
        for text in ["one", "two", "three"] {
            std::fs::write(&file, text).unwrap();
            put_away(&file, &logs).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap();
        assert_eq!([read("plan-x.md"), read("plan-x.2.md"), read("plan-x.3.md")], ["one", "two", "three"]);
        assert!(!file.exists());
    }
}
