//! Looks into the table of processes: who runs where, who holds a lock, who descends from whom. On Linux by `/proc`,
//! elsewhere by `ps`.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

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

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    stat_after_name(pid, 1)?.parse().ok()
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
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(String::from_utf8_lossy(&stat).rsplit_once(')')?.1.split_whitespace().nth(n)?.to_owned())
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
