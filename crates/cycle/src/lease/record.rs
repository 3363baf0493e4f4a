//! A machine's record of a lease between processes: a small file in the workspace.
//!
//! The file is written before each swap, so that a note left by a killed process is recognised as ours. A copy of the workspace ignores it,
//! because the record belongs to its directory.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    file::replace_unsynced,
    random,
};
use reveille_config::MAX_NAME_CHARS;

use crate::lease::protocol::{LeaseNote, LeaseWatch};

/// The maximum size of the file, in bytes. A longer file is damaged.
const MAX_BYTES: u64 = 64 << 10;

/// A machine's record of a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseRecord {
    /// The directory of the record, by its device and inode number.
    pub place: String,
    /// The signature of this machine's notes.
    pub machine: String,
    /// Ids of this machine's notes that may be in the shared place.
    #[serde(default)]
    pub mine: Vec<String>,
    /// The note this machine waits for.
    #[serde(default)]
    pub watch: Option<LeaseWatch>,
    /// The last known fence.
    #[serde(default)]
    pub fence: u64,
    /// The end of this machine's term: a boot, and milliseconds of its clock.
    #[serde(default)]
    pub until: Option<(String, u64)>,
    /// The last observed state.
    #[serde(default)]
    pub seen: Option<LastSeenLease>,
    /// The error of the last request to the remote. `None` if the remote answered.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// The last observed holder of a lease, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastSeenLease {
    /// The machine's name.
    pub name: String,
    /// True if the machine is this one.
    pub is_ours: bool,
    /// True if the lease was held then.
    pub is_held: bool,
    /// The start of the holding, by the holder's clock.
    pub since: String,
    /// The time of the observation, by our clock.
    pub at: String,
}

impl LastSeenLease {
    /// The start of the holding.
    pub fn start_time(&self) -> Option<DateTime<Utc>> {
        parse_time(&self.since)
    }

    /// The time of the observation.
    pub fn observation_time(&self) -> Option<DateTime<Utc>> {
        parse_time(&self.at)
    }

    /// This machine's own lease.
    pub(super) fn for_own_lease(name: &str, is_held: bool, since: &str, at: DateTime<Utc>) -> Self {
        Self { name: clean_name(name), is_ours: true, is_held, since: since.to_owned(), at: format_rfc3339(at) }
    }

    /// A lease that another machine holds.
    pub(super) fn for_foreign_lease(note: &LeaseNote, at: DateTime<Utc>) -> Self {
        Self {
            name: clean_name(&note.name),
            is_ours: false,
            is_held: true,
            since: note.since.clone(),
            at: format_rfc3339(at),
        }
    }
}

/// Returns a machine's name as far as it is valid. The remote's content may be anyone's.
fn clean_name(name: &str) -> String {
    let is_shown = |c: &char| c.is_alphanumeric() || "._-".contains(*c);
    name.chars().filter(is_shown).take(MAX_NAME_CHARS).collect()
}

/// The file of a lease's record.
#[derive(Debug, Clone)]
pub(super) struct RecordFile {
    dir: PathBuf,
    path: PathBuf,
}

impl RecordFile {
    pub(super) fn new(dir: &Path, part: &str) -> Self {
        Self { dir: dir.to_owned(), path: dir.join(format!("{part}.json")) }
    }

    /// Reads the record. Returns an empty record if the file is damaged or was copied from elsewhere.
    pub(super) fn read(&self) -> LeaseRecord {
        let read = || {
            if fs::metadata(&self.path).ok()?.len() > MAX_BYTES {
                return None;
            }
            let record: LeaseRecord = serde_json::from_str(&fs::read_to_string(&self.path).ok()?).ok()?;
            (record.place == self.directory_id()?).then_some(record)
        };
        read().unwrap_or_default()
    }

    /// Writes the record, whole or not at all. The record needn't survive a power cut, because after a new boot this machine waits like any
    /// other.
    pub(super) fn write(&self, record: &LeaseRecord) -> std::io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let place = self.directory_id().ok_or_else(|| std::io::Error::other("the directory vanished"))?;
        let record = LeaseRecord { place, ..record.clone() };
        replace_unsynced(&self.path, &serde_json::to_vec(&record)?)
    }

    fn directory_id(&self) -> Option<String> {
        fs::metadata(&self.dir).ok().map(|dir| format!("{}:{}", dir.dev(), dir.ino()))
    }
}

impl LeaseRecord {
    /// Gives the record a machine name if it has none.
    pub(super) fn with_machine_name(mut self) -> Result<Self, random::NoRandomness> {
        if self.machine.is_empty() {
            self.machine = random::format_hex(&random::generate_bytes::<8>()?);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_workspace_does_not_take_the_machines_name_along() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| RecordFile::new(&dir.path().join(name), "wake");
        let record = LeaseRecord { mine: vec!["a".to_owned()], ..LeaseRecord::default() }.with_machine_name().unwrap();
        file("one").write(&record).unwrap();
        assert_eq!(file("one").read().mine, record.mine);
        fs::create_dir(dir.path().join("two")).unwrap();
        fs::copy(dir.path().join("one/wake.json"), dir.path().join("two/wake.json")).unwrap();
        assert_eq!(file("two").read(), LeaseRecord::default());
    }

    #[test]
    fn damage_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for damage in ["", "{", "[]", "\u{0}"] {
            fs::write(dir.path().join("wake.json"), damage).unwrap();
            assert_eq!(RecordFile::new(dir.path(), "wake").read(), LeaseRecord::default());
        }
    }
}
