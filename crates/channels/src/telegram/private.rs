//! What somebody wrote to the bot in private in their own words, whoever they are: for pairing, before anybody may speak.

use super::{
    RawUpdate,
    incoming::{MessageBody, parse},
    said::user_name,
};

/// A person's own text in their private chat with the bot. Nothing of it is kept unless it pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateText {
    /// The person's id, which is the chat's, too.
    pub user_id: i64,
    /// What they call themselves.
    pub name: String,
    /// The words.
    pub text: String,
}

/// Reads it; `None` for an edit, a forward, a bot, a group, and whatever isn't a text.
pub fn private_text(update: &RawUpdate) -> Option<PrivateText> {
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
