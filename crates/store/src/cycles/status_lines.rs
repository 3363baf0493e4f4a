//! The status lines in chats, and a cycle's progress, for the bot that shows both. Only the bot writes here: a line is a message of
//! the bot's own, and no answer depends on it.

use reveille_base::types::ChatRef;

use crate::{
    Entry, Result,
    areas::{ReadStore, StatusLines, WriteStore},
    sql,
};

/// A status line in a chat, or one about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLine {
    /// The cycle it reports on.
    pub cycle_id: String,
    /// The chat.
    pub chat: ChatRef,
    /// The channel's id of the message; `None` if it is unknown whether the line was sent.
    pub message_id: Option<i64>,
}

impl<S: ReadStore> StatusLines<S> {
    /// All status lines, including those of a bot that was killed.
    pub fn status_lines(&self) -> Result<Vec<StatusLine>> {
        let mut statement = self.0.conn().prepare("SELECT cycle_id, chat_id, channel_message_id FROM status_lines")?;
        let lines = statement.query_map([], |row| {
            Ok(StatusLine { cycle_id: row.get(0)?, chat: row.get(1)?, message_id: row.get(2)? })
        })?;
        Ok(lines.collect::<sql::QueryResult<_>>()?)
    }

    /// The calls of a cycle and their outcomes, in order, without the conversation. Unreadable lines are left out.
    pub fn list_cycle_calls(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let mut statement = self.0.conn().prepare(
            "SELECT body FROM cycle_journal WHERE cycle_id = ?1 AND kind IN ('called', 'outcome') ORDER BY seq",
        )?;
        let bodies = statement.query_map([cycle_id], |row| row.get::<_, String>(0))?;
        let bodies = bodies.collect::<sql::QueryResult<Vec<_>>>()?;
        Ok(bodies.iter().filter_map(|body| serde_json::from_str(body).ok()).collect())
    }
}

impl<S: WriteStore> StatusLines<S> {
    /// Records that a line is about to be sent. `false` if the cycle has a line already.
    pub fn begin_status_line(&mut self, cycle_id: &str, chat: ChatRef) -> Result<bool> {
        self.0.write(|tx| {
            let sql = "INSERT INTO status_lines (cycle_id, chat_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            Ok(tx.execute(sql, (cycle_id, chat))? == 1)
        })
    }

    /// Records the id of the sent line.
    pub fn record_sent_status_line(&mut self, cycle_id: &str, message_id: i64) -> Result<()> {
        self.0.write(|tx| {
            let sql = "UPDATE status_lines SET channel_message_id = ?2 WHERE cycle_id = ?1";
            tx.execute(sql, (cycle_id, message_id))?;
            Ok(())
        })
    }

    /// Deletes the row of a line that wasn't sent, was removed from its chat, or can't be removed.
    pub fn forget_status_line(&mut self, cycle_id: &str) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("DELETE FROM status_lines WHERE cycle_id = ?1", [cycle_id])?;
            Ok(())
        })
    }
}
