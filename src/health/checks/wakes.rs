//! `wakes`: checks that wakes succeed. If they keep failing, no message is answered. Often no other check notices,
//! because some damage to the repository shows only when a wake works in it.

use chrono::{DateTime, Utc};

use reveille_git as repo;
use reveille_git::Ailment;
use reveille_store::{Upkeep, UpkeepKind};

use crate::health::{
    finding::{Finding, Trouble},
    remedy::Remedy,
    scene::Scene,
    words::format_relative_time,
};

/// Failures in a row that will not resolve by themselves.
pub(in crate::health) const MANY: u32 = 3;

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(Finding::nothing_yet());
    };
    let upkeep = store.maintenance().read_upkeep(UpkeepKind::Wake)?;
    let since = store.maintenance().failing_since(UpkeepKind::Wake)?;
    let ailment = repo::find_ailment(&scene.config.repo_dir());
    let dir = scene.config.repo_dir();
    let memory = match scene.repo_error() {
        _ if !dir.join(".git").exists() => MemoryPlace::NotMade,
        Some(_) if ailment.is_none() => MemoryPlace::Unopened,
        _ => MemoryPlace::At(dir.display().to_string()),
    };
    let finding = judge_wakes(&upkeep, since, ailment.as_ref(), &memory, scene.now);
    Ok(match (ailment, memory) {
        (Some(ailment), MemoryPlace::At(place)) => {
            finding.with_remedy(Remedy::for_memory(place, ailment.repair_command())).with_remedy(Remedy::Wake)
        }
        _ => finding,
    })
}

/// The state of the memory, which decides where the person should look for the cause.
enum MemoryPlace {
    /// The memory hasn't been created yet.
    NotMade,
    /// It can't be opened, and the check `repository` gives the remedy.
    Unopened,
    /// The memory's directory.
    At(String),
}

fn judge_wakes(
    upkeep: &Upkeep,
    since: Option<DateTime<Utc>>,
    ailment: Option<&Ailment>,
    memory: &MemoryPlace,
    now: DateTime<Utc>,
) -> Finding {
    let repair = match (ailment, memory) {
        (Some(ailment), MemoryPlace::At(place)) => {
            Some(format!("cd '{place}' && {}; then wake --once", ailment.repair_command()))
        }
        _ => None,
    };
    let damage = ailment.map(|ailment| format!("{ailment} can't be read"));
    if upkeep.failures == 0 {
        // The damage hasn't made a wake fail yet.
        return match (damage, repair) {
            (Some(damage), Some(repair)) => Finding::critical(format!("{damage}: the next wake will fail"), repair),
            _ => Finding::ok("none has failed since the last success"),
        };
    }
    let since = since.map(|at| format!(", first {}", format_relative_time(at, now))).unwrap_or_default();
    let why = upkeep.error.as_deref().unwrap_or("reason unknown");
    let damage = damage.map(|damage| format!(" ({damage})")).unwrap_or_default();
    let fix = repair.unwrap_or_else(|| match memory {
        MemoryPlace::At(place) => format!(
            "fix what it names; the other checks say more, and `cd '{place}' && git fsck` checks git. Then wake --once"
        ),
        MemoryPlace::Unopened => "see the check `repository`".to_owned(),
        MemoryPlace::NotMade => {
            "fix what it names, because it prevents creating the memory; then wake --once".to_owned()
        }
    });
    if upkeep.failures < MANY {
        let last = if upkeep.failures == 1 { "the last one" } else { "the last two" };
        return Finding::warn(format!("{last} failed{since}: {why}{damage}"), fix);
    }
    Finding::critical(
        format!(
            "{} in a row have failed{since}, so nothing is answered; queued messages are safe: {why}{damage}",
            upkeep.failures
        ),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    #[test]
    fn three_failures_in_a_row_are_critical_and_come_with_a_repair() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let judged = |failures, ailment: Option<&Ailment>| {
            let upkeep = Upkeep { failures, error: Some("git: bad".to_owned()), ..Upkeep::default() };
            judge_wakes(
                &upkeep,
                parse_time("2026-11-21T11:00:00Z"),
                ailment,
                &MemoryPlace::At("/w/brain".to_owned()),
                now,
            )
        };
        assert_eq!(judged(0, None).status, Status::Ok);
        assert_eq!(judged(0, Some(&Ailment::Index)).status, Status::Critical);
        assert_eq!(judged(2, None).status, Status::Warn);
        let found = judged(3, Some(&Ailment::Index));
        assert_eq!(found.status, Status::Critical);
        assert!(found.detail.contains("3 in a row have failed, first 1 h ago") && found.detail.contains("git: bad"));
        assert_eq!(found.fix.unwrap(), "cd '/w/brain' && rm .git/index && git reset; then wake --once");
        assert!(judged(3, None).fix.unwrap().contains("git fsck"));
        let unmade = Upkeep { failures: 3, error: Some("no room".to_owned()), ..Upkeep::default() };
        let fix = judge_wakes(&unmade, None, None, &MemoryPlace::NotMade, now).fix.unwrap();
        assert!(!fix.contains("cd ") && fix.contains("wake --once"), "{fix}: there is no folder yet");
    }
}
