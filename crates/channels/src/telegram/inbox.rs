//! Stores updates from a webhook as files in the assistant's workspace. A file is synced before Telegram gets the confirmation, and removed
//! once its update is stored in the database. The bot reads these updates like polled ones.

use std::{
    fs,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use chrono::{DateTime, Utc};
use rustix::{
    fs::{Mode, OFlags, fsync, mkdir, open, renameat},
    io::Errno,
};
use serde_json::value::RawValue;

use reveille_base::file::create_private_at;

use super::RawUpdate;

/// The suffix of a complete update.
const WHOLE: &str = ".json";
/// The suffix of an unreadable update, which is kept but ignored.
const UNREADABLE: &str = ".unreadable";
/// The maximum number of waiting updates. Telegram keeps refused ones and sends them again.
const MAX_WAITING: usize = 2_000;
/// The maximum total size of waiting updates in bytes.
const MAX_WAITING_BYTES: u64 = 64 << 20;

/// A counter that distinguishes files created at the same instant.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The folder of updates in an assistant's workspace.
#[derive(Debug)]
pub struct Inbox {
    dir: PathBuf,
    /// The last returned batch in order: the files with their update ids.
    given: Vec<(PathBuf, i64)>,
}

/// The reason for refusing an update.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// Not an update.
    #[error("it isn't a Telegram update")]
    NoUpdate,
    /// Too many updates wait.
    #[error("{MAX_WAITING} updates or {} MB are already waiting", MAX_WAITING_BYTES >> 20)]
    Full,
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] io::Error),
}

impl Inbox {
    /// Creates an inbox for this folder, which may not exist yet.
    pub fn at_path(dir: PathBuf) -> Self {
        Self { dir, given: Vec::new() }
    }

    /// Returns true if no update waits.
    pub fn is_empty(&self) -> bool {
        self.list_waiting().is_ok_and(|waiting| waiting.is_empty())
    }

    /// Stores an update durably.
    ///
    /// # Errors
    /// Fails if the bytes aren't an update, too many wait, or the disk fails. Then nothing was kept.
    pub fn put(&self, update: &[u8], now: DateTime<Utc>) -> Result<(), InboxError> {
        let raw: Box<RawValue> = serde_json::from_slice(update).map_err(|_| InboxError::NoUpdate)?;
        let update = RawUpdate::parse(raw).ok_or(InboxError::NoUpdate)?;
        let waiting = self.list_waiting()?;
        let bytes = waiting.iter().filter_map(|path| Some(path.symlink_metadata().ok()?.len())).sum::<u64>();
        if waiting.len() >= MAX_WAITING || bytes >= MAX_WAITING_BYTES {
            return Err(InboxError::Full);
        }
        let (dir, number) = (self.open_folder()?, NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{}-{number:06}", now.format("%Y%m%dT%H%M%S%.6f"));
        let (part, whole) = (format!("{name}.part"), format!("{name}{WHOLE}"));
        let mut file = create_private_at(&dir, &part)?;
        file.write_all(update.raw.get().as_bytes()).and_then(|()| file.sync_all())?;
        renameat(&dir, &part, &dir, &whole).map_err(io::Error::from)?;
        // The new name must be durable too.
        fsync(&dir).map_err(io::Error::from)?;
        Ok(())
    }

    /// Returns the next updates in order of arrival. Before that, removes the files of the previous batch up to the last stored update,
    /// whose id is one below `offset`.
    ///
    /// # Errors
    /// Fails if the folder can't be read.
    pub fn next(&mut self, offset: Option<i64>, limit: u8) -> io::Result<Vec<RawUpdate>> {
        let last = self.given.iter().rposition(|(_, id)| Some(*id) == offset.map(|offset| offset.saturating_sub(1)));
        for (path, _) in self.given.drain(..).take(last.map_or(0, |last| last + 1)) {
            fs::remove_file(path)?;
        }
        let mut updates = Vec::new();
        for path in self.list_waiting()?.into_iter().take(limit.into()) {
            let raw = fs::read_to_string(&path)?;
            match RawValue::from_string(raw).ok().and_then(RawUpdate::parse) {
                Some(update) => {
                    self.given.push((path, update.update_id));
                    updates.push(update);
                }
                None => {
                    let aside = path.with_extension(UNREADABLE.trim_start_matches('.'));
                    tracing::warn!(path = %aside.display(), "an update can't be read; it is kept there");
                    fs::rename(&path, aside)?;
                }
            }
        }
        Ok(updates)
    }

    /// Opens the folder, but refuses a symbolic link in its place: the writing process may have more rights than the workspace's owner.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        match mkdir(&self.dir, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(open(&self.dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// The files of complete updates, oldest first.
    fn list_waiting(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut waiting = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.ends_with(WHOLE)) {
                waiting.push(self.dir.join(name));
            }
        }
        waiting.sort();
        Ok(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        reveille_base::clock::parse_time("2026-11-26T08:00:00Z").unwrap()
    }

    fn ids(updates: &[RawUpdate]) -> Vec<i64> {
        updates.iter().map(|update| update.update_id).collect()
    }

    #[test]
    fn an_update_is_returned_until_it_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::at_path(dir.path().join("inbox"));
        assert!(inbox.is_empty() && inbox.next(None, 100).unwrap().is_empty());
        for id in [7, 8, 3] {
            inbox.put(format!("{{\"update_id\": {id}, \"x\": \"é\"}}").as_bytes(), now()).unwrap();
        }
        assert_eq!(ids(&inbox.next(Some(7), 100).unwrap()), [7, 8, 3]);
        // Nothing was stored yet.
        assert_eq!(ids(&inbox.next(Some(7), 100).unwrap()), [7, 8, 3]);
        // Some of them were stored.
        assert_eq!(ids(&inbox.next(Some(9), 100).unwrap()), [3]);
        // A restarted bot gets everything that isn't removed.
        let mut anew = Inbox::at_path(dir.path().join("inbox"));
        assert_eq!(ids(&anew.next(Some(9), 1).unwrap()), [3]);
        assert!(anew.next(Some(4), 100).unwrap().is_empty() && anew.is_empty());
    }

    #[test]
    fn a_malformed_update_is_refused_and_an_unreadable_file_is_kept_aside() {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::at_path(dir.path().to_owned());
        for bad in ["", "{", "[]", "{}", "{\"update_id\": \"7\"}", "{\"update_id\": 7} x"] {
            assert!(matches!(inbox.put(bad.as_bytes(), now()), Err(InboxError::NoUpdate)), "{bad}");
        }
        fs::write(dir.path().join("1.json"), "{\"update_id").unwrap();
        fs::write(dir.path().join("2.part"), "{\"update_id\": 1}").unwrap();
        inbox.put(b"{\"update_id\": 9}", now()).unwrap();
        assert_eq!(ids(&inbox.next(None, 100).unwrap()), [9]);
        assert!(dir.path().join("1.unreadable").exists() && dir.path().join("2.part").exists());
    }

    #[test]
    fn no_update_is_written_through_a_symbolic_link() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("inbox")).unwrap();
        let inbox = Inbox::at_path(dir.path().join("inbox"));
        assert!(matches!(inbox.put(b"{\"update_id\": 9}", now()), Err(InboxError::Disk(_))));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn updates_beyond_the_limits_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::at_path(dir.path().to_owned());
        for n in 0..MAX_WAITING {
            fs::write(dir.path().join(format!("{n}.json")), "{\"update_id\": 1}").unwrap();
        }
        assert!(matches!(inbox.put(b"{\"update_id\": 9}", now()), Err(InboxError::Full)));
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::at_path(dir.path().to_owned());
        fs::File::create(dir.path().join("1.json")).unwrap().set_len(MAX_WAITING_BYTES).unwrap();
        assert!(matches!(inbox.put(b"{\"update_id\": 9}", now()), Err(InboxError::Full)));
    }
}
