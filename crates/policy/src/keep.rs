//! The only writer of `policy.toml`. It writes the new text to a file next to the old one, lets the loader check it, and renames it into
//! place, so that a crash leaves either the old or the new file. `reveille_base::file` can neither check a new file nor keep the old one's
//! mode and time.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::SystemTime,
};

use rustix::fs::FlockOperation;

use reveille_base::file::{create_private, remove_if_there};
use reveille_config::{MAX_BYTES, read_private};

use super::{amend::AmendError, load};

/// The temporary file, next to the policy.
const NEW: &str = ".policy.toml.new";
/// The permissions of a newly created policy.
const MODE: u32 = 0o600;

/// Changes the policy file. `make` gets its text (empty if there is no file) and returns the new text, or `None` for no change. Returns
/// `true` if the file was changed. `home` replaces `~/`.
///
/// # Errors
/// The reason the file can't be changed; it stays as it was.
pub fn change_file(
    path: &Path,
    home: Option<&Path>,
    make: impl FnOnce(&str) -> Result<Option<String>, AmendError>,
) -> Result<bool, AmendError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // The lock keeps two of our own changes from overwriting each other. It is released when the handle is dropped.
    let lock = File::open(folder)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from)?;
    let PolicyFile { text: before, mode, modified } = read_file(path)?;
    let Some(text) = make(before.as_deref().unwrap_or_default())? else { return Ok(false) };
    if text.len() as u64 > MAX_BYTES {
        return Err(AmendError::Full);
    }
    let new = folder.join(NEW);
    let replace = || {
        write_file(&new, &text, mode, modified)?;
        if let Some(problem) = load(&new, home).problems.into_iter().next() {
            return Err(AmendError::Invalid(problem));
        }
        // An editor takes no lock, so it may have changed the file meanwhile.
        if read_file(path)?.text != before {
            return Err(AmendError::Changed);
        }
        Ok(fs::rename(&new, path)?)
    };
    if let Err(error) = replace() {
        fs::remove_file(&new).ok();
        return Err(error);
    }
    lock.sync_all()?;
    Ok(true)
}

/// The policy file before a change.
struct PolicyFile {
    /// `None` without a file.
    text: Option<String>,
    mode: u32,
    /// The time of the last change. The new file keeps it, because it dates the person's own rules.
    modified: Option<SystemTime>,
}

fn read_file(path: &Path) -> Result<PolicyFile, AmendError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(PolicyFile { text: None, mode: MODE, modified: None });
        }
        Err(error) => return Err(error.into()),
    };
    if metadata.is_symlink() {
        return Err(AmendError::Link);
    }
    let private = read_private(path).map_err(AmendError::Unusable)?;
    // A file owned by root is meant to stay unchanged.
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(AmendError::NotOurs(metadata.uid()));
    }
    Ok(PolicyFile { text: Some(private.text), mode: metadata.mode() & 0o777, modified: metadata.modified().ok() })
}

fn write_file(path: &Path, text: &str, mode: u32, modified: Option<SystemTime>) -> io::Result<()> {
    // Removes the remains of a crash.
    remove_if_there(path)?;
    let mut file = create_private(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    modified.map_or(Ok(()), |modified| file.set_modified(modified))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature that `change_file` expects")]
    fn one_more(text: &str) -> Result<Option<String>, AmendError> {
        Ok(Some(format!("{text}# more\n")))
    }

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let (dir, path) = file("# mine\n", 0o640);
        fs::write(dir.path().join(NEW), "what a crash left").unwrap();
        assert!(change_file(&path, None, one_more).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n# more\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert!(!change_file(&path, None, |_| Ok(None)).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(change_file(&path, None, one_more).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(entries(dir.path()), 1);
    }

    #[test]
    fn a_file_that_cannot_be_changed_safely_stays_unchanged() {
        let (dir, path) = file("# mine\n", 0o600);
        let link = dir.path().join("link.toml");
        symlink(&path, &link).unwrap();
        assert!(matches!(change_file(&link, None, one_more), Err(AmendError::Link)));
        symlink(dir.path().join("gone"), dir.path().join("dangling")).unwrap();
        assert!(matches!(change_file(&dir.path().join("dangling"), None, one_more), Err(AmendError::Link)));
        // An editor saves the file while we write.
        let changed = change_file(&path, None, |text| {
            fs::write(&path, "# theirs\n").unwrap();
            one_more(text)
        });
        assert!(matches!(changed, Err(AmendError::Changed)), "{changed:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "# theirs\n");
        // A text that would be invalid is refused.
        let invalid = change_file(&path, None, |_| Ok(Some("[shel]\n".to_owned())));
        assert!(matches!(invalid, Err(AmendError::Invalid(_))), "{invalid:?}");
        let large = change_file(&path, None, |_| Ok(Some("#".repeat(65 * 1024))));
        assert!(matches!(large, Err(AmendError::Full)), "{large:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "# theirs\n");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(change_file(&path, None, one_more), Err(AmendError::Unusable(_))));
        assert_eq!(entries(dir.path()), 3);
    }
}
