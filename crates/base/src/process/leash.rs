//! What a child starts in its turn dies with us, too: `git` has helpers (`ssh`, `git-remote-https`) that wait for a silent
//! server long after `git` was killed.
//!
//! A shell that leads the child's group waits for the end of a pipe which only we hold open. However we die, the system
//! closes that pipe, and the shell kills the group. It needs nothing of the operating system but pipes and groups; whatever
//! leaves the group by itself (a daemon such as an SSH master connection) means to live on, and does.
//!
//! A group that is asked first gets SIGTERM a moment before: `git receive-pack`, which a push starts in a remote on this machine,
//! would otherwise leave its lock on the branch there, and whoever pushes next would find it.

use std::{
    io,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::process::Pid;

use super::Spec;

/// Waits until nobody can write any more, then ends everybody in its group, itself included.
const WATCH: &str = "read -r _; kill -KILL 0";

/// The same with [`TIDYING`](super::TIDYING) to spare.
// fault: wake-starts-leash
const WATCH_TIDYING: &str = "trap '' TERM; read -r _; kill -TERM 0; sleep 1; kill -KILL 0";

/// A group of processes that ends when we do. Dropped, it lets them go.
#[derive(Debug)]
pub(super) struct Leash {
    watcher: Child,
    /// Closed by the system when we die, and only then before the watcher is gone.
    _held: Option<ChildStdin>,
}

impl Leash {
    #[expect(clippy::disallowed_methods, reason = "a child of this module's parent, the one home of Command::new")]
    pub(super) fn new(spec: &Spec) -> io::Result<Self> {
        let mut watcher = Command::new("/bin/sh");
        watcher.args(["-c", if spec.is_asked_first { WATCH_TIDYING } else { WATCH }]).env_clear().current_dir("/");
        watcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut watcher = std::os::unix::process::CommandExt::process_group(&mut watcher, 0).spawn()?;
        // Waiting for the watcher would close the pipe that it holds.
        let held = watcher.stdin.take();
        Ok(Self { watcher, _held: held })
    }

    /// The group's number, for whoever joins it.
    pub(super) fn group(&self) -> Option<Pid> {
        super::pid_of(self.watcher.id())
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // It may have been killed with its group just now, which is as good.
        self.watcher.kill().ok();
        self.watcher.wait().ok();
    }
}
