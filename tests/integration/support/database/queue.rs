//! The messages that came in.

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
    /// All messages that came, oldest first.
    #[track_caller]
    pub(crate) fn received(&self) -> Vec<Received> {
        self.table("incoming_messages", "id")
    }

    /// The message of this number.
    #[track_caller]
    pub(crate) fn message(&self, id: i64) -> Received {
        let found = self.received().into_iter().find(|message| message.id == id);
        found.unwrap_or_else(|| panic!("no message {id}"))
    }

    /// What became of a message: `queued` until it is processed.
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

    /// Writes a message into the queue, as a person does who opens the database.
    #[track_caller]
    pub(crate) fn queue_by_hand(&self, chat: i64, text: &str) {
        self.execute(&format!(
            "INSERT INTO incoming_messages (chat_id, message_text) VALUES ({chat}, {})",
            quoted(text)
        ));
    }

    /// Queues this many messages of a chat that came at once.
    #[track_caller]
    pub(crate) fn queue_many(&self, chat: i64, text: &str, at: &str, count: usize) {
        self.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO incoming_messages (chat_id, message_text, received_at) SELECT {chat}, {}, '{at}' FROM n",
            quoted(text)
        ));
    }

    /// A message of the past, which was answered.
    #[track_caller]
    pub(crate) fn put_answered(&self, chat: i64, text: &str, at: &str) {
        self.execute(&answered(chat, text, at));
    }

    /// A conversation of the past: questions, answers and their time.
    #[track_caller]
    pub(crate) fn put_conversation(&self, chat: i64, said: &[(String, String, String)]) {
        let turn = |(question, answer, at): &(String, String, String)| {
            answered(chat, question, at) + &super::outbox::sent(chat, answer, at)
        };
        self.execute(&format!("BEGIN; {} COMMIT", said.iter().map(turn).collect::<String>()));
    }

    /// A message has an outcome now, and is in the queue no more.
    #[track_caller]
    pub(crate) fn put_outcome(&self, id: i64, outcome: &str) {
        self.execute(&format!("UPDATE incoming_messages SET processed = 1, outcome = '{outcome}' WHERE id = {id}"));
    }

    /// All messages are queued again, as if nothing had come of them.
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

    /// What is queued was forwarded from somebody, whose words it is.
    #[track_caller]
    pub(crate) fn forward_queued_from(&self, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET forwarded_from = {} WHERE processed = 0", quoted(name)));
    }

    /// One message was forwarded from somebody.
    #[track_caller]
    pub(crate) fn forward_from(&self, id: i64, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET forwarded_from = {} WHERE id = {id}", quoted(name)));
    }

    /// What is queued quotes somebody, or nobody.
    #[track_caller]
    pub(crate) fn quote_in_queued(&self, words: Option<&str>) {
        let words = words.map_or_else(|| "NULL".to_owned(), quoted);
        self.execute(&format!("UPDATE incoming_messages SET quoted = {words} WHERE processed = 0"));
    }

    /// What is queued is kept until another model than this can answer.
    #[track_caller]
    pub(crate) fn keep_queued_for_another_than(&self, model: &str) {
        self.execute(&format!("UPDATE incoming_messages SET held_for = '{model}' WHERE processed = 0"));
    }

    /// A message is kept until another model than this can answer.
    #[track_caller]
    pub(crate) fn keep_for_another_than(&self, model: &str, id: i64) {
        self.execute(&format!("UPDATE incoming_messages SET held_for = '{model}' WHERE id = {id}"));
    }

    /// What is queued is due in this many seconds by the real clock.
    #[track_caller]
    pub(crate) fn put_off_queued(&self, seconds: u32) {
        self.execute(&format!(
            "UPDATE incoming_messages SET not_before = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+{seconds} seconds')"
        ));
    }

    /// What was put off is due at once.
    #[track_caller]
    pub(crate) fn bring_queued_forward(&self) {
        self.execute("UPDATE incoming_messages SET not_before = NULL");
    }

    /// The queued messages stand in the conversation of the one cycle.
    #[track_caller]
    pub(crate) fn take_up_queued(&self) {
        self.execute(
            "UPDATE incoming_messages SET cycle_id = (SELECT id FROM cycles) WHERE processed = 0;
             INSERT INTO taken_up (cycle_id, message_id)
                 SELECT cycle_id, id FROM incoming_messages WHERE processed = 0 ON CONFLICT DO NOTHING",
        );
    }

    /// A message was given up after three tries.
    #[track_caller]
    pub(crate) fn give_up_message(&self, id: i64) {
        self.put_outcome(id, "dead");
        self.execute(&format!("UPDATE incoming_messages SET attempts = 3 WHERE id = {id}"));
    }

    /// What is queued was sent by somebody of this name.
    #[track_caller]
    pub(crate) fn name_sender_of_queued(&self, name: &str) {
        self.execute(&format!("UPDATE incoming_messages SET sender_name = {} WHERE processed = 0", quoted(name)));
    }

    /// A message has other words now.
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
