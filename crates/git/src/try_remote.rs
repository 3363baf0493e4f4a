//! Tests a remote for fetch and push before anything is set up. Git itself asks, with the person's own keys and helpers, from an empty
//! temporary repository. The push is a dry run: nothing changes at the remote.

use std::{fs, path::Path};

use git2::Repository;

use reveille_base::{file::create_private_dir, random};

use super::{
    RemoteError, RepoError,
    remote::{Patience, build_git_command, classify_failure, push_failure},
};

/// A branch name for the dry run only.
const NEVER_PUSHED: &str = "refs/heads/reveille-setup-test";

/// The state of a remote that accepts pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFound {
    /// The remote has no branch yet.
    Empty,
    /// The number of branches.
    Branches(usize),
}

/// Tests a remote by listing its branches and by a dry run of a push. `temporary` is a directory for temporary files.
///
/// # Errors
/// As for a fetch or a push.
pub fn try_remote(url: &str, temporary: &Path, patience: Patience<'_>) -> Result<RemoteFound, RemoteError> {
    let dir = temporary
        .join(format!("reveille-{}", random::format_hex(&random::generate_bytes::<8>().map_err(to_local_error)?)));
    create_private_dir(&dir).map_err(to_local_error)?;
    let tried = probe_remote(url, &dir, patience);
    // If removal fails, the system clears temporary files later.
    fs::remove_dir_all(&dir).ok();
    tried
}

fn probe_remote(url: &str, dir: &Path, patience: Patience<'_>) -> Result<RemoteFound, RemoteError> {
    let listed = patience.run(build_git_command(dir).args(["ls-remote", "--quiet", "--heads", "--", url]))?;
    if !listed.status.success() {
        return Err(classify_failure(&listed));
    }
    let commit = empty_commit(dir)?;
    let refspec = format!("{commit}:{NEVER_PUSHED}");
    let push = ["push", "--dry-run", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--"];
    let pushed = patience.run(build_git_command(dir).args(push).args([url, &refspec]))?;
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

fn to_local_error(error: impl std::fmt::Display) -> RemoteError {
    RemoteError::Local { why: error.to_string() }
}
