//! `lock`: compares the lock file and `processing_lock` with the flock, which alone decides who holds the lock. A
//! living holder is left alone however long it works. A claim without a holder is freed.

use std::{fs::File, io::Read as _, path::Path, thread, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::{self, parse_time},
    process,
};
use reveille_store as store;
use reveille_store::wake_lock::{self, Holder};

use crate::health::{
    finding::{Finding, Trouble},
    repair::RepairTools,
    scene::Scene,
    words::{format_duration, format_relative_time},
};

/// The maximum number of reads, and the pause between them. A wake writes its line a moment after taking the lock.
const READS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum bytes to read from the lock file.
const MAX_LINE_BYTES: u64 = 4096;

/// The facts about the lock.
#[derive(Debug, Clone, Default)]
pub(in crate::health) struct LockFacts {
    /// `true` if a process holds the flock.
    pub(in crate::health) is_held: bool,
    /// Contents of the lock file; empty after a wake that ended in order.
    pub(in crate::health) line: String,
    /// The parsed contents.
    pub(in crate::health) holder: Option<Holder>,
    /// `true` if the named process is alive.
    pub(in crate::health) is_alive: bool,
    /// Time since the last sign of life, if the holder gives any.
    silent_for: Option<Duration>,
    /// Contents of the table `processing_lock`.
    row: Option<store::LeaseHolder>,
    /// Holders of the flock, if the system reveals them. Only read if the named process isn't the holder.
    pids: Vec<u32>,
}

impl LockFacts {
    /// Reads the facts. Testing the flock takes a shared lock for an instant.
    pub(in crate::health) fn read(path: &Path, row: Option<&store::LeaseHolder>) -> Self {
        let mut facts = Self::default();
        for attempt in 0..READS {
            let line = read_line(path);
            let holder: Option<Holder> = serde_json::from_str(&line).ok();
            facts = Self {
                is_held: wake_lock::is_held(path),
                is_alive: holder.as_ref().is_some_and(|holder| holder.identity().is_alive()),
                silent_for: holder.as_ref().and_then(|holder| holder.measure_silence(clock::read_awake_time())),
                line,
                holder,
                row: row.cloned(),
                pids: Vec::new(),
            };
            if !facts.is_held || facts.is_alive {
                return facts;
            }
            if attempt + 1 < READS {
                thread::sleep(PAUSE);
            }
        }
        facts.pids = process::holding_flock(path);
        facts
    }
}

/// Reads the lock file.
pub(in crate::health) fn read_line(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_LINE_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(_) => String::new(),
    }
}

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let bounds = Bounds { lease: scene.config.stale_lock, limit: scene.config.wake_timeout + scene.config.stale_lock };
    Ok(judge_facts(&scene.lock, bounds, scene.now))
}

/// The time limits of a wake by its settings.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Maximum time without a sign of life.
    lease: Duration,
    /// Maximum duration.
    limit: Duration,
}

fn judge_facts(facts: &LockFacts, bounds: Bounds, now: DateTime<Utc>) -> Finding {
    match (&facts.holder, facts.is_held) {
        (Some(holder), true) if facts.is_alive => match facts.silent_for {
            Some(silent) if silent > bounds.lease => judge_stopped(holder, silent),
            _ => judge_living(holder, TimeDelta::from_std(bounds.limit).unwrap_or(TimeDelta::MAX), now),
        },
        (holder, true) => judge_orphaned(holder.as_ref(), &facts.pids),
        (holder, false) => judge_free(facts, holder.as_ref()),
    }
}

/// Reports a stalled wake. Only the next wake can replace it and continue its work.
fn judge_stopped(holder: &Holder, silent: Duration) -> Finding {
    let silent = TimeDelta::from_std(silent).unwrap_or(TimeDelta::MAX);
    Finding::warn(
        format!("a wake (pid {}) holds the lock but has shown no activity for {}", holder.pid, format_duration(silent)),
        "the next wake with something to do ends it and resumes its work: wake --once",
    )
}

fn judge_living(holder: &Holder, limit: TimeDelta, now: DateTime<Utc>) -> Finding {
    let since = parse_time(&holder.started_at);
    let when = since.map(|at| format!(", started {}", format_relative_time(at, now))).unwrap_or_default();
    let detail = format!("a wake is at work: pid {}{when}", holder.pid);
    match since.map(|at| now.signed_duration_since(at)) {
        Some(age) if age > limit => Finding::warn(
            format!("{detail}, past its time-out ({})", format_duration(limit)),
            format!("it is alive, so I leave it alone; if it hangs: kill {}", holder.pid),
        ),
        _ => Finding::ok(detail),
    }
}

/// Reports a child that outlived its wake and still holds the lock. No wake can run, and this program must not kill the
/// child.
fn judge_orphaned(holder: Option<&Holder>, pids: &[u32]) -> Finding {
    let named = match holder {
        Some(holder) => format!("the wake that took it (pid {}) is dead", holder.pid),
        None => "its file names no holder".to_owned(),
    };
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    if pids.is_empty() {
        return Finding::critical(
            format!("the wake lock is held, but {named}"),
            "find the process that has .wake-lock open (fuser, lsof) and end it: until then no wake can run",
        );
    }
    let pids = pids.join(" ");
    Finding::critical(
        format!("the wake lock is held by pid {pids}, but {named}"),
        format!("see what it is (ps -fp {pids}) and end it: until then no wake can run"),
    )
}

fn judge_free(facts: &LockFacts, holder: Option<&Holder>) -> Finding {
    let claimed = facts.row.as_ref().is_some_and(|row| row.is_locked);
    let who = holder.map(|holder| format!(" (pid {})", holder.pid)).unwrap_or_default();
    match (claimed, facts.line.is_empty()) {
        (false, true) => Finding::ok("free: no wake is at work"),
        (true, _) => Finding::repairable(
            format!("processing_lock says a wake is at work, but that wake is dead{who}"),
            "the claim is freed",
        ),
        (false, false) => Finding::repairable(
            format!("the lock file names a wake that no longer holds it{who}"),
            "the line is cleared",
        ),
    }
}

/// Describes the repair, which was done by taking and releasing the lock and the lease in order.
pub(super) fn repair(tools: &mut RepairTools<'_>) -> Result<Vec<String>, Trouble> {
    let claim = tools.claim_before.as_ref().filter(|claim| claim.is_locked);
    if claim.is_none() && !tools.had_stale_line {
        return Ok(Vec::new());
    }
    let holder = tools.scene.lock.holder.as_ref();
    let pid = holder.map(|holder| holder.pid).or_else(|| claim.and_then(|claim| Some(claim.identity.as_ref()?.pid)));
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let cycle = holder.and_then(|holder| holder.cycle_id.as_deref());
    let cycle = cycle.map(|id| format!(" during {id}")).unwrap_or_default();
    Ok(vec![format!("freed the lock of a wake that had died{pid}{cycle}")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T12:00:00Z").unwrap()
    }

    fn holder(started_at: &str) -> Holder {
        Holder {
            pid: 812,
            boot_id: "b".to_owned(),
            started_at: started_at.to_owned(),
            cycle_id: None,
            process_started: "1".to_owned(),
            alive_at_s: None,
            chat: None,
            thread_id: None,
            messages: Vec::new(),
        }
    }

    fn judged(facts: &LockFacts) -> Finding {
        judge_facts(facts, Bounds { lease: Duration::from_secs(900), limit: Duration::from_secs(4_500) }, now())
    }

    #[test]
    fn a_living_holder_is_left_alone_however_long_it_works() {
        for (started_at, status) in
            [("2026-11-21T11:59:00Z", Status::Ok), ("2026-11-20T11:59:00Z", Status::Warn), ("no time", Status::Ok)]
        {
            let finding = judged(&LockFacts {
                is_held: true,
                is_alive: true,
                line: "x".to_owned(),
                holder: Some(holder(started_at)),
                ..LockFacts::default()
            });
            assert_eq!((finding.status, finding.repair), (status, None), "{started_at}");
        }
    }

    #[test]
    fn a_stalled_holder_is_reported_and_left_to_the_next_wake() {
        for (silent_s, status) in [(899, Status::Ok), (901, Status::Warn)] {
            let finding = judged(&LockFacts {
                is_held: true,
                is_alive: true,
                silent_for: Some(Duration::from_secs(silent_s)),
                line: "x".to_owned(),
                holder: Some(holder("2026-11-21T11:59:00Z")),
                ..LockFacts::default()
            });
            assert_eq!((finding.status, finding.repair), (status, None), "{silent_s}");
        }
    }

    #[test]
    fn a_lock_held_in_the_name_of_a_dead_wake_is_reported_and_never_broken() {
        let mut facts = LockFacts {
            is_held: true,
            line: "x".to_owned(),
            holder: Some(holder("2026-11-21T11:59:00Z")),
            pids: vec![4711],
            ..LockFacts::default()
        };
        let finding = judged(&facts);
        assert_eq!((finding.status, finding.repair), (Status::Critical, None));
        assert!(finding.detail.contains("4711") && finding.detail.contains("812"), "{}", finding.detail);
        facts.holder = None;
        assert_eq!(judged(&facts).status, Status::Critical);
    }

    #[test]
    fn a_claim_without_a_holder_is_freed() {
        assert_eq!(judged(&LockFacts::default()).status, Status::Ok);
        let line = LockFacts { line: "garbage".to_owned(), ..LockFacts::default() };
        assert!(judged(&line).repair.is_some());
        let row = LockFacts {
            row: Some(store::LeaseHolder { fence: store::Fence(3), is_locked: true, locked_at: None, identity: None }),
            ..LockFacts::default()
        };
        assert!(judged(&row).repair.is_some());
    }
}
