//! The wake lock: a flock on `.wake-lock`, held for as long as a wake runs, with a line inside that says by whom.
//!
//! The file is never unlinked (two processes could then hold "the" lock), and its descriptor is close-on-exec, so that a
//! child that outlives its wake doesn't hold the lock on.

use std::{
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use fs2::FileExt;

use crate::{clock::rfc3339, process::Identity};

/// The lock, held until dropped.
#[derive(Debug)]
pub struct WakeLock {
    file: File,
    path: PathBuf,
}

/// Why a lock couldn't be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another wake runs: a normal outcome, nothing to be done.
    #[error("another wake is running{}", .0.as_ref().map(|holder| format!(" (pid {}, since {})", holder.pid, holder.started_at)).unwrap_or_default())]
    Held(Option<Box<Holder>>),
    /// The file can't be opened, locked or written.
    #[error("{path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// What stands in the lock file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The holder's process id.
    pub pid: u32,
    /// The boot it runs in.
    pub boot_id: String,
    /// When it took the lock, RFC 3339.
    pub started_at: String,
    /// The cycle under way, if one is.
    pub cycle_id: Option<String>,
    /// When the process started, as the system tells it: pids are reused.
    #[serde(default)]
    pub process_started: String,
    /// The chat that the cycle answers: where to show that somebody is typing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<i64>,
    /// Forum topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
}

impl Holder {
    /// The process that this says holds the lock.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, boot_id: self.boot_id.clone(), started: self.process_started.clone() }
    }
}

impl WakeLock {
    /// Takes the lock without waiting.
    pub fn try_acquire(path: &Path, me: &Identity, now: DateTime<Utc>) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        match FileExt::try_lock_exclusive(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == fs2::lock_contended_error().kind() => {
                return Err(LockError::Held(read(path).map(Box::new)));
            }
            Err(error) => return Err(io(error)),
        }
        let mut lock = Self { file, path: path.to_owned() };
        lock.describe(me, now, None, None, None)?;
        Ok(lock)
    }

    /// Writes down what the holder is doing.
    pub fn describe(
        &mut self,
        me: &Identity,
        now: DateTime<Utc>,
        cycle_id: Option<&str>,
        chat_id: Option<i64>,
        thread_id: Option<i64>,
    ) -> Result<(), LockError> {
        let holder = Holder {
            pid: me.pid,
            boot_id: me.boot_id.clone(),
            started_at: rfc3339(now),
            cycle_id: cycle_id.map(str::to_owned),
            process_started: me.started.clone(),
            chat_id,
            thread_id,
        };
        let line = serde_json::to_string(&holder).unwrap_or_default();
        self.rewrite(&line).map_err(|source| LockError::Io { path: self.path.clone(), source })
    }

    fn rewrite(&mut self, line: &str) -> std::io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(line.as_bytes())?;
        self.file.flush()
    }
}

impl Drop for WakeLock {
    fn drop(&mut self) {
        // An empty file says that the last holder ended in order; the flock itself goes with the descriptor.
        if let Err(error) = self.rewrite("") {
            tracing::warn!(%error, "the wake lock's line could not be cleared");
        }
    }
}

/// Whether some process holds the lock now. Takes it for an instant to find out.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    match FileExt::try_lock_shared(&file) {
        Ok(()) => false,
        Err(error) => error.kind() == fs2::lock_contended_error().kind(),
    }
}

/// What the lock file says of its holder; `None` when it is empty or unreadable.
pub fn read(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;
    use crate::{clock::parse_time, process};

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T14:00:00Z").unwrap()
    }

    fn acquire(path: &Path) -> Result<WakeLock, LockError> {
        WakeLock::try_acquire(path, &Identity::current(), now())
    }

    #[test]
    fn one_holds_it_and_the_other_learns_who() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        assert!(!is_held(&path));
        let mut lock = acquire(&path).unwrap();
        assert!(is_held(&path));
        lock.describe(&Identity::current(), now(), Some("c1"), Some(7), Some(3)).unwrap();
        let LockError::Held(Some(holder)) = acquire(&path).unwrap_err() else { panic!("it is held") };
        assert_eq!(holder.identity(), Identity::current());
        assert_eq!((holder.cycle_id.as_deref(), holder.chat_id, holder.thread_id), (Some("c1"), Some(7), Some(3)));
        let said = LockError::Held(Some(holder)).to_string();
        assert_eq!(
            said,
            format!("another wake is running (pid {}, since 2026-11-21T14:00:00.000Z)", std::process::id())
        );
    }

    #[test]
    fn freed_it_is_emptied_but_never_unlinked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        drop(acquire(&path).unwrap());
        let inode = std::fs::metadata(&path).unwrap().ino();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        assert_eq!(read(&path), None);
        let lock = acquire(&path).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!((metadata.ino(), metadata.permissions().mode() & 0o777), (inode, 0o600));
        drop(lock);
        assert!(!is_held(&path));
    }

    #[test]
    fn what_a_dead_holder_left_inside_is_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let long_line = r#"{"pid":1,"boot_id":"old","started_at":"x","cycle_id":null,"process_started":"y"}"#;
        std::fs::write(&path, long_line).unwrap();
        assert_eq!(read(&path).unwrap().pid, 1);
        let _lock = acquire(&path).unwrap();
        assert_eq!(read(&path).unwrap().pid, std::process::id(), "the old line is gone to its last byte");
    }

    #[test]
    fn a_child_does_not_hold_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let lock = acquire(&path).unwrap();
        let none = std::process::Stdio::null;
        let mut child = process::spawn_detached(Path::new("/bin/sleep"), &["60"], &[], none(), none()).unwrap();
        drop(lock);
        let is_free = acquire(&path).is_ok();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_free);
    }

    #[test]
    fn damage_inside_is_no_holder_and_a_lock_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        for damage in ["{", "\u{0}\u{0}", "[]", "{\"pid\":-1}"] {
            std::fs::write(&path, damage).unwrap();
            assert_eq!(read(&path), None, "{damage:?}");
        }
        let nowhere = dir.path().join("nowhere/.wake-lock");
        assert!(acquire(&nowhere).unwrap_err().to_string().contains("nowhere/.wake-lock"));
        assert!(!is_held(&nowhere));
    }
}
