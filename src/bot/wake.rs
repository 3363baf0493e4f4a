//! The child process that a nudge is.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::process;

/// What the program is called.
const PROGRAM: &str = "wake";
/// Replies to the console stay for somebody who watches.
const ARGUMENTS: [&str; 4] = ["--once", "--reason", "nudge", "--no-console"];

/// The `wake` beside the running program, else the one on `PATH`.
pub(super) fn program() -> PathBuf {
    process::beside(PROGRAM)
}

/// Starts a wake in its own process group: it outlives the bot. What it logs goes where the bot's log goes.
pub(super) fn start(program: &Path, settings: &[OsString]) -> std::io::Result<Child> {
    let arguments: Vec<&OsStr> = ARGUMENTS.iter().map(OsStr::new).chain(settings.iter().map(|part| &**part)).collect();
    process::spawn_detached(program, &arguments, &[], Stdio::null(), Stdio::inherit())
}
