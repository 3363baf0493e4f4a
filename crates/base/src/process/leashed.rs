//! A child that goes on while we do something else, and dies with us.

use std::{
    io,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal};

use super::{Leash, ProcessError, Spec, command};

/// A child at work. Dropped, it is killed with its group.
#[derive(Debug)]
pub struct Leashed {
    child: Child,
    group: Option<Pid>,
    _leash: Leash,
}

/// The streams of a child that is spoken with.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it complains of.
    pub stderr: ChildStderr,
}

impl Leashed {
    /// Starts a program of ours with the bounds and the environment of every child but its time-out, which is for whoever
    /// polls it. What it logs goes where our log goes.
    pub fn start(spec: &Spec) -> Result<Self, ProcessError> {
        let start = |source: io::Error| ProcessError::Start { program: spec.name(), source };
        let leash = Leash::new(spec).map_err(start)?;
        let group = leash.group();
        let mut command = command(spec, group);
        let child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().map_err(start)?;
        Ok(Self { child, group, _leash: leash })
    }

    /// Starts a program that is spoken with: its three streams are the caller's. Otherwise as [`Leashed::start`].
    pub fn start_piped(spec: &Spec) -> Result<(Self, Pipes), ProcessError> {
        let start = |source: io::Error| ProcessError::Start { program: spec.name(), source };
        let leash = Leash::new(spec).map_err(start)?;
        let group = leash.group();
        let mut child = command(spec, group).stdin(Stdio::piped()).spawn().map_err(start)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let leashed = Self { child, group, _leash: leash };
        match streams {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((leashed, Pipes { stdin, stdout, stderr })),
            _ => Err(start(io::Error::other("its streams weren't opened"))),
        }
    }

    /// How it ended; none while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Its watcher is in the group, so that there is one as long as the leash is.
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}
