//! The report of the bot that started last, including whether it has reached its channel. An upgrade waits for this report before it
//! removes the old programs.

use reveille_base::process::Identity;

use crate::{
    Result,
    areas::{Maintenance, ReadStore, WriteStore},
    sql::OptionalExtension as _,
    to_json,
};

/// A bot's report on itself, written once the bot has opened the database.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BotReport {
    /// The process.
    pub bot: Identity,
    /// The program's version.
    pub version: String,
    /// Whether the channel has answered the bot. Otherwise the network was down at its first request.
    pub has_reached: bool,
}

impl<S: ReadStore> Maintenance<S> {
    /// The report of the latest bot with this token.
    pub fn find_bot_report(&self, bot_id: i64) -> Result<Option<BotReport>> {
        let text: Option<Option<String>> = self
            .0
            .store()
            .conn
            .prepare("SELECT reported FROM poll_state WHERE bot_id = ?1")?
            .query_row([bot_id], |row| row.get(0))
            .optional()?;
        Ok(text.flatten().and_then(|text| serde_json::from_str(&text).ok()))
    }
}

impl<S: WriteStore> Maintenance<S> {
    /// Writes a bot's report, if it has changed. A power cut may lose it, but the process is gone then too.
    pub fn save_bot_report(&mut self, bot_id: i64, report: &BotReport) -> Result<()> {
        if self.find_bot_report(bot_id)?.as_ref() == Some(report) {
            return Ok(());
        }
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, reported) VALUES (?1, 0, ?2)
                 ON CONFLICT (bot_id) DO UPDATE SET reported = excluded.reported",
                (bot_id, to_json(report)),
            )?;
            Ok(())
        })
    }
}
