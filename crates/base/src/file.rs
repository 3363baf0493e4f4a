//! Private and durable files and directories.
//!
//! A private file is readable only by its owner (mode 0600, directories 0700) from the first byte on. A durable file survives a power
//! cut: its bytes are synced before it gets its name, and its directory is synced afterwards.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, openat};

/// The mode of a private file.
const PRIVATE_FILE: u32 = 0o600;
/// The mode of a private directory.
const PRIVATE_DIRECTORY: u32 = 0o700;
/// The suffix of a file that is about to replace another.
const NEW: &str = ".new";

/// Creates a private directory.
///
/// # Errors
/// `AlreadyExists` if the path exists, or the system's error.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path)
}

/// Creates a private directory and its missing parents.
///
/// # Errors
/// Returns the system's error.
pub fn create_private_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(path)
}

/// Creates a private file without following a link.
///
/// # Errors
/// `AlreadyExists` if the path exists, or the system's error.
pub fn create_private(path: &Path) -> io::Result<File> {
    create_new(path, PRIVATE_FILE)
}

/// Creates a private file in an open directory, so that no symbolic link in the path can lead elsewhere.
///
/// # Errors
/// `AlreadyExists` if the path exists, or the system's error.
pub fn create_private_at(directory: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Opens a file for reading and writing, creating a private one if missing. Keeps the content.
///
/// # Errors
/// Returns the system's error.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(path)
}

/// Opens a file for writing and empties it, creating a private one if missing.
///
/// # Errors
/// Returns the system's error.
pub fn create_or_truncate_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(path)
}

/// Appends to a file, creating a private one if missing.
///
/// # Errors
/// Returns the system's error.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(PRIVATE_FILE).open(path)?.write_all(bytes)
}

/// Writes and syncs a new private file. The name survives a power cut only after the caller syncs the directory.
///
/// # Errors
/// As for [`write_new`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new(path, bytes, PRIVATE_FILE)
}

/// Writes and syncs a new file with this mode.
///
/// # Errors
/// `AlreadyExists` if the path exists, or the system's error; a partly written file is removed.
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = create_new(path, mode)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| {
        fs::remove_file(path).ok();
    })
}

/// Replaces a private file atomically, even across a power cut. Allows only one writer at a time, because the new file
/// is written next to the old one under a fixed name.
///
/// # Errors
/// Returns the system's error. The old file is unchanged, unless only the sync of the directory failed.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = add_ending(path, NEW);
    remove_if_there(&new)?;
    // fault: replaced-file-renamed-synced
    write_private(&new, bytes)?;
    move_durably(&new, path).inspect_err(|_| {
        fs::remove_file(&new).ok();
    })
}

/// Replaces a private file atomically without waiting for the disk. A power cut can lose the content.
///
/// # Errors
/// Returns the system's error; the old file is unchanged.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = add_ending(path, NEW);
    remove_if_there(&new)?;
    let written = create_private(&new).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| {
        fs::remove_file(&new).ok();
    })
}

/// Renames a synced file or a directory, replacing an existing one, and syncs the target directory.
///
/// # Errors
/// Returns the system's error.
pub fn move_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync(parent_directory(to))
}

/// Syncs a file or a directory.
///
/// # Errors
/// Returns the system's error.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes a file. Returns true if the file existed.
///
/// # Errors
/// Returns the system's error, except for a missing file.
pub fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The directory of a file; `.` for a bare name.
pub fn parent_directory(file: &Path) -> &Path {
    file.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Appends an ending to the last component of a path.
pub fn add_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn private_files_and_directories_are_accessible_only_to_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        create_private_dirs(&deep).unwrap();
        create_private_dirs(&deep).unwrap();
        assert_eq!(create_private_dir(&deep).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!([mode(&dir.path().join("a")), mode(&deep)], [0o700, 0o700]);
        for (name, write) in [
            ("made", &(|path: &Path| create_private(path).map(drop)) as &dyn Fn(&Path) -> io::Result<()>),
            ("made-beneath", &|path| create_private_at(File::open(parent_directory(path))?, "made-beneath").map(drop)),
            ("opened", &|path| open_private(path).map(drop)),
            ("emptied", &|path| create_or_truncate_private(path).map(drop)),
            ("added-to", &|path| append_private(path, b"x")),
            ("written", &|path| write_private(path, b"x")),
            ("replaced", &|path| replace_durably(path, b"x")),
            ("replaced-unsynced", &|path| replace_unsynced(path, b"x")),
        ] {
            write(&deep.join(name)).unwrap();
            assert_eq!(mode(&deep.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn creating_a_file_replaces_nothing_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, link) = (dir.path().join("theirs"), dir.path().join("link"));
        fs::write(&theirs, "theirs").unwrap();
        symlink(dir.path().join("elsewhere"), &link).unwrap();
        for path in [&theirs, &link] {
            assert_eq!(write_private(path, b"ours").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(create_private(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            let (open, name) = (File::open(dir.path()).unwrap(), path.file_name().unwrap().to_str().unwrap());
            assert_eq!(create_private_at(open, name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(names(dir.path()), ["link", "theirs"]);
    }

    #[test]
    fn a_file_is_replaced_whole_despite_leftovers_of_a_killed_process() {
        for replace in [replace_durably, replace_unsynced] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("note.json");
            fs::write(dir.path().join("note.json.new"), "half a no").unwrap();
            for text in ["one", "two"] {
                replace(&path, text.as_bytes()).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
            }
            assert_eq!(names(dir.path()), ["note.json"]);
            let taken = dir.path().join("taken");
            fs::create_dir(&taken).unwrap();
            replace(&taken, b"x").unwrap_err();
            assert_eq!(names(dir.path()), ["note.json", "taken"], "a failed replacement leaves no temporary file");
        }
    }

    #[test]
    fn the_parent_of_a_bare_file_name_is_the_current_directory() {
        assert_eq!(parent_directory(Path::new("backup.tar")), Path::new("."));
        assert_eq!(parent_directory(Path::new("/a/b")), Path::new("/a"));
        assert_eq!(add_ending(Path::new("/a/b.md"), ".new"), Path::new("/a/b.md.new"));
    }
}
