//! The record of a run: its changes to the files beneath a directory, and the data it sent, in the order in which the calls ended.

/// The fixed part of an entry, in bytes.
const HEAD_BYTES: usize = 40;

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A new file.
    Create,
    /// Bytes at an offset.
    Write,
    /// A new size, in `offset`.
    Truncate,
    /// `path` became `path2`.
    Rename,
    /// `path2` is another name of `path`.
    Link,
    Unlink,
    MakeDirectory,
    RemoveDirectory,
    /// `path` leads to `path2`.
    SymbolicLink,
    SyncFile,
    SyncDirectory,
    /// The first bytes of the data sent; the peer's port is in `offset`.
    Send,
    SyncAll,
    /// A call the simulated disk doesn't model.
    Unmodelled,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) pid: u32,
    pub(crate) ino: u64,
    pub(crate) offset: i64,
    pub(crate) path: String,
    pub(crate) path2: String,
    pub(crate) data: Vec<u8>,
}

impl Entry {
    /// A short, identifying description.
    pub(crate) fn brief(&self) -> String {
        let Self { kind, path, path2, offset, data, .. } = self;
        let to = if path2.is_empty() { String::new() } else { format!(" → {path2}") };
        format!("{kind:?} {path}{to} at {offset}, {} bytes", data.len())
    }
}

/// Set on a rename that exchanged two names.
pub(crate) const EXCHANGED: u8 = 1;

/// Reads a whole record.
pub(crate) fn read(mut bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let length = Fields(bytes).u32().map_or(0, |length| length as usize);
        let Some((entry, rest)) = bytes.split_at_checked(length).filter(|_| length >= HEAD_BYTES) else {
            return Err(format!("the record breaks off after {} entries", entries.len()));
        };
        entries.push(entry_of(entry).ok_or_else(|| format!("entry {} of the record is damaged", entries.len()))?);
        bytes = rest;
    }
    Ok(entries)
}

fn entry_of(bytes: &[u8]) -> Option<Entry> {
    let mut fields = Fields(bytes);
    let _length = fields.u32()?;
    let [kind, flags, _, _] = fields.take::<4>()?;
    let pid = fields.u32()?;
    let ino = u64::from_le_bytes(fields.take()?);
    let offset = i64::from_le_bytes(fields.take()?);
    let (path, path2, data) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let mut text = |length| Some(String::from_utf8_lossy(fields.bytes(length)?).into_owned());
    let (path, path2) = (text(path)?, text(path2)?);
    Some(Entry { kind: kind_of(kind)?, flags, pid, ino, offset, path, path2, data: fields.bytes(data)?.to_vec() })
}

fn kind_of(number: u8) -> Option<Kind> {
    use Kind::{
        Create, Link, MakeDirectory, RemoveDirectory, Rename, Send, SymbolicLink, SyncAll, SyncDirectory, SyncFile,
        Truncate, Unlink, Unmodelled, Write,
    };
    let kinds = [
        Create,
        Write,
        Truncate,
        Rename,
        Link,
        Unlink,
        MakeDirectory,
        RemoveDirectory,
        SymbolicLink,
        SyncFile,
        SyncDirectory,
        Send,
        SyncAll,
        Unmodelled,
    ];
    kinds.get(usize::from(number).checked_sub(1)?).copied()
}

/// Little-endian fields, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: u32) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(taken)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}
