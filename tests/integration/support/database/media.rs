//! Access to the files that came with messages.

use serde::Deserialize;

use super::Database;

#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    pub(crate) message_id: i64,
    pub(crate) state: String,
    pub(crate) path: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) not_before: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) listener: Option<i64>,
}

impl Database {
    #[track_caller]
    pub(crate) fn attachments(&self) -> Vec<Attachment> {
        self.table("attachments", "id")
    }

    /// The attachments in a state: wanted, kept, ready, failed.
    #[track_caller]
    pub(crate) fn attachments_in(&self, state: &str) -> Vec<Attachment> {
        self.attachments().into_iter().filter(|attachment| attachment.state == state).collect()
    }

    /// The attachments of a message.
    #[track_caller]
    pub(crate) fn attachments_of(&self, message: i64) -> Vec<Attachment> {
        self.attachments().into_iter().filter(|attachment| attachment.message_id == message).collect()
    }

    /// Inserts a past voice message whose file was fetched but not transcribed.
    #[track_caller]
    pub(crate) fn put_voice_message(&self, chat: i64, path: &str) {
        self.execute(&format!(
            "INSERT INTO incoming_messages (id, chat_id, message_text, kind) VALUES (1, {chat}, '', 'voice');
             INSERT INTO attachments (message_id, kind, file_id, state, path) VALUES (1, 'voice', 'v', 'kept', '{path}')"
        ));
    }
}
