//! Access to outgoing messages, sent and unsent, and to their parts.

use serde::Deserialize;

use super::{Database, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct Outgoing {
    pub(crate) id: i64,
    pub(crate) chat_id: i64,
    #[serde(rename = "message_text")]
    pub(crate) text: String,
    pub(crate) sent_at: Option<String>,
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) taint: Option<String>,
    pub(crate) taken_back_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    pub(crate) outgoing_id: i64,
    pub(crate) state: String,
    pub(crate) attempts: i64,
    pub(crate) repeats: i64,
}

impl Database {
    /// All messages of the outbox, oldest first.
    #[track_caller]
    pub(crate) fn outbox(&self) -> Vec<Outgoing> {
        self.table("outgoing_messages", "id")
    }

    /// The messages of a kind: reply, tell, reminder, notice, command.
    #[track_caller]
    pub(crate) fn outbox_of(&self, kind: &str) -> Vec<Outgoing> {
        self.outbox().into_iter().filter(|message| message.kind == kind).collect()
    }

    /// The texts in the outbox that contain these words.
    #[track_caller]
    pub(crate) fn outbox_with(&self, words: &str) -> Vec<String> {
        self.outbox().into_iter().map(|message| message.text).filter(|text| text.contains(words)).collect()
    }

    #[track_caller]
    pub(crate) fn count_unsent(&self) -> usize {
        self.count("outgoing_messages", "sent_at IS NULL")
    }

    /// The parts of all messages in order.
    #[track_caller]
    pub(crate) fn parts(&self) -> Vec<Part> {
        self.table("outgoing_parts", "outgoing_id, part")
    }

    /// The states of all parts in order.
    #[track_caller]
    pub(crate) fn part_states(&self) -> Vec<String> {
        self.parts().into_iter().map(|part| part.state).collect()
    }

    /// Marks all unsent parts as failed for good.
    #[track_caller]
    pub(crate) fn fail_unsent(&self, error: &str) {
        self.execute(&format!(
            "UPDATE outgoing_parts SET state = 'failed', error = {} WHERE state != 'sent'",
            quoted(error)
        ));
    }

    #[track_caller]
    pub(crate) fn empty_outbox(&self) {
        self.execute("DELETE FROM outgoing_parts; DELETE FROM outgoing_messages");
    }

    /// The texts in the outbox whose key begins with this text.
    #[track_caller]
    pub(crate) fn outbox_under(&self, key: &str) -> Vec<String> {
        let is_under = |found: &Option<String>| found.as_deref().is_some_and(|found| found.starts_with(key));
        self.outbox().into_iter().filter(|message| is_under(&message.key)).map(|message| message.text).collect()
    }

    /// Inserts a past message that was sent.
    #[track_caller]
    pub(crate) fn put_sent(&self, chat: i64, text: &str, at: &str) {
        self.execute(&sent(chat, text, at));
    }

    /// Makes a message the reply to a message in the channel.
    #[track_caller]
    pub(crate) fn put_reply_to(&self, id: i64, channel_message: i64) {
        self.execute(&format!("UPDATE outgoing_messages SET reply_to = {channel_message} WHERE id = {id}"));
    }

    /// Marks a message as tainted by somebody's untrusted text.
    #[track_caller]
    pub(crate) fn taint_outgoing(&self, id: i64, by: &str) {
        self.execute(&format!("UPDATE outgoing_messages SET taint = {} WHERE id = {id}", quoted(by)));
    }

    /// Postpones all parts until a time, because of an error.
    #[track_caller]
    pub(crate) fn put_off_parts(&self, until: &str, error: &str) {
        self.execute(&format!("UPDATE outgoing_parts SET not_before = '{until}', error = {}", quoted(error)));
    }

    /// Sets the state of all parts, and how often they were sent again.
    #[track_caller]
    pub(crate) fn put_parts(&self, state: &str, repeats: i64) {
        self.execute(&format!("UPDATE outgoing_parts SET state = '{state}', repeats = {repeats}, error = NULL"));
    }

    /// Sets the process that is sending all parts.
    #[track_caller]
    pub(crate) fn put_sender(&self, identity: &str) {
        self.execute(&format!("UPDATE outgoing_parts SET sender = {}", quoted(identity)));
    }

    /// Marks the whole outbox as unsent.
    #[track_caller]
    pub(crate) fn send_all_again(&self) {
        self.execute("UPDATE outgoing_parts SET state = 'planned'; UPDATE outgoing_messages SET sent_at = NULL");
    }
}

pub(super) fn sent(chat: i64, text: &str, at: &str) -> String {
    format!(
        "INSERT INTO outgoing_messages (chat_id, message_text, sent_at, created_at) VALUES ({chat}, {}, '{at}', '{at}');",
        quoted(text)
    )
}
