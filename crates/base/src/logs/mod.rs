//! The log as files: `logs/wake.log`, `logs/bot.log` and so on in the workspace, a file a program.
//!
//! [`file`] writes them: several processes at a time, each line in one piece, 10 MB a file and five files a program. `read` finds
//! the newest lines of all programs, merged by time; `follow` waits for what comes. What a line says, and what is masked in it, is
//! decided where the log is begun (`cli/log`).

mod file;
mod follow;
mod line;
mod read;

use std::path::{Path, PathBuf};

pub use self::{
    file::LogFile,
    follow::Follower,
    line::LoggedLine,
    read::{LogFilter, newest},
};

/// The programs that keep a log, by the names of their files.
pub const LOGGED: [&str; 5] = ["wake", "bot", "health", "page", "transcriber"];
/// A file that would become longer gives way to a new one, in bytes.
pub const MAX_FILE_BYTES: u64 = 10 << 20;
/// So many files a program are kept, the one that grows among them.
pub const KEPT_FILES: usize = 5;
/// The longest line, in bytes; of a longer one the end is left out.
pub const MAX_LINE_BYTES: usize = 16 * 1024;

/// The file that grows.
fn current(dir: &Path, program: &str) -> PathBuf {
    dir.join(format!("{program}.log"))
}

/// The file that grew before: 1 is the newest of them.
fn rotated(path: &Path, age: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{age}"));
    PathBuf::from(name)
}

/// A program's files that may be there, the newest first.
fn files(dir: &Path, program: &str) -> impl Iterator<Item = PathBuf> {
    let path = current(dir, program);
    let older: Vec<PathBuf> = (1..KEPT_FILES).map(|age| rotated(&path, age)).collect();
    std::iter::once(path).chain(older)
}

/// Whether a file of this name has grown before: `wake.log.2`.
pub fn is_rotated(name: &str) -> bool {
    name.rsplit_once(".log.").is_some_and(|(_, age)| age.parse().is_ok_and(|age: usize| (1..KEPT_FILES).contains(&age)))
}
