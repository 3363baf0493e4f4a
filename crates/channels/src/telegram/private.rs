//! Private texts to the bot from anybody, for pairing before a person is allowed.

use super::{
    RawUpdate,
    incoming::{MessageBody, parse},
    said::user_name,
};

/// A person's own text in their private chat with the bot. It is kept only if it holds an open pairing code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateText {
    /// The person's id, equal to the chat's.
    pub user_id: i64,
    /// The name the person chose.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Reads a private text. `None` for edits, forwards, bots, groups, and anything but text.
pub fn read_private_text(update: &RawUpdate) -> Option<PrivateText> {
    let (kind, MessageBody::Said(said)) = parse(&update.raw)? else { return None };
    let (chat, from) = (said.chat.as_ref()?, said.from.as_ref().filter(|from| !from.is_bot)?);
    let is_own = kind == "message"
        && chat.is_private()
        && Some(chat.id.0) == said.sender_id()
        && !said.is_disguised
        && said.around.forwarded_from.is_none();
    let text = said.text().filter(|_| is_own)?;
    Some(PrivateText { user_id: chat.id.0, name: user_name(from), text: text.to_owned() })
}
