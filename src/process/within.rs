//! Becoming another program, and what our launcher does inside a sandbox: it starts a helper beside itself first.

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
