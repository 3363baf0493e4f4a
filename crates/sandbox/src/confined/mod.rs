//! The launcher: what our own program does inside bubblewrap before it becomes the program that was asked for.
//!
//! The same rules once more, by other parts of the kernel: paths by Landlock, system calls by seccomp, a few limits. What can't
//! be set ends it: a program never runs with less than all of it.

mod forward;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod syscalls;

use std::{convert::Infallible, ffi::OsString, path::PathBuf};

use serde::{Deserialize, Serialize};

use reveille_base::process;

pub use forward::forward;

use super::{Layout, proxy};

/// What the launcher is told by whoever builds the sandbox. It stands before the `--` that a tool's own words follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherRules {
    /// Every place, as outside.
    pub(super) layout: Layout,
    /// The socket, inside, on which our proxy listens; none: no network.
    pub(super) proxy: Option<PathBuf>,
}

impl LauncherRules {
    /// One line, for an argument.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what `LauncherRules::to_text` wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the rules can't be read: {error}"))
    }
}

/// Sets the rules and becomes the program.
///
/// # Errors
/// What couldn't be set, or why the program couldn't be started; this process is to end then.
pub fn run(rules: &LauncherRules, command: &[OsString]) -> Result<Infallible, String> {
    let (program, args) = command.split_first().ok_or("there is no program to run")?;
    let port = match &rules.proxy {
        Some(socket) => Some(forward::start(socket).map_err(|error| format!("the way to the proxy failed: {error}"))?),
        None => None,
    };
    restrict(&rules.layout)?;
    let error = process::become_program(program, args, &proxy::variables(port));
    Err(format!("{} couldn't be started: {error}", program.to_string_lossy()))
}

/// Keeps this process, and all that it becomes and starts, from the sockets of the machine that have no path: whoever shares the
/// machine's network reaches them. Says whether the kernel can: Linux 6.12 and newer.
///
/// # Errors
/// What couldn't be set; this process is to end then.
#[cfg(target_os = "linux")]
pub fn leave_abstract_sockets() -> Result<bool, String> {
    match paths::leave_abstract_sockets() {
        Err(paths::PathsError::Off) => Ok(false),
        Err(error) => Err(format!("Landlock couldn't be set: {error}")),
        Ok(()) => Ok(true),
    }
}

/// Keeps nobody from anything: such sockets are Linux's alone.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn leave_abstract_sockets() -> Result<bool, String> {
    Ok(true)
}

#[cfg(target_os = "linux")]
fn restrict(layout: &Layout) -> Result<(), String> {
    limits(layout.max_file_bytes).map_err(|error| format!("limits couldn't be set: {error}"))?;
    paths::restrict(layout).map_err(|error| format!("Landlock couldn't be set: {error}"))?;
    syscalls::restrict().map_err(|error| format!("seccomp couldn't be set: {error}"))
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Layout) -> Result<(), String> {
    Err("this launcher is for Linux".to_owned())
}

/// No core files (they hold memory), no files beyond all measure, no endless forking.
#[cfg(target_os = "linux")]
fn limits(max_file_bytes: Option<u64>) -> rustix::io::Result<()> {
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
