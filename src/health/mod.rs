//! Finds what is wrong, and repairs what can be repaired safely.
//!
//! Every check in `checks` is two steps: looking gathers facts, judging is a pure function of them. All checks run; one that
//! can't look says so and stops no other. Looking writes nothing. Repairs come after, all of them under the wake lock, so
//! never beside a wake; each looks again before it acts and leaves a note for the next wake to write into the memory.

mod checks;
mod finding;
mod render;
mod repair;
mod scene;
pub mod status;
pub mod told;

use chrono::{DateTime, Utc};

pub use checks::IDS;
pub use finding::{Finding, Status};

use crate::{config::Config, redact::Redactor, words};
use checks::{CHECKS, Check};
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
        };
        Self::new(vec![check], Vec::new())
    }

    /// For a person: a line for each check and what to do. `is_plain`: no colours, no symbols.
    pub fn render(&self, is_plain: bool) -> String {
        render::report(self, is_plain)
    }
}

/// Runs every check and repairs what can be, or, in a dry run, tells what would be and touches nothing.
pub fn check(config: &Config, redactor: &Redactor, now: DateTime<Utc>, dry_run: bool) -> HealthReport {
    let scene = Scene::look(config, redactor, now, dry_run);
    let mut found: Vec<(&Check, Finding)> = CHECKS.iter().map(|check| (check, check.run(&scene))).collect();
    let broken: Vec<&Check> =
        found.iter().filter(|(_, finding)| finding.repair.is_some()).map(|(check, _)| *check).collect();

    let mut repaired = Vec::new();
    if dry_run {
        for (_, finding) in &mut found {
            finding.announce_repair();
        }
    } else if !broken.is_empty() {
        let outcome = repair::repair(&scene, &broken);
        drop(scene);
        let scene = Scene::look(config, redactor, now, dry_run);
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
    });
    HealthReport::new(checks.collect(), repaired)
}
