//! Old files in the workspace. Old logs are emptied, and long logs without rotation are cut. Old rotated logs, plan files and message
//! files are deleted. Only plain files directly in `logs/`, `logs/plans/`, `voice/` and `files/` count; links are left alone.
//!
//! Our programs rotate their own logs ([`reveille_base::logs`]). A log that launchd or another starter writes for them (`bot.err.log`) may
//! be open for appending, so it is never deleted or renamed: the writer would continue into an invisible file.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    file::{add_ending, create_or_truncate_private, move_durably},
    logs,
};
use reveille_config::Config;
use reveille_store::{Store, StoreError};

/// The length above which a log is cut, in bytes. Logs rotated by our programs stay below it.
const LOG_BYTES: u64 = logs::MAX_FILE_BYTES + (2 << 20);
/// The length of the end kept beside a cut log, in bytes.
const TAIL_BYTES: u64 = 1 << 20;
/// The minimum time a voice message is kept after its message is processed.
const VOICE_KEPT: TimeDelta = TimeDelta::days(7);
/// A voice file may be slightly older than the row of its message.
const VOICE_SLACK: TimeDelta = TimeDelta::days(1);
/// The maximum number of files per round.
const MAX_CHORES: usize = 1_000;

/// A task about one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// A long log: move its end to `<name>.old` and start again.
    Cut(PathBuf),
    /// An old log: empty it.
    Empty(PathBuf),
    /// An unneeded file: delete it.
    Remove(PathBuf),
}

/// A plain file.
struct Found {
    path: PathBuf,
    name: String,
    bytes: u64,
    changed_at: DateTime<Utc>,
}

/// Lists the tasks about files older than `before`.
pub(crate) fn list_chores(
    config: &Config,
    store: &Store,
    before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Vec<Chore>, StoreError> {
    let dir = config.logs_dir();
    let mut chores: Vec<Chore> = list_plain_files(&dir).filter_map(|file| find_log_chore(file, before)).collect();
    let plans =
        list_plain_files(&dir.join("plans")).filter(|file| file.name.ends_with(".md") && file.changed_at < before);
    chores.extend(plans.map(|file| Chore::Remove(file.path)));
    let (queued, oldest) = store.inbox().queue_depth()?;
    // If the age of the oldest message is unknown, any voice file may belong to it.
    let voice_before = match (queued, oldest) {
        (0, _) => Some(now - VOICE_KEPT),
        (_, Some(oldest)) => Some((now - VOICE_KEPT).min(oldest - VOICE_SLACK)),
        (_, None) => None,
    };
    for file in list_plain_files(&config.voice_dir()) {
        if voice_before.is_some_and(|before| file.changed_at < before)
            && !store.retention().is_file_wanted(&file.name)?
        {
            chores.push(Chore::Remove(file.path));
        }
    }
    for file in list_plain_files(&config.files_dir()).filter(|file| file.changed_at < before) {
        if !store.retention().is_file_wanted(&file.name)? {
            chores.push(Chore::Remove(file.path));
        }
    }
    chores.truncate(MAX_CHORES);
    Ok(chores)
}

fn find_log_chore(file: Found, before: DateTime<Utc>) -> Option<Chore> {
    let is_old = file.changed_at < before;
    match file.name.as_str() {
        name if name.ends_with(".log") && file.bytes > LOG_BYTES => Some(Chore::Cut(file.path)),
        name if name.ends_with(".log") && file.bytes > 0 && is_old => Some(Chore::Empty(file.path)),
        name if is_old && (name.ends_with(".log.old") || name.ends_with(".log.old-new") || logs::is_rotated(name)) => {
            Some(Chore::Remove(file.path))
        }
        _ => None,
    }
}

/// Lists the plain files of a directory that is itself no link, sorted. Unreadable entries are skipped.
fn list_plain_files(dir: &Path) -> impl Iterator<Item = Found> + use<> {
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir());
    let entries = is_dir.then(|| fs::read_dir(dir).ok()).flatten().into_iter().flatten();
    let mut files: Vec<Found> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            // Metadata of the entry itself, so links aren't followed.
            let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let name = entry.file_name().into_string().ok()?;
            Some(Found { path: entry.path(), name, bytes: found.len(), changed_at: found.modified().ok()?.into() })
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.into_iter()
}

impl Chore {
    /// The file concerned.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Cut(path) | Self::Empty(path) | Self::Remove(path) => path,
        }
    }

    /// Returns the file to be deleted, relative to the workspace. `None` for other tasks.
    pub(crate) fn find_file_to_remove(&self, workspace: &Path) -> Option<String> {
        let Self::Remove(path) = self else { return None };
        Some(path.strip_prefix(workspace).ok()?.to_str()?.to_owned())
    }

    /// Carries the task out. It can be repeated after a kill at any point.
    pub(crate) fn run(&self) -> io::Result<()> {
        match self {
            Self::Cut(path) => cut_log(path),
            Self::Empty(path) => OpenOptions::new().write(true).open(path)?.set_len(0),
            Self::Remove(path) => fs::remove_file(path),
        }
    }
}

/// Saves the end of a log before emptying it. Lines appended between the last read and the emptying are lost, which a log can bear.
fn cut_log(path: &Path) -> io::Result<()> {
    let mut log = OpenOptions::new().read(true).write(true).open(path)?;
    let start = log.metadata()?.len().saturating_sub(TAIL_BYTES);
    log.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    (&log).take(TAIL_BYTES).read_to_end(&mut tail)?;
    let first_line = tail.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (new, old) = (add_ending(path, ".old-new"), add_ending(path, ".old"));
    let mut kept = create_or_truncate_private(&new)?;
    kept.write_all(tail.get(first_line..).unwrap_or_default())?;
    // Lines appended meanwhile.
    io::copy(&mut (&log).take(TAIL_BYTES), &mut kept)?;
    kept.sync_all()?;
    move_durably(&new, &old)?;
    log.set_len(0)
}

#[cfg(test)]
mod tests;
