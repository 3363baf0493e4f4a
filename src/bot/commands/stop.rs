//! `/stop` and `/resume`. The owner's order is for all work; anybody else's, in a group too, for their chat alone.

use super::{super::batch::Asked, Desk, Reply};
use crate::queue::Order;

pub(super) fn stop(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Stop { is_owners };
    let since = desk.stopped_for(asked).map(|at| at.map(|at| format!(" since {}", desk.local(at))).unwrap_or_default());
    match (is_owners, since) {
        (true, _) if desk.stopped.is_none() => Reply::orders(
            "Stopped. Whatever I was doing ends now and is kept; I start nothing, remind of nothing and say nothing but answers to \
             commands until /resume. /undo takes back what I did last.",
            order,
        ),
        // Ordered again: should something still run, it is ended again.
        (true, since) => {
            Reply::orders(format!("All work is stopped already{}. /resume goes on.", since.unwrap_or_default()), order)
        }
        (false, None) => Reply::orders(
            "Stopped. What I was doing for this chat ends now and is kept, and what you write here waits until /resume. Reminders \
             still come.",
            order,
        ),
        (false, Some(since)) if desk.stopped.is_none() => {
            Reply::orders(format!("I have stopped already{since}. /resume goes on."), order)
        }
        (false, Some(since)) => {
            Reply::says(format!("My owner has stopped all work{since}. What you write here is kept."))
        }
    }
}

pub(super) fn resume(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let is_owners = desk.is_by_owner(asked);
    let order = Order::Resume { is_owners };
    let is_own = desk.stopped_chats.contains_key(&asked.message.chat_id);
    match desk.stopped {
        Some(_) if !is_owners => {
            let text = "My owner has stopped all work: it goes on by their word.";
            if is_own { Reply::orders(text, order) } else { Reply::says(text) }
        }
        Some(_) => Reply::orders("I go on: with what was interrupted first, then with what has come since.", order),
        None if is_own => Reply::orders(
            "I go on here: with what was interrupted first, then with what you have written since.",
            order,
        ),
        None => Reply::says("Nothing is stopped: I work whenever something is due."),
    }
}
