//! What somebody wrote to the bot in private in their own words, whoever they are: for pairing, before anybody may speak.

use serde_json::Value;

use super::{
    RawUpdate,
    envelope::{ChatType, Envelope},
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
    let fields: Value = serde_json::from_str(update.raw.get()).ok()?;
    let envelope = Envelope(fields.get("message")?);
    let user_id = envelope.sender_id().filter(|id| *id > 0 && Some(*id) == envelope.chat_id())?;
    let is_own = envelope.chat_type() == ChatType::Private
        && !envelope.is_in_the_name_of_a_chat()
        && envelope.forwarded_from().is_none()
        && envelope.0.pointer("/from/is_bot") != Some(&Value::Bool(true));
    let text = envelope.0["text"].as_str().filter(|_| is_own)?;
    Some(PrivateText { user_id, name: envelope.sender_name(), text: text.to_owned() })
}
