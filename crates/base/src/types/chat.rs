//! Which chat is meant.

use std::{fmt, num::ParseIntError, str::FromStr};

#[cfg(feature = "sql")]
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// By which channel a chat is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelKind {
    /// This machine, where the owner sits.
    Terminal,
    /// Telegram's Bot API.
    Telegram,
}

impl ChannelKind {
    /// Its name, as rows hold it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Telegram => "telegram",
        }
    }
}

/// Who hears what is said in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChatKind {
    /// One person alone.
    Private,
    /// Several people.
    Group,
}

/// A chat: where words come from, and where answers go.
///
/// Databases, journals, settings and memory keep it as one number ([`Self::number`]), as they always have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatRef {
    /// The channel that reaches it.
    pub channel: ChannelKind,
    /// The channel's own number of it.
    pub id: i64,
    /// Who hears what is said in it.
    pub kind: ChatKind,
}

impl ChatRef {
    /// All terminals of this machine are one chat, its owner's.
    pub const TERMINAL: Self = Self { channel: ChannelKind::Terminal, id: 0, kind: ChatKind::Private };

    /// The chat of Telegram's with this id. A private chat's id is its person's, and is positive; a group's is negative
    /// (Bot API, "Chat"). No other place reads a sign.
    pub const fn telegram(id: i64) -> Self {
        let kind = if id < 0 { ChatKind::Group } else { ChatKind::Private };
        Self { channel: ChannelKind::Telegram, id, kind }
    }

    /// The chat that a stored number means.
    ///
    /// 0 is the terminal, all else is Telegram's, whose ids have at most 52 bits (Bot API, "Chat"). A further channel takes
    /// a band of numbers above those.
    pub fn from_number(number: i64) -> Self {
        if number == 0 { Self::TERMINAL } else { Self::telegram(number) }
    }

    /// The number that stands for it wherever it is kept.
    pub fn number(self) -> i64 {
        self.id
    }

    /// Whether it is this machine's.
    pub fn is_terminal(self) -> bool {
        self.channel == ChannelKind::Terminal
    }

    /// Whether several people hear what is said in it.
    pub fn is_group(self) -> bool {
        self.kind == ChatKind::Group
    }

    /// Who alone speaks in it, by the channel's number of them; none in a group and at the terminal.
    pub fn person(self) -> Option<i64> {
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
            (chat.is_terminal(), chat.is_group(), chat.person())
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
