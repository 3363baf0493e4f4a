//! The memory's git repository: local work through libgit2, the network through the `git` command.
//!
//! A person works in the same work tree, so nothing here overwrites a byte that wasn't read, and nothing is left half done:
//! every move of our branch goes through one step that a kill can't tear (`advance.rs`). Work is staged as values and
//! published once; what isn't published leaves no trace. Remotes are only ever added to: no rebase, no force, but for a
//! person's purge (`purge.rs`).
//!
//! One writer at a time: callers hold the wake lock.

mod advance;
mod ailment;
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
    ailment::{Ailment, ailment},
    as_of::texts_as_of,
    bundle::{BundledMemory, Uncommitted, UncommittedFile},
    committed::{Committed, CommittedFile},
    create::{CLONE_TIMEOUT, Created},
    form::{UnreadableForm, unreadable_form},
    glance::Glance,
    history::{Commit, CommitInFull, SEEN, has_wakes, trailer, trailers},
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

/// Whom wakes commit as.
pub const WAKE_NAME: &str = "Reveille";
/// The address that wakes commit with.
pub const WAKE_EMAIL: &str = "reveille@localhost";
/// Whom a person's edits are committed as, where git names nobody.
pub const OWNER_NAME: &str = "Owner";
/// The address that goes with [`OWNER_NAME`].
pub const OWNER_EMAIL: &str = "owner@localhost";
/// The branch of a repository that names no other.
pub const DEFAULT_BRANCH: &str = "main";

/// Joins two texts that grew from one: `(path, base, the person's, ours)`, and what a person did on our side. Missing sides are empty.
pub type Merge<'a> = dyn Fn(&str, &str, &str, &str, &ByHand) -> String + 'a;

/// Tells whether a text holds something that must not be committed.
pub type IsSecret<'a> = dyn Fn(&str) -> bool + 'a;

/// Finds what must not be shown to others in a text, word for word.
pub type SecretsIn<'a> = dyn Fn(&str) -> BTreeSet<String> + 'a;

/// A repository with a work tree, and the branch in it that is ours.
pub struct Repo {
    git: Repository,
    tree: WorkTree,
    root: PathBuf,
    /// Our own corner of the git directory: what a person never sees and git never packs.
    private: PathBuf,
    branch: String,
    /// What was made and isn't stored yet.
    gathered: RefCell<BTreeSet<Oid>>,
    /// Whether a remote was seen: it is asked for in each step, and each time the settings would be read anew.
    has_seen_remote: Cell<bool>,
}

/// Where HEAD stands. Only [`Condition::Normal`] and [`Condition::Unborn`] can be committed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// On our branch, nothing under way.
    Normal,
    /// On our branch, which has no commit yet.
    Unborn,
    /// On a commit instead of a branch.
    Detached,
    /// On another branch, by name.
    OtherBranch(String),
    /// In the middle of a merge, a rebase and the like, by git's name.
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
    /// What a person runs to get back to `branch`; none where nothing is in the way.
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

/// What is the matter with a file that other commits would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// It has changes that only the work tree has.
    Uncommitted,
    /// We may not read it.
    Unreadable,
    /// We may not write it, or not where it is.
    Unwritable,
    /// Its name, as it was committed, is no text.
    Unnameable,
    /// Git takes no such path.
    Misnamed(&'static str),
    /// It is none, or it is where none may be.
    Unsafe(&'static str),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uncommitted => "it has changes here that aren't committed",
            Self::Unreadable => "it can't be read here",
            Self::Unwritable => "it can't be written here",
            Self::Unnameable => "its name isn't UTF-8",
            Self::Misnamed(why) | Self::Unsafe(why) => why,
        })
    }
}

impl Obstacle {
    /// What a person does about it.
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

/// Why the repository couldn't do it, by what the caller should do. Unless it says so, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// A setting contradicts what is there: a person must decide.
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
    /// libgit2 doesn't open what git opens: a person gives it another form.
    #[error("the repository in {} has {}, which I can't read. Nothing was touched. To mend it: {}", path.display(), form.setting, form.way_out)]
    UnreadableForm {
        /// The directory.
        path: PathBuf,
        /// What of it, and the way out.
        form: UnreadableForm,
    },
    /// Git opens no repository of somebody else's, unless told to.
    #[error("the repository in {} belongs to another user. Nothing was touched: {}", path.display(), own(path))]
    AnothersRepository {
        /// The directory.
        path: PathBuf,
    },
    /// The remote can't be cloned, and there is no repository yet. Try again later.
    #[error("the repository couldn't be cloned: {0}. Nothing was made; the next wake tries again")]
    Unreachable(#[source] RemoteError),
    /// HEAD isn't where wakes may commit: park the work and tell the person.
    #[error("the repository is {condition}; wakes only commit on {branch}. Nothing was changed: {}", condition.way_back(branch).unwrap_or_default())]
    NotOnBranch {
        /// Where HEAD is.
        condition: Condition,
        /// Where it should be.
        branch: String,
    },
    /// Another git program is at work, or a dead one left its lock file: try again soon.
    #[error("another git program is at work here ({} exists). Nothing was changed", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Someone committed at the same moment: look again and start over.
    #[error("the branch moved while a commit was being made. Nothing was changed")]
    Moved,
    /// A file is in the way of other commits: a person clears it.
    #[error("{} is in the way: {obstacle}. Nothing was changed: {}", outside::name(path), obstacle.way_out())]
    Blocked {
        /// The file.
        path: String,
        /// What is the matter with it.
        obstacle: Obstacle,
    },
    /// The remote holds another history altogether.
    #[error("the remote's history has nothing in common with this repository's. Nothing was changed: check REPO_URL")]
    Unrelated,
    /// A path that leads out of the work tree, into git's own files, or to something that isn't a file.
    #[error("{} won't be touched: {why}", outside::name(path))]
    UnsafePath {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The commit is made, but the work tree or the index isn't up to date yet: `finish_interrupted` does the rest.
    #[error(
        "commit {commit} is made, but not all of its files could be written yet: {source}. The next wake finishes it"
    )]
    Unfinished {
        /// The commit.
        commit: Oid,
        /// What stopped it.
        source: Box<RepoError>,
    },
    /// An earlier commit still lacks one of its files here, which can't be written: park the work and tell the person. Committed
    /// on top of it, the old file would pass for their edit.
    #[error(
        "the commit {commit} is made, but not all of its files can be written here: {source}. Please put that right"
    )]
    Behind {
        /// The commit.
        commit: Oid,
        /// What is the matter with the file.
        source: Box<RepoError>,
    },
    /// Housekeeping wasn't done, or not all of it: try again another day.
    #[error("the repository couldn't be tidied up: {why}. Nothing is lost by it; a later wake tries again")]
    Housekeeping {
        /// What git said, without secrets.
        why: String,
    },
    /// What was made couldn't be put into the repository.
    #[error("storing objects in {}: {source}", path.display())]
    Storing {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// libgit2 couldn't.
    #[error("git: {}", Outside::new(Origin::Remote, .0.message()))]
    Git(#[from] git2::Error),
    /// The file system couldn't.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What lets a repository of another user's be used.
fn own(dir: &Path) -> String {
    format!("`git config --global --add safe.directory '{}'` lets me use it", dir.display())
}

impl RepoError {
    /// Whether it says something of a file that a person has to put right, rather than of the machine or of git.
    pub fn is_of_a_file(&self) -> bool {
        match self {
            Self::UnsafePath { .. } => true,
            Self::Io { source, .. } => !reveille_base::disk::is_the_machines(source),
            _ => false,
        }
    }

    /// Whether the machine is to blame, such as for a disk that is full: it says nothing of the repository.
    pub fn is_the_machines(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Storing { source, .. } => reveille_base::disk::is_the_machines(source),
            Self::Unfinished { source, .. } => source.is_the_machines(),
            _ => false,
        }
    }

    /// For `map_err`: names what was tried on which path.
    fn io<E: Into<std::io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { what: format!("{what} {}", outside::name(path)), source: source.into() }
    }
}

impl Repo {
    /// Opens a repository that is there. Makes none, and looks no further up.
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

    /// Where HEAD stands.
    pub fn condition(&self) -> Result<Condition, RepoError> {
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

    /// The commit that our branch is at; none before the first.
    pub fn head(&self) -> Result<Option<Oid>, RepoError> {
        self.id_of(&self.branch_ref())
    }

    /// How many commits our branch has that the remote's lacks, and the other way round, as far as the last fetch saw. None
    /// without a remote branch.
    pub fn ahead_behind(&self) -> Result<Option<(usize, usize)>, RepoError> {
        let (Some(ours), Some(theirs)) = (self.head()?, self.id_of(&self.tracking_ref())?) else {
            return Ok(None);
        };
        Ok(Some(self.git.graph_ahead_behind(ours, theirs)?))
    }

    /// Whether there is a remote to fetch from and push to.
    pub fn has_remote(&self) -> bool {
        let has_remote = self.has_seen_remote.get() || self.git.find_remote(REMOTE).is_ok();
        self.has_seen_remote.set(has_remote);
        has_remote
    }

    /// A file as the work tree has it; none if there is no such file. Links are never followed.
    pub fn read_work_tree(&self, path: &str) -> Result<Option<String>, RepoError> {
        self.tree.read_text(path)
    }

    /// The Markdown files of the work tree at and under the given paths, sorted. Links and hidden files are left out.
    pub fn list_markdown(&self, under: &[&str]) -> Result<Vec<String>, RepoError> {
        self.tree.list_markdown(under)
    }

    /// A text file as our branch's last commit has it.
    pub fn read_head(&self, path: &str) -> Result<Option<String>, RepoError> {
        let item = tree::item_at(&self.git, self.head()?, path)?;
        let bytes = tree::bytes_of(&self.git, item)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn require_branch(&self) -> Result<(), RepoError> {
        match self.condition()? {
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

    fn id_of(&self, reference: &str) -> Result<Option<Oid>, RepoError> {
        match self.git.refname_to_id(reference) {
            Ok(id) => Ok(Some(id)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `later` is `earlier` or came after it.
    pub fn contains(&self, later: Oid, earlier: Oid) -> Result<bool, RepoError> {
        Ok(later == earlier || self.git.graph_descendant_of(later, earlier)?)
    }
}

/// The one remote that is looked at.
const REMOTE: &str = "origin";

fn wake_signature(now: DateTime<Utc>) -> Result<Signature<'static>, git2::Error> {
    Signature::new(WAKE_NAME, WAKE_EMAIL, &git2::Time::new(now.timestamp(), 0))
}

/// Has libgit2 sync references. It ignores `core.fsync`, and its own switch can't be reached from safe code, but it honours
/// the old `core.fsyncObjectFiles`. That goes into a file of our own, read above the person's configuration:
/// in theirs, git would complain of it at every command.
fn sync_references(git: &Repository, private: &Path) -> Result<(), RepoError> {
    // fault: references-arent-synced
    const SETTINGS: &str = "[core]\n\tfsyncObjectFiles = true\n";
    let file = private.join("config");
    if std::fs::read(&file).is_ok_and(|found| found == SETTINGS.as_bytes()) {
        return apply_settings(git, &file);
    }
    std::fs::create_dir_all(private).map_err(RepoError::io("making", private))?;
    std::fs::write(&file, SETTINGS).map_err(RepoError::io("writing", &file))?;
    file::sync(file::directory_of(private)).map_err(RepoError::io("syncing", private))?;
    apply_settings(git, &file)
}

fn apply_settings(git: &Repository, file: &Path) -> Result<(), RepoError> {
    let mut config = git.config()?;
    config.add_file(file, ConfigLevel::App, true)?;
    // Setting it anew drops what libgit2 has already looked up.
    git.set_config(&config)?;
    Ok(())
}
