//! Who holds a lease, decided from values alone: what was seen, when by our own clock, and what follows.
//!
//! A lease is a note in a place that is only changed by compare-and-swap. The holder counts its term from before it
//! began the swap that last succeeded. Whoever waits counts the same term, and a margin, from when it first saw the
//! note, which is after that swap. So a note that still stands after that is one whose holder has given up, whatever
//! any clock of the wall says. Clocks need only run at the same pace, to within the margin.

use std::time::Duration;

use reveille_config::MAX_TERM_S;

/// A waiting machine waits this part of the term longer: for clocks that don't run at the same pace.
const MARGIN_PART: u32 = 4;
/// A holder renews this often in a term, so that one failure costs nothing.
const RENEWALS: u32 = 3;

/// What stands in the shared place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseNote {
    /// The machine that wrote it, by a random name.
    pub machine: String,
    /// The same for people.
    pub name: String,
    /// Counts the holdings: each is one more than the one before.
    pub fence: u64,
    /// How long the holder holds it without renewing it, in milliseconds.
    pub term_ms: u64,
    /// Whether it is held, or was given back.
    pub is_held: bool,
    /// Counts the renewals of this holding.
    pub renewal: u64,
    /// When this holding began by the holder's clock, RFC 3339. For people: nothing is decided by it.
    pub since: String,
    /// Random, so that no two notes are ever the same.
    pub nonce: String,
    /// What the next holder should take for handled, as keys and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<(String, String)>,
}

impl LeaseNote {
    /// The term that it claims; no note can claim a longer one than there is.
    pub fn term(&self) -> Duration {
        Duration::from_millis(self.term_ms).min(Duration::from_secs(MAX_TERM_S))
    }
}

/// What was seen in the shared place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenLease {
    /// Nothing: nobody ever held it.
    Absent,
    /// A note, and the id under which it can be swapped.
    Note {
        /// Its id.
        id: String,
        /// What it says.
        note: LeaseNote,
    },
    /// It changed while it was read: its holder is at work.
    Moving,
    /// Something that isn't ours, which is left alone.
    Foreign,
}

/// A note that somebody waits for, kept across processes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseWatch {
    /// The note's id.
    pub id: String,
    /// The boot whose clock counts.
    pub boot: String,
    /// When it was first seen, in milliseconds of that clock.
    pub first_seen_ms: u64,
}

/// The present, by a clock of this boot that nobody sets and that counts sleep.
#[derive(Debug, Clone, Copy)]
pub struct BootTime<'a> {
    /// Which boot; empty where the system doesn't tell.
    pub boot: &'a str,
    /// How long ago it was.
    pub at: Duration,
}

/// What follows from a look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum LeaseStep {
    /// It may be swapped from this id (none: it isn't there) to a note with this fence.
    Take {
        /// The id that must still stand there.
        old: Option<String>,
        /// The fence of the new holding.
        fence: u64,
    },
    /// Somebody else holds it.
    Wait {
        /// To be kept for the next look; none: it changed while it was read.
        watch: Option<LeaseWatch>,
        /// How long until it may be taken, if it isn't renewed.
        left: Duration,
    },
    /// It isn't ours to touch.
    Foreign,
}

/// Decides what follows from a look. `mine` are ids that this machine wrote itself, in a process that is gone. `fence`
/// is the last one known here: a place that was emptied begins no lower.
pub fn decide(
    seen: &SeenLease,
    mine: &[String],
    watch: Option<&LeaseWatch>,
    fence: u64,
    now: BootTime<'_>,
    own_term: Duration,
) -> LeaseStep {
    let (id, note) = match seen {
        SeenLease::Absent => return LeaseStep::Take { old: None, fence: fence.saturating_add(1) },
        SeenLease::Moving => return LeaseStep::Wait { watch: None, left: waited_for(own_term) },
        SeenLease::Foreign => return LeaseStep::Foreign,
        SeenLease::Note { id, note } => (id, note),
    };
    let now_ms = millis(now.at);
    let is_same = |watch: &&LeaseWatch| watch.id == *id && watch.boot == now.boot && watch.first_seen_ms <= now_ms;
    let watch = watch.filter(is_same).cloned();
    let watch =
        watch.unwrap_or_else(|| LeaseWatch { id: id.clone(), boot: now.boot.to_owned(), first_seen_ms: now_ms });
    let seen_for = Duration::from_millis(now_ms.saturating_sub(watch.first_seen_ms));
    // fault: waits-lease-waits-half
    let left = waited_for(note.term()).saturating_sub(seen_for);
    if !note.is_held || mine.contains(id) || left.is_zero() {
        return LeaseStep::Take { old: Some(id.clone()), fence: fence.max(note.fence).saturating_add(1) };
    }
    LeaseStep::Wait { watch: Some(watch), left }
}

/// How long a note has to stand unchanged before its holder has given up for sure.
fn waited_for(term: Duration) -> Duration {
    term + term / MARGIN_PART
}

/// How often a holder renews.
pub fn renew_every(term: Duration) -> Duration {
    term / RENEWALS
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A lease in the hands of its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenure {
    /// What stands in the shared place, as far as is known.
    pub note: LeaseNote,
    /// Its id.
    pub id: String,
    /// Ids of swaps whose end isn't known: one of them may stand there.
    pub pending: Vec<String>,
    /// When it ends, by the clock of [`BootTime`].
    pub until: Duration,
}

/// What a holder learns from a swap that found something else, once it has looked what stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SwapFate {
    /// What was there before: the place was busy.
    Unchanged,
    /// A swap of ours whose end wasn't known: it has happened.
    Ours,
    /// Somebody else's.
    Lost,
}

impl Tenure {
    /// Begins with a swap to `id` that succeeded, and that began at `began`. It ends at a whole millisecond, as others are told who ask
    /// whether it still runs.
    pub fn begin(note: LeaseNote, id: String, began: Duration) -> Self {
        let until = Duration::from_millis(millis(began + note.term()));
        Self { note, id, pending: Vec::new(), until }
    }

    /// Whether it still runs.
    pub fn holds(&self, now: Duration) -> bool {
        now < self.until
    }

    /// The next note of this holding.
    pub fn next(&self, nonce: String, handled: Vec<(String, String)>) -> LeaseNote {
        LeaseNote { renewal: self.note.renewal.saturating_add(1), nonce, handled, ..self.note.clone() }
    }

    /// A swap's end isn't known.
    pub fn in_doubt(&mut self, id: String) {
        self.pending.push(id);
    }

    /// A swap found something else than it expected; `there` is what stands there now. The term isn't any longer for
    /// it.
    pub fn look_again(&mut self, there: Option<&str>) -> SwapFate {
        match there {
            Some(id) if id == self.id => SwapFate::Unchanged,
            Some(id) if self.pending.iter().any(|pending| pending == id) => {
                self.id = id.to_owned();
                SwapFate::Ours
            }
            _ => SwapFate::Lost,
        }
    }
}

#[cfg(test)]
mod tests;
