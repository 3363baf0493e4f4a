//! Finds problems, and repairs those that can be repaired safely.
//!
//! Each check in `checks` has two steps: looking gathers facts, and judging is a pure function of them. All checks run,
//! and a failing one stops no other. Looking writes nothing. Repairs follow under the wake lock, so
//! never while a wake runs. Each repair looks again before it acts, and leaves a note that the next wake writes into the
//! memory.

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
use reveille_memory::render::Looks;

use crate::{RunMode, setup::CheckReach};

pub use about::ABOUT;
pub use checks::IDS;
use checks::{CHECKS, Check};
pub use finding::{Finding, Status};
use reach::ServerAnswers;
pub use remedy::{Remedy, TIDY_UP};
use scene::Scene;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    /// The check's id, one of [`IDS`].
    pub id: &'static str,
    /// The severity.
    pub status: Status,
    /// A description of the finding.
    pub detail: String,
    /// Advice for a person. `None` if nothing needs doing.
    pub fix: Option<String>,
    /// The action that [`repair`] would take. `None` if only a person can act. Left out of the JSON, like all following fields.
    #[serde(skip)]
    pub repair: Option<String>,
    /// The reason why the check matters, if something is wrong.
    #[serde(skip)]
    pub why: Option<&'static str>,
    /// Further repairs that `--fix` can make.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
}

/// The complete result of `health check`, in the fixed shape of `--json`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HealthReport {
    /// The worst status of the checks, after repairs.
    pub status: Status,
    /// All checks in a fixed order.
    pub checks: Vec<CheckReport>,
    /// The checks in which something was repaired.
    pub repaired: Vec<&'static str>,
}

impl HealthReport {
    fn new(checks: Vec<CheckReport>, repaired: Vec<&'static str>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { status, checks, repaired }
    }

    /// The report of a program that can't run because its settings are wrong.
    pub fn for_configuration(detail: &str) -> Self {
        let check = CheckReport {
            id: "configuration",
            status: Status::Critical,
            detail: detail.trim().to_owned(),
            fix: Some("correct the settings named above; .env.example explains each".to_owned()),
            repair: None,
            why: None,
            remedies: Vec::new(),
        };
        Self::new(vec![check], Vec::new())
    }

    /// Renders the report for a person, with a line per check and the advice. [`Looks::Plain`] leaves out colours and symbols.
    pub fn render(&self, looks: Looks) -> String {
        render::render_report(self, looks)
    }
}

/// The slow checks that a [`glance`] leaves out, named for people.
pub const LEFT_OUT_OF_A_GLANCE: &str =
    "missing objects in the memory's repository, a search for a known fact, and a test of the encoder";

/// How much is checked, and whether repairs follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckMode {
    /// Checks and repairs everything.
    Whole,
    /// Checks everything and changes nothing.
    Dry,
    /// Leaves out slow checks and changes nothing.
    Glance,
    /// Leaves out slow checks and repairs.
    Repair,
}

impl CheckMode {
    fn run_mode(self) -> RunMode {
        match self {
            Self::Whole | Self::Repair => RunMode::Real,
            Self::Dry | Self::Glance => RunMode::Dry,
        }
    }

    fn is_brief(self) -> bool {
        matches!(self, Self::Glance | Self::Repair)
    }
}

/// Runs all checks and repairs. A dry run only names the repairs. [`CheckReach::Others`] also asks Telegram and the
/// model's server for facts that only they know.
pub fn check(
    config: &Config,
    redactor: &Redactor,
    now: DateTime<Utc>,
    mode: RunMode,
    reach: CheckReach,
) -> HealthReport {
    let mode = match mode {
        RunMode::Real => CheckMode::Whole,
        RunMode::Dry => CheckMode::Dry,
    };
    run(config, redactor, now, mode, reach)
}

/// Checks without the slow parts ([`LEFT_OUT_OF_A_GLANCE`]), and changes nothing.
pub fn glance(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthReport {
    run(config, redactor, now, CheckMode::Glance, CheckReach::Local)
}

/// Repairs the problems that a [`glance`] finds. It takes the wake lock, so a running wake is left alone. A bot may run
/// at the same time.
pub fn repair(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthReport {
    run(config, redactor, now, CheckMode::Repair, CheckReach::Local)
}

fn run(config: &Config, redactor: &Redactor, now: DateTime<Utc>, mode: CheckMode, reach: CheckReach) -> HealthReport {
    let look = || Scene::load(config, redactor, now, mode.run_mode()).with_brief(mode.is_brief());
    let scene = look();
    let reached = match reach {
        CheckReach::Others => reach::ask_servers(&scene.effective_config()),
        CheckReach::Local => ServerAnswers::default(),
    };
    let scene = scene.with_reached(reached.clone());
    let mut found: Vec<(&Check, Finding)> = CHECKS.iter().map(|check| (check, check.run(&scene))).collect();
    let broken: Vec<&Check> =
        found.iter().filter(|(_, finding)| finding.repair.is_some()).map(|(check, _)| *check).collect();

    let mut repaired = Vec::new();
    if mode == CheckMode::Dry {
        for (_, finding) in &mut found {
            finding.announce_repair();
        }
    } else if !mode.run_mode().is_dry() && !broken.is_empty() {
        let outcome = repair::repair_checks(&scene, &broken);
        drop(scene);
        let scene = look().with_reached(reached);
        for (check, finding) in &mut found {
            if broken.iter().any(|broken| broken.id == check.id) {
                *finding = check.run(&scene);
                finding.add_failures(outcome.list_failures(check.id));
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
        why: about::find_reason(check.id).filter(|_| finding.status != Status::Ok),
        remedies: finding.remedies,
    });
    HealthReport::new(checks.collect(), repaired)
}
