//! A file system that is really small, for tests of a full disk.

use super::env::TestEnv;

/// A file system in memory; dropping the value unmounts it.
pub(crate) struct Small<'e> {
    env: &'e TestEnv,
    at: String,
}

impl<'e> Small<'e> {
    /// Mounts a file system of this size; `None` if that isn't allowed, since it needs root on Linux.
    pub(crate) fn mount(env: &'e TestEnv, name: &str, mib: u32) -> Option<Self> {
        let at = env.path(name).display().to_string();
        std::fs::create_dir(&at).unwrap();
        let mounted = env.command("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs", &at]).output();
        if mounted.is_ok_and(|mount| mount.status.success()) {
            return Some(Self { env, at });
        }
        eprintln!("not run: a small file system can't be mounted here, which takes root on Linux");
        None
    }

    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn resize(&self, mib: u32) {
        self.env.run("mount", &["-o", &format!("remount,size={mib}m"), &self.at]).ok();
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        self.env.run("umount", &["-l", &self.at]);
    }
}
