//! Removes text from the history: every commit that holds it, and every later one, is rewritten. Only a person's `wake memory forget
//! --purge` does so, and only this module pushes by force.
//!
//! First all new objects are written, then the references move. The last commit of the new line names the start of the old one
//! ([`PURGES`]), so that a machine with the old line won't bring it back by a merge.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use chrono::{DateTime, Utc};
use git2::{ObjectType, Sort, build::CheckoutBuilder};

use reveille_base::file;

use super::{
    Condition, Oid, Patience, REMOTE, RemoteError, RepoError, history::MAX_SEARCHED, remote::classify_failure,
};
use crate::areas::Purge;

/// The trailer that names the first commit of a purged line.
pub const PURGES: &str = "Purges";
/// The time limit of each git command that removes old objects.
const CLEAR_TIMEOUT: Duration = Duration::from_secs(300);
/// Git's notes of earlier positions, besides its reflogs.
const LEFT_BY_GIT: [&str; 2] = ["ORIG_HEAD", "FETCH_HEAD"];

/// A rewritten history, not yet in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPurge {
    /// The rewritten commits, from old to new.
    pub commits: BTreeMap<Oid, Oid>,
    /// The new position of each reference.
    references: Vec<(String, Oid)>,
    /// The old and new tip of our branch; the new one is the commit that names the start of the old line.
    tip: (Oid, Oid),
    /// The last seen position of the remote's branch, if it is on the old line.
    remote: Option<Oid>,
}

/// The holder of an old line, after a purge elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldLine {
    /// This repository.
    Ours,
    /// The remote, as last seen.
    Remote,
}

impl Purge<'_> {
    /// Writes the history without some text, next to the one in force. `without` returns a text without it, or `None` if the text doesn't
    /// hold it. `None` if no commit holds it.
    ///
    /// # Errors
    /// Our branch isn't checked out, or the disk is full.
    pub fn plan_purge(
        &self,
        without: &dyn Fn(&str) -> Option<String>,
        now: DateTime<Utc>,
    ) -> Result<Option<PlannedPurge>, RepoError> {
        self.0.require_branch()?;
        if self.0.read_condition()? != Condition::Normal {
            return Err(RepoError::Moved);
        }
        let Some(head) = self.0.head()? else { return Ok(None) };
        let mut walk = self.0.git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
        walk.push_glob("*")?;
        walk.push(head)?;
        // Through a handle of its own, so that objects go to the disk at once; with ours they would stay in memory until stored.
        let git = git2::Repository::open(self.0.git.path())?;
        let mut rewritten = Rewritten { git: &git, without, objects: HashMap::new() };
        let (mut commits, mut roots) = (BTreeMap::new(), BTreeSet::new());
        for id in walk {
            let id = id?;
            if let Some(new) = rewritten.rewrite_commit(id, &commits)? {
                let is_root = self.0.git.find_commit(id)?.parent_ids().all(|parent| !commits.contains_key(&parent));
                roots.extend(is_root.then_some(id));
                commits.insert(id, new);
            }
        }
        if commits.is_empty() {
            return Ok(None);
        }
        let tip = match commits.get(&head) {
            Some(new_head) => {
                let trailers: String = roots.iter().map(|root| format!("{PURGES}: {root}\n")).collect();
                let message = format!("Take words out of the history\n\n{trailers}");
                let (parent, person) = (git.find_commit(*new_head)?, self.0.person_signature(now)?);
                git.commit(None, &person, &person, &message, &parent.tree()?, &[&parent])?
            }
            // The purge was done before; the remote's old commits were fetched since.
            None => head,
        };
        let mut references = Vec::new();
        for reference in self.0.git.references()? {
            let reference = reference?;
            let (Ok(name), Ok(commit)) = (reference.name(), reference.peel_to_commit()) else { continue };
            if reference.kind() == Some(git2::ReferenceType::Direct)
                && let Some(new) = commits.get(&commit.id())
            {
                let is_ours = name == self.0.branch_ref();
                references.push((name.to_owned(), if is_ours { tip } else { *new }));
            }
        }
        // References may only move to objects complete on the disk.
        let tips: Vec<String> = references.iter().map(|(_, tip)| tip.to_string()).collect();
        let whole = ["rev-list", "--objects", "--quiet"].into_iter().chain(tips.iter().map(String::as_str));
        self.0.housekeeping().run_housekeeping(CLEAR_TIMEOUT, &whole.collect::<Vec<_>>())?;
        let remote = self
            .0
            .find_reference_id(&self.0.tracking_ref())?
            .filter(|seen| self.0.has_remote() && commits.contains_key(seen));
        Ok(Some(PlannedPurge { commits, references, tip: (head, tip), remote }))
    }

    /// Puts a planned history in force here: references, index and work tree. The work tree has to be as committed.
    pub fn carry_out_purge(&self, planned: &PlannedPurge) -> Result<(), RepoError> {
        let (old, new) = planned.tip;
        for (name, commit) in &planned.references {
            self.0.remote().set_reference(name, *commit, "words were taken out of the history")?;
        }
        let (old, new) = (self.0.git.find_commit(old)?.tree()?, self.0.git.find_commit(new)?);
        if old.id() != new.tree_id() {
            let mut checkout = CheckoutBuilder::new();
            let diff = self.0.git.diff_tree_to_tree(Some(&old), Some(&new.tree()?), None)?;
            for path in diff.deltas().filter_map(|delta| delta.new_file().path().map(ToOwned::to_owned)) {
                checkout.path(path);
            }
            self.0.git.checkout_tree(new.as_object(), Some(checkout.force().disable_pathspec_match(true)))?;
        }
        Ok(())
    }

    /// Removes all traces of the old line, then its objects.
    pub fn clear_purged_history(&self) -> Result<(), RepoError> {
        for name in LEFT_BY_GIT {
            let path = self.0.git.path().join(name);
            file::remove_if_there(&path).map_err(RepoError::io("removing", &path))?;
        }
        self.0.housekeeping().run_housekeeping(
            CLEAR_TIMEOUT,
            &["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"],
        )?;
        // By force: an interrupted gc leaves its process number, which another process may have by now. No wake runs beside this.
        self.0.housekeeping().run_housekeeping(CLEAR_TIMEOUT, &["gc", "--force", "--prune=now", "--quiet"])
    }

    /// Replaces the old line at the remote, if it is still where it was last seen; later commits there have been merged by then. Returns
    /// `false` if the remote doesn't have the old line.
    pub fn push_purged_history(&self, planned: &PlannedPurge, patience: Patience<'_>) -> Result<bool, RemoteError> {
        let (Some(seen), Some(tip)) = (planned.remote, self.0.head()?) else { return Ok(false) };
        // Later commits of others have to be in our branch, rewritten: otherwise they would be lost at the remote.
        if !planned.commits.get(&seen).map_or(Ok(false), |theirs| self.0.contains(tip, *theirs))? {
            return Err(RemoteError::Moved);
        }
        let lease = format!("--force-with-lease={}:{seen}", self.0.branch_ref());
        let refspec = format!("{tip}:{}", self.0.branch_ref());
        let push = ["push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"];
        let output = patience.run(self.0.remote().git_command().args(push).args([lease.as_str(), REMOTE, &refspec]))?;
        if !output.status.success() {
            return Err(classify_failure(&output));
        }
        self.0.remote().record_remote_commit(tip)?;
        Ok(true)
    }

    /// Finds the holder of a purged line, us or the remote: a merge would bring back the removed text. `None` if both are new.
    pub fn old_line(&self) -> Result<Option<OldLine>, RepoError> {
        let (Some(ours), Some(theirs)) = (self.0.head()?, self.0.find_reference_id(&self.0.tracking_ref())?) else {
            return Ok(None);
        };
        let apart = |tip: Oid, other: Oid| -> Result<BTreeSet<Oid>, RepoError> {
            let mut walk = self.0.git.revwalk()?;
            walk.push(tip)?;
            walk.hide(other)?;
            Ok(walk.take(MAX_SEARCHED).filter_map(Result::ok).collect())
        };
        let (ours, theirs) = (apart(ours, theirs)?, apart(theirs, ours)?);
        for (line, other, old) in [(&theirs, &ours, OldLine::Ours), (&ours, &theirs, OldLine::Remote)] {
            for id in line {
                let commit = self.0.git.find_commit(*id)?;
                let Ok(trailers) = git2::message_trailers_bytes(commit.message_bytes()) else { continue };
                let named = trailers.iter().filter(|(name, _)| *name == PURGES.as_bytes());
                let mut purged = named.filter_map(|(_, id)| Oid::from_str(std::str::from_utf8(id).ok()?.trim()).ok());
                if purged.any(|id| other.contains(&id)) {
                    return Ok(Some(old));
                }
            }
        }
        Ok(None)
    }
}

/// The rewriting of objects.
struct Rewritten<'a> {
    git: &'a git2::Repository,
    without: &'a dyn Fn(&str) -> Option<String>,
    /// Trees and blobs already read, with their new ids; `None` if unchanged.
    objects: HashMap<Oid, Option<Oid>>,
}

impl Rewritten<'_> {
    fn rewrite_commit(&mut self, id: Oid, done: &BTreeMap<Oid, Oid>) -> Result<Option<Oid>, RepoError> {
        let commit = self.git.find_commit(id)?;
        let tree = self.rewrite_tree(commit.tree_id())?;
        let message = std::str::from_utf8(commit.message_bytes()).ok().and_then(|message| (self.without)(message));
        let parents: Vec<Oid> = commit.parent_ids().map(|parent| *done.get(&parent).unwrap_or(&parent)).collect();
        if tree.is_none() && message.is_none() && commit.parent_ids().eq(parents.iter().copied()) {
            return Ok(None);
        }
        let tree = self.git.find_tree(tree.unwrap_or_else(|| commit.tree_id()))?;
        let parents = parents.into_iter().map(|id| self.git.find_commit(id)).collect::<Result<Vec<_>, _>>()?;
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(commit.message_bytes()).into_owned());
        let (author, committer) = (commit.author(), commit.committer());
        Ok(Some(self.git.commit(None, &author, &committer, &message, &tree, &parents.iter().collect::<Vec<_>>())?))
    }

    fn rewrite_tree(&mut self, id: Oid) -> Result<Option<Oid>, RepoError> {
        if let Some(known) = self.objects.get(&id) {
            return Ok(*known);
        }
        let tree = self.git.find_tree(id)?;
        let mut builder = None;
        for entry in &tree {
            let new = match entry.kind() {
                Some(ObjectType::Tree) => self.rewrite_tree(entry.id())?,
                Some(ObjectType::Blob) => self.rewrite_blob(entry.id())?,
                _ => None,
            };
            if let Some(new) = new {
                let builder = match &mut builder {
                    Some(builder) => builder,
                    none => none.insert(self.git.treebuilder(Some(&tree))?),
                };
                builder.insert(entry.name_bytes(), new, entry.filemode())?;
            }
        }
        let new = builder.map(|builder| builder.write()).transpose()?;
        self.objects.insert(id, new);
        Ok(new)
    }

    fn rewrite_blob(&mut self, id: Oid) -> Result<Option<Oid>, RepoError> {
        if let Some(known) = self.objects.get(&id) {
            return Ok(*known);
        }
        let blob = self.git.find_blob(id)?;
        let text = std::str::from_utf8(blob.content()).ok().and_then(|text| (self.without)(text));
        let new = text.map(|text| self.git.blob(text.as_bytes())).transpose()?;
        self.objects.insert(id, new);
        Ok(new)
    }
}
