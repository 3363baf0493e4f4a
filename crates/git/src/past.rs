//! What was: which commit a line came by, what a file was at a time, and which commits hold some words.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
};

use chrono::{DateTime, Utc};
use git2::{BlameOptions, Sort};

use super::{
    Commit, Oid, Repo, RepoError,
    history::{MAX_SEARCHED, described},
    tree,
    worktree::is_markdown,
};

/// What git would call a text: two that have the same name are the same.
///
/// # Errors
/// None in practice; libgit2 could lack memory.
pub fn text_id(text: &str) -> Result<Oid, RepoError> {
    Ok(Oid::hash_object(git2::ObjectType::Blob, text.as_bytes())?)
}

/// The commits that hold some words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldingCommits {
    /// Those that brought in a line with them, or say them in their message: the newest first.
    pub commits: Vec<Commit>,
    /// How many of them the remote has, as far as was last seen.
    pub on_remote: usize,
    /// Whether there were more commits than are looked through.
    pub is_cut: bool,
}

/// Commits that are looked through for our last change of a file.
const MAX_LOOKED_BACK: usize = 500;

impl Repo {
    /// The commits that these lines of a file came by, as the work tree has it in `text`; lines count from 1. One that isn't committed
    /// yet has none, and is left out.
    pub fn came_by(
        &self,
        path: &str,
        text: &str,
        lines: &BTreeSet<usize>,
    ) -> Result<BTreeMap<usize, Commit>, RepoError> {
        let mut found = BTreeMap::new();
        if tree::item_at(&self.git, self.head()?, path)?.is_none() {
            return Ok(found);
        }
        let mut options = BlameOptions::new();
        let committed = self.git.blame_file(Path::new(path), Some(&mut options))?;
        let blame = committed.blame_buffer(self.stored(path, text.as_bytes())?.as_ref())?;
        for line in lines {
            let Some(hunk) = blame.get_line(*line) else { continue };
            let id = hunk.final_commit_id();
            if !id.is_zero() {
                found.insert(*line, described(&self.git.find_commit(id)?));
            }
        }
        Ok(found)
    }

    /// The last commit of our branch that was made at or before a time, as the branch itself went.
    pub fn commit_by(&self, at: DateTime<Utc>) -> Result<Option<Commit>, RepoError> {
        let Some(tip) = self.head()? else { return Ok(None) };
        let mut walk = self.git.revwalk()?;
        walk.push(tip)?;
        walk.simplify_first_parent()?;
        for id in walk.take(MAX_SEARCHED) {
            let commit = described(&self.git.find_commit(id?)?);
            if commit.at <= at {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// The last commit of our branch that is a wake's.
    pub fn last_wake(&self) -> Result<Option<Commit>, RepoError> {
        Ok(self.log(MAX_SEARCHED)?.into_iter().find(Commit::is_wake))
    }

    /// The commit of the wake with this id, described.
    pub fn log_of_wake(&self, wake_id: &str) -> Result<Option<Commit>, RepoError> {
        let id = self.wake_commit(wake_id)?;
        Ok(id.map(|id| self.git.find_commit(id)).transpose()?.map(|commit| described(&commit)))
    }

    /// The commits of our branch that `since` doesn't have, newest first.
    pub fn commits_since(&self, since: Oid) -> Result<Vec<Commit>, RepoError> {
        self.walk(Some(since), MAX_SEARCHED)
    }

    /// The last commit of our branch that changed a file, before the one given here if one is; none: no such commit did.
    pub fn last_change(&self, path: &str) -> Result<Option<Commit>, RepoError> {
        let mut commits = self.log(MAX_SEARCHED)?.into_iter();
        let mut later: Option<(Commit, Option<tree::Item>)> = None;
        loop {
            let commit = commits.next();
            let item = match &commit {
                Some(commit) => tree::item_at(&self.git, Some(commit.id), path)?,
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

    /// The commits of our branch that changed a file, newest first, at most `limit`. A merge that only brings in what one side
    /// had isn't one.
    pub fn commits_changing(&self, path: &str, limit: usize) -> Result<Vec<Commit>, RepoError> {
        let Some(tip) = self.head()? else { return Ok(Vec::new()) };
        let mut walk = self.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)?;
        walk.push(tip)?;
        let (mut found, mut known) = (Vec::new(), HashMap::new());
        let mut item = |id: Oid| -> Result<Option<tree::Item>, RepoError> {
            if let Some(item) = known.get(&id) {
                return Ok(*item);
            }
            let item = tree::item_at(&self.git, Some(id), path)?;
            known.insert(id, item);
            Ok(item)
        };
        for id in walk.take(MAX_SEARCHED) {
            let commit = self.git.find_commit(id?)?;
            let here = item(commit.id())?;
            let mut is_changed = commit.parent_count() > 0 || here.is_some();
            for parent in commit.parent_ids() {
                is_changed &= item(parent)? != here;
            }
            if is_changed {
                found.push(described(&commit));
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// A text file as this program left it, when it last changed it; none if that was long ago.
    pub fn as_we_left(&self, path: &str) -> Result<Option<String>, RepoError> {
        for commit in self.log(MAX_LOOKED_BACK)?.into_iter().filter(Commit::is_ours) {
            let now = tree::item_at(&self.git, Some(commit.id), path)?;
            let before =
                self.before(commit.id)?.map(|before| tree::item_at(&self.git, Some(before), path)).transpose()?;
            if now != before.flatten() {
                return self.read_at(commit.id, path);
            }
        }
        Ok(None)
    }

    /// The parent of a commit on its own side; none of the first one.
    pub fn before(&self, commit: Oid) -> Result<Option<Oid>, RepoError> {
        Ok(self.git.find_commit(commit)?.parent_ids().next())
    }

    /// A text file as a commit has it; none if it has no such file.
    pub fn read_at(&self, commit: Oid, path: &str) -> Result<Option<String>, RepoError> {
        self.read_committed(Some(commit), path)
    }

    /// The Markdown files of a commit, sorted.
    pub fn markdown_at(&self, commit: Oid) -> Result<BTreeSet<String>, RepoError> {
        Ok(tree::paths(&self.git, Some(commit))?.into_iter().filter(|path| is_markdown(path)).collect())
    }

    /// All Markdown files of the work tree, sorted; links and hidden files left out.
    pub fn all_markdown(&self) -> Result<BTreeSet<String>, RepoError> {
        let (mut folders, mut found) = (Vec::new(), BTreeSet::new());
        self.tree.walk(&mut |path, is_directory| {
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
        found.extend(self.list_markdown(&folders)?);
        Ok(found)
    }

    /// The commits of all branches, and of what was last seen of the remote, that brought in a line that `holds`, or whose message does.
    pub fn commits_holding(&self, holds: &dyn Fn(&str) -> bool) -> Result<HoldingCommits, RepoError> {
        let mut walk = self.git.revwalk()?;
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
            let Ok(commit) = self.git.find_commit(id?) else { continue };
            let message = String::from_utf8_lossy(commit.message_bytes());
            if holds(&message) || self.brings_in(&commit, holds)? {
                found.commits.push(described(&commit));
            }
        }
        if let (false, Some(theirs)) = (found.commits.is_empty(), self.id_of(&self.tracking_ref())?) {
            let mut walk = self.git.revwalk()?;
            walk.push(theirs)?;
            let on_remote: HashSet<Oid> = walk.filter_map(Result::ok).collect();
            found.on_remote = found.commits.iter().filter(|commit| on_remote.contains(&commit.id)).count();
        }
        Ok(found)
    }

    fn brings_in(&self, commit: &git2::Commit<'_>, holds: &dyn Fn(&str) -> bool) -> Result<bool, RepoError> {
        let diff = self.changes_of(commit)?;
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
        if !is_found {
            ended?;
        }
        Ok(is_found)
    }
}
