//! The objects of a commit, gathered in memory and stored as one pack: each alone would cost a sync of its file and of its folder.
//! Housekeeping joins packs (`maintain.rs`).

use std::{io, path::Path};

use git2::{ObjectType, Oid, Repository, Signature, Tree};

use super::{Repo, RepoError, pack::Pack};

/// A priority above every other object store.
const FIRST: i32 = 1_000;
/// The size from which the next objects go into another pack.
const MAX_PACK_BYTES: usize = 64 << 20;

/// Keeps all objects written through this handle in memory until [`Repo::store_objects`].
pub(super) fn keep_in_memory(git: &Repository) -> Result<(), RepoError> {
    git.odb()?.add_new_mempack_backend(FIRST)?;
    Ok(())
}

impl Repo {
    /// Makes a commit object in memory; no reference moves.
    pub(super) fn commit_object(
        &self,
        author: &Signature<'_>,
        message: &str,
        tree: Oid,
        parents: &[Oid],
    ) -> Result<Oid, RepoError> {
        let tree = self.git.find_tree(tree)?;
        let parents = parents.iter().map(|id| self.git.find_commit(*id)).collect::<Result<Vec<_>, _>>()?;
        let before = parents.iter().map(git2::Commit::tree).collect::<Result<Vec<_>, _>>()?;
        let commit = self.git.commit(None, author, author, message, &tree, &parents.iter().collect::<Vec<_>>())?;
        self.gather(&tree, &before)?;
        self.gathered.borrow_mut().insert(commit);
        Ok(commit)
    }

    /// Gathers the objects of a folder that none of its parents' commits has in the same place. An object moved from elsewhere is then
    /// stored twice until housekeeping.
    fn gather(&self, folder: &Tree<'_>, before: &[Tree<'_>]) -> Result<(), RepoError> {
        if before.iter().any(|before| before.id() == folder.id()) || !self.gathered.borrow_mut().insert(folder.id()) {
            return Ok(());
        }
        for entry in folder {
            let was: Vec<_> = before.iter().filter_map(|before| before.get_name_bytes(entry.name_bytes())).collect();
            if was.iter().any(|was| was.id() == entry.id()) {
                continue;
            }
            match entry.kind() {
                Some(ObjectType::Blob) => drop(self.gathered.borrow_mut().insert(entry.id())),
                Some(ObjectType::Tree) => {
                    let folders = was.iter().filter(|was| was.kind() == Some(ObjectType::Tree));
                    let folders = folders.map(|was| self.git.find_tree(was.id())).collect::<Result<Vec<_>, _>>()?;
                    self.gather(&self.git.find_tree(entry.id())?, &folders)?;
                }
                // A submodule's commit is in another repository.
                _ => {}
            }
        }
        Ok(())
    }

    /// Stores the gathered objects and `others` durably, before anything refers to them.
    pub(super) fn store_objects(&self, others: impl IntoIterator<Item = Oid>) -> Result<(), RepoError> {
        let mut gathered = self.gathered.borrow_mut();
        gathered.extend(others);
        let (odb, mut pack) = (self.git.odb()?, Pack::new());
        for id in gathered.iter() {
            let object = odb.read(*id)?;
            self.store_in_packs(|_| pack.add(*id, object.kind(), object.data()))?;
            if pack.len_bytes() >= MAX_PACK_BYTES {
                self.store_in_packs(|packs| std::mem::replace(&mut pack, Pack::new()).store(packs))?;
            }
        }
        if !pack.is_empty() {
            self.store_in_packs(|packs| pack.store(packs))?;
        }
        gathered.clear();
        Ok(())
    }

    fn store_in_packs(&self, store: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), RepoError> {
        let packs = self.git.commondir().join("objects/pack");
        store(&packs).map_err(|source| RepoError::Storing { path: packs, source })
    }
}
