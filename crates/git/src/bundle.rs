//! Saves the memory as one file and restores it: a git bundle of all references, with the person's uncommitted files beside it.
//!
//! A bundle holds commits and references, without hooks, configuration or remotes. Nothing in it is run.

use std::{path::Path, thread, time::Duration};

use git2::{ReflogEntry, Repository, RepositoryInitOptions, StatusOptions};

use reveille_base::process;
use reveille_memory::outside;

use super::{
    DEFAULT_BRANCH, Repo, RepoError,
    create::store_branch,
    remote::{build_git_command, classify_failure},
    worktree::{OnDisk, Replaced},
};

/// The time limit of git for a whole history.
const BUNDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// The number of attempts to find the branch unmoved, since wakes and people may commit meanwhile.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// The allowed modes: a regular or an executable file.
const MODES: [u32; 2] = [0o100_644, 0o100_755];

/// The HEAD and the branches of a bundled memory.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BundledRefs {
    /// The commit of HEAD; `None` before the first.
    pub head: Option<String>,
    /// The branch of HEAD; `None` if detached.
    pub on_branch: Option<String>,
    /// The branch of the wakes.
    pub branch: String,
}

/// A file that a person left uncommitted in the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    /// Its path in the repository.
    pub path: String,
    /// Its content; `None` if deleted.
    pub bytes: Option<Vec<u8>>,
    /// `true` for an executable file.
    pub is_executable: bool,
}

/// The content missing from a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Files that differ from the last commit.
    pub files: Vec<UncommittedFile>,
    /// Items left out, each with its name and the reason.
    pub left_out: Vec<(String, String)>,
}

/// A memory that was bundled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBundle {
    /// Its position.
    pub memory: BundledRefs,
    /// The uncommitted files of the same moment.
    pub uncommitted: Uncommitted,
    /// True if there was any history; otherwise no file was made.
    pub has_history: bool,
}

impl Repo {
    /// Writes all references with their history to the file `to`, and reads uncommitted files of the same moment.
    ///
    /// # Errors
    /// [`RepoError::Moved`] if others commit all the time, or a killed wake left a commit half done.
    pub fn bundle(&self, to: &Path) -> Result<MadeBundle, RepoError> {
        // The bundle and the files have to be of one moment, so both are read again if HEAD has moved in between.
        for _ in 0..TRIES {
            let before = self.git_head();
            if !self.is_interrupted() {
                let uncommitted = self.read_uncommitted()?;
                let has_history = self.write_bundle(to, before.is_some())?;
                if !self.is_interrupted() && self.git_head() == before {
                    let head = self.git.find_reference("HEAD")?;
                    let name = head.symbolic_target()?.and_then(|name| name.strip_prefix("refs/heads/"));
                    let memory = BundledRefs {
                        head: before.map(|id| id.to_string()),
                        on_branch: name.map(str::to_owned),
                        branch: self.branch.clone(),
                    };
                    return Ok(MadeBundle { memory, uncommitted, has_history });
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
        let spec = self.remote().git_command().args(["bundle", "create", "--quiet"]).args([to]).args(["--all"]);
        let spec = if has_head { spec.args(["HEAD"]) } else { spec };
        run(spec, "writing the bundle")?;
        Ok(true)
    }

    fn read_uncommitted(&self) -> Result<Uncommitted, RepoError> {
        let mut found = Uncommitted::default();
        for changed in self.changed_files()? {
            // All content counts, even if a wake wouldn't commit it.
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
                .push((format!("{} older stashes", stashed - 1), "a bundle holds only the newest".to_owned()));
        }
        Ok(found)
    }

    /// Makes a repository in `dir`, which must not exist, from a bundle. Without a bundle, the repository is empty. The files are as
    /// committed.
    ///
    /// # Errors
    /// [`RepoError::Configuration`] for a bundle that git refuses, or that lacks the commits named by `memory`.
    pub fn from_bundle(dir: &Path, bundle: Option<&Path>, memory: &BundledRefs) -> Result<Self, RepoError> {
        let unfit = |what: &str| RepoError::Configuration(format!("its memory can't be restored: {what}"));
        let branch_ref =
            |branch: &str| Some(format!("refs/heads/{branch}")).filter(|name| git2::Reference::is_valid_name(name));
        let (ours, on_branch) = (branch_ref(&memory.branch), memory.on_branch.as_deref().map(branch_ref));
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
            let spec = build_git_command(dir).args(fetch).args([bundle]).args(["+refs/*:refs/*"]);
            let spec = if memory.head.is_some() { spec.args(["HEAD"]) } else { spec };
            run(spec, "reading the bundle")?;
        }
        if let Some(head) = &memory.head {
            let id = git2::Oid::from_str(head).map_err(|_| unfit("its HEAD isn't a commit"))?;
            match on_branch.flatten() {
                Some(name) => made.set_head(&name)?,
                None => made.set_head_detached(id)?,
            }
            if made.refname_to_id("HEAD").ok() != Some(id) {
                return Err(unfit("its branch isn't where it should be"));
            }
            run(build_git_command(dir).args(["reset", "--hard", "--quiet"]), "writing its files")?;
        }
        store_branch(&made, &memory.branch)?;
        drop(made);
        Self::open(dir)
    }

    /// Restores an uncommitted file, without following links.
    ///
    /// # Errors
    /// [`RepoError::UnsafePath`] for a path that git refuses.
    pub fn restore_uncommitted(&self, file: &UncommittedFile) -> Result<(), RepoError> {
        let mode = if file.is_executable { 0o100_755 } else { 0o100_644 };
        let new = file.bytes.as_ref().map(|bytes| OnDisk { bytes: bytes.clone(), mode });
        match self.tree.replace(&file.path, self.tree.read(&file.path)?.as_ref(), new.as_ref())? {
            Replaced::Done => Ok(()),
            Replaced::Differs => Err(RepoError::Moved),
        }
    }
}

fn run(spec: process::Spec, what: &str) -> Result<(), RepoError> {
    let to_error = |why: String| RepoError::Configuration(format!("{what}: {why}"));
    let output = process::run(&spec.timeout(BUNDLE_TIMEOUT)).map_err(|error| to_error(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(to_error(outside::strip_marks(&classify_failure(&output).to_string()).into_owned())),
    }
}
