//! Writes the settings atomically: a new file beside the old one replaces it in one step. If anything fails before, the old file is
//! unchanged.

use std::{
    io,
    path::{Path, PathBuf},
};

use reveille_base::file::{create_private_dirs, parent_directory, replace_durably};
use reveille_config::{EditError, GivenSettings, SettingChanges};

/// The reason for a failed write. The old file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The disk is full, or a quota is used up.
    #[error("the disk has no room for {}", .0.display())]
    Full(PathBuf),
    /// Any other error.
    #[error("{} can't be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The reason for unsaved changes. The old file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The file can't be read or changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Saves changes to the settings file, and returns its path. All other lines keep their bytes.
///
/// # Errors
/// Nothing was changed.
pub fn save_changes(given: &GivenSettings, changes: &SettingChanges) -> Result<PathBuf, SaveError> {
    let text = given.render_changed_file(changes)?;
    let file = given.file_path().unwrap_or_default();
    write_settings(&file, &text)?;
    Ok(file)
}

/// Writes a private settings file, creating its private directory if needed. Behind a link, the target is replaced.
///
/// # Errors
/// The write failed and nothing was changed.
pub fn write_settings(path: &Path, text: &str) -> Result<(), WriteError> {
    replace_file(path, text).map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WriteError::Full(path.to_owned()),
        _ => WriteError::Io { path: path.to_owned(), source },
    })
}

fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    create_private_dirs(parent_directory(path))?;
    replace_durably(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_it_and_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/.env");
        write_settings(&path, "A=1\n").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_settings(&path, "A=2\n").unwrap();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (0o600, "A=2\n"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles.env"), dir.path().join(".env"));
        fs::write(&real, "A=1\n").unwrap();
        symlink(&real, &link).unwrap();
        write_settings(&link, "A=2\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "A=2\n");
    }

    #[test]
    fn a_failed_write_is_reported_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let error = write_settings(&dir.path().join("file/.env"), "A=1\n").unwrap_err();
        assert!(error.to_string().contains("can't be written"), "{error}");
        fs::create_dir(dir.path().join(".env")).unwrap();
        write_settings(&dir.path().join(".env"), "A=1\n").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
