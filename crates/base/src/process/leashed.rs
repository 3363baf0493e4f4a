//! A child that runs in parallel and dies with us.

use std::{
    io,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal};

use super::{Leash, ProcessError, Spec, build_command};

/// A running child. Dropping it kills the child with its group.
#[derive(Debug)]
pub struct Leashed {
    child: Child,
    group: Option<Pid>,
    _leash: Leash,
}

/// The streams of a child in conversation.
#[derive(Debug)]
pub struct Pipes {
    /// The child's standard input.
    pub stdin: ChildStdin,
    /// The child's standard output.
    pub stdout: ChildStdout,
    /// The child's standard error.
    pub stderr: ChildStderr,
}

impl Leashed {
    /// Starts a program of ours with the limits and the environment of every child, except the time-out, which is up to the caller.
    /// Logs go to our own standard error.
    pub fn start(spec: &Spec) -> Result<Self, ProcessError> {
        let start = |source: io::Error| ProcessError::Start { program: spec.name(), source };
        let leash = Leash::new(spec).map_err(start)?;
        let group = leash.group();
        let mut command = build_command(spec, group);
        let child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().map_err(start)?;
        Ok(Self { child, group, _leash: leash })
    }

    /// Starts a program and hands its three streams to the caller. Otherwise like [`Leashed::start`].
    pub fn start_with_pipes(spec: &Spec) -> Result<(Self, Pipes), ProcessError> {
        let start = |source: io::Error| ProcessError::Start { program: spec.name(), source };
        let leash = Leash::new(spec).map_err(start)?;
        let group = leash.group();
        let mut child = build_command(spec, group).stdin(Stdio::piped()).spawn().map_err(start)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let leashed = Self { child, group, _leash: leash };
        match streams {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((leashed, Pipes { stdin, stdout, stderr })),
            _ => Err(start(io::Error::other("its streams weren't opened"))),
        }
    }

    /// The exit status; `None` while the child runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The pid of the child.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // The watcher keeps the group number taken as long as the leash exists.
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}
