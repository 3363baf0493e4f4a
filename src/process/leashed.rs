//! A child that goes on while we do something else, and dies with us.

use std::{
    io,
    process::{Child, ExitStatus, Stdio},
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

impl Leashed {
    /// Starts a program of ours with the bounds and the environment of every child but its time-out, which is for whoever
    /// polls it. What it logs goes where our log goes.
    pub fn start(spec: &Spec) -> Result<Self, ProcessError> {
        let start = |source: io::Error| ProcessError::Start { program: spec.name(), source };
        let leash = Leash::new().map_err(start)?;
        let group = leash.group();
        let mut command = command(spec, group);
        let child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().map_err(start)?;
        Ok(Self { child, group, _leash: leash })
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
