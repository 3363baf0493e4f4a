//! Writing: a whole file at once, beside the old one and then in its place, and only over what was expected there.

use std::{io::Write as _, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags},
    io::Errno,
};

use reveille_base::file::create_private_at;

use super::{BeneathKind, PathError, Place, Stamp, TEMPORARY, refused};

/// The permissions of a new file.
const NEW_MODE: u32 = 0o644;

impl Place {
    /// Writes a file in full, or not at all. `expected`: what it is to take the place of; none: nothing, and its folders are made.
    /// The permissions stay what they were.
    ///
    /// # Errors
    /// [`PathError::Exists`] and [`PathError::Changed`] where something else stands there.
    pub fn write(&self, bytes: &[u8], expected: Option<&Stamp>) -> Result<(), PathError> {
        let Some((directory, name)) = self.last(expected.is_none())? else {
            return Err(refused(&self.given, "it is a folder"));
        };
        if let (None, Some(_)) = (expected, self.kind_in(&directory, name)?) {
            return Err(PathError::Exists(self.given.clone()));
        }
        let temporary = temporary();
        let mode = expected.map_or(NEW_MODE, |stamp| stamp.mode);
        let placed = self
            .write_temporary(&directory, &temporary, bytes, mode)
            .and_then(|()| self.put(&directory, &temporary, name, expected));
        if placed.is_err() {
            drop_temporary(&directory, &temporary);
        }
        placed?;
        rustix::fs::fsync(&directory).map_err(|error| self.io(error.into()))
    }

    /// Takes a file away that is still as it was read.
    pub fn remove(&self, expected: &Stamp) -> Result<(), PathError> {
        let Some((directory, name)) = self.last(false)? else {
            return Err(refused(&self.given, "it is a folder"));
        };
        let temporary = temporary();
        // Aside first: what is looked at can't be exchanged any more then.
        rustix::fs::renameat(&directory, name, &directory, temporary.as_str()).map_err(|error| match error {
            Errno::NOENT => PathError::Missing(self.given.clone()),
            error => self.io(error.into()),
        })?;
        if self.stamp_of(&directory, &temporary) != Some(*expected) {
            rename(&directory, &temporary, name, RenameFlags::NOREPLACE).map_err(|error| self.io(error.into()))?;
            return Err(PathError::Changed(self.given.clone()));
        }
        drop_temporary(&directory, &temporary);
        rustix::fs::fsync(&directory).map_err(|error| self.io(error.into()))
    }

    pub(super) fn write_temporary(
        &self,
        at: &OwnedFd,
        temporary: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), PathError> {
        let mut file = create_private_at(at, temporary).map_err(|source| self.io(source))?;
        let mode = rustix::fs::RawMode::try_from(mode).map_or(Mode::from_raw_mode(0o600), Mode::from_raw_mode);
        file.write_all(bytes).map_err(|source| self.io(source))?;
        rustix::fs::fchmod(&file, mode).map_err(|error| self.io(error.into()))?;
        file.sync_all().map_err(|source| self.io(source))
    }

    /// Gives what was just written its name.
    pub(super) fn put(
        &self,
        at: &OwnedFd,
        temporary: &str,
        name: &str,
        expected: Option<&Stamp>,
    ) -> Result<(), PathError> {
        let Some(expected) = expected else {
            return rename(at, temporary, name, RenameFlags::NOREPLACE).map_err(|error| match error {
                Errno::EXIST => PathError::Exists(self.given.clone()),
                error => self.io(error.into()),
            });
        };
        if self.stamp_of(at, name) != Some(*expected) {
            return Err(PathError::Changed(self.given.clone()));
        }
        self.exchange(at, temporary, name, expected)
    }

    /// Exchanges the file with what was just written, in one instant, and looks at what stood there in that instant.
    pub(super) fn exchange(
        &self,
        at: &OwnedFd,
        temporary: &str,
        name: &str,
        expected: &Stamp,
    ) -> Result<(), PathError> {
        match rustix::fs::renameat_with(at, temporary, at, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(PathError::Changed(self.given.clone())),
            // A file system that can't exchange: the look above was a moment ago.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return rustix::fs::renameat(at, temporary, at, name).map_err(|error| self.io(error.into()));
            }
            Err(error) => return Err(self.io(error.into())),
        }
        if self.stamp_of(at, temporary) == Some(*expected) {
            drop_temporary(at, temporary);
            return Ok(());
        }
        rustix::fs::renameat_with(at, temporary, at, name, RenameFlags::EXCHANGE)
            .map_err(|error| self.io(error.into()))?;
        Err(PathError::Changed(self.given.clone()))
    }

    /// What a plain file is now; none for anything else.
    fn stamp_of(&self, at: &OwnedFd, name: &str) -> Option<Stamp> {
        match self.kind_in(at, name) {
            Ok(Some(BeneathKind::File)) => self.open_in(at, name).ok().map(|(_, stamp)| stamp),
            _ => None,
        }
    }
}

/// Gives a file its name, where nothing has it. A file system that can't promise that is looked at a moment before.
fn rename(at: &OwnedFd, from: &str, to: &str, flags: RenameFlags) -> rustix::io::Result<()> {
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

/// A name that nothing has yet: opening it insists on that.
fn temporary() -> String {
    format!("{TEMPORARY}{:016x}.tmp", fastrand::u64(..))
}

fn drop_temporary(at: &OwnedFd, temporary: &str) {
    // Where it can't be dropped there is nothing better to do; lists leave it out.
    rustix::fs::unlinkat(at, temporary, AtFlags::empty()).ok();
}
