//! A disk that is really small, for what happens when it runs full.

use super::env::TestEnv;

/// A file system of its own in memory, taken away with the value.
pub(crate) struct Small<'e> {
    env: &'e TestEnv,
    at: String,
}

impl<'e> Small<'e> {
    /// `None` where one may not be mounted: that takes root on Linux.
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
