//! The bytes of one file: those surely on the disk, and later writes, of which any sector may have arrived.
//!
//! A disk writes whole sectors, each as the page cache has it at that moment. Each sector therefore shows the file at some time since
//! the last sync, independently of the others. The size has a time of its own too.

use std::{collections::BTreeMap, sync::Arc};

/// The unit a disk writes whole, in bytes.
const SECTOR: u64 = 512;

/// A file's bytes, with the changes since the last sync.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data<'a> {
    durable: Arc<Vec<u8>>,
    pending: Vec<Change<'a>>,
}

#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    Write { offset: u64, bytes: &'a [u8] },
    Truncate { size: u64 },
}

/// The part of the unsynced changes that has reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    Everything,
    /// The changes up to some moment.
    Prefix,
    /// The changes up to some moment, and some sectors of the next one.
    Torn,
    /// Each sector shows another moment.
    Reordered,
    /// The last size with none of the bytes, as with delayed allocation.
    SizeOnly,
}

impl Kept {
    pub(crate) fn any(random: &mut fastrand::Rng) -> Self {
        let all = [
            Self::Nothing,
            Self::Everything,
            Self::Prefix,
            Self::Torn,
            Self::Reordered,
            Self::Reordered,
            Self::SizeOnly,
        ];
        random.choice(all).unwrap_or(Self::Nothing)
    }
}

impl<'a> Data<'a> {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { durable: Arc::new(bytes), pending: Vec::new() }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &'a [u8]) {
        self.pending.push(Change::Write { offset, bytes });
    }

    pub(crate) fn truncate(&mut self, size: u64) {
        self.pending.push(Change::Truncate { size });
    }

    pub(crate) fn sync(&mut self) {
        if !self.pending.is_empty() {
            let all = self.shown(|_| usize::MAX, usize::MAX);
            self.durable = Arc::new(all);
            self.pending.clear();
        }
    }

    /// All bytes written so far.
    pub(crate) fn now(&self) -> Vec<u8> {
        self.shown(|_| usize::MAX, usize::MAX)
    }

    /// The bytes the disk may show after a power loss.
    pub(crate) fn after_power_loss(&self, kept: Kept, random: &mut fastrand::Rng) -> Vec<u8> {
        let n = self.pending.len();
        let moment = random.usize(0..=n);
        match kept {
            _ if n == 0 => self.durable.to_vec(),
            Kept::Nothing => self.durable.to_vec(),
            Kept::Everything => self.now(),
            Kept::Prefix => self.shown(|_| moment, moment),
            Kept::SizeOnly => self.shown(|_| 0, n),
            Kept::Torn => {
                let mut of_sector = BTreeMap::new();
                let size = moment + usize::from(random.bool());
                self.shown(|sector| moment + *of_sector.entry(sector).or_insert_with(|| random.usize(0..2)), size)
            }
            Kept::Reordered => {
                let mut of_sector = BTreeMap::new();
                let size = if random.bool() { n } else { moment };
                self.shown(|sector| *of_sector.entry(sector).or_insert_with(|| random.usize(0..=n)), size)
            }
        }
    }

    /// Each sector after its own number of changes, cut or zero-filled to the size after `moment_of_size` changes.
    fn shown(&self, mut moment_of: impl FnMut(u64) -> usize, moment_of_size: usize) -> Vec<u8> {
        let mut bytes = self.durable.to_vec();
        let mut size = bytes.len() as u64;
        for (at, change) in self.pending.iter().enumerate() {
            let after = match *change {
                Change::Write { offset, bytes: new } => {
                    let end = offset + new.len() as u64;
                    grow(&mut bytes, end);
                    for (from, to) in sectors(offset, end) {
                        if at < moment_of(from / SECTOR) {
                            let range = |start: u64| index(from - start)..index(to - start);
                            bytes[range(0)].copy_from_slice(&new[range(offset)]);
                        }
                    }
                    size.max(end)
                }
                Change::Truncate { size } => {
                    for (from, to) in sectors(size, bytes.len() as u64) {
                        if at < moment_of(from / SECTOR) {
                            bytes[index(from)..index(to)].fill(0);
                        }
                    }
                    size
                }
            };
            if at < moment_of_size {
                size = after;
            }
        }
        bytes.resize(index(size), 0);
        bytes
    }
}

/// The pieces of a range that lie in one sector each.
fn sectors(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let piece = (at < to).then(|| (at, to.min((at / SECTOR + 1) * SECTOR)));
        at = piece.map_or(at, |(_, end)| end);
        piece
    })
}

fn grow(bytes: &mut Vec<u8>, size: u64) {
    if (bytes.len() as u64) < size {
        bytes.resize(index(size), 0);
    }
}

/// The files of a campaign fit into memory.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
