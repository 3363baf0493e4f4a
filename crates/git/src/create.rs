//! The first run: creates the repository from the remote or from the templates. Builds it next to its final place and then moves it there
//! whole, so that the next attempt can clear the remains of a failed or killed one.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use git2::{ConfigLevel, Repository, RepositoryInitOptions};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    file::move_durably,
    process,
};
use reveille_memory::outside::{Origin, Outside};

use super::{
    DEFAULT_BRANCH, REMOTE, RemoteError, Repo, RepoError,
    branches::{LIST, LISTED, pick_branch},
    form::{UnreadableForm, unreadable_form},
    join::UNJOINED,
    remote::{self, classify_failure},
    tree::{FILE, Item},
    wake_signature,
};

/// The time limit of the first clone, which fetches the whole history.
pub const CLONE_TIMEOUT: Duration = Duration::from_secs(120);

/// The time limit for the remote's first answer, before the clone.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before another attempt to complete a partial clone.
const COMPLETE_AGAIN_AFTER: TimeDelta = TimeDelta::hours(1);

/// The origin of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The repository existed already.
    Existing,
    /// Made from the templates, as no remote is set.
    FromTemplates,
    /// Cloned from the remote.
    Cloned,
    /// Made from the templates, because the remote can't be reached. A later wake joins the two histories as soon as it can.
    Unjoined(RemoteError),
    /// Cloned from a remote without commits: the first commit holds the templates, to be pushed.
    ClonedEmpty,
}

impl Repo {
    /// Opens the repository at `dir`. If there is none, first clones it from `repo_url` or, without one, creates it from `templates` (paths
    /// and contents). Later, a `repo_url` that differs from the repository's `origin` is a [`RepoError::Configuration`].
    pub fn open_or_create(
        dir: &Path,
        repo_url: Option<&str>,
        templates: &[(&str, &str)],
        now: DateTime<Utc>,
    ) -> Result<(Self, Created), RepoError> {
        if dir.join(".git").exists() {
            let repo = Self::open(dir)?;
            repo.match_origin(repo_url)?;
            repo.complete_clone(now)?;
            return Ok((repo, Created::Existing));
        }
        match fs::read_dir(dir).map(|entries| entries.count()) {
            Ok(1..) => return Err(RepoError::NotARepository { path: dir.to_owned() }),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(RepoError::io("reading", dir)(error)),
            _ => {}
        }
        // fault: new-repository-made-place
        let making = temporary_directory(dir)?;
        clear_directory(&making)?;
        let made = match repo_url {
            Some(url) => match make_from_remote(&making, url, templates, now) {
                // Whatever keeps the remote away, messages can be answered without it.
                Err(RepoError::Unreachable(why)) => {
                    clear_directory(&making)?;
                    make_unjoined_repository(&making, url, templates, now).map(|()| Created::Unjoined(why))
                }
                made => made,
            },
            None => make_from_templates(&making, templates, now).map(|()| Created::FromTemplates),
        };
        let moved = made.and_then(|created| put_in_place(&making, dir).map(|()| created));
        if moved.is_err() {
            clear_directory(&making)?;
        }
        let created = moved?;
        Ok((Self::open(dir)?, created))
    }

    /// Returns `true` if `origin` matches `REPO_URL`. If not, [`Self::open_or_create`] corrects `origin` or returns an error.
    pub fn has_origin(&self, repo_url: &str) -> bool {
        self.origin_url().is_some_and(|origin| is_same_url(&origin, repo_url))
    }

    /// Returns the remote's address as configured: git may replace it (`url.<address>.insteadOf`), and so may libgit2.
    fn origin_url(&self) -> Option<String> {
        let config = self.git.config().ok()?;
        let urls = config.multivar(&format!("remote.{REMOTE}.url"), None).ok()?;
        let mut first = None;
        // Given several addresses, git fetches from the first.
        urls.for_each(|entry| {
            first.get_or_insert_with(|| String::from_utf8_lossy(entry.value_bytes()).into_owned());
        })
        .ok()?;
        first
    }

    /// Makes git fetch the missing objects of a partial clone: git would fetch each on its first read, but libgit2 can't. After a failure,
    /// waits an hour before the next attempt, so that not every answer is delayed. Until then the missing objects can't be read.
    fn complete_clone(&self, now: DateTime<Utc>) -> Result<(), RepoError> {
        let mut config = self.git.config()?.open_level(ConfigLevel::Local)?;
        let promisor = format!("remote.{REMOTE}.promisor");
        if !config.get_bool(&promisor).unwrap_or(false) {
            return Ok(());
        }
        let tried = self.git.path().join("reveille-completing");
        let tried_at = fs::read_to_string(&tried).ok().and_then(|text| parse_time(&text));
        if tried_at.is_some_and(|at| at <= now && now - at < COMPLETE_AGAIN_AFTER) {
            return Ok(());
        }
        fs::write(&tried, format_rfc3339(now)).map_err(RepoError::io("writing", &tried))?;
        let fetch = self.remote().git_command().args([
            "fetch",
            "--quiet",
            "--refetch",
            "--no-filter",
            "--no-write-fetch-head",
            REMOTE,
        ]);
        match process::run(&fetch.timeout(CLONE_TIMEOUT)) {
            Ok(output) if output.status.success() => {
                config.remove(&promisor)?;
                fs::remove_file(&tried).ok();
                match config.remove(&format!("remote.{REMOTE}.partialclonefilter")) {
                    Err(error) if error.code() != git2::ErrorCode::NotFound => return Err(error.into()),
                    _ => {}
                }
                tracing::info!("completed the memory, which was a partial clone");
            }
            Ok(output) => tracing::warn!(why = %classify_failure(&output), "a partial clone couldn't be completed"),
            Err(error) => tracing::warn!(why = %error, "a partial clone couldn't be completed"),
        }
        Ok(())
    }

    /// Makes `origin` match `REPO_URL`, or refuses a different address. Also records which branch is ours, unless that was done before.
    fn match_origin(&self, repo_url: Option<&str>) -> Result<(), RepoError> {
        if let Some(url) = repo_url {
            match self.origin_url() {
                // No fetch has ever succeeded: the cause may have been a wrong address or password.
                Some(origin) if self.remote().is_unjoined() => {
                    if origin != url {
                        self.add_remote(url)?;
                    }
                }
                Some(origin) => {
                    if normalise_url(&origin) != normalise_url(url) {
                        return Err(RepoError::Configuration(format!(
                            "REPO_URL is {}, but the repository in {} has the remote {}. Change REPO_URL, or: git remote set-url origin …",
                            remote::redact_urls(url),
                            self.root.display(),
                            remote::redact_urls(&origin),
                        )));
                    }
                }
                // The repository was made without a remote, and now one is set.
                None => self.add_remote(url)?,
            }
        }
        if self.git.config()?.get_string("reveille.branch").is_err() {
            store_branch(&self.git, &self.branch)?;
        }
        Ok(())
    }

    /// Records `branch` as our branch, and sets the branch of the remote that it follows.
    pub(super) fn name_branch(&self, branch: &str) -> Result<(), RepoError> {
        store_branch(&self.git, branch)?;
        let mut config = self.git.config()?.open_level(ConfigLevel::Local)?;
        config.set_str(&format!("branch.{branch}.remote"), REMOTE)?;
        Ok(config.set_str(&format!("branch.{branch}.merge"), &format!("refs/heads/{branch}"))?)
    }

    /// Adds the remote to the repository's own configuration. Without an explicit level, libgit2 would write to the program's.
    fn add_remote(&self, url: &str) -> Result<(), RepoError> {
        let mut config = self.git.config()?.open_level(ConfigLevel::Local)?;
        let branch = &self.branch;
        config.set_str(&format!("remote.{REMOTE}.fetch"), &format!("+refs/heads/*:refs/remotes/{REMOTE}/*"))?;
        config.set_str(&format!("branch.{branch}.remote"), REMOTE)?;
        config.set_str(&format!("branch.{branch}.merge"), &self.branch_ref())?;
        Ok(config.set_str(&format!("remote.{REMOTE}.url"), url)?)
    }
}

fn make_from_templates(dir: &Path, templates: &[(&str, &str)], now: DateTime<Utc>) -> Result<(), RepoError> {
    let mut options = RepositoryInitOptions::new();
    options.initial_head(DEFAULT_BRANCH).external_template(false).no_reinit(true).mkpath(true);
    drop(Repository::init_opts(dir, &options)?);
    first_commit(dir, templates, now)
}

/// Makes a repository from the templates, and records the remote's address and a mark, so that a later wake joins the two histories.
fn make_unjoined_repository(
    dir: &Path,
    url: &str,
    templates: &[(&str, &str)],
    now: DateTime<Utc>,
) -> Result<(), RepoError> {
    make_from_templates(dir, templates, now)?;
    let repo = Repo::open(dir)?;
    repo.add_remote(url)?;
    match repo.head()? {
        Some(first) => repo.remote().set_reference(UNJOINED, first, "the remote can't be reached yet"),
        None => Ok(()),
    }
}

fn make_from_remote(
    dir: &Path,
    url: &str,
    templates: &[(&str, &str)],
    now: DateTime<Utc>,
) -> Result<Created, RepoError> {
    let parent = dir.parent().unwrap_or(Path::new("."));
    let unreachable = |error: process::ProcessError| RepoError::Unreachable(error.into());
    // The first answer waits for this probe, so a silent remote must be noticed soon.
    let probe = remote::build_git_command(parent).args(LIST).args([url]).args(LISTED).timeout(PROBE_TIMEOUT);
    let output = process::run(&probe).map_err(unreachable)?;
    if !output.status.success() {
        return Err(RepoError::Unreachable(classify_failure(&output)));
    }
    let branch = pick_branch(&String::from_utf8_lossy(&output.stdout)).map_err(RepoError::Unreachable)?;
    let spec =
        remote::build_git_command(parent).args(["clone", "--quiet", "--template=", "--no-tags", "--origin", REMOTE]);
    let spec = branch.iter().fold(spec, |spec, branch| spec.args(["--branch", branch.as_str()]));
    let spec = spec.args(["--", url]).args([dir]).timeout(CLONE_TIMEOUT);
    let output = process::run(&spec).map_err(unreachable)?;
    if !output.status.success() {
        return Err(RepoError::Unreachable(classify_failure(&output)));
    }
    let git = match Repository::open(dir) {
        Ok(git) => git,
        Err(error) => return Err(unreadable_form(dir).map_or(RepoError::Git(error), |form| refused_form(&form))),
    };
    if git.head().is_ok() {
        let branch = Repo::open(dir)?.branch;
        store_branch(&git, &branch)?;
        return Ok(Created::Cloned);
    }
    first_commit(dir, templates, now).map(|()| Created::ClonedEmpty)
}

/// Builds the error for a clone in a format that libgit2 can't read. A clone takes its format from the remote.
fn refused_form(form: &UnreadableForm) -> RepoError {
    let why = format!(
        "its repository format can't be read here ({}). Make one with `git init --bare --object-format=sha1`, and push there",
        form.setting
    );
    RepoError::Unreachable(RemoteError::Refused { why: Outside::new(Origin::Remote, &why) })
}

/// Commits the templates on HEAD's branch.
fn first_commit(dir: &Path, templates: &[(&str, &str)], now: DateTime<Utc>) -> Result<(), RepoError> {
    let repo = Repo::open(dir)?;
    let head = repo.git.find_reference("HEAD")?;
    let branch = head.symbolic_target()?.and_then(|name| name.strip_prefix("refs/heads/")).unwrap_or(DEFAULT_BRANCH);
    store_branch(&repo.git, branch)?;
    let repo = Repo::open(dir)?;
    let mut index = repo.git.index()?;
    for (path, content) in templates {
        let file = dir.join(path);
        let write = || {
            fs::create_dir_all(file.parent().unwrap_or(dir))?;
            fs::write(&file, content)
        };
        write().map_err(RepoError::io("writing", &file))?;
        // Stored verbatim: under the person's settings libgit2 would convert them, or refuse to (`core.safecrlf`).
        let item = Item { id: repo.git.blob(content.as_bytes())?, mode: FILE };
        repo.set_entry(&mut index, path, Some(item))?;
    }
    let tree = index.write_tree()?;
    index.write()?;
    let author = wake_signature(now)?;
    let commit = repo.commit_object(&author, "A fresh memory, from the templates\n", tree, &[])?;
    repo.store_objects([])?;
    repo.git.reference(&repo.branch_ref(), commit, false, "commit (initial): from the templates")?;
    Ok(())
}

/// Moves the new repository to its place, durably. Replaces an empty directory there.
fn put_in_place(making: &Path, dir: &Path) -> Result<(), RepoError> {
    // A global sync, once in a repository's life: git syncs its thousands of files only in part.
    rustix::fs::sync();
    move_durably(making, dir).map_err(RepoError::io("moving the new repository to", dir))
}

/// Returns the directory next to `dir` in which to build the repository. Its name is fixed, so that the next run finds remains.
fn temporary_directory(dir: &Path) -> Result<PathBuf, RepoError> {
    let name = dir
        .file_name()
        .ok_or_else(|| RepoError::Configuration(format!("{} can't be a repository's directory", dir.display())))?;
    let parent = dir.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(RepoError::io("making", parent))?;
    let parent = parent.canonicalize().map_err(RepoError::io("opening", parent))?;
    Ok(parent.join(format!(".{}.reveille-new", name.to_string_lossy())))
}

fn clear_directory(making: &Path) -> Result<(), RepoError> {
    match fs::remove_dir_all(making) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RepoError::io("clearing", making)(error)),
        _ => Ok(()),
    }
}

pub(super) fn store_branch(git: &Repository, branch: &str) -> Result<(), RepoError> {
    Ok(git.config()?.open_level(ConfigLevel::Local)?.set_str("reveille.branch", branch)?)
}

/// Returns `true` if two addresses name the same repository.
pub(super) fn is_same_url(a: &str, b: &str) -> bool {
    normalise_url(a) == normalise_url(b)
}

fn normalise_url(url: &str) -> String {
    let url = remote::redact_urls(url.trim()).replace("://***@", "://");
    let url = url.strip_prefix("file://").unwrap_or(&url);
    let bare = |url: &str| {
        let url = url.trim_end_matches('/');
        url.strip_suffix(".git").unwrap_or(url).to_owned()
    };
    match Path::new(url).canonicalize() {
        Ok(path) => bare(&path.to_string_lossy()),
        Err(_) => bare(url),
    }
}
