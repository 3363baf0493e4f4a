//! Writes a file next to its destination, syncs it and moves it there, so the destination only ever holds whole files,
//! even after a power cut. The next bot removes what a killed bot left behind.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use reveille_base::file;

/// Name ending of a partial file.
pub(crate) const PART: &str = ".part";

/// Name ending of a partial file that a browser sends, which a starting bot leaves alone.
const UPLOAD: &str = ".upload";

/// A partial file, removed on drop unless it was moved into place.
#[derive(Debug)]
pub(crate) struct Landing {
    file: File,
    part: PathBuf,
    place: PathBuf,
}

impl Landing {
    /// Creates the partial file for the destination `place`, with its directory if needed.
    pub(crate) fn begin(place: &Path) -> io::Result<Self> {
        make_folder(file::parent_directory(place))?;
        let part = file::add_ending(place, PART);
        file::remove_if_there(&part)?;
        let file = file::create_private(&part)?;
        Ok(Self { file, part, place: place.to_owned() })
    }

    /// Creates the partial file of an upload, whose destination its content decides.
    pub(crate) fn begin_upload(folder: &Path, name: &str) -> io::Result<Self> {
        file::create_private_dirs(file::parent_directory(folder))?;
        make_folder(folder)?;
        let place = folder.join(name);
        let part = file::add_ending(&place, UPLOAD);
        let file = file::create_private(&part)?;
        Ok(Self { file, part, place })
    }

    /// Moves an upload, now whole, to its destination.
    pub(crate) fn move_to(mut self, place: PathBuf) -> io::Result<()> {
        make_folder(file::parent_directory(&place))?;
        self.place = place;
        self.move_into_place()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Moves the file, now whole, to its destination.
    pub(crate) fn move_into_place(self) -> io::Result<()> {
        // fault: fetched-file-moved-place
        self.file.sync_all()?;
        file::move_durably(&self.part, &self.place)
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // After the move there is nothing to remove.
        file::remove_if_there(&self.part).ok();
    }
}

/// Creates a folder of files if needed.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    file::create_private_dir(folder)?;
    // The directory's own entry must survive a power cut too.
    file::sync(file::parent_directory(folder))
}

/// Removes the partial files in a folder and returns their number.
pub(super) fn remove_partial_files(folder: &Path) -> io::Result<usize> {
    remove_ending(folder, PART, |_| Ok(true))
}

/// Removes the uploads that a killed page server left behind: those that were last written before `before`. A younger one may be another
/// machine's, which shares the folder and is still receiving it.
pub(crate) fn remove_uploads(folder: &Path, before: SystemTime) -> io::Result<usize> {
    remove_ending(folder, UPLOAD, |file| Ok(file.metadata()?.modified()? < before))
}

fn remove_ending(
    folder: &Path,
    ending: &str,
    is_left: impl Fn(&fs::DirEntry) -> io::Result<bool>,
) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut n = 0;
    for entry in entries {
        let entry = entry?;
        // fault: bot-begins-sweeps-whole
        if entry.file_name().to_string_lossy().ends_with(ending) && entry.file_type()?.is_file() && is_left(&entry)? {
            file::remove_if_there(&entry.path())?;
            n += 1;
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_its_place_only_once_it_is_whole() {
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
        landing.move_into_place().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
    }

    #[test]
    fn only_partial_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.ogg", "2.ogg.part"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        assert_eq!(remove_partial_files(dir.path()).unwrap(), 1);
        assert!(dir.path().join("1.ogg").exists());
        assert_eq!(remove_partial_files(&dir.path().join("not/there")).unwrap(), 0);
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        for (name, written_at) in [("old.upload", 50), ("running.upload", 70)] {
            File::create(dir.path().join(name)).unwrap().set_modified(at(written_at)).unwrap();
        }
        assert_eq!(remove_uploads(dir.path(), at(60)).unwrap(), 1);
        assert!(dir.path().join("running.upload").exists());
    }
}
