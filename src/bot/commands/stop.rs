//! `/stop` and `/resume`. The owner's order applies to all work; anyone else's, even in a group, only to their chat.

use reveille_store::Order;

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer_stop(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    // fault: guests-stop-ends-work
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Stop { is_owners };
    // fault end: guests-stop-ends-work
    let since = desk
        .find_stop_time(asked)
        .map(|at| at.map(|at| format!(" since {}", desk.format_time(at))).unwrap_or_default());
    match (is_owners, since) {
        (true, _) if desk.stopped.is_none() => CommandReply::with_order(
            "Stopped. New messages and reminders will wait. Send /resume to continue, or /undo to take back what I did last.",
            order,
        ),
        (false, None) => CommandReply::with_order(
            "Stopped for this chat. New messages here will wait; reminders still come. Send /resume to continue.",
            order,
        ),
        (false, Some(since)) if desk.stopped.is_some() => {
            CommandReply::from_text(format!("My owner has stopped me{since}. I'll keep what you write here."))
        }
        // A repeated order ends whatever still runs.
        (_, since) => {
            let since = since.unwrap_or_default();
            CommandReply::with_order(format!("Already stopped{since}. Send /resume to continue."), order)
        }
    }
}

pub(super) fn answer_resume(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Resume { is_owners };
    let is_own = desk.stopped_chats.contains_key(&asked.message.chat);
    match desk.stopped {
        Some(_) if !is_owners => {
            let text = "My owner has stopped me. Only they can resume.";
            if is_own { CommandReply::with_order(text, order) } else { CommandReply::from_text(text) }
        }
        Some(_) => CommandReply::with_order("Resuming, oldest work first.", order),
        None if is_own => CommandReply::with_order("Resuming here, oldest work first.", order),
        None => CommandReply::from_text("I'm not stopped: I work whenever something is due."),
    }
}
