//! `/retry [number]`: queues messages again that an undo has put on hold or that were given up.

use reveille_base::words::count;
use reveille_store::{Order, Result};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    let chat = asked.message.chat;
    if !asked.args.is_empty() {
        let id = asked.args.trim_start_matches('#').parse().ok();
        let of = id.map(|id| desk.store.inbox().retryable(id)).transpose()?.flatten();
        return Ok(match (id, of) {
            (Some(id), Some(of)) if of == chat || desk.is_owners(chat) => again(desk, asked, vec![id]),
            _ => CommandReply::says("I have no message of that number on hold here. /retry alone takes the last."),
        });
    }
    let mut messages = desk.store.undos().undone_messages(chat)?;
    if messages.is_empty() {
        let dead = desk.store.inbox().dead_letters()?;
        messages = dead.iter().filter(|message| message.chat == chat).map(|message| message.id).collect();
    }
    Ok(match messages.as_slice() {
        [] => CommandReply::says("There's nothing to try again: nothing here was undone or given up."),
        _ => again(desk, asked, messages),
    })
}

fn again(desk: &Desk<'_>, asked: &Asked, messages: Vec<i64>) -> CommandReply {
    let when = if desk.stopped_for(asked).is_some() { " after /resume" } else { "" };
    let text = format!("Trying {} again{when}.", count(messages.len(), "message"));
    CommandReply::orders(text, Order::Retry { messages })
}
