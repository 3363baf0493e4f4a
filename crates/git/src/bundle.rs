//! The memory as one file, and back: a git bundle of all references, and what a person hasn't committed beside it.
//!
//! A bundle holds commits and references; hooks, configuration and remotes never come along. Nothing of it is run.

use std::{path::Path, thread, time::Duration};

use git2::{ReflogEntry, Repository, RepositoryInitOptions, StatusOptions};

use reveille_base::process;
use reveille_memory::outside;

use super::{
    DEFAULT_BRANCH, Repo, RepoError,
    create::store_branch,
    remote::{failure, git},
    worktree::{OnDisk, Replaced},
};

/// How long git may take for a whole history.
const BUNDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// How often it is tried to find the branch where it was: wakes and people commit meanwhile.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// What a mode may be: a file, or one that can be run.
const MODES: [u32; 2] = [0o100_644, 0o100_755];

/// Where a bundled memory stood.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BundledMemory {
    /// The commit that HEAD was at; none before the first.
    pub head: Option<String>,
    /// The branch that HEAD named; none: it was at a single commit.
    pub on_branch: Option<String>,
    /// The branch that wakes commit on.
    pub branch: String,
}

/// A file as a person left it in the work tree, without committing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    /// Its path in the repository.
    pub path: String,
    /// What is in it; none: it was deleted.
    pub bytes: Option<Vec<u8>>,
    /// Whether it can be run.
    pub is_executable: bool,
}

/// What a bundle doesn't hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Files that differ from the last commit.
    pub files: Vec<UncommittedFile>,
    /// What can't be taken along, and why, to follow on its name.
    pub left_out: Vec<(String, String)>,
}

impl Repo {
    /// Writes all references and their history into the file `to`, and reads what isn't committed: both of the same moment. Says
    /// whether there was any history; without one no file is made.
    ///
    /// # Errors
    /// [`RepoError::Moved`] when others commit all the time, or a wake that was killed left a commit half done.
    pub fn bundle(&self, to: &Path) -> Result<(BundledMemory, Uncommitted, bool), RepoError> {
        // The bundle is read first when HEAD moves in between: a commit of somebody's edits would be in neither then.
        for _ in 0..TRIES {
            let before = self.git_head();
            if !self.is_interrupted() {
                let uncommitted = self.uncommitted()?;
                let has_history = self.write_bundle(to, before.is_some())?;
                if !self.is_interrupted() && self.git_head() == before {
                    let head = self.git.find_reference("HEAD")?;
                    let name = head.symbolic_target()?.and_then(|name| name.strip_prefix("refs/heads/"));
                    let memory = BundledMemory {
                        head: before.map(|id| id.to_string()),
                        on_branch: name.map(str::to_owned),
                        branch: self.branch.clone(),
                    };
                    return Ok((memory, uncommitted, has_history));
                }
            }
            thread::sleep(PAUSE);
        }
        Err(RepoError::Moved)
    }

    fn git_head(&self) -> Option<git2::Oid> {
        self.git.refname_to_id("HEAD").ok()
    }

    fn write_bundle(&self, to: &Path, has_head: bool) -> Result<bool, RepoError> {
        if self.git.references()?.next().is_none() {
            return Ok(false);
        }
        let spec = self.git_command().args(["bundle", "create", "--quiet"]).args([to]).args(["--all"]);
        let spec = if has_head { spec.args(["HEAD"]) } else { spec };
        run(spec, "writing the bundle")?;
        Ok(true)
    }

    fn uncommitted(&self) -> Result<Uncommitted, RepoError> {
        let mut found = Uncommitted::default();
        for changed in self.changed_files()? {
            // What is in a file counts, whatever would keep a wake from committing it.
            match self.tree.read(&changed.path) {
                Ok(Some(OnDisk { mode, .. })) if !MODES.contains(&mode) => {
                    found.left_out.push((changed.path, "it is a link".to_owned()));
                }
                Ok(file) => {
                    let is_executable = file.as_ref().is_some_and(|file| Some(&file.mode) == MODES.last());
                    let bytes = file.map(|file| file.bytes);
                    found.files.push(UncommittedFile { path: changed.path, bytes, is_executable });
                }
                Err(error) => found.left_out.push((changed.path, error.to_string())),
            }
        }
        let mut options = StatusOptions::new();
        options.include_ignored(true).recurse_ignored_dirs(false).include_untracked(false).exclude_submodules(true);
        if let Ok(statuses) = self.git.statuses(Some(&mut options)) {
            let ignored = statuses.iter().filter(|entry| entry.status().is_ignored());
            let why = "git ignores it";
            found.left_out.extend(ignored.filter_map(|entry| Some((entry.path().ok()?.to_owned(), why.to_owned()))));
        }
        let stashed = self.git.reflog("refs/stash").map_or(0, |log| log.iter().map(|_: ReflogEntry<'_>| ()).count());
        if stashed > 1 {
            found
                .left_out
                .push((format!("{} older stashes", stashed - 1), "a bundle holds the newest alone".to_owned()));
        }
        Ok(found)
    }

    /// Makes a repository at `dir`, which must not be there, out of a bundle; an empty one where there is none. Its files are as
    /// committed.
    ///
    /// # Errors
    /// [`RepoError::Configuration`] for a bundle that git doesn't take, or that lacks what `memory` says.
    pub fn from_bundle(dir: &Path, bundle: Option<&Path>, memory: &BundledMemory) -> Result<Self, RepoError> {
        let unfit = |what: &str| RepoError::Configuration(format!("the memory in it can't be restored: {what}"));
        let named =
            |branch: &str| Some(format!("refs/heads/{branch}")).filter(|name| git2::Reference::is_valid_name(name));
        let (ours, on_branch) = (named(&memory.branch), memory.on_branch.as_deref().map(named));
        if ours.is_none() || on_branch == Some(None) {
            return Err(unfit("it names no branch"));
        }
        let mut options = RepositoryInitOptions::new();
        let first = memory.on_branch.as_deref().unwrap_or(DEFAULT_BRANCH);
        options.initial_head(first).external_template(false).no_reinit(true).mkpath(true);
        let made = Repository::init_opts(dir, &options)?;
        if let Some(bundle) = bundle {
            let fetch =
                ["fetch", "--quiet", "--no-write-fetch-head", "--update-head-ok", "--no-recurse-submodules", "--"];
            let spec = git(dir).args(fetch).args([bundle]).args(["+refs/*:refs/*"]);
            let spec = if memory.head.is_some() { spec.args(["HEAD"]) } else { spec };
            run(spec, "reading the bundle")?;
        }
        if let Some(head) = &memory.head {
            let id = git2::Oid::from_str(head).map_err(|_| unfit("its HEAD is no commit"))?;
            match on_branch.flatten() {
                Some(name) => made.set_head(&name)?,
                None => made.set_head_detached(id)?,
            }
            if made.refname_to_id("HEAD").ok() != Some(id) {
                return Err(unfit("its branch isn't where it should be"));
            }
            run(git(dir).args(["reset", "--hard", "--quiet"]), "writing its files")?;
        }
        store_branch(&made, &memory.branch)?;
        drop(made);
        Self::open(dir)
    }

    /// Puts a file back that wasn't committed. No link leads it elsewhere.
    ///
    /// # Errors
    /// [`RepoError::UnsafePath`] for what git wouldn't take.
    pub fn put_uncommitted(&self, file: &UncommittedFile) -> Result<(), RepoError> {
        let mode = if file.is_executable { 0o100_755 } else { 0o100_644 };
        let new = file.bytes.as_ref().map(|bytes| OnDisk { bytes: bytes.clone(), mode });
        match self.tree.replace(&file.path, self.tree.read(&file.path)?.as_ref(), new.as_ref())? {
            Replaced::Done => Ok(()),
            Replaced::Differs => Err(RepoError::Moved),
        }
    }
}

fn run(spec: process::Spec, what: &str) -> Result<(), RepoError> {
    let said = |why: String| RepoError::Configuration(format!("{what}: {why}"));
    let output = process::run(&spec.timeout(BUNDLE_TIMEOUT)).map_err(|error| said(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(said(outside::unmarked(&failure(&output).to_string()).into_owned())),
    }
}
