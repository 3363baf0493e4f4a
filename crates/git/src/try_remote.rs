//! Whether a remote can be fetched from and pushed to, before anything is set up: asked by git itself, with the person's own keys and
//! helpers, from an empty repository that is gone afterwards. The push is a dry run: nothing changes there.

use std::{fs, path::Path};

use git2::Repository;

use reveille_base::{file::create_private_dir, random};

use super::{
    RemoteError, RepoError,
    remote::{Patience, failure, git, push_failure},
};

/// A branch that is pushed nowhere.
const NEVER_PUSHED: &str = "refs/heads/reveille-setup-test";

/// What a remote was found to be. It may be pushed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFound {
    /// It has no branch yet.
    Empty,
    /// It has so many branches.
    Branches(usize),
}

/// Looks at a remote, and tries to push to it without doing it. `above` is a directory for temporary files.
///
/// # Errors
/// As a fetch's or a push's.
pub fn try_remote(url: &str, above: &Path, patience: Patience<'_>) -> Result<RemoteFound, RemoteError> {
    let dir = above.join(format!("reveille-{}", random::hex(&random::bytes::<8>().map_err(local)?)));
    create_private_dir(&dir).map_err(local)?;
    let tried = tried(url, &dir, patience);
    // Should it stay, the system clears what is temporary.
    fs::remove_dir_all(&dir).ok();
    tried
}

fn tried(url: &str, dir: &Path, patience: Patience<'_>) -> Result<RemoteFound, RemoteError> {
    let listed = patience.run(git(dir).args(["ls-remote", "--quiet", "--heads", "--", url]))?;
    if !listed.status.success() {
        return Err(failure(&listed));
    }
    let commit = empty_commit(dir)?;
    let refspec = format!("{commit}:{NEVER_PUSHED}");
    let push = ["push", "--dry-run", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--"];
    let pushed = patience.run(git(dir).args(push).args([url, &refspec]))?;
    if !pushed.status.success() {
        return Err(push_failure(&pushed));
    }
    Ok(match String::from_utf8_lossy(&listed.stdout).lines().count() {
        0 => RemoteFound::Empty,
        branches => RemoteFound::Branches(branches),
    })
}

fn empty_commit(dir: &Path) -> Result<git2::Oid, RepoError> {
    let git = Repository::init_bare(dir)?;
    let tree = git.find_tree(git.treebuilder(None)?.write()?)?;
    let nobody = git2::Signature::new(super::WAKE_NAME, super::WAKE_EMAIL, &git2::Time::new(0, 0))?;
    Ok(git.commit(None, &nobody, &nobody, "", &tree, &[])?)
}

fn local(error: impl std::fmt::Display) -> RemoteError {
    RemoteError::Local { why: error.to_string() }
}
