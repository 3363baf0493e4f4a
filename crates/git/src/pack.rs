//! A pack: many objects in one file, with an index beside it to find them (both in git's format, version 2). Objects are compressed but
//! never stored as deltas: wakes write little, and git makes deltas when it joins packs.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use flate2::{Compression, Crc, write::ZlibEncoder};
use git2::{ObjectType, Oid};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use reveille_base::file;

/// The header of a pack, followed by the number of its objects.
const PACK: &[u8] = b"PACK\0\0\0\x02";
/// The header of the index.
const INDEX: &[u8] = b"\xfftOc\0\0\0\x02";
/// The permissions of both files, read-only as git's own.
const PACK_MODE: u32 = 0o444;

/// A pack under construction.
pub(super) struct Pack {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    id: Oid,
    crc: u32,
    offset: u32,
}

impl Pack {
    pub(super) fn new() -> Self {
        Self { bytes: [PACK, &[0; 4]].concat(), entries: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn add(&mut self, id: Oid, kind: ObjectType, content: &[u8]) -> io::Result<()> {
        let kind = match kind {
            ObjectType::Commit => 1,
            ObjectType::Tree => 2,
            ObjectType::Blob => 3,
            other => return Err(io::Error::other(format!("a {other} isn't written here"))),
        };
        let offset = self.bytes.len();
        write_size(&mut self.bytes, kind, content.len());
        let mut packed = ZlibEncoder::new(std::mem::take(&mut self.bytes), Compression::default());
        packed.write_all(content)?;
        self.bytes = packed.finish()?;
        let mut crc = Crc::new();
        crc.update(self.bytes.get(offset..).unwrap_or_default());
        self.entries.push(Entry { id, crc: crc.sum(), offset: to_pack_number(offset)? });
        Ok(())
    }

    /// Writes the pack and its index to `dir`, durably.
    pub(super) fn store(mut self, dir: &Path) -> io::Result<()> {
        let count = to_pack_number(self.entries.len())?.to_be_bytes();
        self.bytes.splice(PACK.len()..PACK.len() + count.len(), count);
        let id = digest(&SHA1_FOR_LEGACY_USE_ONLY, &self.bytes);
        self.bytes.extend(id.as_ref());
        let index = build_index(self.entries, id.as_ref())?;

        let name: String = id.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if !dir.is_dir() {
            fs::create_dir(dir)?;
            file::sync(file::parent_directory(dir))?;
        }
        // Readers start at the index, so the pack has to exist before it.
        write_synced_file(dir, &format!("pack-{name}.pack"), &self.bytes)?;
        // fault: names-commits-objects-arent
        write_synced_file(dir, &format!("pack-{name}.idx"), &index)?;
        file::sync(dir)
        // fault end: names-commits-objects-arent
    }
}

/// Writes an object's kind and size: four bits of the size in the first byte, then seven a byte, lowest first.
fn write_size(out: &mut Vec<u8>, kind: u8, size: usize) {
    let low = |bits: usize, mask: u8| bits.to_le_bytes().first().map_or(0, |byte| byte & mask);
    let (mut byte, mut rest) = (kind << 4 | low(size, 0x0f), size >> 4);
    while rest > 0 {
        out.push(byte | 0x80);
        (byte, rest) = (low(rest, 0x7f), rest >> 7);
    }
    out.push(byte);
}

/// Builds the index: the offset of each object, sorted by id.
fn build_index(mut entries: Vec<Entry>, pack: &[u8]) -> io::Result<Vec<u8>> {
    entries.sort_by_key(|entry| entry.id);
    let mut bytes = INDEX.to_vec();
    for first in 0..=u8::MAX {
        let until = entries.partition_point(|entry| entry.id.as_bytes().first() <= Some(&first));
        bytes.extend(to_pack_number(until)?.to_be_bytes());
    }
    bytes.extend(entries.iter().flat_map(|entry| entry.id.as_bytes()));
    bytes.extend(entries.iter().flat_map(|entry| entry.crc.to_be_bytes()));
    bytes.extend(entries.iter().flat_map(|entry| entry.offset.to_be_bytes()));
    bytes.extend(pack);
    bytes.extend(digest(&SHA1_FOR_LEGACY_USE_ONLY, &bytes).as_ref());
    Ok(bytes)
}

/// Converts a number to the 31 bits of a pack's format. A larger pack would need a second table, which we don't write.
fn to_pack_number(number: usize) -> io::Result<u32> {
    let number = u32::try_from(number).ok().filter(|number| *number < 1 << 31);
    number.ok_or_else(|| io::Error::other("the pack would be too large"))
}

/// Writes and syncs a file under a temporary name known to housekeeping, then renames it.
fn write_synced_file(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!("tmp_{name}"));
    file::remove_if_there(&temporary)?;
    // fault: commits-objects-arent-synced
    file::write_new(&temporary, bytes, PACK_MODE)?;
    fs::rename(&temporary, dir.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Git's own reader accepts every size of object, and a pack that was written twice.
    #[test]
    fn git_reads_what_was_packed() {
        let dir = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(dir.path()).unwrap();
        let packs = dir.path().join("objects/pack");
        let contents: Vec<Vec<u8>> =
            [0, 1, 15, 16, 2047, 2048, 300_000].iter().map(|size| (0..*size).map(|n| n as u8).collect()).collect();
        let id = |content: &[u8]| Oid::hash_object(ObjectType::Blob, content).unwrap();
        for _ in 0..2 {
            let mut pack = Pack::new();
            for content in &contents {
                pack.add(id(content), ObjectType::Blob, content).unwrap();
            }
            pack.store(&packs).unwrap();
        }
        for content in &contents {
            assert_eq!(git.find_blob(id(content)).unwrap().content(), content);
        }
        let names = fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let [index, pack] = names.as_slice() else { panic!("{names:?}") };
        assert!(index.ends_with(".idx") && pack.ends_with(".pack"));
        let output = reveille_base::process::run(
            &reveille_base::process::Spec::new("git").args(["verify-pack", index]).current_dir(&packs),
        );
        assert!(output.unwrap().status.success());
    }
}
