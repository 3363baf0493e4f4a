//! Many objects at once, as one pack: each by itself would cost a sync of its file and of its folder.

use super::{Oid, Repo, RepoError};

/// From so many on they are written as one pack.
const MANY: usize = 50;
/// Above every other store of objects.
const FIRST: i32 = 1_000;

impl Repo {
    /// Writes these bytes as blobs, which are on the disk afterwards.
    pub(super) fn blobs(&self, all: &[Vec<u8>]) -> Result<Vec<Oid>, RepoError> {
        if all.len() < MANY {
            return Ok(all.iter().map(|bytes| self.git.blob(bytes)).collect::<Result<_, _>>()?);
        }
        // A handle of its own: what is written through it stays in memory.
        let aside = Self::open(&self.root)?.git;
        let store = aside.odb()?;
        store.add_new_mempack_backend(FIRST)?;
        let mut pack = aside.packbuilder()?;
        let mut ids = Vec::with_capacity(all.len());
        for bytes in all {
            let is_new = !store.exists(Oid::hash_object(git2::ObjectType::Blob, bytes)?);
            let id = aside.blob(bytes)?;
            if is_new {
                pack.insert_object(id, None)?;
            }
            ids.push(id);
        }
        if pack.object_count() > 0 {
            pack.write(&self.git.commondir().join("objects/pack"), 0)?;
        }
        Ok(ids)
    }
}
