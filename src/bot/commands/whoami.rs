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
    let chat = if chat_id == sender_id {
        "This is our private chat".to_owned()
    } else {
        format!("This is the group {chat_id}")
    };
    let may = if is_owners {
        "It is the owner's: I speak here unasked, and you may use every command, on whatever I did for any chat."
    } else {
        "You may talk to me and use every command; /log, /undo and /retry concern what I did for this chat, and a /stop of \
         another chat is lifted there or by the owner."
    };
    format!("You are {name}, id {sender_id}. {chat}. {may}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_and_what() {
        insta::assert_snapshot!(text(4242, 4242, "Ana", true), @"You are Ana, id 4242. This is our private chat. It is the owner's: I speak here unasked, and you may use every command, on whatever I did for any chat.");
        insta::assert_snapshot!(text(-1001, 4242, "", false), @"You are somebody without a name, id 4242. This is the group -1001. You may talk to me and use every command; /log, /undo and /retry concern what I did for this chat, and a /stop of another chat is lifted there or by the owner.");
    }
}
