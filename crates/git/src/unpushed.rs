//! What a push would show to others for the first time. A person may commit by themselves what a wake would have left alone; but it
//! is a wake that pushes, by itself, and a push can't be taken back. So it looks first.

use std::collections::BTreeSet;

use git2::{Commit, Delta, DiffOptions};

use super::{Oid, Repo, RepoError, SecretsIn, tree::Files};

/// Commits that are looked at before one push, the newest first. More than that is a remote made anew for an old memory.
const MAX_COMMITS: usize = 2_000;
/// So much of each file is looked at, in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// Where a secret would be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exposed {
    /// The commit, in full.
    pub(super) commit: String,
    /// A file's name, or what else of a commit.
    pub(super) place: String,
}

impl Repo {
    /// The newest commit among those that `tip` has and `seen` has not that brings a secret in, with the place. A secret that
    /// the version before of the same file held is not brought in; another one beside it is.
    pub(super) fn would_expose(
        &self,
        seen: Option<Oid>,
        tip: Oid,
        secrets_in: &SecretsIn<'_>,
    ) -> Result<Option<Exposed>, RepoError> {
        let mut walk = self.git.revwalk()?;
        walk.push(tip)?;
        if let Some(seen) = seen {
            walk.hide(seen)?;
        }
        let mut clean = BTreeSet::new();
        for id in walk.take(MAX_COMMITS) {
            let commit = self.git.find_commit(id?)?;
            if let Some(place) = self.exposed_by(&commit, &mut clean, secrets_in)? {
                return Ok(Some(Exposed { commit: commit.id().to_string(), place }));
            }
        }
        Ok(None)
    }

    /// Where one commit brings a secret in. `clean`: files' contents that were looked at and hold none.
    fn exposed_by(
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
        let others =
            commit.parent_ids().skip(1).map(|id| Files::of(&self.git, Some(id))).collect::<Result<Vec<_>, _>>()?;
        let mut options = DiffOptions::new();
        let diff = self.git.diff_tree_to_tree(first.as_ref(), Some(&tree), Some(&mut options))?;
        for delta in diff.deltas().filter(|delta| delta.status() != Delta::Deleted) {
            let (old, new) = (delta.old_file().id(), delta.new_file().id());
            let Some(path) = delta.new_file().path() else { continue };
            let name = path.to_string_lossy();
            // What a merge took over from another side is that side's.
            let is_from = |side: &Files<'_>| side.item(&name).is_ok_and(|item| item.is_some_and(|item| item.id == new));
            if others.iter().any(is_from) {
                continue;
            }
            if !secrets_in(&name).is_empty() {
                return Ok(Some("a file's name".to_owned()));
            }
            if clean.contains(&new) {
                continue;
            }
            let held = self.held(new, secrets_in);
            if held.is_empty() {
                clean.insert(new);
            // fault: file-shown-secret-show
            } else if !held.is_subset(&self.held(old, secrets_in)) {
                return Ok(Some(reveille_memory::outside::name(path)));
            }
        }
        Ok(None)
    }

    /// The secrets that a file's content holds. What is no file of ours (a submodule, no file at all) holds none.
    fn held(&self, content: Oid, secrets_in: &SecretsIn<'_>) -> BTreeSet<String> {
        let Ok(blob) = self.git.find_blob(content) else { return BTreeSet::new() };
        let looked_at = blob.content().get(..MAX_FILE_BYTES).unwrap_or(blob.content());
        secrets_in(&String::from_utf8_lossy(looked_at))
    }
}
