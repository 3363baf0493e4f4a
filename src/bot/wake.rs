//! The child process that a nudge is.

use std::{
    ffi::{OsStr, OsString},
    num::NonZeroU32,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use reveille_base::process;

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
    start_as(program, NUDGE, &[], settings, Stdio::inherit())
}

/// The same for a turn, which is one cycle long.
pub(super) fn start_turn(program: &Path, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(program, NUDGE, &["--turn"], settings, Stdio::inherit())
}

/// Starts a wake for a reason, with the settings of whoever starts it, which it outlives. The caller polls the child.
///
/// # Errors
/// The system's.
pub fn start_wake(reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(&program(), reason, &[], settings, Stdio::inherit())
}

/// The same beside somebody's terminal, which is theirs: what it logs is in its log alone.
pub(super) fn start_unseen(reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(&program(), reason, &[], settings, Stdio::null())
}

/// Starts the turns of a fleet's assistants that are due; it ends once none is. The caller polls the child.
///
/// # Errors
/// The system's.
pub fn start_fleet(wake: Option<&Path>, dir: &Path, slots: NonZeroU32) -> std::io::Result<Child> {
    let (slots, beside) = (slots.to_string(), program());
    let arguments = ["--fleet".as_ref(), dir.as_os_str(), "--once".as_ref(), "--workers".as_ref(), slots.as_ref()];
    process::spawn_detached(wake.unwrap_or(&beside), &arguments, &[], Stdio::null(), Stdio::inherit())
}

fn start_as(
    program: &Path,
    reason: &str,
    more: &[&str],
    settings: &[OsString],
    stderr: Stdio,
) -> std::io::Result<Child> {
    // Replies to the console stay for somebody who watches.
    let arguments = ["--once", "--reason", reason, "--no-console"];
    let arguments = arguments.iter().chain(more).map(OsStr::new);
    let arguments: Vec<&OsStr> = arguments.chain(settings.iter().map(|part| &**part)).collect();
    process::spawn_detached(program, &arguments, &[], Stdio::null(), stderr)
}
