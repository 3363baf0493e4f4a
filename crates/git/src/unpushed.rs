//! The check of commits before their first push. A person may commit by hand what a wake would have left alone, but wakes push without
//! asking, and nobody can undo a push.

use std::collections::BTreeSet;

use git2::{Commit, Delta, DiffOptions};

use super::{Oid, RepoError, SecretsIn, tree::Files};
use crate::areas::Remote;

/// The maximum number of commits checked before one push, newest first. More means a new remote for an old memory.
const MAX_COMMITS: usize = 2_000;
/// The maximum number of bytes checked of each file.
const MAX_FILE_BYTES: usize = 4 << 20;

/// The place of a secret in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exposed {
    /// The full id of the commit.
    pub(super) commit: String,
    /// A file's name, or another part of the commit.
    pub(super) place: String,
}

impl Remote<'_> {
    /// Finds the newest commit of `tip`, outside `seen`, that adds a secret, and the place in it. A secret already in the file's previous
    /// version isn't counted; another one next to it is.
    pub(super) fn would_expose(
        &self,
        seen: Option<Oid>,
        tip: Oid,
        secrets_in: &SecretsIn<'_>,
    ) -> Result<Option<Exposed>, RepoError> {
        let mut walk = self.0.git.revwalk()?;
        walk.push(tip)?;
        if let Some(seen) = seen {
            walk.hide(seen)?;
        }
        let mut clean = BTreeSet::new();
        for id in walk.take(MAX_COMMITS) {
            let commit = self.0.git.find_commit(id?)?;
            if let Some(place) = self.find_exposed_place(&commit, &mut clean, secrets_in)? {
                return Ok(Some(Exposed { commit: commit.id().to_string(), place }));
            }
        }
        Ok(None)
    }

    /// Finds the place where one commit adds a secret. `clean` holds file contents already found free of secrets.
    fn find_exposed_place(
        &self,
        commit: &Commit<'_>,
        clean: &mut BTreeSet<Oid>,
        secrets_in: &SecretsIn<'_>,
    ) -> Result<Option<String>, RepoError> {
        if !secrets_in(&String::from_utf8_lossy(commit.message_bytes())).is_empty() {
            return Ok(Some("the message".to_owned()));
        }
        let tree = commit.tree()?;
        let first = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        let others = commit
            .parent_ids()
            .skip(1)
            .map(|id| Files::at_commit(&self.0.git, Some(id)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut options = DiffOptions::new();
        let diff = self.0.git.diff_tree_to_tree(first.as_ref(), Some(&tree), Some(&mut options))?;
        for delta in diff.deltas().filter(|delta| delta.status() != Delta::Deleted) {
            let (old, new) = (delta.old_file().id(), delta.new_file().id());
            let Some(path) = delta.new_file().path() else { continue };
            let name = path.to_string_lossy();
            // Content that a merge took from another parent belongs to that parent.
            let is_from =
                |side: &Files<'_>| side.find_item(&name).is_ok_and(|item| item.is_some_and(|item| item.id == new));
            if others.iter().any(is_from) {
                continue;
            }
            if !secrets_in(&name).is_empty() {
                return Ok(Some("a file's name".to_owned()));
            }
            if clean.contains(&new) {
                continue;
            }
            let held = self.find_secrets(new, secrets_in);
            if held.is_empty() {
                clean.insert(new);
            // fault: file-shown-secret-show
            } else if !held.is_subset(&self.find_secrets(old, secrets_in)) {
                return Ok(Some(reveille_memory::outside::name(path)));
            }
        }
        Ok(None)
    }

    /// Returns the secrets in a file's content; empty for anything but a file of ours, such as a submodule.
    fn find_secrets(&self, content: Oid, secrets_in: &SecretsIn<'_>) -> BTreeSet<String> {
        let Ok(blob) = self.0.git.find_blob(content) else { return BTreeSet::new() };
        let looked_at = blob.content().get(..MAX_FILE_BYTES).unwrap_or(blob.content());
        secrets_in(&String::from_utf8_lossy(looked_at))
    }
}
