//! What a message out is before it is planned: its words, where they go, and on what occasion they are said.

use reveille_base::types::ChatRef;

/// On what occasion a message is sent. What leaves when, and what is counted, depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutgoingKind {
    /// It answers messages.
    Reply,
    /// The model speaks unasked, so often a day at most.
    Tell,
    /// A reminder is due.
    Reminder,
    /// How it goes: what waits, what failed, what was put aside.
    #[default]
    Notice,
    /// A question that a person decides.
    Approval,
    /// It answers a command.
    Command,
}

impl OutgoingKind {
    /// As the database writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Tell => "tell",
            Self::Reminder => "reminder",
            Self::Notice => "notice",
            Self::Approval => "approval",
            Self::Command => "command",
        }
    }
}

/// A message to be delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewOutgoing {
    /// Where to; 0 is the console.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Markdown.
    pub text: String,
    /// On what occasion.
    pub kind: OutgoingKind,
    /// The same key is never told twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Forum topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
    /// The channel's id of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<i64>,
    /// Not delivered before this cycle has committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<String>,
    /// Its links are shown as text: what others wrote may have had a hand in it, and a link that is opened, or fetched for a preview,
    /// carries its address out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links_as_text: bool,
    /// Whose bytes it may hold, besides those that the journal of its cycle tells of: what isn't written by a cycle says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<String>,
    /// That it is said of our own accord, with buttons under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nudge: Option<NewNudge>,
}

/// What the buttons need under what is said unasked.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewNudge {
    /// The title of the one task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// IANA zone of its person.
    pub zone: String,
    /// Whether it can be said that no more of its kind is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_stop: bool,
    /// The change of the assistant's own orders that it reports on: a button takes that back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<i64>,
}

impl NewOutgoing {
    /// A notice, of which nothing else is known.
    pub fn notice(chat: ChatRef, text: String) -> Self {
        Self { chat, text, kind: OutgoingKind::Notice, ..Self::default() }
    }
}
