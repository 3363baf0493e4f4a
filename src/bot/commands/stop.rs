//! `/stop` and `/resume`.

use super::{super::batch::Asked, Desk, Reply};
use crate::queue::Order;

pub(super) fn stop(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let order = Order::Stop { is_owners: desk.is_owners(asked.message.chat_id) };
    match desk.stopped {
        None => Reply::orders(
            "Stopped. New messages and reminders will wait. Send /resume to continue; /undo takes back what I did last.",
            order,
        ),
        // Ordered again: should something still run, it is ended again.
        Some(stopped) => {
            let since = stopped.at.map(|at| format!(" since {}", desk.local(at))).unwrap_or_default();
            Reply::orders(format!("Stopped already{since}. Send /resume to continue."), order)
        }
    }
}

/// Who has stopped it goes on with it, or the owner.
pub(super) fn resume(desk: &Desk<'_>, asked: &Asked) -> Reply {
    let chat_id = asked.message.chat_id;
    match desk.stopped {
        None => Reply::says("Nothing is stopped: I work whenever something is due."),
        Some(stopped) if stopped.chat_id != chat_id && !desk.is_owners(chat_id) => {
            Reply::says("I was stopped in another chat: send /resume there, or ask my owner to.")
        }
        Some(_) => Reply::orders("Resuming, oldest work first.", Order::Resume),
    }
}
