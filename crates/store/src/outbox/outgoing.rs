//! An outgoing message before planning: its words, its destination and its occasion.

use reveille_base::types::ChatRef;

/// The occasion of a message, which determines the time of sending and the daily count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutgoingKind {
    /// An answer to messages.
    Reply,
    /// The model speaks unasked, limited per day.
    Tell,
    /// A reminder is due.
    Reminder,
    /// A status: waiting, failed or held work.
    #[default]
    Notice,
    /// A question for a person to decide.
    Approval,
    /// An answer to a command.
    Command,
}

impl OutgoingKind {
    /// The value in the database.
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

/// A message to deliver.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewOutgoing {
    /// The chat; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Markdown.
    pub text: String,
    /// The occasion.
    pub kind: OutgoingKind,
    /// A key that is told only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The forum topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<i64>,
    /// The channel's id of the message to reply to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<i64>,
    /// The cycle that must commit before delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<String>,
    /// Whether to show links as text, because untrusted text may have shaped them: a link that is opened, or fetched for a preview, leaks
    /// its address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links_as_text: bool,
    /// The authors of untrusted text in it, besides those in its cycle's journal. A text from outside a cycle must state them here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<String>,
    /// The buttons under an unasked message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nudge: Option<NewNudge>,
}

/// The data for the buttons under an unasked message.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewNudge {
    /// The title of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The IANA zone of its person.
    pub zone: String,
    /// Whether a button can stop messages of its kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_stop: bool,
    /// The change of the assistant's own orders reported here: a button undoes the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<i64>,
}

impl NewOutgoing {
    /// A plain notice.
    pub fn notice(chat: ChatRef, text: String) -> Self {
        Self { chat, text, kind: OutgoingKind::Notice, ..Self::default() }
    }
}
