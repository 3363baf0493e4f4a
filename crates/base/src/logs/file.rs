//! Writes log lines: one write for each line, at the end of the file. A writer that would exceed the maximum length renames the file
//! under its flock; the others notice by the inode. A failed write loses the line, because logging must not stop the program.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{KEPT_FILES, MAX_FILE_BYTES, MAX_LINE_BYTES, current_path, rotated_path};

/// A program's log. The file is opened or created with the first line.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    open: Mutex<OpenLog>,
}

#[derive(Debug, Default)]
struct OpenLog {
    file: Option<File>,
    /// True if a full disk cut the last line.
    is_torn: bool,
}

impl LogFile {
    /// Creates the log of a program in a directory. The directory is created if its parent exists.
    pub fn new(dir: &Path, program: &str) -> Self {
        Self { path: current_path(dir, program), max_bytes: MAX_FILE_BYTES, open: Mutex::default() }
    }

    /// Appends an event as a single line. A line that can't be written is lost.
    pub fn add(&self, event: &str) {
        let line = one_line(event);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.write_line(&mut open, &line).is_err() {
            // The next line opens the file again.
            open.file = None;
        }
    }

    fn write_line(&self, open: &mut OpenLog, line: &str) -> io::Result<()> {
        let there = match fs::symlink_metadata(&self.path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_ours = |file: &File| {
            let there = there.as_ref().map(|found| (found.dev(), found.ino()));
            file.metadata().is_ok_and(|own| Some((own.dev(), own.ino())) == there)
        };
        let mut file = match open.file.take().filter(is_ours) {
            Some(file) => file,
            None => self.open()?,
        };
        let bytes = if open.is_torn { format!("\n{line}") } else { line.to_owned() };
        let is_full = |bytes_there: u64| bytes_there > 0 && bytes_there + bytes.len() as u64 > self.max_bytes;
        if is_full(file.metadata()?.len()) && self.rotate(&file)? {
            file = self.open()?;
        }
        let written = file.write(bytes.as_bytes())?;
        open.is_torn = written < bytes.len();
        open.file = Some(file);
        Ok(())
    }

    /// Opens the file, never through a link and never waiting for the other end of a pipe.
    fn open(&self) -> io::Result<File> {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).map_err(io::Error::other)?;
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(&self.path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Before the first wake there is no workspace, and logging must not create one.
                DirBuilder::new().mode(0o700).create(self.path.parent().unwrap_or(Path::new("/")))?;
                open()?
            }
            opened => opened?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it isn't a plain file"));
        }
        Ok(file)
    }

    /// Renames the full file. Returns false if another process holds the lock.
    fn rotate(&self, file: &File) -> io::Result<bool> {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(false);
        }
        let (own, there) = (file.metadata()?, fs::symlink_metadata(&self.path)?);
        if (own.dev(), own.ino()) != (there.dev(), there.ino()) {
            return Ok(true);
        }
        for age in (1..KEPT_FILES - 1).rev() {
            match fs::rename(rotated_path(&self.path, age), rotated_path(&self.path, age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Closing the file releases the lock.
        fs::rename(&self.path, rotated_path(&self.path, 1)).map(|()| true)
    }
}

/// Formats an event as one line: a raw line break would look like the start of another event.
fn one_line(event: &str) -> String {
    let event = event.trim_end_matches('\n');
    let mut line = String::with_capacity(event.len() + 1);
    for c in event.chars() {
        if line.len() >= MAX_LINE_BYTES {
            line.push('…');
            break;
        }
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push(' '),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                line.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => line.push(c),
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn small(dir: &Path) -> LogFile {
        LogFile { max_bytes: 40, ..LogFile::new(dir, "wake") }
    }

    fn lines(path: PathBuf) -> Vec<String> {
        fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_event_is_one_line_whatever_it_holds() {
        assert_eq!(one_line("a\nb\tc\u{1b}[1m\n"), "a\\nb c\\u001b[1m\n");
        let long = one_line(&"x".repeat(MAX_LINE_BYTES * 2));
        assert!(long.len() < MAX_LINE_BYTES + 8 && long.ends_with("…\n"), "{}", long.len());
    }

    #[test]
    fn a_line_that_lost_its_end_is_not_the_beginning_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let log = LogFile::new(dir.path(), "wake");
        log.add("one");
        // As if the disk had filled up in between.
        log.open.lock().unwrap().is_torn = true;
        log.add("two");
        log.add("three");
        assert_eq!(lines(dir.path().join("wake.log")), ["one", "", "two", "three"]);
    }

    #[test]
    fn five_files_are_kept_and_none_is_longer_than_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, path) = (dir.path().join("logs"), dir.path().join("logs/wake.log"));
        let log = small(&logs);
        for n in 0..30 {
            log.add(&format!("line {n:02} of some length"));
        }
        assert_eq!(fs::metadata(&logs).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&logs).unwrap().count(), KEPT_FILES);
        assert_eq!(lines(path.clone()), ["line 29 of some length"]);
        assert_eq!(lines(rotated_path(&path, 4)), ["line 25 of some length"]);
        assert!(fs::read_dir(&logs).unwrap().all(|file| file.unwrap().metadata().unwrap().len() <= 40));
    }

    /// Each has its own open file, as two processes would.
    #[test]
    fn two_writers_lose_no_line_to_each_others_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (LogFile { max_bytes: 4_000, ..small(dir.path()) }, small(dir.path()));
        let other = LogFile { max_bytes: 4_000, ..other };
        std::thread::scope(|scope| {
            for (log, name) in [(&one, "one"), (&other, "other")] {
                scope.spawn(move || (0..200).for_each(|n| log.add(&format!("{name} {n:03} {:>30}", "padded"))));
            }
        });
        let mut all: Vec<String> = super::super::list_files(dir.path(), "wake").flat_map(lines).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 400, "each line once");
    }

    #[test]
    fn what_can_not_be_written_is_lost_and_stops_nobody() {
        let dir = tempfile::tempdir().unwrap();
        LogFile::new(&dir.path().join("no/workspace/logs"), "wake").add("nobody hears this");
        assert!(!dir.path().join("no").exists());

        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "theirs\n").unwrap();
        symlink(&elsewhere, dir.path().join("wake.log")).unwrap();
        let log = small(dir.path());
        log.add("not through a link");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs\n");
        fs::remove_file(dir.path().join("wake.log")).unwrap();
        log.add("heard again");
        assert_eq!(lines(dir.path().join("wake.log")), ["heard again"]);
    }
}
