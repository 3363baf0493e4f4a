//! A file on its way to the disk: written beside its place, synced, then moved there, so that what stands in its place is whole
//! and stays through a power cut. What a killed bot left beside is removed when the next one begins.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// What the name of a file on its way ends with.
pub(crate) const PART: &str = ".part";

/// A file on its way; dropped before it is kept, it is removed.
#[derive(Debug)]
pub(crate) struct Landing {
    file: File,
    part: PathBuf,
    place: PathBuf,
}

impl Landing {
    /// Begins a file that shall stand at `place`, in a directory that is made if need be.
    pub(crate) fn begin(place: &Path) -> io::Result<Self> {
        let folder = folder_of(place)?;
        if !folder.is_dir() {
            fs::DirBuilder::new().mode(0o700).create(folder)?;
            // Its own entry, too, has to outlast a power cut.
            File::open(folder_of(folder)?)?.sync_all()?;
        }
        let mut part = place.as_os_str().to_owned();
        part.push(PART);
        let part = PathBuf::from(part);
        remove(&part)?;
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(Self { file, part, place: place.to_owned() })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Puts the file, now whole, in its place.
    pub(crate) fn keep(self) -> io::Result<()> {
        // fault: fetched-file-moved-place
        self.file.sync_all()?;
        fs::rename(&self.part, &self.place)?;
        File::open(folder_of(&self.place)?)?.sync_all()
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // After it was moved there is nothing to remove.
        remove(&self.part).ok();
    }
}

/// Removes what was left on its way in a folder. Says how many files.
pub(super) fn sweep(folder: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut n = 0;
    for entry in entries {
        let entry = entry?;
        // fault: bot-begins-sweeps-whole
        if entry.file_name().to_string_lossy().ends_with(PART) && entry.file_type()?.is_file() {
            remove(&entry.path())?;
            n += 1;
        }
    }
    Ok(n)
}

fn folder_of(place: &Path) -> io::Result<&Path> {
    place.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_in_its_place_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("files/1.txt");
        let mut landing = Landing::begin(&place).unwrap();
        landing.write(b"half").unwrap();
        assert!(!place.exists() && dir.path().join("files/1.txt.part").exists());
        drop(landing);
        assert_eq!(fs::read_dir(dir.path().join("files")).unwrap().count(), 0);

        fs::write(dir.path().join("files/1.txt.part"), "left by the dead").unwrap();
        let mut landing = Landing::begin(&place).unwrap();
        landing.write(b"whole").unwrap();
        landing.keep().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
    }

    #[test]
    fn only_what_was_left_on_its_way_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.ogg", "2.ogg.part"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        assert_eq!(sweep(dir.path()).unwrap(), 1);
        assert!(dir.path().join("1.ogg").exists());
        assert_eq!(sweep(&dir.path().join("not/there")).unwrap(), 0);
    }
}
