//! The temporary folder of a trial. The next trial clears what a killed one left behind.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use reveille_base::file::create_private_dir;

/// The permission bits that must not be set, because they admit others.
const OTHERS: u32 = 0o077;

/// The folder, removed on drop.
#[derive(Debug)]
pub struct TrialPlace {
    dir: PathBuf,
    /// Held while the folder is in use.
    _lock: File,
}

impl TrialPlace {
    /// Creates a private folder below the system's temporary folder, and removes those of ended trials.
    ///
    /// # Errors
    /// The file system's error, or the place belongs to someone else.
    pub fn make() -> io::Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let base = std::env::temp_dir().join(format!("reveille-eval-{uid}"));
        make_private(&base)?;
        let found = fs::symlink_metadata(&base)?;
        if !found.is_dir() || found.uid() != uid || found.mode() & OTHERS != 0 {
            let why = format!("{} isn't a private folder of this user, so nothing is written there", base.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        // Keeps this trial from clearing a folder that another trial has created but not locked yet.
        let gate = File::open(&base)?;
        gate.lock()?;
        remove_stale_folders(&base)?;
        let dir = base.join(format!("{:016x}", fastrand::u64(..)));
        create_private_dir(&dir)?;
        let lock = File::open(&dir)?;
        lock.lock()?;
        Ok(Self { dir, _lock: lock })
    }

    /// Returns the folder's path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for TrialPlace {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::debug!(%error, "a temporary folder is left for the next trial");
        }
    }
}

fn make_private(dir: &Path) -> io::Result<()> {
    match create_private_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Removes the folders that no trial has locked.
fn remove_stale_folders(base: &Path) -> io::Result<()> {
    for entry in fs::read_dir(base)? {
        let path = entry?.path();
        let is_held = File::open(&path).is_ok_and(|folder| folder.try_lock().is_err());
        if !is_held && let Err(error) = fs::remove_dir_all(&path) {
            tracing::debug!(%error, "the folder of a killed trial could not be removed");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlocked_folders_are_removed_and_locked_ones_stay() {
        let base = tempfile::tempdir().unwrap();
        let (left, held) = (base.path().join("left"), base.path().join("held"));
        for dir in [&left, &held] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("x"), "x").unwrap();
        }
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        remove_stale_folders(base.path()).unwrap();
        assert_eq!((left.exists(), held.join("x").exists()), (false, true));
    }
}
