//! Questions about the past: the commit that brought a line, a file at a given time, and the commits that hold some text.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

use chrono::{DateTime, Utc};
use git2::{BlameOptions, Sort};

use super::{
    Commit, Oid, RepoError,
    history::{MAX_SEARCHED, read_commit},
    tree,
    worktree::is_markdown,
};
use crate::areas::CommitHistory;

/// Returns git's id of a text: equal ids mean equal texts.
///
/// # Errors
/// Only if libgit2 runs out of memory.
pub fn text_id(text: &str) -> Result<Oid, RepoError> {
    Ok(Oid::hash_object(git2::ObjectType::Blob, text.as_bytes())?)
}

/// The commits that hold some text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldingCommits {
    /// The commits that added such a line or have it in their message, newest first.
    pub commits: Vec<Commit>,
    /// The number of them at the remote, as of the last fetch.
    pub on_remote: usize,
    /// `true` if the search ended at its limit of commits.
    pub is_cut: bool,
}

/// The maximum number of commits searched for our last change of a file.
const MAX_LOOKED_BACK: usize = 500;

impl CommitHistory<'_> {
    /// Finds the commits that brought the given lines of a file, which has `text` in the work tree; lines count from 1. Uncommitted lines
    /// are left out.
    pub fn find_line_commits(
        &self,
        path: &str,
        text: &str,
        lines: &BTreeSet<usize>,
    ) -> Result<BTreeMap<usize, Commit>, RepoError> {
        let mut found = BTreeMap::new();
        if tree::find_item(&self.0.git, self.0.head()?, path)?.is_none() {
            return Ok(found);
        }
        let mut options = BlameOptions::new();
        let committed = self.0.git.blame_file(Path::new(path), Some(&mut options))?;
        let blame = committed.blame_buffer(self.0.to_stored_bytes(path, text.as_bytes())?.as_ref())?;
        for line in lines {
            let Some(hunk) = blame.get_line(*line) else { continue };
            let id = hunk.final_commit_id();
            if !id.is_zero() {
                found.insert(*line, read_commit(&self.0.git.find_commit(id)?));
            }
        }
        Ok(found)
    }

    /// Finds the last commit of our branch at or before a time, along first parents.
    pub fn find_commit_before(&self, at: DateTime<Utc>) -> Result<Option<Commit>, RepoError> {
        let Some(tip) = self.0.head()? else { return Ok(None) };
        let mut walk = self.0.git.revwalk()?;
        walk.push(tip)?;
        walk.simplify_first_parent()?;
        for id in walk.take(MAX_SEARCHED) {
            let commit = read_commit(&self.0.git.find_commit(id?)?);
            if commit.at <= at {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// Finds the last commit of our branch made by a wake.
    pub fn last_wake(&self) -> Result<Option<Commit>, RepoError> {
        Ok(self.list_commits(MAX_SEARCHED)?.into_iter().find(Commit::is_wake))
    }

    /// Reads the commit of the wake with this id.
    pub fn find_wake_commit(&self, wake_id: &str) -> Result<Option<Commit>, RepoError> {
        let id = self.wake_commit(wake_id)?;
        Ok(id.map(|id| self.0.git.find_commit(id)).transpose()?.map(|commit| read_commit(&commit)))
    }

    /// Lists the commits of our branch that `since` lacks, newest first.
    pub fn commits_since(&self, since: Oid) -> Result<Vec<Commit>, RepoError> {
        self.walk_commits(Some(since), MAX_SEARCHED)
    }

    /// Finds the last commit of our branch that changed a file; `None` if there is none.
    pub fn last_change(&self, path: &str) -> Result<Option<Commit>, RepoError> {
        let mut commits = self.list_commits(MAX_SEARCHED)?.into_iter();
        let mut later: Option<(Commit, Option<tree::Item>)> = None;
        loop {
            let commit = commits.next();
            let item = match &commit {
                Some(commit) => tree::find_item(&self.0.git, Some(commit.id), path)?,
                None => None,
            };
            if let Some((changed, then)) = later
                && then != item
            {
                return Ok(Some(changed));
            }
            let Some(commit) = commit else { return Ok(None) };
            later = Some((commit, item));
        }
    }

    /// Lists the commits of our branch that changed a file, newest first, at most `limit`. A merge that only takes one side's version isn't
    /// listed.
    pub fn commits_changing(&self, path: &str, limit: usize) -> Result<Vec<Commit>, RepoError> {
        let Some(tip) = self.0.head()? else { return Ok(Vec::new()) };
        let mut walk = self.0.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push(tip)?;
        let (mut found, mut known) = (Vec::new(), HashMap::new());
        let mut item = |id: Oid| -> Result<Option<tree::Item>, RepoError> {
            if let Some(item) = known.get(&id) {
                return Ok(*item);
            }
            let item = tree::find_item(&self.0.git, Some(id), path)?;
            known.insert(id, item);
            Ok(item)
        };
        for id in walk.take(MAX_SEARCHED) {
            let commit = self.0.git.find_commit(id?)?;
            let here = item(commit.id())?;
            let mut is_changed = commit.parent_count() > 0 || here.is_some();
            for parent in commit.parent_ids() {
                is_changed &= item(parent)? != here;
            }
            if is_changed {
                found.push(read_commit(&commit));
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Reads a text file as of our last change to it; `None` if that was too long ago.
    pub fn read_last_own_version(&self, path: &str) -> Result<Option<String>, RepoError> {
        for commit in self.list_commits(MAX_LOOKED_BACK)?.into_iter().filter(Commit::is_ours) {
            let now = tree::find_item(&self.0.git, Some(commit.id), path)?;
            let before = self
                .find_parent(commit.id)?
                .map(|before| tree::find_item(&self.0.git, Some(before), path))
                .transpose()?;
            if now != before.flatten() {
                return self.read_text_at(commit.id, path);
            }
        }
        Ok(None)
    }

    /// Returns the first parent of a commit; `None` for a root.
    pub fn find_parent(&self, commit: Oid) -> Result<Option<Oid>, RepoError> {
        Ok(self.0.git.find_commit(commit)?.parent_ids().next())
    }

    /// Reads a text file of a commit; `None` if there is no such file.
    pub fn read_text_at(&self, commit: Oid, path: &str) -> Result<Option<String>, RepoError> {
        self.0.read_committed_text(Some(commit), path)
    }

    /// Lists the Markdown files of a commit, sorted.
    pub fn list_markdown_at(&self, commit: Oid) -> Result<BTreeSet<String>, RepoError> {
        Ok(tree::list_paths(&self.0.git, Some(commit))?.into_iter().filter(|path| is_markdown(path)).collect())
    }

    /// Lists all Markdown files of the work tree, sorted, without links and hidden files.
    pub fn all_markdown(&self) -> Result<BTreeSet<String>, RepoError> {
        let (mut folders, mut found) = (Vec::new(), BTreeSet::new());
        self.0.tree.walk(&mut |path, is_directory| {
            if !path.starts_with('.') {
                match is_directory {
                    true => folders.push(path.to_owned()),
                    false if is_markdown(path) => drop(found.insert(path.to_owned())),
                    false => {}
                }
            }
            false
        })?;
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        found.extend(self.0.list_markdown(&folders)?);
        Ok(found)
    }

    /// Finds the commits, on all branches and at the last seen remote, for which `holds` is `true` of an added line or of the message.
    pub fn commits_holding(&self, holds: &dyn Fn(&str) -> bool) -> Result<HoldingCommits, RepoError> {
        let mut walk = self.0.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push_glob("*")?;
        let mut found = HoldingCommits::default();
        let mut left = MAX_SEARCHED;
        for id in walk {
            let Some(rest) = left.checked_sub(1) else {
                found.is_cut = true;
                break;
            };
            left = rest;
            let Ok(commit) = self.0.git.find_commit(id?) else { continue };
            let message = String::from_utf8_lossy(commit.message_bytes());
            if holds(&message) || self.has_added_line(&commit, holds)? {
                found.commits.push(read_commit(&commit));
            }
        }
        if let (false, Some(theirs)) = (found.commits.is_empty(), self.0.find_reference_id(&self.0.tracking_ref())?) {
            let mut walk = self.0.git.revwalk()?;
            walk.push(theirs)?;
            let on_remote: HashSet<Oid> = walk.filter_map(Result::ok).collect();
            found.on_remote = found.commits.iter().filter(|commit| on_remote.contains(&commit.id)).count();
        }
        Ok(found)
    }

    fn has_added_line(&self, commit: &git2::Commit<'_>, holds: &dyn Fn(&str) -> bool) -> Result<bool, RepoError> {
        let diff = self.diff_commit(commit)?;
        let mut is_found = false;
        let ended = diff.foreach(
            &mut |_, _| true,
            None,
            None,
            Some(&mut |_, _, line| {
                is_found = line.origin() == '+' && holds(&String::from_utf8_lossy(line.content()));
                !is_found
            }),
        );
        // Ending at the first match also counts as an error.
        if !is_found {
            ended?;
        }
        Ok(is_found)
    }
}
