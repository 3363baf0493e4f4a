//! Joins a memory that was created while its remote was unreachable. The first successful fetch joins the two histories, which have no
//! common commit. Untouched templates yield to the remote's files; changed templates are merged as if both sides had begun with them. A
//! merge commit keeps both histories in full.

use chrono::{DateTime, Utc};
use git2::ConfigLevel;

use super::{
    Condition, Merge, Oid, RepoError,
    advance::StopAt,
    branches::{LIST, LISTED, pick_branch},
    integrate::Integrated,
    remote::{self, Patience, RemoteError},
    tree::{self, Item},
    wake_signature,
};
use crate::areas::Remote;

/// The reference to the templates' commit, until the remote's history is joined.
pub(super) const UNJOINED: &str = "refs/reveille/unjoined";
/// The setting that holds the new branch name while our branch is renamed to the remote's.
pub(super) const TAKING: &str = "reveille.taking";

impl Remote<'_> {
    /// Returns `true` if the memory was begun without its remote and isn't joined yet.
    pub fn is_unjoined(&self) -> bool {
        self.0.git.find_reference(UNJOINED).is_ok()
    }

    /// Joins our history and the remote's; `None` if they need no joining.
    pub(super) fn join_histories(
        &self,
        ours: Oid,
        theirs: Oid,
        now: DateTime<Utc>,
        merge: &Merge<'_>,
        stop: StopAt,
    ) -> Result<Option<Integrated>, RepoError> {
        let Some(templates) = self.0.find_reference_id(UNJOINED)? else { return Ok(None) };
        let their_files = tree::Files::at_commit(&self.0.git, Some(theirs))?;
        let (mut files, mut conflicts) = (Vec::new(), Vec::new());
        for file in self.list_file_moves(Some(templates), ours)? {
            let path = file.path;
            // Templates that we deleted are taken from the remote.
            let Some(own) = file.after else { continue };
            match their_files.find_item(&path)? {
                None if self.is_free(theirs, &path)? => files.push((path, Some(own))),
                None => files.push((self.find_free_path(theirs, &path.replace('/', "-"))?, Some(own))),
                Some(item) if item == own => {}
                Some(item) if Some(item) == file.before => files.push((path, Some(own))),
                Some(item) => {
                    match self.join_texts(
                        &path,
                        [file.before, Some(item), Some(own)],
                        &self.collect_hand_changes(&path, templates, ours)?,
                        merge,
                    )? {
                        Some(joined) => files.push((path.clone(), Some(joined))),
                        None => files.push((self.find_free_path(theirs, &path)?, Some(own))),
                    }
                    conflicts.push(path);
                }
            }
        }
        let files: Vec<(&str, Option<Item>)> = files.iter().map(|(path, item)| (path.as_str(), *item)).collect();
        let tree = tree::with_files(&self.0.git, Some(theirs), files)?;
        let message = format!("Join the remote's {}, which couldn't be reached at the first run\n", self.0.branch);
        let commit = self.0.commit_object(&wake_signature(now)?, &message, tree, &[ours, theirs])?;
        self.move_to_commit(Some(ours), commit, "merge: the remote's history", merge, stop)?;
        Ok(Some(Integrated::Merged { commit, conflicts }))
    }

    /// Finds a free path next to `path` in the remote's commit, for our version of the file.
    fn find_free_path(&self, theirs: Oid, path: &str) -> Result<String, RepoError> {
        let mut ours = format!("{path}.ours");
        while !self.is_free(theirs, &ours)? {
            ours.push('+');
        }
        Ok(ours)
    }

    /// Returns `true` if a commit has no file at the path, beneath it or above it.
    fn is_free(&self, commit: Oid, path: &str) -> Result<bool, RepoError> {
        let tree = self.0.git.find_commit(commit)?.tree()?;
        let is_there = |path: &str| tree.get_path(std::path::Path::new(path)).is_ok();
        let is_file = |path: &str| Ok::<_, RepoError>(tree::find_item(&self.0.git, Some(commit), path)?.is_some());
        for (end, _) in path.match_indices('/') {
            if is_file(path.get(..end).unwrap_or_default())? {
                return Ok(false);
            }
        }
        Ok(!is_there(path))
    }

    /// Removes the mark once the histories are joined.
    pub(super) fn clear_unjoined_mark(&self, theirs: Oid) -> Result<(), RepoError> {
        let is_joined = match self.0.head()? {
            Some(ours) => self.0.git.merge_base(ours, theirs).is_ok(),
            None => false,
        };
        match self.0.git.find_reference(UNJOINED) {
            Ok(_) if !is_joined => Ok(()),
            Ok(mut reference) => reference.delete().map_err(|error| self.explain_locked_ref(UNJOINED, error)),
            Err(_) => Ok(()),
        }
    }

    /// Renames our branch to the remote's branch before the first fetch. The caller must then reopen the repository. The function
    /// reports that as an error, and the next attempt continues.
    pub(super) fn take_branch_of_remote(&self, patience: Patience<'_>) -> Result<(), RemoteError> {
        let local = |error: git2::Error| RemoteError::from(RepoError::Git(error));
        let mut config = self.0.git.config().and_then(|config| config.open_level(ConfigLevel::Local)).map_err(local)?;
        if config.get_string(TAKING).is_ok_and(|taken| taken == self.0.branch) {
            self.0.name_branch(&self.0.branch)?;
            config.remove(TAKING).map_err(local)?;
        }
        let output = patience.run(self.git_command().args(LIST).args([super::REMOTE]).args(LISTED))?;
        if !output.status.success() {
            return Err(remote::classify_failure(&output));
        }
        let theirs = pick_branch(&String::from_utf8_lossy(&output.stdout))?;
        let Some(theirs) = theirs.as_deref().filter(|theirs| *theirs != self.0.branch) else { return Ok(()) };
        // If a person has a branch of that name, or HEAD is elsewhere, the person has to settle it.
        let (Some(tip), Condition::Normal, false) = (self.0.head()?, self.0.read_condition()?, self.0.is_move_noted())
        else {
            return Ok(());
        };
        let name = format!("refs/heads/{theirs}");
        if self.0.find_reference_id(&name)?.is_none() {
            self.create_reference(&name, tip, "as the remote's branch is called")?;
        }
        if self.0.find_reference_id(&name)? != Some(tip) {
            return Ok(());
        }
        // After a kill between HEAD and the name, this setting tells that the branch of HEAD is ours.
        config.set_str(TAKING, theirs).map_err(local)?;
        self.0.git.set_head(&name).map_err(local)?;
        self.0.name_branch(theirs)?;
        config.remove(TAKING).map_err(local)?;
        Err(RemoteError::Local {
            why: format!("the remote's branch is {theirs}, and ours now has the same name; the next wake joins them"),
        })
    }
}
