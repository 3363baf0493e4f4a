//! The memory's git repository: local work through libgit2, the network through the `git` command.
//!
//! A person edits the same work tree. The crate therefore overwrites only bytes it has read, and completes every change it starts: each
//! move of our branch goes through one step that a kill can't leave half done (`advance.rs`). Work is staged as values and published once;
//! unpublished work leaves no trace. Remotes are only added to, without rebase or force; the exception is a purge by a person (`purge.rs`).
//!
//! There is one writer at a time: callers hold the wake lock.

mod advance;
mod ailment;
mod areas;
mod as_of;
mod branches;
mod bundle;
mod committed;
mod create;
mod endings;
mod form;
mod glance;
mod history;
mod index_lock;
mod inspect;
mod integrate;
mod join;
mod lease_ref;
mod local_remote;
mod locks;
mod maintain;
mod names;
mod objects;
mod pack;
mod park;
mod past;
mod person;
mod publish;
mod purge;
mod remote;
mod same_name;
mod sparse;
mod tree;
mod try_remote;
mod unpushed;
mod worktree;

#[cfg(test)]
mod tests;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use git2::{ConfigLevel, Repository, RepositoryState, Signature};

use reveille_base::file;
use reveille_memory::{
    merge::ByHand,
    outside::{self, Origin, Outside},
};

pub use self::{
    advance::Finished,
    ailment::{Ailment, find_ailment},
    areas::{CommitHistory, Housekeeping, ParkedWork, Purge, Remote},
    as_of::read_texts_before,
    bundle::{BundledRefs, MadeBundle, Uncommitted, UncommittedFile},
    committed::{Committed, CommittedFile},
    create::{CLONE_TIMEOUT, Created},
    form::{UnreadableForm, unreadable_form},
    glance::Glance,
    history::{Commit, CommitInFull, SEEN, append_trailers, find_trailer, has_wakes},
    inspect::remote_urls,
    integrate::Integrated,
    lease_ref::{LeaseRef, RefValue},
    locks::STALE_LOCK_AGE,
    maintain::{MAINTAIN_COMMANDS, MAINTAIN_TIMEOUT, MAX_LOOSE, MAX_PACKS, Stock},
    park::{BroughtIn, Parked, Parking},
    past::{HoldingCommits, text_id},
    person::{HOLDS_SECRET, LeftAlone, MAX_PERSON_FILE_BYTES, PersonEdits},
    publish::{FileChange, Publish, Published},
    purge::{OldLine, PURGES, PlannedPurge},
    remote::{Beside, Patience, Pushed, REMOTE_TIMEOUT, RemoteError},
    try_remote::{RemoteFound, try_remote},
};
pub use git2::Oid;

use self::{branches::our_branch, worktree::WorkTree};

/// The author name of wake commits.
pub const WAKE_NAME: &str = "Reveille";
/// The author address of wake commits.
pub const WAKE_EMAIL: &str = "reveille@localhost";
/// The author name of a person's edits if git's configuration has no name.
pub const OWNER_NAME: &str = "Owner";
/// The address that goes with [`OWNER_NAME`].
pub const OWNER_EMAIL: &str = "owner@localhost";
/// The default branch name.
pub const DEFAULT_BRANCH: &str = "main";

/// Merges two texts with a common base: `(path, base, theirs, ours)`, and the person's edits on our side. A missing side is empty.
pub type Merge<'a> = dyn Fn(&str, &str, &str, &str, &ByHand) -> String + 'a;

/// A predicate: `true` for a text with a secret, which must not be committed.
pub type IsSecret<'a> = dyn Fn(&str) -> bool + 'a;

/// Finds the secrets in a text, verbatim.
pub type SecretsIn<'a> = dyn Fn(&str) -> BTreeSet<String> + 'a;

/// A repository with a work tree and our branch.
pub struct Repo {
    git: Repository,
    tree: WorkTree,
    root: PathBuf,
    /// Our folder in the git directory, which stays out of a person's sight and of git's packs.
    private: PathBuf,
    branch: String,
    /// New objects, not stored yet.
    gathered: RefCell<BTreeSet<Oid>>,
    /// Caches a positive [`Repo::has_remote`], since each query would read the settings again.
    has_seen_remote: Cell<bool>,
}

/// The state of HEAD. Wakes can commit only in [`Condition::Normal`] and [`Condition::Unborn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// On our branch, with no operation in progress.
    Normal,
    /// On our branch before its first commit.
    Unborn,
    /// On a commit instead of a branch.
    Detached,
    /// On another branch, with its name.
    OtherBranch(String),
    /// In the middle of a merge, a rebase or a similar operation, named as git names it.
    InProgress(&'static str),
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Normal => f.write_str("as it should be"),
            Self::Unborn => f.write_str("without a commit yet"),
            Self::Detached => f.write_str("on a single commit instead of a branch (detached HEAD)"),
            Self::OtherBranch(name) => write!(f, "on the branch {name}"),
            Self::InProgress(what) => write!(f, "in the middle of a {what}"),
        }
    }
}

impl Condition {
    /// Returns the command for a person to get back to `branch`; `None` if HEAD is in order.
    pub fn way_back(&self, branch: &str) -> Option<String> {
        match self {
            Self::Normal | Self::Unborn => None,
            Self::Detached | Self::OtherBranch(_) => Some(format!("`git switch {branch}`")),
            Self::InProgress("bisect") => Some("`git bisect reset`".to_owned()),
            Self::InProgress(what) => {
                let command = what.strip_prefix("git ").unwrap_or(what);
                Some(format!("`git {command} --continue` or `git {command} --abort`"))
            }
        }
    }
}

/// The reason a file can't take the changes of other commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The file has uncommitted changes in the work tree.
    Uncommitted,
    /// We may not read the file.
    Unreadable,
    /// We may not write the file or its folder.
    Unwritable,
    /// The committed file name isn't UTF-8.
    Unnameable,
    /// Git refuses such a path.
    Misnamed(&'static str),
    /// The path isn't a regular file, or leads somewhere forbidden.
    Unsafe(&'static str),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uncommitted => "it has uncommitted changes here",
            Self::Unreadable => "it can't be read here",
            Self::Unwritable => "it can't be written here",
            Self::Unnameable => "its name isn't UTF-8",
            Self::Misnamed(why) | Self::Unsafe(why) => why,
        })
    }
}

impl Obstacle {
    /// Returns the advice for a person.
    pub fn way_out(self) -> &'static str {
        match self {
            Self::Uncommitted => "commit it, or move it away",
            Self::Unreadable => "let me read it (`chmod`, `chown`), or move it away",
            Self::Unwritable => "let me write it and its folder (`chmod`, `chown`, or the mount)",
            Self::Unnameable => "rename it where it comes from (`git mv`) and push that, or run `git pull` here",
            Self::Misnamed(_) => "rename it where it comes from, and push that",
            Self::Unsafe(_) => "move it away",
        }
    }
}

/// An error of the repository. The variants are divided by what the caller does next. Nothing was changed, unless the variant says so.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// A setting contradicts the repository: a person must decide.
    #[error("{0}")]
    Configuration(String),
    /// There is something else where the repository should be.
    #[error(
        "{} isn't a git repository and isn't empty. Nothing in it was touched: move it away, or choose another REPO_NAME", path.display()
    )]
    NotARepository {
        /// The directory.
        path: PathBuf,
    },
    /// libgit2 can't open a repository that git opens: a person must convert it.
    #[error("the repository in {} has {}, which I can't read. Nothing was touched. To fix it: {}", path.display(), form.setting, form.way_out)]
    UnreadableForm {
        /// The directory.
        path: PathBuf,
        /// The offending setting, and the way out.
        form: UnreadableForm,
    },
    /// The repository belongs to another user, and git refuses it unless told otherwise.
    #[error("the repository in {} belongs to another user. Nothing was touched: {}", path.display(), describe_safe_directory(path))]
    AnothersRepository {
        /// The directory.
        path: PathBuf,
    },
    /// Cloning failed, and there is no repository yet. Try again later.
    #[error("the repository couldn't be cloned: {0}. Nothing was created; the next wake tries again")]
    Unreachable(#[source] RemoteError),
    /// HEAD isn't on the branch of the wakes: park the work and tell the person.
    #[error("the repository is {condition}; wakes only commit on {branch}. Nothing was changed: {}", condition.way_back(branch).unwrap_or_default())]
    NotOnBranch {
        /// The state of HEAD.
        condition: Condition,
        /// The branch of the wakes.
        branch: String,
    },
    /// Another git program is at work, or a dead program left its lock file: try again soon.
    #[error("another git program is at work here ({} exists). Nothing was changed", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Someone committed at the same moment: read again and start over.
    #[error("the branch moved while a commit was being made. Nothing was changed")]
    Moved,
    /// A file blocks other commits: a person clears it.
    #[error("{} is in the way: {obstacle}. Nothing was changed: {}", outside::name(path), obstacle.way_out())]
    Blocked {
        /// The file.
        path: String,
        /// The obstacle.
        obstacle: Obstacle,
    },
    /// The remote has an unrelated history.
    #[error("the remote's history has nothing in common with this repository's. Nothing was changed: check REPO_URL")]
    Unrelated,
    /// The path leads out of the work tree, into git's own files, or to something other than a file.
    #[error("{} won't be touched: {why}", outside::name(path))]
    UnsafePath {
        /// The path.
        path: String,
        /// The problem with the path.
        why: &'static str,
    },
    /// The commit is made, but the work tree or the index lags behind: [`Repo::finish_interrupted_move`] does the rest.
    #[error(
        "commit {commit} is made, but not all of its files could be written yet: {source}. The next wake finishes it"
    )]
    Unfinished {
        /// The commit.
        commit: Oid,
        /// The cause.
        source: Box<RepoError>,
    },
    /// An earlier commit still lacks a file in the work tree, which can't be written: park the work and tell the person. A further
    /// commit would mistake the old file for the person's edit.
    #[error("the commit {commit} is made, but not all of its files can be written here: {source}. Please fix that")]
    Behind {
        /// The commit.
        commit: Oid,
        /// The problem with the file.
        source: Box<RepoError>,
    },
    /// Housekeeping failed or is incomplete: try again another day.
    #[error("the repository couldn't be tidied up: {why}. Nothing is lost; a later wake tries again")]
    Housekeeping {
        /// Git's message, without secrets.
        why: String,
    },
    /// New objects couldn't be stored in the repository.
    #[error("storing objects in {}: {source}", path.display())]
    Storing {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An error of libgit2.
    #[error("git: {}", Outside::new(Origin::Remote, .0.message()))]
    Git(#[from] git2::Error),
    /// An error of the file system.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action, with the path.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Returns the command that admits another user's repository.
fn describe_safe_directory(dir: &Path) -> String {
    format!("`git config --global --add safe.directory '{}'` lets me use it", dir.display())
}

impl RepoError {
    /// Returns `true` if a person has to repair a file, as opposed to a fault of the machine or of git.
    pub fn is_file_fault(&self) -> bool {
        match self {
            Self::UnsafePath { .. } => true,
            Self::Io { source, .. } => !reveille_base::disk::is_machine_fault(source),
            _ => false,
        }
    }

    /// Returns `true` for a fault of the machine, such as a full disk, unrelated to the repository.
    pub fn is_machine_fault(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Storing { source, .. } => reveille_base::disk::is_machine_fault(source),
            Self::Unfinished { source, .. } => source.is_machine_fault(),
            _ => false,
        }
    }

    /// For `map_err`: names the attempted action and the path.
    fn io<E: Into<std::io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what: format!("{what} {}", outside::name(path)), source: source.into() }
    }
}

impl Repo {
    /// Opens the existing repository at `dir`; parent directories aren't searched.
    pub fn open(dir: &Path) -> Result<Self, RepoError> {
        let git = Repository::open(dir).map_err(|error| match error.code() {
            git2::ErrorCode::NotFound => RepoError::NotARepository { path: dir.to_owned() },
            git2::ErrorCode::Owner => RepoError::AnothersRepository { path: dir.to_owned() },
            _ => match unreadable_form(dir) {
                Some(form) => RepoError::UnreadableForm { path: dir.to_owned(), form },
                None => RepoError::Git(error),
            },
        })?;
        let Some(root) = git.workdir().map(Path::to_owned) else {
            return Err(RepoError::Configuration(format!("{} is a bare repository, without files", dir.display())));
        };
        let private = git.path().join("reveille");
        sync_references(&git, &private)?;
        objects::keep_in_memory(&git)?;
        let branch = our_branch(&git)?;
        let tree = WorkTree::open(&root, &private)?;
        Ok(Self { git, tree, root, private, branch, gathered: RefCell::default(), has_seen_remote: Cell::new(false) })
    }

    /// The work tree's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The branch that wakes commit on, such as `main`.
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// Reads the state of HEAD.
    pub fn read_condition(&self) -> Result<Condition, RepoError> {
        let under_way = match self.git.state() {
            RepositoryState::Clean => None,
            RepositoryState::Merge => Some("merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => Some("cherry-pick"),
            RepositoryState::Bisect => Some("bisect"),
            RepositoryState::Rebase | RepositoryState::RebaseInteractive | RepositoryState::RebaseMerge => {
                Some("rebase")
            }
            RepositoryState::ApplyMailbox | RepositoryState::ApplyMailboxOrRebase => Some("git am"),
        };
        if let Some(what) = under_way {
            return Ok(Condition::InProgress(what));
        }
        let head = self.git.find_reference("HEAD")?;
        let Some(target) = head.symbolic_target()? else {
            return Ok(Condition::Detached);
        };
        let name = target.strip_prefix("refs/heads/").unwrap_or(target);
        Ok(if name != self.branch {
            Condition::OtherBranch(name.to_owned())
        } else if self.head()?.is_none() {
            Condition::Unborn
        } else {
            Condition::Normal
        })
    }

    /// Returns the commit of our branch; `None` before the first.
    pub fn head(&self) -> Result<Option<Oid>, RepoError> {
        self.find_reference_id(&self.branch_ref())
    }

    /// Counts the commits only our branch has, and those only the remote's has, as of the last fetch. `None` without a remote
    /// branch.
    pub fn count_ahead_behind(&self) -> Result<Option<(usize, usize)>, RepoError> {
        let (Some(ours), Some(theirs)) = (self.head()?, self.find_reference_id(&self.tracking_ref())?) else {
            return Ok(None);
        };
        Ok(Some(self.git.graph_ahead_behind(ours, theirs)?))
    }

    /// Returns `true` if there is a remote to fetch from and push to.
    pub fn has_remote(&self) -> bool {
        let has_remote = self.has_seen_remote.get() || self.git.find_remote(REMOTE).is_ok();
        self.has_seen_remote.set(has_remote);
        has_remote
    }

    /// Reads a file of the work tree; links are never followed. `None` if there is no such file.
    pub fn read_work_tree(&self, path: &str) -> Result<Option<String>, RepoError> {
        self.tree.read_text(path)
    }

    /// Lists the Markdown files of the work tree at and under the given paths, sorted, without links and hidden files.
    pub fn list_markdown(&self, under: &[&str]) -> Result<Vec<String>, RepoError> {
        self.tree.list_markdown(under)
    }

    /// Reads a text file from the last commit of our branch.
    pub fn read_head(&self, path: &str) -> Result<Option<String>, RepoError> {
        let item = tree::find_item(&self.git, self.head()?, path)?;
        let bytes = tree::read_item(&self.git, item)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn require_branch(&self) -> Result<(), RepoError> {
        match self.read_condition()? {
            Condition::Normal | Condition::Unborn => Ok(()),
            condition => Err(RepoError::NotOnBranch { condition, branch: self.branch.clone() }),
        }
    }

    fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    fn tracking_ref(&self) -> String {
        format!("refs/remotes/{REMOTE}/{}", self.branch)
    }

    fn find_reference_id(&self, reference: &str) -> Result<Option<Oid>, RepoError> {
        match self.git.refname_to_id(reference) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `true` if `later` is `earlier` or descends from it.
    pub fn contains(&self, later: Oid, earlier: Oid) -> Result<bool, RepoError> {
        Ok(later == earlier || self.git.graph_descendant_of(later, earlier)?)
    }
}

/// The only remote in use.
const REMOTE: &str = "origin";

fn wake_signature(now: DateTime<Utc>) -> Result<Signature<'static>, git2::Error> {
    Signature::new(WAKE_NAME, WAKE_EMAIL, &git2::Time::new(now.timestamp(), 0))
}

/// Makes libgit2 sync references to the disk. libgit2 ignores `core.fsync`, and safe code can't reach its own switch, but it honours the
/// old `core.fsyncObjectFiles`. The setting goes into a file of ours that overrides the person's configuration. In their own file, every
/// git command would complain about it.
fn sync_references(git: &Repository, private: &Path) -> Result<(), RepoError> {
    // fault: references-arent-synced
    const SETTINGS: &str = "[core]\n\tfsyncObjectFiles = true\n";
    let file = private.join("config");
    if std::fs::read(&file).is_ok_and(|found| found == SETTINGS.as_bytes()) {
        return apply_settings(git, &file);
    }
    std::fs::create_dir_all(private).map_err(RepoError::io("making", private))?;
    std::fs::write(&file, SETTINGS).map_err(RepoError::io("writing", &file))?;
    file::sync(file::parent_directory(private)).map_err(RepoError::io("syncing", private))?;
    apply_settings(git, &file)
}

fn apply_settings(git: &Repository, file: &Path) -> Result<(), RepoError> {
    let mut config = git.config()?;
    config.add_file(file, ConfigLevel::App, true)?;
    // Setting the configuration again drops libgit2's cached values.
    git.set_config(&config)?;
    Ok(())
}
