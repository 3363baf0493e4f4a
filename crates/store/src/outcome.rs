//! Why a message is queued no more: it is done with, or put aside until somebody wants it tried again.

/// Why a message is queued no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    /// A cycle has answered it.
    Answered,
    /// A cycle took it up, and the model declined.
    Refused,
    /// Put aside: too many cycles failed on it.
    Dead,
    /// Put aside: a person took it out of the queue.
    Dropped,
    /// Put aside: its answer was undone.
    Undone,
    /// Put aside: it was about a time that is over.
    Stale,
}

impl MessageOutcome {
    /// As the database writes it.
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

/// The outcomes of what is put aside until somebody wants it tried again.
pub(super) const PUT_ASIDE: &str = "('undone', 'dead', 'dropped', 'stale')";

/// The states of a cycle that goes on.
pub(super) const OPEN: &str = "('running', 'waiting', 'parked')";
