//! Many reminders that are due at once: an answer to a person comes before them, and then they come a few at a time.

use crate::decide::situation::Reason;

/// Reminders that fire in one cycle. As a message of a line each they are about one of Telegram's.
pub(super) const MAX_AT_ONCE: usize = 50;

/// What becomes of reminders beyond so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backlog {
    /// They wait until somebody who has written is answered.
    #[default]
    GivesWay,
    /// Somebody has just been answered: now it is their turn, so that no flood of messages holds them up for good.
    HasTurn,
}

/// The reasons with no more reminders than fire at once, the most overdue first; with none where somebody waits for an answer and it is
/// the answer's turn. Says also whether some were left out.
pub fn without_backlog(reasons: Vec<Reason>, backlog: Backlog) -> (Vec<Reason>, bool) {
    let is_reminder = |reason: &Reason| matches!(reason, Reason::Reminder { .. });
    let due = reasons.iter().filter(|reason| is_reminder(reason)).count();
    if due <= MAX_AT_ONCE {
        return (reasons, false);
    }
    let is_waited_for = reasons.iter().any(|reason| matches!(reason, Reason::Messages { .. }));
    let mut room = if is_waited_for && backlog == Backlog::GivesWay { 0 } else { MAX_AT_ONCE };
    let mut kept = reasons;
    kept.retain(|reason| {
        let is_kept = !is_reminder(reason) || room > 0;
        room = room.saturating_sub(usize::from(is_reminder(reason)));
        is_kept
    });
    (kept, true)
}
