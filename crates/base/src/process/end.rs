//! Killing a process with its group and all its descendants, for a wake that hangs.

use std::{io, thread, time::Duration};

use rustix::process::{Signal, getpgid, getpgrp, kill_process, kill_process_group};

use super::{Identity, table, to_pid};

/// The maximum number of searches for new descendants. A descendant is paused when found, so it can't start others.
const MAX_SEARCHES: u32 = 8;
/// The pause between two checks for survivors.
const PAUSE: Duration = Duration::from_millis(10);

/// The reason for a failure to end a process. Except for `Lingers`, nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The process has ended, is this process, or can't be identified.
    #[error("pid {pid} is no longer the same process")]
    NotSame {
        /// The pid.
        pid: u32,
    },
    /// The process belongs to another user.
    #[error("pid {pid} can't be ended: {source}")]
    Refused {
        /// The pid.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The process was killed but still exists: it hangs in the kernel.
    #[error("pid {pid} was killed but is still there after {} s", after.as_secs())]
    Lingers {
        /// The pid.
        pid: u32,
        /// The time waited.
        after: Duration,
    },
}

/// Sends SIGTERM to a process if its identity still matches.
pub fn ask_to_end(who: &Identity) {
    if let Some(pid) = to_pid(who.pid).filter(|_| who.is_alive()) {
        kill_process(pid, Signal::TERM).ok();
    }
}

/// Kills this exact process, the group it leads and all its descendants, and waits until they are gone. Killing the group isn't
/// enough, because children run in their own groups.
///
/// # Errors
/// Fails if the identity doesn't match, the kill is refused, or the process outlives `within`.
pub fn end_process(who: &Identity, within: Duration) -> Result<(), EndError> {
    let pid = who.pid;
    let Some(number) = to_pid(pid).filter(|_| pid != std::process::id() && who.is_alive()) else {
        return Err(EndError::NotSame { pid });
    };
    kill_process(number, Signal::STOP).map_err(|errno| EndError::Refused { pid, source: errno.into() })?;
    let mut all = pause_descendants(pid);
    all.push(who.clone());
    // If the group has the same number, the process leads it. Another group may belong to the shell that started us both.
    if getpgid(Some(number)) == Ok(number) && getpgrp() != number {
        kill_process_group(number, Signal::KILL).ok();
    }
    for one in &all {
        if let Some(number) = to_pid(one.pid).filter(|_| one.is_alive()) {
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

/// Kills all descendants of this exact process but not the process itself. Returns the number killed.
pub fn end_children(who: &Identity) -> usize {
    if who.pid == std::process::id() || !who.is_alive() {
        return 0;
    }
    let children: Vec<Identity> =
        list_descendants(who.pid, &table::list_parents()).into_iter().filter_map(Identity::for_pid).collect();
    let kill = |child: &&Identity| {
        to_pid(child.pid).filter(|_| child.is_alive()).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    };
    children.iter().filter(kill).count()
}

/// Pauses all descendants of a paused process. Returns them, without the calling process.
fn pause_descendants(root: u32) -> Vec<Identity> {
    let mut known: Vec<Identity> = Vec::new();
    for _ in 0..MAX_SEARCHES {
        let found: Vec<Identity> =
            list_descendants(root, &table::list_parents()).into_iter().filter_map(Identity::for_pid).collect();
        if found == known {
            break;
        }
        for pid in found.iter().filter(|one| !known.contains(one)).filter_map(|one| to_pid(one.pid)) {
            kill_process(pid, Signal::STOP).ok();
        }
        known = found;
    }
    known
}

/// The pids of all descendants of `root` in a table of (pid, parent), sorted, without the calling process.
pub(super) fn list_descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
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
        assert_eq!(list_descendants(2, &table), [3, 4]);
        assert_eq!(list_descendants(5, &table), [6]);
        assert_eq!(list_descendants(7, &table), [] as [u32; 0]);
    }
}
