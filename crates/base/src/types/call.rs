//! A call of a tool.

/// What repeating a call would do, for a cycle that was interrupted during it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes.
    Read,
    /// The same again.
    Idempotent,
    /// It would happen for the first time: all that it does is `reveille_store::Change`s, carried out in the transaction that records its
    /// outcome. Without an outcome it has not happened. (With one, a second call would do it twice.)
    Staged,
    /// It acts outside that transaction and may have happened; repeated, it would happen twice. Never repeated blindly.
    Once,
}
