//! Process identity: pid, boot and start time together, since a pid alone may be reused.

#[cfg(not(target_os = "linux"))]
use std::time::Duration;

#[cfg(not(target_os = "linux"))]
use super::{Spec, run};

/// The identity of a process, valid across reuse of its pid and across reboots.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The pid.
    pub pid: u32,
    /// The boot of the machine in which the process started.
    pub boot_id: String,
    /// The start time in the system's own format.
    pub started: String,
}

impl Identity {
    /// The identity of this process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self::for_pid(pid).unwrap_or_else(|| Self { pid, boot_id: String::new(), started: String::new() })
    }

    /// The identity of a living process; `None` if the pid is unused or a zombie.
    pub fn for_pid(pid: u32) -> Option<Self> {
        Some(Self { pid, boot_id: boot_id()?, started: read_start_time(pid)? })
    }

    /// Returns true if this exact process still lives.
    pub fn is_alive(&self) -> bool {
        // fault: number-another-boot-passes
        // fault: number-somebody-else-now
        Self::for_pid(self.pid).is_some_and(|living| living == *self)
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The ticks since boot: field 22 of the process's `stat`. The second field is a name in parentheses with any content.
#[cfg(target_os = "linux")]
fn read_start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> Option<String> {
    first_line(&Spec::new("sysctl").args(["-n", "kern.bootsessionuuid"]))
}

#[cfg(not(target_os = "linux"))]
fn read_start_time(pid: u32) -> Option<String> {
    let pid = pid.to_string();
    let line = first_line(&Spec::new("ps").env("LC_ALL", "C").args(["-o", "stat=", "-o", "lstart=", "-p", &pid]))?;
    let (state, started) = line.split_once(char::is_whitespace)?;
    (!state.starts_with('Z')).then(|| started.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn first_line(spec: &Spec) -> Option<String> {
    let output = run(&spec.clone().timeout(Duration::from_secs(2))).ok()?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
