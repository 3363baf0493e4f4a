//! The checks in the order of the report, with the most basic ones first.
//!
//! A file holds one check, or a few small ones of a kind. `check` looks and passes the facts to `judge`, which is pure.
//! Ids are stable, since people's monitors use them.

mod approvals;
mod build;
mod clock;
mod confined;
mod cycles;
mod database;
mod disk;
mod due;
mod files;
mod jobs;
pub(super) mod lock;
pub(super) mod machines;
mod memory;
mod outbox;
mod plans;
mod queue;
mod remote;
mod repository;
mod search;
mod settings;
mod starters;
mod telegram;
pub(super) mod wakes;
mod workspace;

use super::{
    finding::{Finding, Trouble},
    repair::RepairTools,
    scene::Scene,
};

type Look = fn(&Scene<'_>) -> Result<Finding, Trouble>;
/// Repairs, and describes the actions in sentences. The list is empty if nothing needed repair any longer.
type Repair = fn(&mut RepairTools<'_>) -> Result<Vec<String>, Trouble>;

pub(super) struct Check {
    /// The stable id.
    pub(super) id: &'static str,
    look: Look,
    pub(super) repair: Option<Repair>,
}

impl Check {
    /// Looks and judges. A failure to look becomes a finding.
    pub(super) fn run(&self, scene: &Scene<'_>) -> Finding {
        (self.look)(scene).unwrap_or_else(|trouble| trouble.to_finding())
    }

    const fn new(id: &'static str, look: Look) -> Self {
        Self { id, look, repair: None }
    }

    const fn with_repair(mut self, repair: Repair) -> Self {
        self.repair = Some(repair);
        self
    }
}

pub(super) const CHECKS: [Check; 28] = [
    Check::new("workspace", workspace::check),
    Check::new("disk", disk::check),
    Check::new("database", database::check),
    Check::new("timers", starters::check_timers),
    Check::new("path", starters::check_path),
    Check::new("wakes", wakes::check),
    Check::new("lock", lock::check).with_repair(lock::repair),
    Check::new("plans", plans::check).with_repair(plans::repair),
    Check::new("cycles", cycles::check),
    Check::new("approvals", approvals::check),
    Check::new("due", due::check),
    Check::new("queue", queue::check),
    Check::new("files", files::check).with_repair(files::repair),
    Check::new("outbox", outbox::check).with_repair(outbox::repair),
    Check::new("repository", repository::check).with_repair(repository::repair),
    Check::new("remote", remote::check),
    Check::new("machines", machines::check),
    Check::new("token", settings::check_token),
    Check::new("telegram", telegram::check),
    Check::new("key", settings::check_key),
    Check::new("budget", settings::check_budget),
    Check::new("memory", memory::check),
    Check::new("jobs", jobs::check),
    Check::new("search", search::check),
    Check::new("sandbox", confined::check_sandbox),
    Check::new("mcp", confined::check_mcp),
    Check::new("clock", clock::check),
    Check::new("build", build::check),
];

/// The ids of all checks, in order. `configuration` replaces them if the settings can't be read.
pub const IDS: [&str; CHECKS.len()] = {
    let mut ids = [""; CHECKS.len()];
    let mut i = 0;
    while i < ids.len() {
        #[expect(clippy::indexing_slicing, reason = "within bounds: both have the same length")]
        {
            ids[i] = CHECKS[i].id;
        }
        i += 1;
    }
    ids
};
