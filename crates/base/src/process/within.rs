//! What a program of ours does to its own process: bounds that outlive it, becoming another program, and a helper that our launcher
//! starts beside itself inside a sandbox.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::Path,
    process::{Command, Stdio},
};

/// Turns this process into another program, with the environment that it has and these variables. Returns only if that failed.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn become_program(program: &OsStr, args: &[OsString], env: &[(&str, String)]) -> io::Error {
    Command::new(program).args(args).envs(env.iter().map(|(name, value)| (name, value))).exec()
}

/// Starts a helper that is handed one open descriptor as its standard input and says nothing. It isn't waited for: it ends with
/// the sandbox that we are in.
#[expect(clippy::disallowed_methods, reason = "a child of the one home of Command::new")]
pub fn start_beside(exe: &Path, args: &[&str], handed: OwnedFd) -> io::Result<()> {
    let mut command = Command::new(exe);
    command.args(args).env_clear().stdin(Stdio::from(handed)).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(drop)
}

/// Keeps this process, and all that it starts, from leaving a core file when it dies: one would hold the secrets of its memory.
///
/// On Linux the limit is one byte. That is too little for a file, and a program that the system hands cores to isn't started at that limit,
/// as it would be at 0. Any process may lower its own limit, so that nothing is left to do should that fail.
pub fn forbid_core_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const MAX_BYTES: u64 = if cfg!(target_os = "linux") { 1 } else { 0 };
    let Rlimit { current, maximum } = getrlimit(Resource::Core);
    let lowered = |set: Option<u64>| Some(set.map_or(MAX_BYTES, |set| set.min(MAX_BYTES)));
    setrlimit(Resource::Core, Rlimit { current: lowered(current), maximum: lowered(maximum) }).ok();
}
