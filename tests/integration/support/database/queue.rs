//! Access to incoming messages.

use serde::Deserialize;

use super::{Database, flag, quoted};

#[derive(Debug, Deserialize)]
pub(crate) struct Received {
    pub(crate) id: i64,
    pub(crate) chat_id: i64,
    #[serde(rename = "message_text")]
    pub(crate) text: String,
    pub(crate) kind: String,
    #[serde(rename = "processed", deserialize_with = "flag")]
    pub(crate) is_processed: bool,
    pub(crate) outcome: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) held_for: Option<String>,
    pub(crate) raw: Option<String>,
    pub(crate) thread_id: Option<i64>,
    pub(crate) quoted: Option<String>,
    pub(crate) forwarded_from: Option<String>,
    pub(crate) channel: Option<String>,
    pub(crate) update_id: Option<i64>,
}

impl Database {
    /// All incoming messages, oldest first.
    #[track_caller]
    pub(crate) fn received(&self) -> Vec<Received> {
        self.table("incoming_messages", "id")
    }

    /// Returns the message with this id.
    #[track_caller]
    pub(crate) fn message(&self, id: i64) -> Received {
        let found = self.received().into_iter().find(|message| message.id == id);
        found.unwrap_or_else(|| panic!("no message {id}"))
    }

    /// The outcome of a message; `queued` until it is processed.
    #[track_caller]
    pub(crate) fn outcome(&self, id: i64) -> String {
        let message = self.message(id);
        if message.is_processed { message.outcome.unwrap_or_default() } else { "queued".to_owned() }
    }

    #[track_caller]
    pub(crate) fn count_received(&self) -> usize {
        self.count("incoming_messages", "TRUE")
    }

    #[track_caller]
    pub(crate) fn count_queued(&self) -> usize {
        self.count("incoming_messages", "processed = 0")
    }

    #[track_caller]
    pub(crate) fn count_processed(&self) -> usize {
        self.count("incoming_messages", "processed = 1")
    }

    /// Inserts a message into the queue, as a person might do by hand.
    #[track_caller]
    pub(crate) fn queue_by_hand(&self, chat: i64, text: &str) {
        self.execute(&format!(
            "INSERT INTO incoming_messages (chat_id, message_text) VALUES ({chat}, {})",
            quoted(text)
        ));
    }

    /// Queues this many messages of a chat, all received at the same time.
    #[track_caller]
    pub(crate) fn queue_many(&self, chat: i64, text: &str, at: &str, count: usize) {
        self.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO incoming_messages (chat_id, message_text, received_at) SELECT {chat}, {}, '{at}' FROM n",
            quoted(text)
        ));
    }

    /// Inserts a past message that was answered.
    #[track_caller]
    pub(crate) fn put_answered(&self, chat: i64, text: &str, at: &str) {
        self.execute(&answered(chat, text, at));
    }

    /// Inserts a past conversation: questions, answers and their times.
    #[track_caller]
    pub(crate) fn put_conversation(&self, chat: i64, said: &[(String, String, String)]) {
        let turn = |(question, answer, at): &(String, String, String)| {
            answered(chat, question, at) + &super::outbox::sent(chat, answer, at)
        };
        self.execute(&format!("BEGIN; {} COMMIT", said.iter().map(turn).collect::<String>()));
    }

    /// Sets the outcome of a message, which removes it from the queue.
    #[track_caller]
    pub(crate) fn put_outcome(&self, id: i64, outcome: &str) {
        self.execute(&format!("UPDATE incoming_messages SET processed = 1, outcome = '{outcome}' WHERE id = {id}"));
    }

    /// Queues all messages again, as if they had never been processed.
    #[track_caller]
    pub(crate) fn queue_all_again(&self) {
        self.execute(
            "UPDATE incoming_messages SET processed = 0, outcome = NULL, processed_at = NULL, not_before = NULL",
        );
    }

    #[track_caller]
    pub(crate) fn empty_queue(&self) {
        self.execute("DELETE FROM incoming_messages");
    }

    /// Marks all queued messages as forwarded from somebody.
    #[track_caller]
    pub(crate) fn forward_queued_from(&self, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET forwarded_from = {} WHERE processed = 0", quoted(name)));
    }

    /// Marks one message as forwarded from somebody.
    #[track_caller]
    pub(crate) fn forward_from(&self, id: i64, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET forwarded_from = {} WHERE id = {id}", quoted(name)));
    }

    /// Sets or removes the quotation in all queued messages.
    #[track_caller]
    pub(crate) fn quote_in_queued(&self, words: Option<&str>) {
        let words = words.map_or_else(|| "NULL".to_owned(), quoted);
        self.execute(&format!("UPDATE incoming_messages SET quoted = {words} WHERE processed = 0"));
    }

    /// Holds all queued messages until a model other than this one can answer.
    #[track_caller]
    pub(crate) fn keep_queued_for_another_than(&self, model: &str) {
        self.execute(&format!("UPDATE incoming_messages SET held_for = '{model}' WHERE processed = 0"));
    }

    /// Holds a message until a model other than this one can answer.
    #[track_caller]
    pub(crate) fn keep_for_another_than(&self, model: &str, id: i64) {
        self.execute(&format!("UPDATE incoming_messages SET held_for = '{model}' WHERE id = {id}"));
    }

    /// Postpones all messages by this many seconds of the real clock.
    #[track_caller]
    pub(crate) fn put_off_queued(&self, seconds: u32) {
        self.execute(&format!(
            "UPDATE incoming_messages SET not_before = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+{seconds} seconds')"
        ));
    }

    /// Makes postponed messages due at once.
    #[track_caller]
    pub(crate) fn bring_queued_forward(&self) {
        self.execute("UPDATE incoming_messages SET not_before = NULL");
    }

    /// Adds the queued messages to the conversation of the only cycle.
    #[track_caller]
    pub(crate) fn take_up_queued(&self) {
        self.execute(
            "UPDATE incoming_messages SET cycle_id = (SELECT id FROM cycles) WHERE processed = 0;
             INSERT INTO taken_up (cycle_id, message_id)
                 SELECT cycle_id, id FROM incoming_messages WHERE processed = 0 ON CONFLICT DO NOTHING",
        );
    }

    /// Marks a message as given up after three attempts.
    #[track_caller]
    pub(crate) fn give_up_message(&self, id: i64) {
        self.put_outcome(id, "dead");
        self.execute(&format!("UPDATE incoming_messages SET attempts = 3 WHERE id = {id}"));
    }

    /// Sets the sender's name of all queued messages.
    #[track_caller]
    pub(crate) fn name_sender_of_queued(&self, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET sender_name = {} WHERE processed = 0", quoted(name)));
    }

    /// Replaces the text of a message.
    #[track_caller]
    pub(crate) fn put_text(&self, id: i64, text: &str) {
        self.execute(&format!("UPDATE incoming_messages SET message_text = {} WHERE id = {id}", quoted(text)));
    }
}

fn answered(chat: i64, text: &str, at: &str) -> String {
    format!(
        "INSERT INTO incoming_messages (chat_id, message_text, received_at, processed, outcome, sender_name)
         VALUES ({chat}, {}, '{at}', 1, 'answered', 'Ann');",
        quoted(text)
    )
}
