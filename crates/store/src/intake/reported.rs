//! Which bot came up last, and whether it has reached its channel: what an upgrade waits for before the programs of before may go.

use reveille_base::process::Identity;

use crate::{Result, Store, json, sql::OptionalExtension as _};

/// What a bot writes down of itself once it works on the database.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BotReport {
    /// Its process.
    pub bot: Identity,
    /// Its program's version.
    pub version: String,
    /// Whether the channel has answered it. Else the network was away when it asked first.
    pub has_reached: bool,
}

impl Store {
    /// The bot that came up last with this token.
    pub fn reported(&self, bot_id: i64) -> Result<Option<BotReport>> {
        let text: Option<Option<String>> = self
            .conn
            .prepare("SELECT reported FROM poll_state WHERE bot_id = ?1")?
            .query_row([bot_id], |row| row.get(0))
            .optional()?;
        Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Writes that down, unless it stands there already. What a power cut takes of it is of a process that is gone, too.
    pub fn report_in(&mut self, bot_id: i64, report: &BotReport) -> Result<()> {
        if self.reported(bot_id)?.as_ref() == Some(report) {
            return Ok(());
        }
        self.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, reported) VALUES (?1, 0, ?2)
                 ON CONFLICT (bot_id) DO UPDATE SET reported = excluded.reported",
                (bot_id, json(report)),
            )?;
            Ok(())
        })
    }
}
