//! The wake lock: a flock on `.wake-lock`, held while a wake runs, with a line inside that names the holder.
//!
//! The file is never unlinked (two processes could then hold "the" lock), and its descriptor is close-on-exec, so that a child that
//! outlives its wake can't keep the lock. The line names the holder and, in `alive_at_s`, its last sign of life, for a replacement
//! (`takeover`). A holder that ends in order, even by an error, empties the file, which needs no disk space. A remaining line therefore
//! means that its holder was killed, and names the interrupted cycle.

pub mod takeover;
pub mod waker;

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{self, format_rfc3339, parse_time},
    file,
    process::Identity,
    types::ChatRef,
    words,
    zone::Tz,
};

/// The interval between a holder's signs of life.
pub const BEAT_EVERY: Duration = Duration::from_secs(10);
/// How long to retry before the lock counts as held, since a mere query holds it for an instant.
const RETRY_FOR: Duration = Duration::from_millis(100);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
/// The line is padded with blanks to this many bytes and always written in place, so that a longer line needs no more disk space.
const LINE_BYTES: usize = 1024;
/// The maximum number of a cycle's messages in the line.
const MAX_MESSAGES: usize = 32;
/// The maximum number of bytes read; a longer file is damaged.
const MAX_LINE_BYTES: u64 = 4096;

/// The lock, held until dropped.
#[derive(Debug)]
pub struct WakeLock {
    inside: Arc<Inside>,
    /// The line of a killed holder, found in the file.
    left: Option<Holder>,
    heart: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

/// The open file and its present line.
#[derive(Debug)]
struct Inside {
    file: File,
    path: PathBuf,
    /// `None` before the holder writes its line, and after the holder has left.
    line: Mutex<Option<Holder>>,
}

/// The reason for not taking the lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another wake runs, which is normal.
    #[error("another wake is running{}", .0.as_ref().map(|holder| format!(" (pid {})", holder.pid)).unwrap_or_default())]
    Held(Option<Box<Holder>>),
    /// Another wake holds the lock without a sign of life, but can't be replaced: a person has to end that wake.
    #[error(
        "another wake (pid {}) is stuck, and I couldn't replace it: {why}. Nothing was changed; end it by hand: kill -9 {}",
        holder.pid, holder.pid
    )]
    Stuck {
        /// The holder's line.
        holder: Box<Holder>,
        /// The reason.
        why: String,
    },
    /// The file can't be opened, locked or written.
    #[error("{path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl LockError {
    /// The error for people, with local time.
    pub fn describe(&self, tz: Tz) -> String {
        let since = |holder: &Holder| {
            parse_time(&holder.started_at).map(|at| words::format_local_time(at, tz)).unwrap_or_default()
        };
        match self {
            Self::Held(Some(holder)) => {
                format!("Another wake is working (pid {}, since {}).", holder.pid, since(holder))
            }
            Self::Held(None) => "Another wake is working.".to_owned(),
            Self::Stuck { holder, .. } => format!("{self} (It started {}.)", since(holder)),
            Self::Io { .. } => self.to_string(),
        }
    }
}

/// The content of the lock file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The holder's process id.
    pub pid: u32,
    /// The boot id.
    pub boot_id: String,
    /// The time of taking the lock, RFC 3339.
    pub started_at: String,
    /// The cycle under way, if any.
    pub cycle_id: Option<String>,
    /// The start time of the process, by the system, since process ids are reused.
    #[serde(default)]
    pub process_started: String,
    /// The last sign of life, in seconds of [`clock::read_awake_time`].
    #[serde(default)]
    pub alive_at_s: Option<u64>,
    /// The chat the cycle answers, for its typing indicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
    /// Forum topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
    /// The messages of the cycle, at most 32. If the cycle is killed before it is journalled, only this line names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<i64>,
}

/// The cycle under way, for the line.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockedWork<'a> {
    /// The cycle, if any.
    pub cycle_id: Option<&'a str>,
    /// The chat it answers.
    pub chat: Option<ChatRef>,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The messages of the cycle.
    pub messages: &'a [i64],
}

impl Holder {
    /// The process named by this line.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, boot_id: self.boot_id.clone(), started: self.process_started.clone() }
    }

    /// The time since its last sign of life, at `awake` of the same boot. `None` for a holder that gives no signs.
    pub fn measure_silence(&self, awake: Duration) -> Option<Duration> {
        self.alive_at_s.map(|at| awake.saturating_sub(Duration::from_secs(at)))
    }

    /// Returns whether the holder is alive, and has either shown so within `lease` or gives no signs of life at all.
    pub fn is_at_work(&self, lease: Duration) -> bool {
        self.identity().is_alive()
            && self.measure_silence(clock::read_awake_time()).is_none_or(|silent| silent <= lease)
    }
}

impl WakeLock {
    /// Takes the lock and writes the holder's line, without waiting.
    pub fn try_acquire(path: &Path, me: &Identity, now: DateTime<Utc>) -> Result<Self, LockError> {
        let mut lock = Self::take(path)?;
        lock.write_holder(me, now, LockedWork::default())?;
        Ok(lock)
    }

    /// Takes the lock without waiting. The line of a killed holder, see [`WakeLock::cut_off`], stays until [`WakeLock::write_holder`].
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = file::open_private(path).map_err(io)?;
        let begun = std::time::Instant::now();
        loop {
            match fs2::FileExt::try_lock_exclusive(&file) {
                Ok(()) => break,
                Err(error) if !is_contended(&error) => return Err(io(error)),
                Err(_) if begun.elapsed() < RETRY_FOR => thread::sleep(PAUSE),
                // fault: two-wakes-hold-lock
                Err(_) => return Err(LockError::Held(read_holder(path).map(Box::new))),
            }
        }
        let inside = Arc::new(Inside { file, path: path.to_owned(), line: Mutex::default() });
        Ok(Self { inside, left: read_holder(path), heart: None })
    }

    /// The last holder and its cycle, if it was killed in the middle of a cycle. A crash of the whole machine doesn't count.
    pub fn cut_off(&self, me: &Identity) -> Option<(&Holder, &str)> {
        let left = self.left.as_ref().filter(|left| left.boot_id == me.boot_id)?;
        Some((left, left.cycle_id.as_deref()?))
    }

    /// Writes the holder's present work into the line.
    pub fn write_holder(&mut self, me: &Identity, now: DateTime<Utc>, work: LockedWork<'_>) -> Result<(), LockError> {
        let holder = Holder {
            pid: me.pid,
            boot_id: me.boot_id.clone(),
            started_at: format_rfc3339(now),
            cycle_id: work.cycle_id.map(str::to_owned),
            process_started: me.started.clone(),
            alive_at_s: Some(clock::read_awake_time().as_secs()),
            chat: work.chat,
            thread_id: work.thread_id,
            messages: work.messages.iter().take(MAX_MESSAGES).copied().collect(),
        };
        let mut line = self.inside.lock_line();
        self.inside.write_line(&holder).map_err(|source| LockError::Io { path: self.inside.path.clone(), source })?;
        *line = Some(holder);
        Ok(())
    }

    /// Shows regular signs of life from now on, for at most `at_most`: a wake that takes longer counts as hung, even if one of its
    /// threads isn't.
    pub fn show_life(&mut self, at_most: Duration) {
        let (leave, left) = mpsc::channel();
        let inside = Arc::clone(&self.inside);
        let beats = at_most.as_secs() / BEAT_EVERY.as_secs();
        let heart = thread::spawn(move || {
            for _ in 0..beats {
                if left.recv_timeout(BEAT_EVERY) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                inside.record_beat(clock::read_awake_time());
            }
        });
        self.heart = Some((leave, heart));
    }
}

impl Inside {
    fn lock_line(&self) -> std::sync::MutexGuard<'_, Option<Holder>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_beat(&self, awake: Duration) {
        if let Some(holder) = self.lock_line().as_mut() {
            holder.alive_at_s = Some(awake.as_secs());
            if let Err(error) = self.write_line(holder) {
                tracing::warn!(%error, "couldn't write a sign of life to the wake lock");
            }
        }
    }

    /// Overwrites the line in one write. Only an empty or a foreign file is shorter than the line.
    fn write_line(&self, holder: &Holder) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(holder)?;
        let length = self.file.metadata()?.len();
        if length > MAX_LINE_BYTES {
            self.file.set_len(0)?;
        }
        let length = usize::try_from(length.min(MAX_LINE_BYTES)).unwrap_or(0);
        bytes.resize(bytes.len().max(length).max(LINE_BYTES), b' ');
        self.file.write_all_at(&bytes, 0)
    }
}

impl Drop for WakeLock {
    fn drop(&mut self) {
        if let Some((leave, heart)) = self.heart.take() {
            drop(leave);
            // The lock is free only once every descriptor is closed.
            heart.join().ok();
        }
        // A panicking holder hasn't ended in order; a holder without a line leaves the file as found.
        if self.inside.lock_line().take().is_some()
            && !thread::panicking()
            && let Err(error) = self.inside.file.set_len(0)
        {
            tracing::warn!(%error, "the wake lock's line could not be cleared");
        }
    }
}

/// Returns whether a process holds the lock now. The check takes a shared lock for an instant.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    fs2::FileExt::try_lock_shared(&file).is_err_and(|error| is_contended(&error))
}

fn is_contended(error: &std::io::Error) -> bool {
    error.kind() == fs2::lock_contended_error().kind()
}

/// The holder's line; `None` if it is empty or unreadable.
pub fn read_holder(path: &Path) -> Option<Holder> {
    // A second attempt covers a line that was just being written.
    (0..2).find_map(|_| {
        let mut text = String::new();
        File::open(path).ok()?.take(MAX_LINE_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;
    use reveille_base::{clock::parse_time, process};

    fn now() -> DateTime<Utc> {
        parse_time("2026-11-21T14:00:00Z").unwrap()
    }

    const C1: LockedWork<'_> = LockedWork {
        cycle_id: Some("c1"),
        chat: Some(ChatRef::from_telegram(7)),
        thread_id: Some(3),
        messages: &[1, 2],
    };

    #[test]
    fn however_many_messages_a_cycle_is_about_the_line_needs_no_more_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let mut lock = acquire(&path).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        let many: Vec<i64> = (999_999_000..999_999_500).collect();
        lock.write_holder(&Identity::current(), now(), LockedWork { messages: &many, ..C1 }).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
        assert_eq!(read_holder(&path).unwrap().messages, many[..MAX_MESSAGES]);
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
        lock.write_holder(&Identity::current(), now(), C1).unwrap();
        let LockError::Held(Some(holder)) = acquire(&path).unwrap_err() else { panic!("it is held") };
        assert_eq!(holder.identity(), Identity::current());
        assert_eq!(
            (holder.cycle_id.as_deref(), holder.chat.map(ChatRef::number), holder.thread_id),
            (Some("c1"), Some(7), Some(3))
        );
        let said = LockError::Held(Some(holder)).to_string();
        assert_eq!(said, format!("another wake is running (pid {})", std::process::id()));
    }

    #[test]
    fn freed_it_is_emptied_but_never_unlinked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        drop(acquire(&path).unwrap());
        let inode = std::fs::metadata(&path).unwrap().ino();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        assert_eq!(read_holder(&path), None);
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
        assert_eq!(read_holder(&path).unwrap().pid, 1);
        let _lock = acquire(&path).unwrap();
        assert_eq!(read_holder(&path).unwrap().pid, std::process::id(), "the old line is gone to its last byte");
    }

    #[test]
    fn a_line_is_left_by_the_killed_alone_and_tells_of_their_cycle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let me = Identity::current();
        let mut lock = acquire(&path).unwrap();
        lock.write_holder(&me, now(), C1).unwrap();
        let killed = std::fs::read(&path).unwrap();
        drop(lock);
        assert_eq!(WakeLock::take(&path).unwrap().cut_off(&me), None, "it ended in order");

        std::fs::write(&path, &killed).unwrap();
        let lock = WakeLock::take(&path).unwrap();
        assert_eq!(lock.cut_off(&me).map(|(left, cycle)| (left.messages.as_slice(), cycle)), Some((&[1, 2][..], "c1")));
        let rebooted = Identity { boot_id: "another".to_owned(), ..me.clone() };
        assert_eq!(lock.cut_off(&rebooted), None, "the machine went down, which is no fault of the cycle");
        drop(lock);
        assert_eq!(std::fs::read(&path).unwrap(), killed, "nobody took note of it yet");
        drop(acquire(&path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn who_panics_has_not_ended_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let of_panic = path.clone();
        let panicked = thread::spawn(move || {
            let _lock = acquire(&of_panic).unwrap();
            panic!("as a wake might");
        });
        panicked.join().unwrap_err();
        assert!(read_holder(&path).is_some() && !is_held(&path));
    }

    #[test]
    fn a_beat_is_written_in_place_and_nothing_after_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let mut lock = acquire(&path).unwrap();
        lock.write_holder(&Identity::current(), now(), C1).unwrap();
        let described = read_holder(&path).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        let inside = Arc::clone(&lock.inside);
        inside.record_beat(Duration::from_secs(1_234_567_890));
        let beaten = read_holder(&path).unwrap();
        assert_eq!(beaten, Holder { alive_at_s: Some(1_234_567_890), ..described });
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
        assert_eq!(beaten.measure_silence(Duration::from_secs(1_234_567_900)), Some(Duration::from_secs(10)));
        assert_eq!(beaten.measure_silence(Duration::ZERO), Some(Duration::ZERO));
        drop(lock);
        inside.record_beat(Duration::from_secs(5));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn a_holder_is_at_work_while_it_lives_and_shows_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        let mut lock = acquire(&path).unwrap();
        lock.show_life(Duration::from_secs(60));
        let holder = read_holder(&path).unwrap();
        let lease = Duration::from_secs(900);
        assert!(holder.is_at_work(lease));
        let silent = |s| Holder { alive_at_s: clock::read_awake_time().as_secs().checked_sub(s), ..holder.clone() };
        assert!(!silent(1).is_at_work(Duration::ZERO));
        assert!(Holder { alive_at_s: None, ..holder.clone() }.is_at_work(lease), "an older program doesn't show it");
        assert!(!Holder { process_started: "1".to_owned(), ..holder.clone() }.is_at_work(lease));
    }

    #[test]
    fn who_only_asks_does_not_make_it_look_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".wake-lock");
        drop(acquire(&path).unwrap());
        let asking = File::open(&path).unwrap();
        fs2::FileExt::lock_shared(&asking).unwrap();
        let asker = thread::spawn(move || {
            thread::sleep(RETRY_FOR / 4);
            drop(asking);
        });
        acquire(&path).unwrap();
        asker.join().unwrap();
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
            assert_eq!(read_holder(&path), None, "{damage:?}");
        }
        let nowhere = dir.path().join("nowhere/.wake-lock");
        assert!(acquire(&nowhere).unwrap_err().to_string().contains("nowhere/.wake-lock"));
        assert!(!is_held(&nowhere));
    }
}
