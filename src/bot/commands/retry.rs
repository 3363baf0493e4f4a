//! `/retry [number]`: queues messages again that an undo has put on hold or that were given up.

use reveille_base::words::format_count;
use reveille_store::{Order, Result};

use super::{super::batch::Asked, CommandReply, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> Result<CommandReply> {
    let chat = asked.message.chat;
    if !asked.args.is_empty() {
        let id = asked.args.trim_start_matches('#').parse().ok();
        let of = id.map(|id| desk.store.inbox().find_retryable_chat(id)).transpose()?.flatten();
        return Ok(match (id, of) {
            (Some(id), Some(of)) if of == chat || desk.is_owners(chat) => retry_messages(desk, asked, vec![id]),
            _ => CommandReply::from_text(
                "There's no message with that number on hold here. /retry alone retries the last one.",
            ),
        });
    }
    let mut messages = desk.store.undos().undone_messages(chat)?;
    if messages.is_empty() {
        let dead = desk.store.inbox().dead_letters()?;
        messages = dead.iter().filter(|message| message.chat == chat).map(|message| message.id).collect();
    }
    Ok(match messages.as_slice() {
        [] => CommandReply::from_text("There's nothing to try again: nothing here was undone or given up."),
        _ => retry_messages(desk, asked, messages),
    })
}

fn retry_messages(desk: &Desk<'_>, asked: &Asked, messages: Vec<i64>) -> CommandReply {
    let when = if desk.find_stop_time(asked).is_some() { " after /resume" } else { "" };
    let text = format!("Trying {} again{when}.", format_count(messages.len(), "message"));
    CommandReply::with_order(text, Order::Retry { messages })
}
