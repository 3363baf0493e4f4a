//! References to chats.

use std::{fmt, num::ParseIntError, str::FromStr};

#[cfg(feature = "sql")]
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// The channel that reaches a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelKind {
    /// The terminal of this machine, used by the owner.
    Terminal,
    /// Telegram's Bot API.
    Telegram,
}

impl ChannelKind {
    /// The name in database rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Telegram => "telegram",
        }
    }
}

/// The audience of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChatKind {
    /// One person alone.
    Private,
    /// Several people.
    Group,
}

/// A chat: the origin of messages and the destination of answers.
///
/// Databases, journals, settings and memory store a chat as one number ([`Self::number`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatRef {
    /// The channel that reaches the chat.
    pub channel: ChannelKind,
    /// The channel's own id for the chat.
    pub id: i64,
    /// The audience of the chat.
    pub kind: ChatKind,
}

impl ChatRef {
    /// The owner's chat, shared by all terminals of this machine.
    pub const TERMINAL: Self = Self { channel: ChannelKind::Terminal, id: 0, kind: ChatKind::Private };

    /// The Telegram chat with this id. A private chat has its person's positive id; a group has a negative id (Bot API, "Chat").
    /// Only this function interprets the sign.
    pub const fn from_telegram(id: i64) -> Self {
        let kind = if id < 0 { ChatKind::Group } else { ChatKind::Private };
        Self { channel: ChannelKind::Telegram, id, kind }
    }

    /// Returns the chat for a stored number.
    ///
    /// 0 is the terminal; every other number is a Telegram id of at most 52 bits (Bot API, "Chat"). A further channel can take a
    /// band of larger numbers.
    pub fn from_number(number: i64) -> Self {
        if number == 0 { Self::TERMINAL } else { Self::from_telegram(number) }
    }

    /// The number under which the chat is stored.
    pub fn number(self) -> i64 {
        self.id
    }

    /// Returns true for the terminal of this machine.
    pub fn is_terminal(self) -> bool {
        self.channel == ChannelKind::Terminal
    }

    /// Returns true if several people read the chat.
    pub fn is_group(self) -> bool {
        self.kind == ChatKind::Group
    }

    /// The Telegram id of the only person in a private chat; `None` for groups and the terminal.
    pub fn person_id(self) -> Option<i64> {
        (self.channel == ChannelKind::Telegram && self.kind == ChatKind::Private).then_some(self.id)
    }
}

impl Default for ChatRef {
    fn default() -> Self {
        Self::TERMINAL
    }
}

impl fmt::Display for ChatRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl FromStr for ChatRef {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::from_number)
    }
}

#[cfg(feature = "sql")]
impl ToSql for ChatRef {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.number().into())
    }
}

#[cfg(feature = "sql")]
impl FromSql for ChatRef {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Self::from_number)
    }
}

impl serde::Serialize for ChatRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.number())
    }
}

impl<'de> serde::Deserialize<'de> for ChatRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self::from_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_the_channel_and_who_hears() {
        let kinds = [0, 42, -5].map(|number| {
            let chat = ChatRef::from_number(number);
            assert_eq!(chat.number(), number);
            (chat.is_terminal(), chat.is_group(), chat.person_id())
        });
        assert_eq!(kinds, [(true, false, None), (false, false, Some(42)), (false, true, None)]);
    }

    #[test]
    fn it_is_kept_as_one_number() {
        for number in [0, 42, -1_001_234_567_890] {
            let chat = ChatRef::from_number(number);
            assert_eq!(serde_json::to_string(&chat).unwrap(), number.to_string());
            assert_eq!(serde_json::from_str::<ChatRef>(&number.to_string()).unwrap(), chat);
            assert_eq!(chat.to_string().parse(), Ok(chat));
        }
    }
}
