//! Takes the wake lock, if necessary from a stopped holder.
//!
//! A stopped wake (SIGSTOP, a hung disk, a debugger) holds the flock for ever. Its fence blocks its writes once another fence is taken,
//! but the wake could still send, commit or push a moment after continuing. So a replacement first ends the wake and all its descendants,
//! then waits for the flock, and only then takes the next fence. A wake stopped before writing its line is identified by the flock
//! alone.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use reveille_base::{
    clock,
    process::{self, Identity},
};

use crate::wake_lock::{self, Holder, LockError, WakeLock};

/// How long to wait for one more beat of a silent holder: if the whole machine was stopped, it is about to come. On Linux an elapsed pause
/// ends at once; elsewhere the pause may start anew.
const LAST_LOOK: Duration = if cfg!(target_os = "linux") {
    Duration::from_secs(1)
} else {
    wake_lock::BEAT_EVERY.saturating_add(Duration::from_secs(2))
};
/// The time for a killed holder to disappear.
const END_BOUND: Duration = Duration::from_secs(5);
/// The time for the flock to become free after that.
const FREE_BOUND: Duration = Duration::from_secs(5);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// The lock, and a note for people.
pub struct TakenLock {
    /// The lock.
    pub lock: WakeLock,
    /// A note for people, if a holder was ended.
    pub note: Option<String>,
}

/// Takes the lock. First ends a holder without a sign of life for longer than `lease`.
///
/// # Errors
/// [`LockError::Held`] while its holder works, or can't be distinguished from a working one.
pub fn acquire(path: &Path, lease: Duration) -> Result<TakenLock, LockError> {
    let line = match WakeLock::take(path) {
        Ok(lock) => return Ok(TakenLock { lock, note: None }),
        Err(LockError::Held(line)) => line,
        Err(error) => return Err(error),
    };
    match line {
        Some(holder) if is_replaceable(path, &holder, lease) => replace_holder(path, *holder),
        line => match find_stopped_holder(path, line.as_deref()) {
            Some(who) if process::end_process(&who, END_BOUND).is_ok() => {
                tracing::warn!(pid = who.pid, "ended a wake that was stopped before it wrote its line");
                take_freed_lock(
                    path,
                    format!("A wake (pid {}) was stopped before it had begun anything, so I ended it.", who.pid),
                )
            }
            _ => Err(LockError::Held(line)),
        },
    }
}

/// The holder of the lock, if it was stopped before it could write its line: the file then has a dead holder's line, or none. It has
/// started no work yet, so no lease is waited for. `None` if the system doesn't tell the holder.
fn find_stopped_holder(path: &Path, line: Option<&Holder>) -> Option<Identity> {
    if line.is_some_and(|holder| holder.identity().is_alive()) {
        return None;
    }
    let only_holder = || match process::holding_flock(path).as_slice() {
        [pid] => Identity::for_pid(*pid).filter(|_| process::is_stopped(*pid)),
        _ => None,
    };
    // fault: stopped-says-holds-lock
    let who = only_holder()?;
    let begun = Instant::now();
    while begun.elapsed() < LAST_LOOK {
        if wake_lock::read_holder(path).as_ref() != line || !process::is_stopped(who.pid) {
            return None;
        }
        thread::sleep(PAUSE);
    }
    only_holder().filter(|still| *still == who)
}

/// Returns whether this holder surely holds the lock, and is surely stopped.
fn is_replaceable(path: &Path, holder: &Holder, lease: Duration) -> bool {
    if !holder.identity().is_alive() || holder.is_at_work(lease) {
        return false;
    }
    let holding = process::holding_flock(path);
    let is_it = holding.is_empty() || holding.contains(&holder.pid);
    is_it && is_silent_still(path, holder)
}

/// Waits for a last beat. Any change of the file is a sign of life, or of another holder.
fn is_silent_still(path: &Path, holder: &Holder) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LAST_LOOK {
        if wake_lock::read_holder(path).as_ref() != Some(holder) {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}

fn replace_holder(path: &Path, holder: Holder) -> Result<TakenLock, LockError> {
    let silent_min = holder.measure_silence(clock::read_awake_time()).unwrap_or_default().as_secs() / 60;
    tracing::warn!(pid = holder.pid, silent_min, "ended a stopped wake");
    // fault: wake-stood-still-past
    if let Err(error) = process::end_process(&holder.identity(), END_BOUND) {
        return Err(LockError::Stuck { why: error.to_string(), holder: Box::new(holder) });
    }
    let note = format!(
        "A wake (pid {}) had shown no sign of life for {silent_min} min, so I ended it and resumed its work.",
        holder.pid
    );
    take_freed_lock(path, note)
}

/// Takes the lock of an ended holder, as soon as the system has released the flock.
fn take_freed_lock(path: &Path, note: String) -> Result<TakenLock, LockError> {
    let begun = Instant::now();
    loop {
        match WakeLock::take(path) {
            Ok(lock) => return Ok(TakenLock { lock, note: Some(note) }),
            Err(LockError::Held(_)) if begun.elapsed() < FREE_BOUND => thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
}
