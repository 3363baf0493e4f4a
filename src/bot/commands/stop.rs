//! `/stop` and `/resume`. The owner's order applies to all work; anyone else's, even in a group, only to their chat.

use reveille_store::Order;

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn stop(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    // fault: guests-stop-ends-work
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Stop { is_owners };
    // fault end: guests-stop-ends-work
    let since = desk.stopped_for(asked).map(|at| at.map(|at| format!(" since {}", desk.local(at))).unwrap_or_default());
    match (is_owners, since) {
        (true, _) if desk.stopped.is_none() => CommandReply::orders(
            "Stopped. New messages and reminders will wait. Send /resume to continue; /undo takes back what I did last.",
            order,
        ),
        (false, None) => CommandReply::orders(
            "Stopped for this chat. New messages here will wait; reminders still come. Send /resume to continue.",
            order,
        ),
        (false, Some(since)) if desk.stopped.is_some() => {
            CommandReply::says(format!("My owner has stopped me{since}. What you write here is kept."))
        }
        // A repeated order ends whatever still runs.
        (_, since) => {
            let since = since.unwrap_or_default();
            CommandReply::orders(format!("Stopped already{since}. Send /resume to continue."), order)
        }
    }
}

pub(super) fn resume(desk: &Desk<'_>, asked: &Asked) -> CommandReply {
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Resume { is_owners };
    let is_own = desk.stopped_chats.contains_key(&asked.message.chat);
    match desk.stopped {
        Some(_) if !is_owners => {
            let text = "My owner has stopped me. Only they can resume.";
            if is_own { CommandReply::orders(text, order) } else { CommandReply::says(text) }
        }
        Some(_) => CommandReply::orders("Resuming, oldest work first.", order),
        None if is_own => CommandReply::orders("Resuming here, oldest work first.", order),
        None => CommandReply::says("Nothing is stopped: I work whenever something is due."),
    }
}
