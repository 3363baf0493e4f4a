//! `/stop` and `/resume`.

use super::{super::batch::Asked, Desk, Reply};
use crate::queue::Order;

pub(super) fn stop(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let order = Order::Stop { is_owners: desk.is_owners(asked.message.chat_id) };
    match desk.stopped {
        None => Reply::orders(
            "Stopped. Whatever I was doing ends now and is kept; I start nothing, remind of nothing and say nothing but answers to \
             commands until /resume. /undo takes back what I did last.",
            order,
        ),
        // Ordered again: should something still run, it is ended again.
        Some(stopped) => {
            let since = stopped.at.map(|at| format!(" since {}", desk.local(at))).unwrap_or_default();
            Reply::orders(format!("All work is stopped already{since}. /resume goes on."), order)
        }
    }
}

/// Who has stopped it goes on with it, or the owner.
pub(super) fn resume(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let chat_id = asked.message.chat_id;
    match desk.stopped {
        None => Reply::says("Nothing is stopped: I work whenever something is due."),
        Some(stopped) if stopped.chat_id != chat_id && !desk.is_owners(chat_id) => {
            Reply::says("All work was stopped in another chat: it goes on from there, or by the owner's word.")
        }
        Some(_) => {
            Reply::orders("I go on: with what was interrupted first, then with what has come since.", Order::Resume)
        }
    }
}
