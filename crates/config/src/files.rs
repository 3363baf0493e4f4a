//! Reads files with secrets. Whoever can write such a file decides where we connect, so owner and mode are checked. The check uses the
//! opened file rather than its path, so the checked file is the one that is read.

use std::{fs::File, io::Read as _, os::unix::fs::MetadataExt as _, path::Path};

use rustix::fs::{Mode, OFlags};

/// The maximum size of a file in bytes.
pub const MAX_BYTES: u64 = 64 * 1024;

/// The bits of a mode that tell the kind of file.
const FILE_KIND: u32 = 0o170_000;
const REGULAR_FILE: u32 = 0o100_000;

/// The text of a file, with a flag that is true if other users could read it.
#[derive(Debug)]
pub struct Private {
    pub text: String,
    pub readable_by_others: bool,
}

/// Reads a small text file that only this user or root can have written.
///
/// A symbolic link is followed if this user or root owns it; its target must pass the same checks.
///
/// # Errors
/// Returns the reason for refusing the file as a sentence.
pub fn read_private(path: &Path) -> Result<Private, String> {
    let us = rustix::process::geteuid().as_raw();
    let link = std::fs::symlink_metadata(path).map_err(cannot_read)?;
    if link.is_symlink() && !is_trusted_owner(link.uid(), us) {
        return Err(format!("refused: it is a link made by another user (uid {})", link.uid()));
    }
    // Non-blocking, so that a pipe in place of the file can't block us.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(cannot_read)?);
    let meta = file.metadata().map_err(cannot_read)?;
    check_file(meta.uid(), meta.mode(), us)?;

    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("refused: it is larger than {MAX_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "refused: it isn't UTF-8 text".to_owned())?;
    Ok(Private { text, readable_by_others: meta.mode() & 0o044 != 0 })
}

fn cannot_read(error: impl std::fmt::Display) -> String {
    format!("can't be read: {error}")
}

fn is_trusted_owner(owner: u32, us: u32) -> bool {
    owner == us || owner == 0
}

/// Checks kind, owner and mode of an opened file.
fn check_file(owner: u32, mode: u32, us: u32) -> Result<(), String> {
    if mode & FILE_KIND != REGULAR_FILE {
        return Err("refused: it isn't a regular file".to_owned());
    }
    if !is_trusted_owner(owner, us) {
        return Err(format!("refused: it belongs to another user (uid {owner}); make it yours with chown"));
    }
    if mode & 0o022 != 0 {
        let mode = mode & 0o7777;
        return Err(format!("refused: other users can write to it (mode {mode:04o}); run chmod 600 on it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const US: u32 = 1000;

    #[test]
    fn only_our_own_and_roots_regular_files_are_trusted() {
        assert_eq!(check_file(US, 0o100_600, US), Ok(()));
        assert_eq!(check_file(0, 0o100_644, US), Ok(()));
        assert!(check_file(1001, 0o100_600, US).unwrap_err().contains("uid 1001"));
        assert!(check_file(US, 0o100_620, US).unwrap_err().contains("0620"));
        assert!(check_file(US, 0o100_602, US).unwrap_err().contains("chmod 600"));
        assert!(check_file(US, 0o010_600, US).unwrap_err().contains("regular"));
    }

    fn file(mode: u32, text: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_link_is_followed_and_its_target_checked() {
        let (dir, path) = file(0o600, b"A=1");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        let private = read_private(&link).unwrap();
        assert_eq!((private.text.as_str(), private.readable_by_others), ("A=1", false));

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read_private(&link).unwrap_err().contains("0666"));
    }

    #[test]
    fn damaged_and_strange_files_are_refused_with_a_reason() {
        let (_dir, large) = file(0o600, &vec![b'a'; MAX_BYTES as usize + 1]);
        assert!(read_private(&large).unwrap_err().contains("larger"));
        let (_dir, binary) = file(0o600, b"A=\xff");
        assert!(read_private(&binary).unwrap_err().contains("UTF-8"));
        let (_dir, open) = file(0o644, b"A=1");
        assert!(read_private(&open).unwrap().readable_by_others);

        let dir = tempfile::tempdir().unwrap();
        assert!(read_private(dir.path()).unwrap_err().contains("regular"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_without_a_writer_is_refused_without_waiting() {
        use rustix::fs::{CWD, FileType, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(read_private(&pipe).unwrap_err().contains("regular"));
    }
}
