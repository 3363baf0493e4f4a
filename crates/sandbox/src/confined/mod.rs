//! The launcher: our own program inside bubblewrap, before it executes the requested program.
//!
//! The launcher applies the same rules again through other parts of the kernel: paths by Landlock, system calls by seccomp,
//! and resource limits. If any rule can't be set, the launcher exits: a program never runs with only a part of the
//! rules.

mod forward;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod syscalls;

use std::{convert::Infallible, ffi::OsString, path::PathBuf};

use serde::{Deserialize, Serialize};

use reveille_base::process;

pub use forward::forward_connections;

use super::{Layout, proxy};

/// The launcher's rules, passed as an argument before the `--` that separates a tool's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherRules {
    /// Every place, by its path outside the sandbox.
    pub(super) layout: Layout,
    /// The proxy's socket inside the sandbox; `None` without network.
    pub(super) proxy: Option<PathBuf>,
}

impl LauncherRules {
    /// Encodes the rules as one line, for an argument.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the output of `LauncherRules::to_text`.
    ///
    /// # Errors
    /// The text isn't valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the rules can't be read: {error}"))
    }
}

/// Applies the rules and becomes the program.
///
/// # Errors
/// A rule couldn't be set, or the program couldn't be started; this process must exit then.
pub fn run(rules: &LauncherRules, command: &[OsString]) -> Result<Infallible, String> {
    let (program, args) = command.split_first().ok_or("there is no program to run")?;
    let port = match &rules.proxy {
        Some(socket) => {
            Some(forward::start_forwarder(socket).map_err(|error| format!("the way to the proxy failed: {error}"))?)
        }
        None => None,
    };
    restrict_process(&rules.layout)?;
    let error = process::become_program(program, args, &proxy::build_variables(port));
    Err(format!("{} couldn't be started: {error}", program.to_string_lossy()))
}

/// Bars this process and all its successors and children from abstract Unix sockets, which are reachable from every
/// program on the machine's network. Returns false if the kernel lacks support (before Linux 6.12).
///
/// # Errors
/// The rule couldn't be set; this process must exit then.
#[cfg(target_os = "linux")]
pub fn block_abstract_sockets() -> Result<bool, String> {
    match paths::block_abstract_sockets() {
        Err(paths::PathsError::Off) => Ok(false),
        Err(error) => Err(format!("Landlock couldn't be set: {error}")),
        Ok(()) => Ok(true),
    }
}

/// Does nothing: only Linux has abstract sockets.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn leave_abstract_sockets() -> Result<bool, String> {
    Ok(true)
}

#[cfg(target_os = "linux")]
fn restrict_process(layout: &Layout) -> Result<(), String> {
    set_limits(layout.max_file_bytes).map_err(|error| format!("limits couldn't be set: {error}"))?;
    paths::restrict(layout).map_err(|error| format!("Landlock couldn't be set: {error}"))?;
    syscalls::restrict().map_err(|error| format!("seccomp couldn't be set: {error}"))
}

#[cfg(not(target_os = "linux"))]
fn restrict_process(_: &Layout) -> Result<(), String> {
    Err("this launcher is for Linux".to_owned())
}

/// Forbids core files (they hold memory) and bounds the size of files and the number of processes.
#[cfg(target_os = "linux")]
fn set_limits(max_file_bytes: Option<u64>) -> rustix::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const MAX_FILE_BYTES: u64 = 8 << 30;
    const MAX_PROCESSES: u64 = 4096;
    let max_file_bytes = max_file_bytes.map_or(MAX_FILE_BYTES, |bytes| bytes.min(MAX_FILE_BYTES));
    for (resource, bound) in [(Resource::Core, 0), (Resource::Fsize, max_file_bytes), (Resource::Nproc, MAX_PROCESSES)]
    {
        let lowered = |set: Option<u64>| Some(set.map_or(bound, |set| set.min(bound)));
        let set = getrlimit(resource);
        setrlimit(resource, Rlimit { current: lowered(set.current), maximum: lowered(set.maximum) })?;
    }
    Ok(())
}
