//! Many reminders due at once: an answer to a person comes first, then at most `MAX_AT_ONCE` reminders at a time.

use crate::decide::situation::Reason;

/// The maximum number of reminders in one cycle. At one line each they fill about one Telegram message.
pub(super) const MAX_AT_ONCE: usize = 50;

/// The handling of reminders if more than `MAX_AT_ONCE` are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backlog {
    /// They wait until a person is answered.
    #[default]
    GivesWay,
    /// A person has just been answered, so the reminders go next. Otherwise a flood of messages could delay them forever.
    HasTurn,
}

/// Keeps at most one cycle's reminders among the reasons, the most overdue first, and none while an answer goes first. Also returns `true`
/// if some were left out.
pub fn without_backlog(reasons: Vec<Reason>, backlog: Backlog) -> (Vec<Reason>, bool) {
    let is_reminder = |reason: &Reason| matches!(reason, Reason::Reminder { .. });
    let due = reasons.iter().filter(|reason| is_reminder(reason)).count();
    if due <= MAX_AT_ONCE {
        return (reasons, false);
    }
    let has_messages = reasons.iter().any(|reason| matches!(reason, Reason::Messages { .. }));
    let mut room = if has_messages && backlog == Backlog::GivesWay { 0 } else { MAX_AT_ONCE };
    let mut kept = reasons;
    kept.retain(|reason| {
        let is_kept = !is_reminder(reason) || room > 0;
        room = room.saturating_sub(usize::from(is_reminder(reason)));
        is_kept
    });
    (kept, true)
}
