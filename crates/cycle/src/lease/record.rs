//! What a machine remembers of a lease between processes: a small file in the workspace.
//!
//! It is written before each swap, so that a note that a killed process has left is known as our own. A copy of the
//! workspace doesn't take it along: it belongs to the directory that it was written in.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{parse_time, rfc3339},
    file::replace_unsynced,
    random,
};
use reveille_config::MAX_NAME_CHARS;

use super::protocol::LeaseWatch;

/// How much of the file is read, in bytes; a longer one is damage.
const MAX_BYTES: u64 = 64 << 10;

/// What a machine remembers of a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseRecord {
    /// The directory that it was written in, by its number.
    pub place: String,
    /// What notes of this machine are signed with.
    pub machine: String,
    /// Ids of notes that this machine wrote and that may stand there.
    #[serde(default)]
    pub mine: Vec<String>,
    /// What it waits for.
    #[serde(default)]
    pub watch: Option<LeaseWatch>,
    /// The last fence that it knows of.
    #[serde(default)]
    pub fence: u64,
    /// Until when this machine holds it: a boot, and milliseconds of its clock.
    #[serde(default)]
    pub until: Option<(String, u64)>,
    /// What was seen there last.
    #[serde(default)]
    pub seen: Option<LastSeenLease>,
    /// When the remote couldn't be asked any more, and why; none: it answered when it was last asked.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// Who held a lease when it was last seen, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LastSeenLease {
    /// What that machine is called.
    pub name: String,
    /// Whether it is this one.
    pub is_ours: bool,
    /// Whether it held it then.
    pub is_held: bool,
    /// Since when, by its own clock.
    pub since: String,
    /// When that was seen, by ours.
    pub at: String,
}

impl LastSeenLease {
    /// Since when it was held.
    pub fn since(&self) -> Option<DateTime<Utc>> {
        parse_time(&self.since)
    }

    /// When it was seen.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        parse_time(&self.at)
    }

    pub(super) fn new(name: &str, is_ours: bool, is_held: bool, since: &str, at: DateTime<Utc>) -> Self {
        // What stands at the remote may be anybody's: no more of it is shown than a name may hold.
        let is_shown = |c: &char| c.is_alphanumeric() || "._-".contains(*c);
        let name = name.chars().filter(is_shown).take(MAX_NAME_CHARS).collect();
        Self { name, is_ours, is_held, since: since.to_owned(), at: rfc3339(at) }
    }
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

    /// What stands there; nothing of it where it was copied from elsewhere or is damaged.
    pub(super) fn read(&self) -> LeaseRecord {
        let read = || {
            if fs::metadata(&self.path).ok()?.len() > MAX_BYTES {
                return None;
            }
            let record: LeaseRecord = serde_json::from_str(&fs::read_to_string(&self.path).ok()?).ok()?;
            (record.place == self.place()?).then_some(record)
        };
        read().unwrap_or_default()
    }

    /// Writes it, whole or not at all. What must be known after a power cut isn't in it: another boot waits like a
    /// stranger.
    pub(super) fn write(&self, record: &LeaseRecord) -> std::io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let place = self.place().ok_or_else(|| std::io::Error::other("the directory vanished"))?;
        let record = LeaseRecord { place, ..record.clone() };
        replace_unsynced(&self.path, &serde_json::to_vec(&record)?)
    }

    fn place(&self) -> Option<String> {
        fs::metadata(&self.dir).ok().map(|dir| format!("{}:{}", dir.dev(), dir.ino()))
    }
}

impl LeaseRecord {
    /// The same with a name for this machine.
    pub(super) fn signed(mut self) -> Result<Self, random::NoRandomness> {
        if self.machine.is_empty() {
            self.machine = random::hex(&random::bytes::<8>()?);
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
        let record = LeaseRecord { mine: vec!["a".to_owned()], ..LeaseRecord::default() }.signed().unwrap();
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
