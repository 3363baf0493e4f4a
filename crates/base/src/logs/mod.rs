//! The log files: `logs/wake.log`, `logs/bot.log` and so on in the workspace, one file for each program.
//!
//! [`file`] writes them: several processes may write at once without mixing their lines, and each program keeps five files of 10 MB. `read`
//! finds the newest lines of all programs, merged by time; `follow` polls for new ones. The code that starts the log (`cli/log`) decides
//! on the format and masks secrets.

mod file;
mod follow;
mod line;
mod read;

use std::path::{Path, PathBuf};

pub use self::{
    file::LogFile,
    follow::Follower,
    line::LoggedLine,
    read::{LogFilter, read_newest},
};

/// The programs that keep a log, by file name.
pub const LOGGED: [&str; 5] = ["wake", "bot", "health", "page", "transcriber"];
/// The maximum length of a file in bytes; a longer one is rotated.
pub const MAX_FILE_BYTES: u64 = 10 << 20;
/// The number of files kept for each program, including the current one.
pub const KEPT_FILES: usize = 5;
/// The maximum length of a line in bytes; the end of a longer one is cut off.
pub const MAX_LINE_BYTES: usize = 16 * 1024;

/// The path of the current file.
fn current_path(dir: &Path, program: &str) -> PathBuf {
    dir.join(format!("{program}.log"))
}

/// The path of a rotated file: 1 is the newest.
fn rotated_path(path: &Path, age: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{age}"));
    PathBuf::from(name)
}

/// The possible files of a program, newest first.
fn list_files(dir: &Path, program: &str) -> impl Iterator<Item = PathBuf> {
    let path = current_path(dir, program);
    let older: Vec<PathBuf> = (1..KEPT_FILES).map(|age| rotated_path(&path, age)).collect();
    std::iter::once(path).chain(older)
}

/// Returns true for the name of a rotated file: `wake.log.2`.
pub fn is_rotated(name: &str) -> bool {
    name.rsplit_once(".log.").is_some_and(|(_, age)| age.parse().is_ok_and(|age: usize| (1..KEPT_FILES).contains(&age)))
}
