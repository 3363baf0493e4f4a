//! Parks work that can't be published on a branch of its own, and leaves HEAD, the index and the work tree untouched. If the only
//! obstacle is that HEAD is elsewhere, a mark on the branch makes a later wake merge it once HEAD is back.

use std::{fs, io::ErrorKind, path::Path};

use chrono::{DateTime, Utc};

use super::{
    Merge, Oid, Publish, RepoError, WAKE_EMAIL,
    advance::StopAt,
    publish::join_change,
    tree::{self, FILE, Item},
    wake_signature,
};
use crate::areas::ParkedWork;

/// The maximum number of branches of one name.
const MAX_PARKED: usize = 100;
/// The maximum number of parked branches merged by one call.
const MAX_MERGED: usize = 100;
/// Prefix of the mark on a branch to merge: `refs/reveille/parked/x` marks `refs/heads/parked/x`.
const MARKS: &str = "refs/reveille/";
/// Prefix of the references that keep commits lost by a remote.
pub(super) const RESCUED: &str = "refs/reveille/rescue/";
/// The folders of parked branches.
const FOLDERS: [&str; 3] = ["parked", "recovered", "unwritten"];

/// The fate of parked work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// [`ParkedWork::merge_parked_branches`] merges it as soon as HEAD is back.
    UntilHeadIsBack,
    /// A person decides.
    ForAPerson,
}

/// Work on a branch of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The branch, such as `parked/20261121T140000Z-7`.
    pub branch: String,
    /// Its commit.
    pub commit: Oid,
    /// Files left out because they seem to hold a secret.
    pub left_out: Vec<String>,
}

/// Parked work that is now part of our branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroughtIn {
    /// The former branch.
    pub branch: String,
    /// Files changed in the same place by both sides; they hold both versions.
    pub conflicts: Vec<String>,
}

/// Returns `true` if a mark suggests that work is parked until HEAD is back. Reads only git's files, so it may find a stale mark.
pub(super) fn may_have_parked_work(git_dir: &Path) -> bool {
    let is_for_parked = |mark: fs::DirEntry| mark.file_name().to_string_lossy().starts_with("parked");
    let is_packed = || match fs::read_to_string(git_dir.join("packed-refs")) {
        Ok(packed) => packed.contains(&format!("{MARKS}parked")),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    fs::read_dir(git_dir.join(MARKS)).into_iter().flatten().flatten().any(is_for_parked) || is_packed()
}

impl ParkedWork<'_> {
    /// Commits the changes on the branch `name`, on top of our branch's last commit. If `name` exists with other content, the
    /// branch becomes `name-2` and so on; parking the same work twice makes only one. If a person has a branch named like the folder, such
    /// as `recovered`, git allows no branches in that folder, and it becomes `recovered-2`. Only differences from each change's base are
    /// committed, since the work tree may show another branch. Works with HEAD in any state.
    pub fn park(&self, name: &str, publish: &Publish<'_>, parking: Parking) -> Result<Parked, RepoError> {
        self.0.retry_attempt(|| self.try_park(name, publish, parking))
    }

    fn try_park(&self, name: &str, publish: &Publish<'_>, parking: Parking) -> Result<Parked, RepoError> {
        let parent = self.0.head()?;
        let (tree, left_out) = self.tree_to_park(parent, publish)?;
        let name = &self.find_free_folder(name)?;
        for count in 1..=MAX_PARKED {
            let branch = format_nth_name(name, count);
            let full = format!("refs/heads/{branch}");
            let commit = match self.0.find_reference_id(&full)? {
                // A killed run parked the work without noting so.
                Some(there) if self.is_parked_at(there, publish)? => there,
                Some(_) => continue,
                None => {
                    let parents: Vec<Oid> = parent.into_iter().collect();
                    let commit =
                        self.0.commit_object(&wake_signature(publish.now)?, publish.message, tree, &parents)?;
                    self.0.store_objects([])?;
                    commit
                }
            };
            if parking == Parking::UntilHeadIsBack {
                // The mark comes first: without its branch it means nothing, but a branch without a mark would be forgotten.
                self.0.remote().set_reference(&format!("{MARKS}{branch}"), commit, "parked")?;
            }
            if self.0.find_reference_id(&full)?.is_none() {
                self.0.remote().create_reference(&full, commit, "parked")?;
            }
            return Ok(Parked { branch, commit, left_out });
        }
        Err(RepoError::Configuration(format!(
            "there are {MAX_PARKED} branches named {name}: delete those you don't need"
        )))
    }

    fn find_free_folder(&self, name: &str) -> Result<String, RepoError> {
        let Some((folder, rest)) = name.split_once('/') else { return Ok(name.to_owned()) };
        for count in 1..=MAX_PARKED {
            let folder = format_nth_name(folder, count);
            if self.0.find_reference_id(&format!("refs/heads/{folder}"))?.is_none() {
                return Ok(format!("{folder}/{rest}"));
            }
        }
        Ok(name.to_owned())
    }

    /// Builds the tree with the changes on top of `parent`; also returns the files left out because they seem to hold a secret.
    fn tree_to_park(&self, parent: Option<Oid>, publish: &Publish<'_>) -> Result<(Oid, Vec<String>), RepoError> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for change in publish.changes {
            let path = change.path.as_str();
            let text = join_change(publish.merge, change, self.0.read_committed_text(parent, path)?);
            if text.as_deref().is_some_and(|text| (publish.is_secret)(text) || (publish.is_secret)(path)) {
                left_out.push(path.to_owned());
                continue;
            }
            let item =
                text.map(|text| Ok::<_, git2::Error>(Item { id: self.0.git.blob(text.as_bytes())?, mode: FILE }));
            files.push((path, item.transpose()?));
        }
        Ok((tree::with_files(&self.0.git, parent, files)?, left_out))
    }

    /// Returns `true` if `commit` is ours and holds exactly these changes, on top of our branch's last commit at the time.
    fn is_parked_at(&self, commit: Oid, publish: &Publish<'_>) -> Result<bool, RepoError> {
        let commit = self.0.git.find_commit(commit)?;
        let is_ours = commit.author().email().is_ok_and(|email| email == WAKE_EMAIL);
        Ok(is_ours && self.tree_to_park(commit.parent_ids().next(), publish)?.0 == commit.tree_id())
    }

    /// Lists the branches that wait for HEAD to be back, with their commits, oldest first. A branch that a person has deleted or
    /// added commits to is theirs, and isn't listed.
    pub fn list_parked_branches(&self) -> Result<Vec<(String, Oid)>, RepoError> {
        let mut parked = Vec::new();
        for mark in self.0.git.references_glob(&format!("{MARKS}parked*/*"))? {
            let mark = mark?;
            let Some(branch) = mark.name().ok().and_then(|name| name.strip_prefix(MARKS)) else { continue };
            if let Some(commit) = mark.target()
                && self.0.find_reference_id(&format!("refs/heads/{branch}"))? == Some(commit)
            {
                parked.push((branch.to_owned(), commit));
            }
        }
        parked.sort_unstable();
        Ok(parked)
    }

    /// Finds the branch with this wake's work among those that wait for HEAD, and its commit.
    pub fn find_parked_branch(&self, wake_id: &str) -> Result<Option<(String, Oid)>, RepoError> {
        let is_its = |branch: &str| branch.split_once('/').is_some_and(|(_, name)| name == wake_id);
        Ok(self.list_parked_branches()?.into_iter().find(|(branch, _)| is_its(branch)))
    }

    /// Lists the references that only a person can merge or drop: parked branches without a mark, and commits that the remote lost when its
    /// branch was reset. Commits already in our branch are omitted.
    pub fn left_to_a_person(&self) -> Result<Vec<String>, RepoError> {
        let (tip, parked) = (self.0.head()?, self.list_parked_branches()?);
        let mut left = Vec::new();
        for reference in self.0.git.references()? {
            let reference = reference?;
            let (Ok(name), Some(commit)) = (reference.name(), reference.target()) else { continue };
            let branch = name.strip_prefix("refs/heads/").filter(|branch| is_in_parked_folder(branch));
            let shown = match branch {
                Some(branch) if !parked.iter().any(|(parked, _)| parked == branch) => branch,
                None if name.starts_with(RESCUED) => name,
                _ => continue,
            };
            let is_merged = tip.map_or(Ok(false), |tip| self.0.contains(tip, commit))?;
            if !is_merged {
                left.push(shown.to_owned());
            }
        }
        left.sort_unstable();
        Ok(left)
    }

    /// Merges the branches that waited for HEAD into ours, one commit each, and deletes them. If both sides changed the same
    /// place, our branch counts as the person's.
    pub fn merge_parked_branches(&self, now: DateTime<Utc>, merge: &Merge<'_>) -> Result<Vec<BroughtIn>, RepoError> {
        self.0.finish_interrupted_move(merge)?;
        self.0.require_branch()?;
        let mut brought = Vec::new();
        for (branch, commit) in self.list_parked_branches()?.into_iter().take(MAX_MERGED) {
            let conflicts =
                self.0.retry_attempt(|| self.try_merge_parked(&branch, commit, now, merge, StopAt::Never))?;
            self.0.retry_attempt(|| self.unpark(&branch))?;
            brought.push(BroughtIn { branch, conflicts });
        }
        Ok(brought)
    }

    pub(super) fn try_merge_parked(
        &self,
        branch: &str,
        commit: Oid,
        now: DateTime<Utc>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<Vec<String>, RepoError> {
        match self.0.head()? {
            Some(tip) if self.0.contains(tip, commit)? => Ok(Vec::new()),
            Some(tip) => {
                let message = format!("Bring in {branch}\n");
                Ok(self.0.remote().merge_into(tip, commit, tip, &message, now, merge, stop)?.1)
            }
            None => {
                self.0.remote().move_to_commit(None, commit, "Merge parked work", merge, stop)?;
                Ok(Vec::new())
            }
        }
    }

    /// Deletes a settled proposal's branch, if it is unchanged and not checked out.
    pub fn delete_proposal_branch(&self, branch: &str, commit: &str) -> Result<(), RepoError> {
        if self.0.find_reference_id(&format!("refs/heads/{branch}"))?.is_some_and(|there| there.to_string() == commit) {
            self.0.git.find_branch(branch, git2::BranchType::Local)?.delete()?;
        }
        Ok(())
    }

    /// Removes the mark, and deletes the branch unless it is checked out somewhere.
    fn unpark(&self, branch: &str) -> Result<(), RepoError> {
        if let Ok(mut found) = self.0.git.find_branch(branch, git2::BranchType::Local) {
            found.delete().ok();
        }
        let mark = format!("{MARKS}{branch}");
        self.0.git.find_reference(&mark)?.delete().map_err(|error| self.0.remote().explain_locked_ref(&mark, error))
    }
}

/// Returns the nth of equal names: `name`, `name-2` and so on.
fn format_nth_name(name: &str, count: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}-{count}") }
}

/// Returns `true` if a branch is in one of the folders of parked work.
fn is_in_parked_folder(branch: &str) -> bool {
    let Some((folder, _)) = branch.split_once('/') else { return false };
    let is_nth = |rest: &str| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<usize>().is_ok());
    FOLDERS.iter().any(|name| folder.strip_prefix(name).is_some_and(is_nth))
}
