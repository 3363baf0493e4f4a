//! Makes the descendants of a child die with us too: `git` has helpers (`ssh`, `git-remote-https`) that wait for a silent
//! server long after `git` was killed.
//!
//! A shell leads the child's group and waits for the end of a pipe which only we hold open. If we die in any way, the system
//! closes the pipe and the shell kills the group. This needs only pipes and groups from the system. A process that leaves the
//! group, such as an SSH master connection, means to live on and does.
//!
//! A group that is asked first gets SIGTERM a moment earlier: `git receive-pack`, which a push starts in a remote on this machine,
//! would otherwise leave its lock on the branch for the next push to find.

use std::{
    io,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::process::Pid;

use super::Spec;

/// Waits until the pipe has no writers, then kills the whole group, this shell included.
const WATCH: &str = "read -r _; kill -KILL 0";

/// Like `WATCH`, but with [`TIDYING`](super::TIDYING) between SIGTERM and SIGKILL.
// fault: wake-starts-leash
const WATCH_TIDYING: &str = "trap '' TERM; read -r _; kill -TERM 0; sleep 1; kill -KILL 0";

/// A process group that ends when we do. Dropping the leash releases the group.
#[derive(Debug)]
pub(super) struct Leash {
    watcher: Child,
    /// The write end of the pipe. The system closes it when we die.
    _held: Option<ChildStdin>,
}

impl Leash {
    #[expect(clippy::disallowed_methods, reason = "a child of this module's parent, the one home of Command::new")]
    pub(super) fn new(spec: &Spec) -> io::Result<Self> {
        let mut watcher = Command::new("/bin/sh");
        watcher.args(["-c", if spec.is_asked_first { WATCH_TIDYING } else { WATCH }]).env_clear().current_dir("/");
        watcher.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut watcher = std::os::unix::process::CommandExt::process_group(&mut watcher, 0).spawn()?;
        // Waiting for the watcher would close the pipe.
        let held = watcher.stdin.take();
        Ok(Self { watcher, _held: held })
    }

    /// The number of the group, for processes that join it.
    pub(super) fn group(&self) -> Option<Pid> {
        super::to_pid(self.watcher.id())
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // A kill of the group may have ended the watcher already.
        self.watcher.kill().ok();
        self.watcher.wait().ok();
    }
}
