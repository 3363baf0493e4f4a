//! Starts wakes as child processes.

use std::{
    ffi::{OsStr, OsString},
    num::NonZeroU32,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use reveille_base::process;

/// The program's name.
const PROGRAM: &str = "wake";
/// The reason passed to the bot's wakes.
const NUDGE: &str = "nudge";

/// Finds the `wake` beside the running program, else on `PATH`.
pub(super) fn find_program() -> PathBuf {
    process::resolve_sibling_program(PROGRAM)
}

/// Starts a wake in its own process group, so it outlives the bot. It logs to the bot's log.
pub(super) fn start(program: &Path, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(program, NUDGE, &[], settings, Stdio::inherit())
}

/// Starts a wake in the same way, but for a single turn, which is one cycle long.
pub(super) fn start_turn(program: &Path, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(program, NUDGE, &["--turn"], settings, Stdio::inherit())
}

/// Starts a wake for a reason, with the caller's settings. It outlives the caller, which polls the child.
///
/// # Errors
/// If the process can't be started.
pub fn start_wake(reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(&find_program(), reason, &[], settings, Stdio::inherit())
}

/// Starts a wake beside a terminal in use. It logs only to its own log, so the terminal stays clean.
pub(super) fn start_unseen(reason: &str, settings: &[OsString]) -> std::io::Result<Child> {
    start_as(&find_program(), reason, &[], settings, Stdio::null())
}

/// Starts the due turns of a fleet's assistants; ends once none is due. The caller polls the child.
///
/// # Errors
/// If the process can't be started.
pub fn start_fleet(wake: Option<&Path>, dir: &Path, slots: NonZeroU32) -> std::io::Result<Child> {
    let (slots, sibling) = (slots.to_string(), find_program());
    let arguments = ["--fleet".as_ref(), dir.as_os_str(), "--once".as_ref(), "--workers".as_ref(), slots.as_ref()];
    process::spawn_detached(wake.unwrap_or(&sibling), &arguments, &[], Stdio::null(), Stdio::inherit())
}

fn start_as(
    program: &Path,
    reason: &str,
    more: &[&str],
    settings: &[OsString],
    stderr: Stdio,
) -> std::io::Result<Child> {
    // A wake in the background can't know whether anybody watches the terminal, so its replies there wait.
    let arguments = ["--once", "--reason", reason, "--no-console"];
    let arguments = arguments.iter().chain(more).map(OsStr::new);
    let arguments: Vec<&OsStr> = arguments.chain(settings.iter().map(|part| &**part)).collect();
    process::spawn_detached(program, &arguments, &[], Stdio::null(), stderr)
}
