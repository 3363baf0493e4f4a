//! The lease protocol, decided from values alone: the observed note, the time by our own clock, and the next step.
//!
//! A lease is a note in a place that only changes by compare-and-swap. The holder counts its term from before the start of the last
//! successful swap. A waiting machine counts the same term, plus a margin, from its first sight of the note, which is later than that swap.
//! So a note that is unchanged after that time has a holder that has given up, whatever any wall clock says. The clocks only need the same
//! pace, to within the margin.

use std::time::Duration;

use reveille_config::MAX_TERM_S;

/// The part of the term that a waiting machine adds, for clocks with different paces.
const MARGIN_PART: u32 = 4;
/// The number of renewals in a term, so that one failure does no harm.
const RENEWALS: u32 = 3;

/// The content of the shared place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseNote {
    /// The writing machine, by a random name.
    pub machine: String,
    /// The machine's name for people.
    pub name: String,
    /// The number of the holding; each is one more than the last.
    pub fence: u64,
    /// The term of the lease without renewal, in milliseconds.
    pub term_ms: u64,
    /// True if the lease is held, false if it was given back.
    pub is_held: bool,
    /// The number of renewals of this holding.
    pub renewal: u64,
    /// The start of this holding by the holder's clock, RFC 3339. For people only; no decision uses it.
    pub since: String,
    /// A random value, so that no two notes are equal.
    pub nonce: String,
    /// The keys and values for the next holder to count as handled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handled: Vec<(String, String)>,
}

impl LeaseNote {
    /// The claimed term, limited to the maximum.
    pub fn term(&self) -> Duration {
        Duration::from_millis(self.term_ms).min(Duration::from_secs(MAX_TERM_S))
    }
}

/// The observed state of the shared place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenLease {
    /// Empty: the lease was never held.
    Absent,
    /// A note, with the id needed to swap it.
    Note {
        /// The id.
        id: String,
        /// The content.
        note: LeaseNote,
    },
    /// The note changed during the read, so its holder is at work.
    Moving,
    /// Foreign content, which is left alone.
    Foreign,
}

/// A note that a machine waits for, kept across processes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeaseWatch {
    /// The note's id.
    pub id: String,
    /// The boot whose clock counts.
    pub boot: String,
    /// The first sight of the note, in milliseconds of that clock.
    pub first_seen_ms: u64,
}

/// The current time by a clock since the boot that counts sleep and can't be set.
#[derive(Debug, Clone, Copy)]
pub struct BootTime<'a> {
    /// The boot's id. Empty if the system doesn't report one.
    pub boot: &'a str,
    /// The time since the boot.
    pub at: Duration,
}

/// The next step after a look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum LeaseStep {
    /// Swap from this id (`None`: from nothing) to a note with this fence.
    Take {
        /// The id expected by the swap.
        old: Option<String>,
        /// The fence of the new holding.
        fence: u64,
    },
    /// Another machine holds the lease.
    Wait {
        /// The watch to keep for the next look. `None` if the note changed during the read.
        watch: Option<LeaseWatch>,
        /// The time until the lease may be taken, unless it is renewed.
        left: Duration,
    },
    /// Foreign content: leave it alone.
    Foreign,
}

/// Decides the next step after a look. `mine` are ids written by an ended process of this machine. `fence` is the last one known here, so
/// that an emptied place starts no lower.
pub fn decide_step(
    seen: &SeenLease,
    mine: &[String],
    watch: Option<&LeaseWatch>,
    fence: u64,
    now: BootTime<'_>,
    own_term: Duration,
) -> LeaseStep {
    let (id, note) = match seen {
        SeenLease::Absent => return LeaseStep::Take { old: None, fence: fence.saturating_add(1) },
        SeenLease::Moving => return LeaseStep::Wait { watch: None, left: compute_wait(own_term) },
        SeenLease::Foreign => return LeaseStep::Foreign,
        SeenLease::Note { id, note } => (id, note),
    };
    let now_ms = to_millis(now.at);
    let is_same = |watch: &&LeaseWatch| watch.id == *id && watch.boot == now.boot && watch.first_seen_ms <= now_ms;
    let watch = watch.filter(is_same).cloned();
    let watch =
        watch.unwrap_or_else(|| LeaseWatch { id: id.clone(), boot: now.boot.to_owned(), first_seen_ms: now_ms });
    let seen_for = Duration::from_millis(now_ms.saturating_sub(watch.first_seen_ms));
    // fault: waits-lease-waits-half
    let left = compute_wait(note.term()).saturating_sub(seen_for);
    if !note.is_held || mine.contains(id) || left.is_zero() {
        return LeaseStep::Take { old: Some(id.clone()), fence: fence.max(note.fence).saturating_add(1) };
    }
    LeaseStep::Wait { watch: Some(watch), left }
}

/// Returns the time that a note must stay unchanged before its holder has certainly given up.
fn compute_wait(term: Duration) -> Duration {
    term + term / MARGIN_PART
}

/// Returns the interval between renewals.
pub fn renew_every(term: Duration) -> Duration {
    term / RENEWALS
}

pub(super) fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A lease in the hands of its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenure {
    /// The note in the shared place, as far as known.
    pub note: LeaseNote,
    /// The note's id.
    pub id: String,
    /// Ids of swaps with an unknown end. One of them may be in the shared place.
    pub pending: Vec<String>,
    /// The end of the term, by the clock of [`BootTime`].
    pub until: Duration,
}

/// A holder's conclusion from a failed swap, after reading the shared place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SwapFate {
    /// The old note is still there: the place was busy.
    Unchanged,
    /// One of our swaps with an unknown end has succeeded.
    Ours,
    /// Another machine has swapped.
    Lost,
}

impl Tenure {
    /// Starts a holding after a successful swap to `id` that began at `began`. The term ends at a whole millisecond, because its recorded
    /// end is one.
    pub fn begin(note: LeaseNote, id: String, began: Duration) -> Self {
        let until = Duration::from_millis(to_millis(began + note.term()));
        Self { note, id, pending: Vec::new(), until }
    }

    /// Returns `true` while the term runs.
    pub fn is_running(&self, now: Duration) -> bool {
        now < self.until
    }

    /// Builds the next note of this holding.
    pub fn next(&self, nonce: String, handled: Vec<(String, String)>) -> LeaseNote {
        LeaseNote { renewal: self.note.renewal.saturating_add(1), nonce, handled, ..self.note.clone() }
    }

    /// Records a swap with an unknown end.
    pub fn record_doubt(&mut self, id: String) {
        self.pending.push(id);
    }

    /// Draws the conclusion from a failed swap; `there` is the current note's id. The term isn't extended.
    pub fn judge_failed_swap(&mut self, there: Option<&str>) -> SwapFate {
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
