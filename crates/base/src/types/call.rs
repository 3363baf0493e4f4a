//! The effect of a tool call.

/// The effect of repeating a call, for a cycle that was interrupted during the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The call changes nothing.
    Read,
    /// A second call has the same result as the first.
    Idempotent,
    /// All effects are `reveille_store::Change`s, carried out in the transaction that records the outcome. Without an outcome, the
    /// call has not happened and can run; with an outcome, a second call would do it twice.
    Staged,
    /// The call acts outside that transaction and may have happened. A resumed cycle never repeats it blindly.
    Once,
}
