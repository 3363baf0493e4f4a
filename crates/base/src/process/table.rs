//! Searches of the process table: ancestors, working directories and lock holders. Uses `/proc` on Linux and `ps` elsewhere.

#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::{path::Path, time::Duration};

#[cfg(not(target_os = "linux"))]
use super::{Spec, run};

/// All living processes as (pid, parent). Empty if the system doesn't tell.
pub(super) fn list_parents() -> Vec<(u32, u32)> {
    #[cfg(target_os = "linux")]
    {
        let entries = std::fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| Some((pid, read_parent(pid)?))).collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let Ok(output) = run(&Spec::new("ps").env("LC_ALL", "C").args(["-axo", "pid=,ppid="])) else {
            return Vec::new();
        };
        let pair = |line: &str| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        };
        String::from_utf8_lossy(&output.stdout).lines().filter_map(pair).collect()
    }
}

/// Our own children, including those started before an exec.
pub fn own_children() -> Vec<u32> {
    let us = std::process::id();
    list_parents().into_iter().filter(|(_, parent)| *parent == us).map(|(pid, _)| pid).collect()
}

/// Returns true if an ancestor of ours has one of these names. `false` if the system doesn't tell.
pub fn descends_from(names: &[&str]) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut ancestors = std::iter::successors(read_parent(std::process::id()), |pid| read_parent(*pid));
        ancestors.any(|pid| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            names.contains(&comm.trim_end())
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = names;
        false
    }
}

#[cfg(target_os = "linux")]
fn read_parent(pid: u32) -> Option<u32> {
    stat_after_name(pid, 1)?.parse().ok()
}

/// The CPU time of each process with its living and ended descendants. Zero if the system doesn't tell.
pub fn computing_times(roots: &[u32]) -> Vec<Duration> {
    if roots.is_empty() {
        return Vec::new();
    }
    let parents = list_parents();
    let tree = |root: u32| std::iter::once(root).chain(super::end::list_descendants(root, &parents));
    roots.iter().map(|root| tree(*root).map(read_computing_time).sum()).collect()
}

/// The CPU time of a process and its reaped children.
#[cfg(target_os = "linux")]
fn read_computing_time(pid: u32) -> Duration {
    /// `proc(5)` counts in hundredths of a second, independent of the kernel's clock.
    const TICK: Duration = Duration::from_millis(10);
    let ticks = stats_after_name(pid, 11, 4);
    let ticks = ticks.iter().filter_map(|field| field.parse::<u32>().ok()).fold(0, u32::saturating_add);
    TICK.saturating_mul(ticks)
}

#[cfg(not(target_os = "linux"))]
fn read_computing_time(_: u32) -> Duration {
    Duration::ZERO
}

/// Returns true if a process was stopped (SIGSTOP, Ctrl-Z), but not by a debugger. `false` if the system doesn't tell.
pub fn is_stopped(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        stat_after_name(pid, 0).is_some_and(|state| state == "T")
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        false
    }
}

/// Returns the nth field after the name in the process's `stat`. The name is in parentheses and may contain anything.
#[cfg(target_os = "linux")]
fn stat_after_name(pid: u32, n: usize) -> Option<String> {
    stats_after_name(pid, n, 1).pop()
}

/// `count` of these fields from the nth on.
#[cfg(target_os = "linux")]
fn stats_after_name(pid: u32, n: usize, count: usize) -> Vec<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
    fields.into_iter().flatten().skip(n).take(count).map(str::to_owned).collect()
}

/// Returns true if a program with this name prefix has its current directory in `dir` (`git` runs others, such as
/// `git-receive-pack`). If the system hides working directories, any such program counts.
pub fn is_running_in(name: &str, dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return false;
        };
        processes.filter_map(Result::ok).map(|process| process.path()).any(|process| {
            std::fs::read_to_string(process.join("comm")).is_ok_and(|comm| comm.starts_with(name))
                && std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&dir))
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = dir;
        let processes = run(&Spec::new("ps").args(["-axo", "comm="]));
        processes.is_ok_and(|output| {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names
                .lines()
                .filter_map(|line| Path::new(line.trim()).file_name())
                .any(|program| program.to_string_lossy().starts_with(name))
        })
    }
}

/// Returns true if a program of exactly this name runs under any user.
pub fn is_running(name: &str) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        processes.any(|process| {
            std::fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let processes = run(&Spec::new("ps").args(["-axo", "comm="]));
        processes.is_ok_and(|output| {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names.lines().filter_map(|line| Path::new(line.trim()).file_name()).any(|program| program == name)
        })
    }
}

/// The processes that hold a flock on this file, as far as the system shows. An inherited lock has several holders. Empty if
/// the system doesn't tell.
pub fn holding_flock(path: &Path) -> Vec<u32> {
    #[cfg(target_os = "linux")]
    {
        let pids = std::fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            holds_flock(pid, path).then_some(pid)
        });
        pids.collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        Vec::new()
    }
}

/// Reads `fdinfo`, which lists the locks of each open file.
#[cfg(target_os = "linux")]
fn holds_flock(pid: u32, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same_file = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let process = PathBuf::from(format!("/proc/{pid}"));
    let descriptors = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    descriptors.filter_map(Result::ok).any(|descriptor| {
        let is_it = match (std::fs::metadata(descriptor.path()), std::fs::metadata(path)) {
            (Ok(open), Ok(wanted)) => same_file(open, wanted),
            _ => false,
        };
        let info = process.join("fdinfo").join(descriptor.file_name());
        is_it && std::fs::read_to_string(info).is_ok_and(|info| info.contains("FLOCK"))
    })
}
