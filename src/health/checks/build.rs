//! `build`: finds an upgrade that was killed before the new programs had shown that they work.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::process;

use crate::{
    health::{
        finding::{Finding, Trouble},
        scene::Scene,
    },
    setup::install::Versions,
};

/// Maximum duration of an installation without a wake's own time limit: ten minutes for a first wake, and five for the bots.
const MAX_TRIAL: TimeDelta = TimeDelta::minutes(15);

struct Facts {
    on_trial: Option<TrialFacts>,
}

/// The build in use that isn't marked as working.
struct TrialFacts {
    name: String,
    /// How long it has been in use.
    age: TimeDelta,
    /// The path of the previous build.
    before: Option<PathBuf>,
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let own = process::own_program().map_err(Trouble::io("looking for", Path::new("this program")))?;
    let wake_limit = TimeDelta::from_std(scene.config.wake_timeout).unwrap_or_default();
    Ok(judge_facts(&read_facts(&own, scene.now), MAX_TRIAL + wake_limit))
}

fn read_facts(own: &Path, now: DateTime<Utc>) -> Facts {
    let on_trial = own.parent().and_then(Versions::for_programs).and_then(|versions| {
        let age = versions.find_switch_time().map_or(TimeDelta::MAX, |since| now - DateTime::<Utc>::from(since));
        let before = versions.previous_build().map(|before| versions.build_dir(&before));
        Some(TrialFacts { name: versions.find_trial_build()?, age, before })
    });
    Facts { on_trial }
}

fn judge_facts(facts: &Facts, max_trial: TimeDelta) -> Finding {
    match &facts.on_trial {
        Some(TrialFacts { name, age, before }) if *age > max_trial => {
            let back = before.as_ref().map_or_else(String::new, |before| {
                format!("; or return to the previous build: {} install", before.join("wake").display())
            });
            Finding::warn(
                format!("the installation of {name} was interrupted before it reported success"),
                format!("run scripts/install again, and `wake init` first if a setting is wrong{back}"),
            )
        }
        _ => Finding::ok("no unfinished upgrade"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    #[test]
    fn an_abandoned_trial_is_reported_with_both_remedies() {
        let on_trial = |minutes, before: Option<&str>| {
            let age = TimeDelta::minutes(minutes);
            Facts { on_trial: Some(TrialFacts { name: "1.2".to_owned(), age, before: before.map(PathBuf::from) }) }
        };
        let judge = |facts| judge_facts(&facts, MAX_TRIAL);
        assert_eq!(judge(Facts { on_trial: None }).status, Status::Ok);
        assert_eq!(judge(on_trial(5, Some("/v/1.1"))).status, Status::Ok, "it is under way");
        let left = judge(on_trial(16, Some("/v/1.1")));
        assert_eq!(left.status, Status::Warn);
        assert!(left.fix.unwrap().ends_with("the previous build: /v/1.1/wake install"));
        assert_eq!(
            judge(on_trial(16, None)).fix.as_deref(),
            Some("run scripts/install again, and `wake init` first if a setting is wrong")
        );
    }
}
