//! The outside world: arrivals at the channel, and commits. It survives every crash.

use std::collections::{BTreeMap, BTreeSet};

use reveille_store::{Claimed, StagedFile};

/// The state of the channel and the repository.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// The committed cycles.
    pub(super) committed: BTreeSet<String>,
    /// The memory's files.
    pub(super) files: BTreeMap<String, String>,
    /// The number of arrivals of each part of a message.
    arrived: BTreeMap<(i64, i64), u32>,
    /// The number of doubtful attempts at a part.
    doubts: BTreeMap<(i64, i64), u32>,
    /// By chat, the part a wake sent last: each chat is sent to in order.
    last: BTreeMap<i64, (i64, i64)>,
    /// By message, the part that arrived last.
    last_part: BTreeMap<i64, i64>,
}

impl Outside {
    /// Notes an arrival. With `is_in_turn`, everything written earlier in the chat must have arrived before.
    pub(super) fn arrive(&mut self, part: &Claimed, is_in_turn: bool) -> Result<(), String> {
        let key = (part.outgoing_id, part.part);
        let times = self.arrived.entry(key).or_default();
        *times += 1;
        let doubts = self.doubts.get(&key).copied().unwrap_or_default();
        if *times > 1 && (!part.is_repeat || *times > 2 || doubts == 0) {
            return Err(format!("{key:?} arrived {times} times, {doubts} times in doubt; marked: {}", part.is_repeat));
        }
        let before = self.last_part.insert(part.outgoing_id, part.part);
        if before.is_some_and(|before| before > part.part) {
            return Err(format!("part {before:?} of message {} arrived before part {}", part.outgoing_id, part.part));
        }
        if is_in_turn {
            let before = self.last.insert(part.chat.id, key);
            if before.is_some_and(|before| before > key) {
                return Err(format!("{before:?} arrived in chat {} before {key:?}", part.chat));
            }
        }
        Ok(())
    }

    /// Notes that the arrival of a part is unknown.
    pub(super) fn doubt(&mut self, part: &Claimed) {
        *self.doubts.entry((part.outgoing_id, part.part)).or_default() += 1;
    }

    /// Tells whether this part ever ended in doubt.
    pub(super) fn was_doubted(&self, message: i64, part: i64) -> bool {
        self.doubts.contains_key(&(message, part))
    }

    /// Tells whether this part has arrived.
    pub(super) fn has_arrived(&self, message: i64, part: i64) -> bool {
        self.arrived.contains_key(&(message, part))
    }

    /// Commits a cycle's files: each file's new text is appended to the current one.
    pub(super) fn commit(&mut self, cycle: &str, files: &[StagedFile]) -> Result<(), String> {
        if !self.committed.insert(cycle.to_owned()) {
            return Err(format!("the cycle {cycle} was committed twice"));
        }
        for file in files {
            let new = file.content.strip_prefix(file.base.as_deref().unwrap_or_default());
            let Some(new) = new else { return Err(format!("{} lost what it began with", file.path)) };
            let text = self.files.entry(file.path.clone()).or_default();
            for line in new.lines() {
                if text.lines().any(|known| known == line) {
                    return Err(format!("{} got {line:?} twice", file.path));
                }
                text.push_str(line);
                text.push('\n');
            }
        }
        Ok(())
    }
}
