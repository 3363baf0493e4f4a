//! Actions of our program on its own process: lasting limits, becoming another program, and a helper next to us in a
//! sandbox.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
};

/// Replaces this process by another program, with our environment and these variables. Returns only on failure.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn become_program(program: &OsStr, args: &[OsString], env: &[(&str, String)]) -> io::Error {
    Command::new(program).args(args).envs(env.iter().map(|(name, value)| (name, value))).exec()
}

/// Starts a silent helper with an open descriptor as its standard input. Nobody waits for the helper: it ends with our
/// sandbox.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn start_helper(exe: &Path, args: &[&str], handed: OwnedFd) -> io::Result<()> {
    let mut command = Command::new(exe);
    command.args(args).env_clear().stdin(Stdio::from(handed)).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(drop)
}

/// Stops this process and all its children from leaving core files, which would hold the secrets in memory.
///
/// On Linux the limit is one byte: too little for a file, and at one byte the kernel starts no program that receives cores, as it
/// would at 0. Any process may lower its own limit, so a failure is ignored.
pub fn forbid_core_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const MAX_BYTES: u64 = if cfg!(target_os = "linux") { 1 } else { 0 };
    let Rlimit { current, maximum } = getrlimit(Resource::Core);
    let lowered = |set: Option<u64>| Some(set.map_or(MAX_BYTES, |set| set.min(MAX_BYTES)));
    setrlimit(Resource::Core, Rlimit { current: lowered(current), maximum: lowered(maximum) }).ok();
}
