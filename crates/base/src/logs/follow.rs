//! Follows new lines in the logs of all programs, across rotation. A renamed file stays open and is read to its end before the new
//! one.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use super::{LogFilter, LoggedLine, MAX_FILE_BYTES, current_path};

/// Polls for new log lines.
#[derive(Debug)]
pub struct Follower {
    followed: Vec<Followed>,
    filter: LogFilter,
}

#[derive(Debug)]
struct Followed {
    path: PathBuf,
    file: Option<File>,
    /// An unfinished line.
    begun: Vec<u8>,
    last: DateTime<Utc>,
}

impl Follower {
    /// Starts at the current ends of all files.
    pub fn new(dir: &Path, filter: LogFilter, now: DateTime<Utc>) -> Self {
        let followed = filter.list_programs().map(|program| {
            let path = current_path(dir, program);
            let at_end = |mut file: File| file.seek(SeekFrom::End(0)).ok().map(|_| file);
            Followed { file: File::open(&path).ok().and_then(at_end), path, begun: Vec::new(), last: now }
        });
        Self { followed: followed.collect(), filter }
    }

    /// The lines added since the last poll, merged by time.
    pub fn poll(&mut self) -> Vec<LoggedLine> {
        let mut all = Vec::new();
        for followed in &mut self.followed {
            // A failed read is tried again with the next poll.
            followed.poll(&mut all).ok();
        }
        all.retain(|line| self.filter.is_match(line));
        all.sort_by_key(|line| line.at);
        all
    }
}

impl Followed {
    fn poll(&mut self, all: &mut Vec<LoggedLine>) -> io::Result<()> {
        // Stat before reading: a file renamed after this is read to its end next time.
        let at_path = std::fs::metadata(&self.path);
        if let Some(file) = &mut self.file {
            // The file was truncated.
            if file.metadata()?.len() < file.stream_position()? {
                file.seek(SeekFrom::Start(0))?;
            }
            let mut bytes = Vec::new();
            file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
            self.take_bytes(&bytes, all);
        }
        let Ok(at_path) = at_path else { return Ok(()) };
        let own = self.file.as_ref().map(File::metadata).transpose()?;
        if own.is_some_and(|own| (own.dev(), own.ino()) == (at_path.dev(), at_path.ino())) {
            return Ok(());
        }
        // Drop an unfinished line. Its writer starts the new file with a whole line.
        self.begun.clear();
        let mut bytes = Vec::new();
        let file = self.file.insert(File::open(&self.path)?);
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        self.take_bytes(&bytes, all);
        Ok(())
    }

    fn take_bytes(&mut self, bytes: &[u8], all: &mut Vec<LoggedLine>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend(piece);
            if piece.ends_with(b"\n") {
                let line = LoggedLine::parse(String::from_utf8_lossy(&self.begun).trim_end_matches('\n'), self.last);
                self.last = line.at;
                all.push(line);
                self.begun.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        clock::parse_time,
        logs::{LogFile, rotated_path},
    };

    #[test]
    fn each_new_line_is_shown_once_across_a_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let (wake, bot) = (LogFile::new(dir.path(), "wake"), LogFile::new(dir.path(), "bot"));
        wake.add("2026-11-21T09:00:00Z before");
        let now = parse_time("2026-11-21T10:00:00Z").unwrap();
        let mut follower = Follower::new(dir.path(), LogFilter::default(), now);
        let mut seen = || -> Vec<String> {
            follower.poll().into_iter().map(|line| line.text.rsplit(' ').next().unwrap().to_owned()).collect()
        };
        assert!(seen().is_empty());
        wake.add("2026-11-21T10:00:02Z two");
        bot.add("2026-11-21T10:00:01Z one");
        assert_eq!(seen(), ["one", "two"]);
        wake.add("2026-11-21T10:00:03Z three");
        let path = dir.path().join("wake.log");
        fs::rename(&path, rotated_path(&path, 1)).unwrap();
        wake.add("2026-11-21T10:00:04Z four");
        assert_eq!(seen(), ["three", "four"]);
        assert!(seen().is_empty());
        // The file is truncated.
        fs::write(&path, "").unwrap();
        wake.add("2026-11-21T10:00:05Z 5");
        assert_eq!(seen(), ["5"]);
    }
}
