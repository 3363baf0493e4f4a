//! `/whoami`: who is speaking, as ids tell it, and what they may do.

use super::{super::batch::Asked, Desk};
use crate::config::CONSOLE_CHAT_ID;

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> String {
    let message = &asked.message;
    text(message.chat_id, message.sender_id, &message.sender_name, desk.is_owners(message.chat_id))
}

fn text(chat_id: i64, sender_id: i64, name: &str, is_owners: bool) -> String {
    if chat_id == CONSOLE_CHAT_ID {
        return "You're at a terminal of my own machine, so you're my owner. You can use every command.".to_owned();
    }
    let name = if name.is_empty() { "somebody without a name" } else { name };
    let group = if chat_id == sender_id { String::new() } else { format!(", in the group {chat_id}") };
    if is_owners {
        let whose = if group.is_empty() { ", my owner" } else { ", my owner's chat" };
        return format!(
            "You're {name} (id {sender_id}){group}{whose}. You can use every command, and I may message you here first."
        );
    }
    format!(
        "You're {name} (id {sender_id}){group}. You can talk to me and use every command. /log, /undo and /retry are about what I \
         did for this chat; a /stop from another chat is lifted there, or by my owner."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_and_what() {
        insta::assert_snapshot!(text(4242, 4242, "Ana", true), @"You're Ana (id 4242), my owner. You can use every command, and I may message you here first.");
        insta::assert_snapshot!(text(-1001, 4242, "", false), @"You're somebody without a name (id 4242), in the group -1001. You can talk to me and use every command. /log, /undo and /retry are about what I did for this chat; a /stop from another chat is lifted there, or by my owner.");
    }
}
