//! Finds what is wrong, and repairs what can be repaired safely.
//!
//! Every check in `checks` is two steps: looking gathers facts, judging is a pure function of them. All checks run; one that
//! can't look says so and stops no other. Looking writes nothing. Repairs come after, all of them under the wake lock, so
//! never beside a wake; each looks again before it acts and leaves a note for the next wake to write into the memory.

mod about;
pub mod bundle;
mod checks;
mod finding;
mod reach;
mod remedy;
mod render;
mod repair;
mod scene;
pub mod status;
pub mod told;

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, words};
use reveille_config::Config;

pub use about::ABOUT;
pub use checks::IDS;
use checks::{CHECKS, Check};
pub use finding::{Finding, Status};
use reach::OthersSaid;
pub use remedy::{Remedy, TIDY_UP};
use scene::Scene;

/// How one check ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    /// The check: one of [`IDS`].
    pub id: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was found.
    pub detail: String,
    /// What a person can do; none if nothing needs doing.
    pub fix: Option<String>,
    /// What [`repair`] would do about it; none if a person has to. It isn't part of the JSON.
    #[serde(skip)]
    pub repair: Option<String>,
    /// Why it matters, where something is wrong. Nor is this, nor what follows.
    #[serde(skip)]
    pub why: Option<&'static str>,
    /// What `--fix` can do about it.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
}

/// All that `health check` says: the fixed shape of `--json`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HealthReport {
    /// The worst status among the checks, after repairs.
    pub status: Status,
    /// Every check, in a fixed order.
    pub checks: Vec<CheckReport>,
    /// The checks in which something was repaired.
    pub repaired: Vec<&'static str>,
}

impl HealthReport {
    fn new(checks: Vec<CheckReport>, repaired: Vec<&'static str>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { status, checks, repaired }
    }

    /// The report of a program that can't be run because its settings are wrong.
    pub fn of_configuration(detail: &str) -> Self {
        let check = CheckReport {
            id: "configuration",
            status: Status::Critical,
            detail: detail.trim().to_owned(),
            fix: Some("correct the settings that are named; .env.example explains each".to_owned()),
            repair: None,
            why: None,
            remedies: Vec::new(),
        };
        Self::new(vec![check], Vec::new())
    }

    /// For a person: a line for each check and what to do. `is_plain`: no colours, no symbols.
    pub fn render(&self, is_plain: bool) -> String {
        render::report(self, is_plain)
    }
}

/// What a [`glance`] leaves out, for people: it takes seconds.
pub const LEFT_OUT_OF_A_GLANCE: &str =
    "whether the memory's repository lacks objects, whether a known fact is found, and whether the encoder works";

/// How a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckMode {
    /// Everything, and what can be repaired is.
    Whole,
    /// Everything, and nothing is touched.
    Dry,
    /// Without what takes seconds, and nothing is touched.
    Glance,
    /// Without what takes seconds, and what can be repaired is.
    Repair,
}

impl CheckMode {
    fn is_dry(self) -> bool {
        matches!(self, Self::Dry | Self::Glance)
    }

    fn is_brief(self) -> bool {
        matches!(self, Self::Glance | Self::Repair)
    }
}

/// Runs every check and repairs what can be, or, in a dry run, tells what would be and touches nothing.
pub fn check(config: &Config, redactor: &Redactor, now: DateTime<Utc>, dry_run: bool) -> HealthReport {
    run(config, redactor, now, (if dry_run { CheckMode::Dry } else { CheckMode::Whole }, false))
}

/// The same, and asks Telegram and the model's server what only they know.
pub fn check_asking(config: &Config, redactor: &Redactor, now: DateTime<Utc>, dry_run: bool) -> HealthReport {
    run(config, redactor, now, (if dry_run { CheckMode::Dry } else { CheckMode::Whole }, true))
}

/// Looks and touches nothing, without what takes seconds ([`LEFT_OUT_OF_A_GLANCE`]).
pub fn glance(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthReport {
    run(config, redactor, now, (CheckMode::Glance, false))
}

/// Repairs what a [`glance`] finds and can be repaired. It does so under the wake lock: a wake that runs is left alone, and a bot
/// may run beside it.
pub fn repair(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthReport {
    run(config, redactor, now, (CheckMode::Repair, false))
}

fn run(
    config: &Config,
    redactor: &Redactor,
    now: DateTime<Utc>,
    (mode, asks_others): (CheckMode, bool),
) -> HealthReport {
    let look = || Scene::look(config, redactor, now, mode.is_dry()).brief(mode.is_brief());
    let scene = look();
    let reached = if asks_others { reach::ask(&scene.in_force()) } else { OthersSaid::default() };
    let scene = scene.reached(reached.clone());
    let mut found: Vec<(&Check, Finding)> = CHECKS.iter().map(|check| (check, check.run(&scene))).collect();
    let broken: Vec<&Check> =
        found.iter().filter(|(_, finding)| finding.repair.is_some()).map(|(check, _)| *check).collect();

    let mut repaired = Vec::new();
    if mode == CheckMode::Dry {
        for (_, finding) in &mut found {
            finding.announce_repair();
        }
    } else if !mode.is_dry() && !broken.is_empty() {
        let outcome = repair::repair(&scene, &broken);
        drop(scene);
        let scene = look().reached(reached);
        for (check, finding) in &mut found {
            if broken.iter().any(|broken| broken.id == check.id) {
                *finding = check.run(&scene);
                finding.add_failures(outcome.failures_of(check.id));
            }
        }
        repaired = outcome.repaired;
    }
    let checks = found.into_iter().map(|(check, finding)| CheckReport {
        id: check.id,
        status: finding.status,
        detail: redactor.redact(&finding.detail),
        fix: finding.fix.map(|fix| redactor.redact(&fix)),
        repair: finding.repair.map(|repair| redactor.redact(&repair)),
        why: about::why(check.id).filter(|_| finding.status != Status::Ok),
        remedies: finding.remedies,
    });
    HealthReport::new(checks.collect(), repaired)
}
