//! File names that are the same on some disks: macOS by default, and `casefold` folders on Linux, treat `A.md` and `a.md` as one name. If a
//! commit holds both files, the disk holds only one, under both names, and the other would look edited or deleted.

use std::collections::BTreeMap;

use reveille_base::disk;

use super::{Oid, Repo, RepoError, person::Changed, tree};

/// The reason to leave a file alone if another file has the same name on this disk.
pub(super) const SHARED_NAME: &str = "it has the name of another file except for capitals or accents, and this disk can hold only one of \
                                      the two";

impl Repo {
    /// Marks changed files that share their name with others on this disk: their content may be the other file's, or missing.
    pub(super) fn mark_shared_names(&self, changed: &mut [Changed]) -> Result<(), RepoError> {
        if changed.is_empty() {
            return Ok(());
        }
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let committed = tree::list_paths(&self.git, self.head()?)?;
        for path in changed.iter().map(|changed| changed.path.clone()).chain(committed) {
            let same = named.entry(disk::fold_name(&path)).or_default();
            if !same.contains(&path) {
                same.push(path);
            }
        }
        for changed in changed.iter_mut().filter(|changed| changed.why_left.is_none()) {
            let same = named.get(&disk::fold_name(&changed.path)).map(Vec::as_slice).unwrap_or_default();
            if same.iter().any(|other| *other != changed.path && self.tree.is_one_file(&changed.path, other)) {
                changed.why_left = Some(SHARED_NAME);
            }
        }
        Ok(())
    }

    /// Finds another file of the commit with the same name on this disk.
    pub(super) fn find_shared_name(&self, commit: Option<Oid>, path: &str) -> Result<Option<String>, RepoError> {
        // A path that doesn't exist can't be another file. Most checked paths don't exist.
        if self.tree.stat(path).is_none() {
            return Ok(None);
        }
        let folded = disk::fold_name(path);
        let others = tree::list_paths(&self.git, commit)?.into_iter();
        let mut others = others.filter(|other| other != path && disk::fold_name(other) == folded);
        Ok(others.find(|other| self.tree.is_one_file(path, other)))
    }
}
