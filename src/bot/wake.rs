//! The child process that a nudge is.

use std::{
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
pub(super) fn start(program: &Path) -> std::io::Result<Child> {
    process::spawn_detached(program, &ARGUMENTS, &[], Stdio::null(), Stdio::inherit())
}
