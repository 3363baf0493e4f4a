//! `/whoami`: names the speaker, their ids and their permissions.

use reveille_base::types::ChatRef;

use super::{super::batch::Asked, Desk};

pub(super) fn answer(desk: &Desk<'_>, asked: &Asked) -> String {
    let message = &asked.message;
    render_answer(message.chat, message.sender_id, &message.sender_name, desk.is_owners(message.chat))
}

fn render_answer(chat: ChatRef, sender_id: i64, name: &str, is_owners: bool) -> String {
    if chat == ChatRef::TERMINAL {
        return "You're at a terminal on my machine, so you're my owner. You can use every command.".to_owned();
    }
    let name = if name.is_empty() { "someone without a name" } else { name };
    let group = if chat.is_group() { format!(", in the group {chat}") } else { String::new() };
    if is_owners {
        let whose = if group.is_empty() { ", my owner" } else { ", my owner's chat" };
        return format!(
            "You're {name} (id {sender_id}){group}{whose}. You can use every command, and I may message you here first."
        );
    }
    format!(
        "You're {name} (id {sender_id}){group}. You can talk to me and use every command but /jobs, /model, \
         /settings and /restart. /log, /undo and /retry cover what I did for this chat. A /stop from another chat can only be lifted there, or by my owner."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_and_what() {
        insta::assert_snapshot!(render_answer(ChatRef::from_telegram(4242), 4242, "Ana", true), @"You're Ana (id 4242), my owner. You can use every command, and I may message you here first.");
        insta::assert_snapshot!(render_answer(ChatRef::from_telegram(-1001), 4242, "", false), @"You're someone without a name (id 4242), in the group -1001. You can talk to me and use every command but /jobs, /model, /settings and /restart. /log, /undo and /retry cover what I did for this chat. A /stop from another chat can only be lifted there, or by my owner.");
    }
}
