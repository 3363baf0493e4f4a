//! `remote`: reports how far the memory and the remote differ, and failed fetches and pushes. It doesn't contact the
//! remote, since wakes do that with their back-off.

use chrono::{DateTime, Utc};

use reveille_store::{Upkeep, UpkeepKind};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_relative_time,
};

struct Facts {
    /// Number of commits that the remote lacks, and that this machine lacks. `None` before the first fetch or push.
    difference: Option<(usize, usize)>,
    /// `true` if the memory was begun without the remote and isn't joined yet.
    is_unjoined: bool,
    push: Upkeep,
    fetch: Upkeep,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let (Some(repo), Some(store)) = (scene.repo()?, scene.store()?) else {
        return Ok(Finding::nothing_yet());
    };
    if !repo.has_remote() {
        return Ok(Finding::ok("none: the memory is on this machine only"));
    }
    let facts = Facts {
        difference: repo.count_ahead_behind()?,
        is_unjoined: repo.remote().is_unjoined(),
        push: store.maintenance().read_upkeep(UpkeepKind::Push)?,
        fetch: store.maintenance().read_upkeep(UpkeepKind::Fetch)?,
    };
    Ok(judge_facts(&facts, scene.now))
}

fn judge_facts(facts: &Facts, now: DateTime<Utc>) -> Finding {
    let sum = match facts.difference {
        _ if facts.is_unjoined => {
            "not joined yet: the memory was started without it, and will be joined once the remote answers".to_owned()
        }
        Some((0, 0)) => "has everything".to_owned(),
        Some((ahead, 0)) => format!("lacks {ahead} of our commits"),
        Some((0, behind)) => format!("has {behind} commits that we lack"),
        Some((ahead, behind)) => format!("lacks {ahead} of our commits and has {behind} that we lack"),
        None => "not reached yet".to_owned(),
    };
    let failed = [(UpkeepKind::Push, &facts.push), (UpkeepKind::Fetch, &facts.fetch)]
        .into_iter()
        .filter(|(_, upkeep)| upkeep.failures > 0)
        .map(|(kind, upkeep)| describe_failure(kind.as_str(), upkeep, now));
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() && !facts.is_unjoined {
        return Finding::ok(sum);
    }
    Finding::warn(
        [vec![sum], failed].concat().join("; "),
        "everything is committed here; try by hand in the memory's directory: git fetch, git push",
    )
}

/// Describes a failure, such as `push failed 3 times: no network; retry due in 2 min`.
pub(super) fn describe_failure(name: &str, upkeep: &Upkeep, now: DateTime<Utc>) -> String {
    let times = match upkeep.failures {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let why = upkeep.error.as_deref().unwrap_or("no reason was given");
    let next = match upkeep.not_before {
        Some(at) if at > now => format!("retry due {}", format_relative_time(at, now)),
        _ => "retry due at the next wake".to_owned(),
    };
    format!("{name} failed {times}: {why}; {next}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;
    use reveille_base::clock::parse_time;

    #[test]
    fn a_difference_is_normal_and_a_failure_is_reported() {
        let now = parse_time("2026-11-21T12:00:00Z").unwrap();
        let mut facts =
            Facts { difference: Some((2, 1)), is_unjoined: false, push: Upkeep::default(), fetch: Upkeep::default() };
        let finding = judge_facts(&facts, now);
        assert_eq!(
            (finding.status, finding.detail.as_str()),
            (Status::Ok, "lacks 2 of our commits and has 1 that we lack")
        );
        facts.push = Upkeep {
            failures: 3,
            last_ok_at: None,
            not_before: parse_time("2026-11-21T12:02:00Z"),
            error: Some("no route".to_owned()),
        };
        let finding = judge_facts(&facts, now);
        assert_eq!(finding.status, Status::Warn);
        assert!(finding.detail.ends_with("push failed 3 times: no route; retry due in 2 min"));
    }
}
