//! The status lines that stand in chats, and how far a cycle is, for the bot that shows it. Only the bot writes here: a line is
//! its own message, and says nothing that the answer depends on.

use reveille_base::types::ChatRef;

use crate::{Entry, Result, Store, sql};

/// A line that stands in a chat, or was about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusLine {
    /// The cycle that it tells of.
    pub cycle_id: String,
    /// Where it stands.
    pub chat: ChatRef,
    /// The channel's id of it; `None` when nobody knows whether it was sent.
    pub message_id: Option<i64>,
}

impl Store {
    /// Writes down that a line is about to be sent; false when the cycle has one already.
    pub fn begin_status_line(&mut self, cycle_id: &str, chat: ChatRef) -> Result<bool> {
        self.write(|tx| {
            let sql = "INSERT INTO status_lines (cycle_id, chat_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            Ok(tx.execute(sql, (cycle_id, chat))? == 1)
        })
    }

    /// Writes down under which id it was sent.
    pub fn status_line_sent(&mut self, cycle_id: &str, message_id: i64) -> Result<()> {
        self.write(|tx| {
            let sql = "UPDATE status_lines SET channel_message_id = ?2 WHERE cycle_id = ?1";
            tx.execute(sql, (cycle_id, message_id))?;
            Ok(())
        })
    }

    /// Forgets a line: it was taken away, or never will be.
    pub fn forget_status_line(&mut self, cycle_id: &str) -> Result<()> {
        self.write_relaxed(|tx| {
            tx.execute("DELETE FROM status_lines WHERE cycle_id = ?1", [cycle_id])?;
            Ok(())
        })
    }

    /// All of them, those that a bot left that was killed among them.
    pub fn status_lines(&self) -> Result<Vec<StatusLine>> {
        let mut statement = self.conn.prepare("SELECT cycle_id, chat_id, channel_message_id FROM status_lines")?;
        let lines = statement.query_map([], |row| {
            Ok(StatusLine { cycle_id: row.get(0)?, chat: row.get(1)?, message_id: row.get(2)? })
        })?;
        Ok(lines.collect::<sql::QueryResult<_>>()?)
    }

    /// What a cycle has called and what came of it, in order, without its conversation. What can't be read is left out.
    pub fn calls_of(&self, cycle_id: &str) -> Result<Vec<Entry>> {
        let mut statement = self.conn.prepare(
            "SELECT body FROM cycle_journal WHERE cycle_id = ?1 AND kind IN ('called', 'outcome') ORDER BY seq",
        )?;
        let bodies = statement.query_map([cycle_id], |row| row.get::<_, String>(0))?;
        let bodies = bodies.collect::<sql::QueryResult<Vec<_>>>()?;
        Ok(bodies.iter().filter_map(|body| serde_json::from_str(body).ok()).collect())
    }
}
