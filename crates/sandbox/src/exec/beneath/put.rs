//! Atomic writing: a temporary file replaces the old file, and only if that file is as expected.

use std::{io::Write as _, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags},
    io::Errno,
};

use reveille_base::file::create_private_at;

use super::{BeneathKind, MissingFolders, PathError, Place, Stamp, TEMPORARY, refuse_path};

/// The permissions of a new file.
const NEW_MODE: u32 = 0o644;

impl Place {
    /// Writes a whole file or nothing. `expected` is the file to replace, whose permissions are kept. With `None` the
    /// file must be new, and its folders are created.
    ///
    /// # Errors
    /// [`PathError::Exists`] or [`PathError::Changed`] if another file is in place.
    pub fn write(&self, bytes: &[u8], expected: Option<&Stamp>) -> Result<(), PathError> {
        let missing = if expected.is_none() { MissingFolders::Create } else { MissingFolders::Refuse };
        let Some((directory, name)) = self.open_parent(missing)? else {
            return Err(refuse_path(&self.given, "it is a folder"));
        };
        if let (None, Some(_)) = (expected, self.find_kind(&directory, name)?) {
            return Err(PathError::Exists(self.given.clone()));
        }
        let temporary = make_temporary_name();
        let mode = expected.map_or(NEW_MODE, |stamp| stamp.mode);
        let placed = self
            .write_temporary(&directory, &temporary, bytes, mode)
            .and_then(|()| self.rename_temporary(&directory, &temporary, name, expected));
        if placed.is_err() {
            drop_temporary(&directory, &temporary);
        }
        placed?;
        rustix::fs::fsync(&directory).map_err(|error| self.map_io_error(error.into()))
    }

    /// Removes a file that is unchanged since it was read.
    pub fn remove(&self, expected: &Stamp) -> Result<(), PathError> {
        let Some((directory, name)) = self.open_parent(MissingFolders::Refuse)? else {
            return Err(refuse_path(&self.given, "it is a folder"));
        };
        let temporary = make_temporary_name();
        // Renamed first, so that the file can't be exchanged after the check.
        rustix::fs::renameat(&directory, name, &directory, temporary.as_str()).map_err(|error| match error {
            Errno::NOENT => PathError::Missing(self.given.clone()),
            error => self.map_io_error(error.into()),
        })?;
        if self.read_stamp(&directory, &temporary) != Some(*expected) {
            rename_file(&directory, &temporary, name, RenameFlags::NOREPLACE)
                .map_err(|error| self.map_io_error(error.into()))?;
            return Err(PathError::Changed(self.given.clone()));
        }
        drop_temporary(&directory, &temporary);
        rustix::fs::fsync(&directory).map_err(|error| self.map_io_error(error.into()))
    }

    pub(super) fn write_temporary(
        &self,
        at: &OwnedFd,
        temporary: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), PathError> {
        let mut file = create_private_at(at, temporary).map_err(|source| self.map_io_error(source))?;
        let mode = rustix::fs::RawMode::try_from(mode).map_or(Mode::from_raw_mode(0o600), Mode::from_raw_mode);
        file.write_all(bytes).map_err(|source| self.map_io_error(source))?;
        rustix::fs::fchmod(&file, mode).map_err(|error| self.map_io_error(error.into()))?;
        file.sync_all().map_err(|source| self.map_io_error(source))
    }

    /// Renames the temporary file to its final name.
    pub(super) fn rename_temporary(
        &self,
        at: &OwnedFd,
        temporary: &str,
        name: &str,
        expected: Option<&Stamp>,
    ) -> Result<(), PathError> {
        let Some(expected) = expected else {
            return rename_file(at, temporary, name, RenameFlags::NOREPLACE).map_err(|error| match error {
                Errno::EXIST => PathError::Exists(self.given.clone()),
                error => self.map_io_error(error.into()),
            });
        };
        if self.read_stamp(at, name) != Some(*expected) {
            return Err(PathError::Changed(self.given.clone()));
        }
        self.exchange_files(at, temporary, name, expected)
    }

    /// Exchanges the two files atomically, then checks the replaced file.
    pub(super) fn exchange_files(
        &self,
        at: &OwnedFd,
        temporary: &str,
        name: &str,
        expected: &Stamp,
    ) -> Result<(), PathError> {
        match rustix::fs::renameat_with(at, temporary, at, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(PathError::Changed(self.given.clone())),
            // This file system can't exchange; the check just before has to suffice.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return rustix::fs::renameat(at, temporary, at, name).map_err(|error| self.map_io_error(error.into()));
            }
            Err(error) => return Err(self.map_io_error(error.into())),
        }
        if self.read_stamp(at, temporary) == Some(*expected) {
            drop_temporary(at, temporary);
            return Ok(());
        }
        rustix::fs::renameat_with(at, temporary, at, name, RenameFlags::EXCHANGE)
            .map_err(|error| self.map_io_error(error.into()))?;
        Err(PathError::Changed(self.given.clone()))
    }

    /// Returns the stamp of a plain file; `None` for any other entry.
    fn read_stamp(&self, at: &OwnedFd, name: &str) -> Option<Stamp> {
        match self.find_kind(at, name) {
            Ok(Some(BeneathKind::File)) => self.open_entry(at, name).ok().map(|(_, stamp)| stamp),
            _ => None,
        }
    }
}

/// Renames a file to a free name. A file system that can't guarantee this is asked just before whether the name is free.
fn rename_file(at: &OwnedFd, from: &str, to: &str, flags: RenameFlags) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(at, from, at, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            match rustix::fs::statat(at, to, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rustix::fs::renameat(at, from, at, to),
                Ok(_) => Err(Errno::EXIST),
                Err(error) => Err(error),
            }
        }
        renamed => renamed,
    }
}

/// Returns a random temporary name. Opening fails if the name is taken.
fn make_temporary_name() -> String {
    format!("{TEMPORARY}{:016x}.tmp", fastrand::u64(..))
}

fn drop_temporary(at: &OwnedFd, temporary: &str) {
    // A failed removal is harmless; lists leave temporary files out.
    rustix::fs::unlinkat(at, temporary, AtFlags::empty()).ok();
}
