//! Looks into the table of processes: who runs where, who holds a lock, who descends from whom. On Linux by `/proc`,
//! elsewhere by `ps`.

#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::{path::Path, time::Duration};

#[cfg(not(target_os = "linux"))]
use super::{Spec, run};

/// Every living process with its parent, as (pid, parent). Empty where the system doesn't tell.
pub(super) fn parents() -> Vec<(u32, u32)> {
    #[cfg(target_os = "linux")]
    {
        let entries = std::fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
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

/// Our own children, those that were started before we became this program among them.
pub fn own_children() -> Vec<u32> {
    let us = std::process::id();
    parents().into_iter().filter(|(_, parent)| *parent == us).map(|(pid, _)| pid).collect()
}

/// Whether a program of one of these names has started us, or what has. `false` where the system doesn't tell.
pub fn descends_from(names: &[&str]) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut ancestors = std::iter::successors(parent_of(std::process::id()), |pid| parent_of(*pid));
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
fn parent_of(pid: u32) -> Option<u32> {
    stat_after_name(pid, 1)?.parse().ok()
}

/// How long each of these processes has computed so far, with all that descends from it and that has ended of it. Zero where the
/// system doesn't tell.
pub fn computing_times(roots: &[u32]) -> Vec<Duration> {
    if roots.is_empty() {
        return Vec::new();
    }
    let parents = parents();
    let tree = |root: u32| std::iter::once(root).chain(super::end::descendants(root, &parents));
    roots.iter().map(|root| tree(*root).map(computed_alone).sum()).collect()
}

/// How long a process has computed, and those of its children that it has waited for.
#[cfg(target_os = "linux")]
fn computed_alone(pid: u32) -> Duration {
    /// `proc(5)` counts in hundredths of a second, whatever the kernel's own clock is.
    const TICK: Duration = Duration::from_millis(10);
    let ticks = stats_after_name(pid, 11, 4);
    let ticks = ticks.iter().filter_map(|field| field.parse::<u32>().ok()).fold(0, u32::saturating_add);
    TICK.saturating_mul(ticks)
}

#[cfg(not(target_os = "linux"))]
fn computed_alone(_: u32) -> Duration {
    Duration::ZERO
}

/// Whether a process was stopped (SIGSTOP, Ctrl-Z), and not by a debugger. `false` where the system doesn't tell.
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

/// The nth field after the name in the process's `stat`; the name is in parentheses and may hold anything.
#[cfg(target_os = "linux")]
fn stat_after_name(pid: u32, n: usize) -> Option<String> {
    stats_after_name(pid, n, 1).pop()
}

/// So many of these fields, from the nth on.
#[cfg(target_os = "linux")]
fn stats_after_name(pid: u32, n: usize, count: usize) -> Vec<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
    fields.into_iter().flatten().skip(n).take(count).map(str::to_owned).collect()
}

/// Whether a program whose name begins so (`git` runs others, such as `git-receive-pack`) runs with its current directory in
/// `dir`. Where the system doesn't tell a process's directory, any such program counts.
pub fn runs_in(name: &str, dir: &Path) -> bool {
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

/// Whether a program of exactly this name runs, whoever's it is.
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

/// The processes that hold a flock on this file, as far as this system tells and lets us see; a lock that was inherited has
/// several. Empty where it doesn't tell.
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

/// `fdinfo` lists the locks of each open file.
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
