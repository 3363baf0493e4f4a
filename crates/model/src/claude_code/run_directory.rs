//! A run's own directory: standing orders, server settings, and an empty home. Created before the run and removed after it.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use reveille_base::file::{create_private, create_private_dir};

/// The directory, removed with its content on drop.
#[derive(Debug)]
pub(super) struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Creates the directory for our user alone, after removing the remains of a killed run.
    pub(super) fn make(dir: &Path) -> io::Result<Self> {
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let directory = Self(dir.to_owned());
        for part in [directory.0.clone(), directory.home_dir(), directory.work_dir(), directory.temp_dir()] {
            create_private_dir(&part)?;
        }
        Ok(directory)
    }

    /// Writes a private file.
    pub(super) fn write_file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        create_private(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// An empty home directory.
    pub(super) fn home_dir(&self) -> PathBuf {
        self.0.join("home")
    }

    /// An empty working directory.
    pub(super) fn work_dir(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The directory for temporary files.
    pub(super) fn temp_dir(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "the directory of a run of Claude Code stays until the next one");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_directory_is_private_replaces_remains_and_is_removed_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("claude-code");
        std::fs::create_dir_all(dir.join("home/.claude")).unwrap();
        let directory = RunDirectory::make(&dir).unwrap();
        assert!(!dir.join("home/.claude").exists());
        let file = directory.write_file("mcp.json", "{}").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&directory.home_dir()), mode(&file)), (0o700, 0o700, 0o600));
        drop(directory);
        assert!(!dir.exists());
    }
}
