//! The outcome of a message that left the queue: done, or on hold until a person retries it.

/// The reason why a message left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    /// Answered by a cycle.
    Answered,
    /// Claimed by a cycle, and declined by the model.
    Refused,
    /// On hold after too many failed cycles.
    Dead,
    /// On hold: taken out of the queue by a person.
    Dropped,
    /// On hold: its answer was undone.
    Undone,
    /// On hold: it is about a time that has passed.
    Stale,
}

impl MessageOutcome {
    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Dead => "dead",
            Self::Dropped => "dropped",
            Self::Undone => "undone",
            Self::Stale => "stale",
        }
    }
}

/// The outcomes of messages on hold, for SQL.
pub(super) const PUT_ASIDE: &str = "('undone', 'dead', 'dropped', 'stale')";

/// The states of an open cycle, for SQL.
pub(super) const OPEN: &str = "('running', 'waiting', 'parked')";
