//! Files and directories for their owner's eyes alone, and files that last.
//!
//! Private is what only its owner can read (mode 0600, directories 0700) from its first byte on. Durable is what outlasts a power cut:
//! a file's bytes are synced before it gets its name, and the directory afterwards, for the name is kept there.

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

/// Who may read and write a private file: its owner.
const PRIVATE_FILE: u32 = 0o600;
/// Who may look into a private directory: its owner.
const PRIVATE_DIRECTORY: u32 = 0o700;
/// Ends the name of a file that is about to take the place of another.
const NEW: &str = ".new";

/// Makes a private directory that isn't there yet.
///
/// # Errors
/// `AlreadyExists` if something stands there, or what the system says.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path)
}

/// Makes a private directory and those above it, as far as they are missing.
///
/// # Errors
/// What the system says.
pub fn create_private_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(path)
}

/// Makes a private file that isn't there yet. Never follows a link.
///
/// # Errors
/// `AlreadyExists` if something stands there, or what the system says.
pub fn create_private(path: &Path) -> io::Result<File> {
    create_new(path, PRIVATE_FILE)
}

/// Makes a private file that isn't there yet in an open directory: no link on the way to it can lead elsewhere.
///
/// # Errors
/// `AlreadyExists` if something stands there, or what the system says.
pub fn create_private_at(directory: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Opens a file for reading and writing, and makes a private one if need be. What it holds stays.
///
/// # Errors
/// What the system says.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).open(path)
}

/// Opens a file for writing and empties it, or makes a private one.
///
/// # Errors
/// What the system says.
pub fn empty_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(path)
}

/// Adds to the end of a file, which is made private if need be.
///
/// # Errors
/// What the system says.
pub fn append_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).mode(PRIVATE_FILE).open(path)?.write_all(bytes)
}

/// Writes and syncs a new private file. Its name outlasts a power cut once its directory is synced, too.
///
/// # Errors
/// As [`write_new`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new(path, bytes, PRIVATE_FILE)
}

/// Writes and syncs a new file with these permissions.
///
/// # Errors
/// `AlreadyExists` if something stands there, or what the system says; then no part of it is left behind.
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = create_new(path, mode)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| {
        fs::remove_file(path).ok();
    })
}

/// Writes a private file that is there whole or not at all, also after a power cut. One writer at a time: the new file is
/// written beside the old one, under a name of its own.
///
/// # Errors
/// What the system says. The old file is as it was, unless only its directory couldn't be synced.
pub fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = add_ending(path, NEW);
    remove_if_there(&new)?;
    // fault: replaced-file-renamed-synced
    write_private(&new, bytes)?;
    move_durably(&new, path).inspect_err(|_| {
        fs::remove_file(&new).ok();
    })
}

/// Writes a private file that is there whole or not at all, as long as the power stays: nothing waits for the disk.
///
/// # Errors
/// What the system says; the old file is as it was.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = add_ending(path, NEW);
    remove_if_there(&new)?;
    let written = create_private(&new).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| {
        fs::remove_file(&new).ok();
    })
}

/// Gives a synced file or a directory another name, which replaces what has that name, and syncs the directory of it.
///
/// # Errors
/// What the system says.
pub fn move_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync(directory_of(to))
}

/// Syncs a file or a directory.
///
/// # Errors
/// What the system says.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes a file. Returns whether there was one.
///
/// # Errors
/// What the system says.
pub fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The directory that a file stands in.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path with more at the end of its last name.
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
    fn what_is_private_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        create_private_dirs(&deep).unwrap();
        create_private_dirs(&deep).unwrap();
        assert_eq!(create_private_dir(&deep).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!([mode(&dir.path().join("a")), mode(&deep)], [0o700, 0o700]);
        for (name, write) in [
            ("made", &(|path: &Path| create_private(path).map(drop)) as &dyn Fn(&Path) -> io::Result<()>),
            ("made-beneath", &|path| create_private_at(File::open(directory_of(path))?, "made-beneath").map(drop)),
            ("opened", &|path| open_private(path).map(drop)),
            ("emptied", &|path| empty_private(path).map(drop)),
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
    fn a_new_file_takes_the_place_of_nothing_and_follows_no_link() {
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
    fn a_file_is_replaced_whole_over_what_a_kill_left() {
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
            assert_eq!(names(dir.path()), ["note.json", "taken"], "nothing is left of what could not be put in place");
        }
    }

    #[test]
    fn a_file_without_a_directory_in_its_path_stands_in_the_present_one() {
        assert_eq!(directory_of(Path::new("backup.tar")), Path::new("."));
        assert_eq!(directory_of(Path::new("/a/b")), Path::new("/a"));
        assert_eq!(add_ending(Path::new("/a/b.md"), ".new"), Path::new("/a/b.md.new"));
    }
}
