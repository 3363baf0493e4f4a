//! The repository's part of the health check. The checks only read, without waiting for a lock.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process::{self, ProcessError};

use super::{
    IsSecret, LeftAlone, RepoError,
    advance::{DAMAGED_NOTE, KEPT},
    glance,
};
use crate::areas::Housekeeping;

/// The maximum number of lines reported from `git fsck`.
const MAX_FSCK_LINES: usize = 5;

/// Lists the addresses of all remotes of the repository in `dir`, for fetching and pushing, passwords included. Empty if there is no
/// repository.
pub fn remote_urls(dir: &Path) -> Vec<String> {
    // Every program that writes a log line needs this list, so for an ordinary repository it reads only the settings.
    if let Some(urls) =
        glance::plain_git_dir(dir).and_then(|git_dir| list_urls(&glance::read_settings(&git_dir).ok()?).ok())
    {
        return urls;
    }
    let Ok(git) = git2::Repository::open(dir) else {
        return Vec::new();
    };
    let names = git.remotes().map(|names| names.iter().flatten().flatten().map(str::to_owned).collect::<Vec<_>>());
    let remotes = names.unwrap_or_default().into_iter().filter_map(|name| git.find_remote(&name).ok());
    remotes
        .flat_map(|remote| [Some(remote.url_bytes().to_vec()), remote.pushurl_bytes().map(<[u8]>::to_vec)])
        .flatten()
        .map(|url| String::from_utf8_lossy(&url).into_owned())
        .collect()
}

/// Lists the addresses of remotes, and their replacements (`url.<address>.insteadOf`).
fn list_urls(settings: &git2::Config) -> Result<Vec<String>, git2::Error> {
    let mut urls = Vec::new();
    settings.entries(None)?.for_each(|entry| {
        let name = String::from_utf8_lossy(entry.name_bytes());
        if name.starts_with("remote.") && (name.ends_with(".url") || name.ends_with(".pushurl")) {
            urls.push(String::from_utf8_lossy(entry.value_bytes()).into_owned());
        } else if let Some(address) = name.strip_prefix("url.").and_then(|name| Some(name.rsplit_once('.')?.0)) {
            urls.push(address.to_owned());
        }
    })?;
    Ok(urls)
}

impl Housekeeping<'_> {
    /// Lists lock files in the git directory; empty while a `git` process runs here. A recent lock may still be held, so
    /// [`Housekeeping::remove_stale_locks`] removes only abandoned ones.
    pub fn list_possibly_stale_locks(&self) -> Vec<PathBuf> {
        let found = self.lock_files();
        if found.is_empty() || self.is_git_at_work() {
            return Vec::new();
        }
        found
    }

    /// Lists the files that the program set aside for a person to look at. The program never reads them again.
    pub fn list_set_aside_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0.private).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_kept = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(KEPT) || name == DAMAGED_NOTE
        };
        let mut kept: Vec<PathBuf> = entries.filter(is_kept).collect();
        kept.sort();
        kept
    }

    /// Lists changed files that a wake wouldn't commit for the person, with the reasons.
    pub fn left_alone(&self, is_secret: &IsSecret<'_>) -> Result<Vec<LeftAlone>, RepoError> {
        // The next wake makes the index readable; this check only reads.
        if !self.0.is_index_readable() {
            return Ok(Vec::new());
        }
        let head = self.0.head()?;
        let mut left = Vec::new();
        for changed in self.0.changed_files()? {
            let path = changed.path.as_str();
            let why = match self.0.read_changed_file(path, changed.why_left)? {
                Err(why) => Some(why),
                Ok(file) if self.0.is_same_as_commit(head, path, file.as_ref())? => None,
                Ok(file) => self.0.reason_to_leave(path, file.as_ref(), is_secret),
            };
            left.extend(why.map(|why| LeftAlone { path: changed.path, why }));
        }
        Ok(left)
    }

    /// Checks with `git fsck` that all objects of the branches exist. Returns the errors it prints; `None` if it exceeds the `timeout`.
    pub fn fsck(&self, timeout: Duration) -> Result<Option<Vec<String>>, ProcessError> {
        let spec = self
            .0
            .remote()
            .git_command()
            .args(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"])
            .timeout(timeout);
        let output = match process::run(&spec) {
            Ok(output) => output,
            Err(ProcessError::TimedOut { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if output.status.success() {
            return Ok(Some(Vec::new()));
        }
        let complaints = [output.stderr, output.stdout].concat();
        let lines: Vec<String> = String::from_utf8_lossy(&complaints)
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .take(MAX_FSCK_LINES)
            .map(str::to_owned)
            .collect();
        Ok(Some(if lines.is_empty() { vec![process::describe_exit(output.status)] } else { lines }))
    }
}
