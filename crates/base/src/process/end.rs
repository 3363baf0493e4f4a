//! Ends a process for good, with its group and all that descends from it: for a wake that stopped and can't be asked.

use std::{io, thread, time::Duration};

use rustix::process::{Signal, getpgid, getpgrp, kill_process, kill_process_group};

use super::{Identity, pid_of, table};

/// Looks until no new descendant turns up. What is found is stopped, so that it starts nothing more.
const MAX_LOOKS: u32 = 8;
/// The pause between two looks at whether all are dead.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a process wasn't ended. Unless it says so, nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The process of that identity is over, or it is this one, or nobody can tell.
    #[error("pid {pid} is not the process that it was")]
    Other {
        /// Its number.
        pid: u32,
    },
    /// It belongs to somebody else.
    #[error("pid {pid} can't be ended: {source}")]
    Refused {
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// It was killed and isn't gone: it hangs in the system itself.
    #[error("pid {pid} was killed and isn't gone after {} s", after.as_secs())]
    Lingers {
        /// Its number.
        pid: u32,
        /// How long it was waited for.
        after: Duration,
    },
}

/// Asks a process to end in order (SIGTERM), if it is still the one that it was.
pub fn ask_to_end(who: &Identity) {
    if let Some(pid) = pid_of(who.pid).filter(|_| who.is_alive()) {
        kill_process(pid, Signal::TERM).ok();
    }
}

/// Kills this very process, the group that it leads, and all its descendants, and waits until they are gone. Children run in
/// groups of their own, so that killing a group is not enough.
///
/// # Errors
/// When it isn't that process any more, can't be killed, or isn't gone within `within`.
pub fn end(who: &Identity, within: Duration) -> Result<(), EndError> {
    let pid = who.pid;
    let Some(number) = pid_of(pid).filter(|_| pid != std::process::id() && who.is_alive()) else {
        return Err(EndError::Other { pid });
    };
    kill_process(number, Signal::STOP).map_err(|errno| EndError::Refused { pid, source: errno.into() })?;
    let mut all = stopped_descendants(pid);
    all.push(who.clone());
    // A group that it leads is its own; one that it is in may be that of the shell that started us both.
    if getpgid(Some(number)) == Ok(number) && getpgrp() != number {
        kill_process_group(number, Signal::KILL).ok();
    }
    for one in &all {
        if let Some(number) = pid_of(one.pid).filter(|_| one.is_alive()) {
            kill_process(number, Signal::KILL).ok();
        }
    }
    for _ in 0..within.as_millis() / PAUSE.as_millis() {
        if !all.iter().any(Identity::is_alive) {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    let pid = all.iter().find(|one| one.is_alive()).map_or(pid, |one| one.pid);
    Err(EndError::Lingers { pid, after: within })
}

/// Kills all that descends from this very process, but not itself: it sees its children fail. Says how many were killed.
pub fn end_children(who: &Identity) -> usize {
    if who.pid == std::process::id() || !who.is_alive() {
        return 0;
    }
    let children: Vec<Identity> =
        descendants(who.pid, &table::parents()).into_iter().filter_map(Identity::of).collect();
    let kill = |child: &&Identity| {
        pid_of(child.pid).filter(|_| child.is_alive()).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    };
    children.iter().filter(kill).count()
}

/// All that descends from a stopped process, stopped as well. Not this process.
fn stopped_descendants(root: u32) -> Vec<Identity> {
    let mut known: Vec<Identity> = Vec::new();
    for _ in 0..MAX_LOOKS {
        let found: Vec<Identity> = descendants(root, &table::parents()).into_iter().filter_map(Identity::of).collect();
        if found == known {
            break;
        }
        for pid in found.iter().filter(|one| !known.contains(one)).filter_map(|one| pid_of(one.pid)) {
            kill_process(pid, Signal::STOP).ok();
        }
        known = found;
    }
    known
}

/// The numbers below `root` in a table of (pid, parent), sorted; without this process.
pub(super) fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid);
        let new: Vec<u32> = children.filter(|pid| *pid != std::process::id() && !found.contains(pid)).collect();
        found.extend(new);
        next += 1;
    }
    found.retain(|pid| *pid != root);
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_at_any_depth_and_loops_end() {
        let table = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 7), (2, 4)];
        assert_eq!(descendants(2, &table), [3, 4]);
        assert_eq!(descendants(5, &table), [6]);
        assert_eq!(descendants(7, &table), [] as [u32; 0]);
    }
}
