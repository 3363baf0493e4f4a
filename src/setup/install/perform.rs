//! Performs an installation step. Files are replaced in one step, and a running program keeps its old file.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use reveille_base::{
    file::{add_ending, create_private, create_private_dirs, move_durably, remove_if_there, write_new},
    process::{self, ProcessError, Spec},
};
use reveille_store::{Store, StoreError};

use super::InstallStep;

/// The reason for a failed step. Earlier steps stay done, and repeating all steps is safe.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The database couldn't be copied and is unchanged.
    #[error("the database couldn't be copied: {0}")]
    Database(#[from] StoreError),
    /// A command couldn't be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A command failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command.
        command: String,
        /// The command's error output.
        said: String,
    },
}

/// Performs a step. Returns true if anything changed.
///
/// # Errors
/// The step failed and changed nothing.
pub fn perform_step(step: &InstallStep) -> Result<bool, InstallError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError::Io { path, source }
    };
    match step {
        InstallStep::Directory(path) => {
            if path.is_dir() {
                return Ok(false);
            }
            create_private_dirs(path).map_err(at(path)).map(|()| true)
        }
        InstallStep::Program { from, to } => {
            let bytes = fs::read(from).map_err(at(from))?;
            replace_file(to, &bytes, 0o755).map_err(at(to))
        }
        InstallStep::Link { path, to } => replace_link(path, to).map_err(at(path)),
        InstallStep::SaveDatabase { from, to } => save_database(from, to).map(|()| true),
        InstallStep::Write { path, text } => replace_file(path, text.as_bytes(), 0o644).map_err(at(path)),
        InstallStep::Crontab { text, .. } => write_crontab(text).map(|()| true),
        InstallStep::Remove(path) => {
            let removed = remove_if_there(path).map_err(at(path))?;
            remove_if_there(&previous_path(path)).map_err(at(path))?;
            Ok(removed)
        }
        InstallStep::RemoveFolder(path) => match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(at(path)),
        },
        InstallStep::Run { words, may_fail } => match run_command(words) {
            Err(_) if *may_fail => Ok(false),
            ran => ran.map(|()| true),
        },
    }
}

/// Returns the path of a file's previous version.
fn previous_path(path: &Path) -> PathBuf {
    add_ending(path, ".old")
}

fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<bool> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if !is_link && fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let new = add_ending(path, ".new");
    remove_if_there(&new)?;
    write_new(&new, bytes, mode)?;
    // The old file stays until the new one replaces it, since a timer may start it at any moment.
    let keep_old = || {
        remove_if_there(&previous_path(path))?;
        if is_link || !path.exists() { Ok(()) } else { fs::hard_link(path, previous_path(path)) }
    };
    keep_old().and_then(|()| move_durably(&new, path)).inspect_err(|_| {
        remove_if_there(&new).ok();
    })?;
    Ok(true)
}

fn replace_link(path: &Path, to: &Path) -> io::Result<bool> {
    if fs::read_link(path).is_ok_and(|present| present == to) {
        return Ok(false);
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let new = add_ending(path, ".new");
    remove_if_there(&new)?;
    symlink(to, &new)?;
    move_durably(&new, path)?;
    Ok(true)
}

/// Copies a consistent snapshot of the database. An earlier copy stays until the new one is complete.
fn save_database(from: &Path, to: &Path) -> Result<(), InstallError> {
    let new = add_ending(to, ".new");
    let at = |source| InstallError::Io { path: to.to_owned(), source };
    remove_if_there(&new).map_err(at)?;
    let Some(store) = Store::open_read_only(from)? else { return Ok(()) };
    let saved = store.save_copy(&new).map_err(InstallError::from);
    saved.and_then(|()| move_durably(&new, to).map_err(at)).inspect_err(|_| {
        remove_if_there(&new).ok();
    })
}

fn run_command(words: &[String]) -> Result<(), InstallError> {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    // Stopping a bot takes a while, since it may finish its work.
    let output = process::run(&Spec::new(program).args(args).timeout(std::time::Duration::from_secs(120)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(InstallError::Command { command: words.join(" "), said })
}

/// Installs a crontab from a temporary file, which the `crontab` command of every cron accepts.
fn write_crontab(text: &str) -> Result<(), InstallError> {
    if text.is_empty() {
        return run_command(&["crontab".to_owned(), "-r".to_owned()]);
    }
    let suffix = reveille_base::random::generate_bytes::<6>().map_err(io::Error::other);
    let dir = std::env::temp_dir();
    let at = |source| InstallError::Io { path: dir.clone(), source };
    let file = dir.join(format!("reveille-crontab-{}", reveille_base::random::format_hex(&suffix.map_err(at)?)));
    let write = || create_private(&file)?.write_all(text.as_bytes());
    let ran = write().map_err(at).and_then(|()| run_command(&["crontab".to_owned(), file.display().to_string()]));
    fs::remove_file(&file).ok();
    ran
}
