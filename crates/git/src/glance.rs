//! A quick check that the repository is at rest, through git's own small files. Most wakes find it at rest, and opening it with libgit2
//! takes hundreds of system calls.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use git2::{Config, ConfigLevel, Oid};

use super::{REMOTE, RepoError, advance, create, index_lock, join, park, worktree::WorkTree};

/// The length of an object id in hexadecimal digits.
const OID_DIGITS: usize = 40;

/// A repository at rest: HEAD is on our branch, the remote has the same commit, and no work is unfinished.
pub struct Glance {
    head: Oid,
    tree: WorkTree,
    has_remote: bool,
}

impl Glance {
    /// Reads the state of the repository. `None` unless all is as usual between two wakes. The caller then opens it with
    /// libgit2 to find the reason.
    pub fn read(dir: &Path, repo_url: Option<&str>) -> Option<Self> {
        let git_dir = plain_git_dir(dir)?;
        let settings = read_settings(&git_dir).ok()?;
        let branch = settings.get_string("reveille.branch").ok()?;
        let is_usual = settings.get_i32("core.repositoryformatversion").unwrap_or(0) == 0
            && !settings.get_bool("core.bare").unwrap_or(false)
            && settings.get_string("core.worktree").is_err()
            && settings.get_string(join::TAKING).is_err();
        if !is_usual || fs::read_to_string(git_dir.join("HEAD")).ok()? != format!("ref: refs/heads/{branch}\n") {
            return None;
        }
        let head = read_ref_id(&git_dir.join("refs/heads").join(&branch))?;
        let origin = settings.get_string(&format!("remote.{REMOTE}.url")).ok();
        let is_same_origin = |url| origin.as_deref().is_some_and(|origin| create::is_same_url(origin, url));
        let is_pushed = || read_ref_id(&git_dir.join("refs/remotes").join(REMOTE).join(&branch)) == Some(head);
        if !repo_url.is_none_or(is_same_origin) || origin.is_some() && !is_pushed() {
            return None;
        }
        let private = git_dir.join("reveille");
        if park::may_have_parked_work(&git_dir)
            || advance::note_path(&private).exists()
            || index_lock::is_ours(&git_dir, &private)
        {
            return None;
        }
        Some(Self { head, tree: WorkTree::open(dir, &private).ok()?, has_remote: origin.is_some() })
    }

    /// Returns the commit of our branch.
    pub fn head(&self) -> Oid {
        self.head
    }

    /// As [`super::Repo::has_remote`].
    pub fn has_remote(&self) -> bool {
        self.has_remote
    }

    /// As [`super::Repo::read_work_tree`].
    pub fn read_work_tree(&self, path: &str) -> Result<Option<String>, RepoError> {
        self.tree.read_text(path)
    }
}

/// Returns the git directory of an ordinary repository of this user, which is neither a link nor an additional work tree.
pub(super) fn plain_git_dir(dir: &Path) -> Option<PathBuf> {
    let git_dir = dir.join(".git");
    let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    let is_plain = fs::symlink_metadata(&git_dir).is_ok_and(is_ours)
        && git_dir.join("objects").is_dir()
        && !git_dir.join("commondir").exists()
        && !git_dir.join("config.worktree").exists();
    is_plain.then_some(git_dir)
}

/// Reads the current settings of the repository and of the person.
pub(super) fn read_settings(git_dir: &Path) -> Result<Config, git2::Error> {
    let mut settings = Config::open_default()?;
    settings.add_file(&git_dir.join("config"), ConfigLevel::Local, true)?;
    settings.snapshot()
}

/// Reads the commit id in a reference's own file; `None` without such a file.
fn read_ref_id(file: &Path) -> Option<Oid> {
    let text = fs::read_to_string(file).ok()?;
    let digits = text.strip_suffix('\n').filter(|digits| digits.len() == OID_DIGITS)?;
    Oid::from_str(digits).ok()
}
