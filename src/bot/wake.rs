//! The child process that a nudge is.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::process;

/// What the program is called.
const PROGRAM: &str = "wake";
/// What starts the bot's wakes.
const NUDGE: &str = "nudge";

/// The `wake` beside the running program, else the one on `PATH`.
pub(super) fn program() -> PathBuf {
    process::beside(PROGRAM)
}

/// Starts a wake in its own process group: it outlives the bot. What it logs goes where the bot's log goes.
pub(super) fn start(program: &Path, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(program, NUDGE, settings)
}

/// Starts a wake for a reason, with the settings of whoever starts it, which it outlives. The caller polls the child.
///
/// # Errors
/// The system's.
pub fn start_wake(reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(&program(), reason, settings)
}

fn start_as(program: &Path, reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    // Replies to the console stay for somebody who watches.
    let arguments = ["--once", "--reason", reason, "--no-console"];
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(settings.iter().map(|part| &**part)).collect();
    process::spawn_detached(program, &arguments, &[], Stdio::null(), Stdio::inherit())
}
