//! What the health check asks of a repository. Only looking: nothing here writes, and nothing waits for a lock.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process::{self, ProcessError};

use super::{
    IsSecret, LeftAlone, Repo, RepoError,
    advance::{DAMAGED_NOTE, KEPT},
    glance,
};

/// How much of what `git fsck` says is passed on, in lines.
const MAX_FSCK_LINES: usize = 5;

/// The addresses of every remote of the repository in `dir`, for fetching and for pushing; none if there is no repository.
/// They may hold passwords.
pub fn remote_urls(dir: &Path) -> Vec<String> {
    // Mostly the settings are all that has to be read: every program that writes a line asks for this.
    if let Some(urls) = glance::plain_git_dir(dir).and_then(|git_dir| urls_in(&glance::settings(&git_dir).ok()?).ok()) {
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

/// The addresses of remotes, and those that others are replaced with (`url.<address>.insteadOf`).
fn urls_in(settings: &git2::Config) -> Result<Vec<String>, git2::Error> {
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

impl Repo {
    /// Lock files in the git directory while no `git` works here. A young one may still be somebody's:
    /// [`Repo::remove_stale_locks`] only removes those that nobody can hold.
    pub fn unheld_locks(&self) -> Vec<PathBuf> {
        let found = self.lock_files();
        if found.is_empty() || self.is_git_at_work() {
            return Vec::new();
        }
        found
    }

    /// What was found on the way and kept beside, for a person to look at: nothing of ours reads it again.
    pub fn kept_beside(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.private).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_kept = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(KEPT) || name == DAMAGED_NOTE
        };
        let mut kept: Vec<PathBuf> = entries.filter(is_kept).collect();
        kept.sort();
        kept
    }

    /// Changed files that a wake wouldn't commit for the person, and why.
    pub fn left_alone(&self, is_secret: &IsSecret<'_>) -> Result<Vec<LeftAlone>, RepoError> {
        // The next wake makes it so; only looking, we don't.
        if !self.is_index_readable() {
            return Ok(Vec::new());
        }
        let head = self.head()?;
        let mut left = Vec::new();
        for changed in self.changed_files()? {
            let path = changed.path.as_str();
            let why = match self.read_changed(path, changed.why_left)? {
                Err(why) => Some(why),
                Ok(file) if self.same_as_committed(head, path, file.as_ref())? => None,
                Ok(file) => self.reason_to_leave(path, file.as_ref(), is_secret),
            };
            left.extend(why.map(|why| LeftAlone { path: changed.path, why }));
        }
        Ok(left)
    }

    /// Whether every object that the branches need is there, by `git fsck`; what it says if not. `None` if it took longer than `timeout`.
    pub fn fsck(&self, timeout: Duration) -> Result<Option<Vec<String>>, ProcessError> {
        let spec =
            self.git_command().args(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]).timeout(timeout);
        let output = match process::run(&spec) {
            Ok(output) => output,
            Err(ProcessError::TimedOut { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if output.status.success() {
            return Ok(Some(Vec::new()));
        }
        let said = [output.stderr, output.stdout].concat();
        let lines: Vec<String> = String::from_utf8_lossy(&said)
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .take(MAX_FSCK_LINES)
            .map(str::to_owned)
            .collect();
        Ok(Some(if lines.is_empty() { vec![process::describe(output.status)] } else { lines }))
    }
}
