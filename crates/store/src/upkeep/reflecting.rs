//! The last reflection, the activity since then, and people's own words of the last weeks.

use chrono::{DateTime, NaiveDate, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    Result,
    areas::{Maintenance, ReadStore},
    sql::{self, OptionalExtension as _},
};

/// The prefix of keys of reflected days: such a key with a day means that the days before it are done.
pub const REFLECTED: &str = "reflected/";

/// A person's own words: the row, the chat, the time, and the text.
pub type OwnWords = (i64, ChatRef, Option<DateTime<Utc>>, String);

impl<S: ReadStore> Maintenance<S> {
    /// The day of the last reflection.
    pub fn last_reflection(&self) -> Result<Option<NaiveDate>> {
        // By the key's index: `0` comes after `/`.
        let sql = "SELECT key FROM handled WHERE key > 'reflected/' AND key < 'reflected0' ORDER BY key DESC LIMIT 1";
        let key: Option<String> = self.0.conn().prepare(sql)?.query_row([], |row| row.get(0)).optional()?;
        Ok(key.as_deref().and_then(|key| key.strip_prefix(REFLECTED)?.parse().ok()))
    }

    /// The start of the first real cycle between the two times. Leaves out reflections, initiative cycles, and cycles of reminders alone.
    /// Uses the id, which starts with the time.
    pub fn first_worked_between(&self, since: DateTime<Utc>, until: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
        let id = |at: DateTime<Utc>| at.format("%Y%m%dT%H%M%SZ").to_string();
        let sql = "SELECT started_at FROM cycles WHERE id >= ?1 AND id < ?2 AND reasons NOT LIKE '[\"reflection on%'
                   AND reasons NOT LIKE '[\"the time for something useful unasked%'
                   AND NOT (model = 'none' AND reasons LIKE '[\"reminder %')
                   ORDER BY id LIMIT 1";
        let mut statement = self.0.conn().prepare(sql)?;
        let at: Option<String> = statement.query_row((id(since), id(until)), |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The arrival time of the last message.
    pub fn find_last_message_time(&self) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT received_at FROM incoming_messages ORDER BY id DESC LIMIT 1";
        let at: Option<String> = self.0.conn().prepare(sql)?.query_row([], |row| row.get(0)).optional()?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The messages since `since` that are entirely people's own words, oldest first, at most `limit`.
    pub fn own_words_since(&self, since: DateTime<Utc>, limit: usize) -> Result<Vec<OwnWords>> {
        let mut statement = self.0.conn().prepare(
            "SELECT id, chat_id, received_at, message_text FROM incoming_messages
             WHERE received_at >= ?1 AND kind = 'text' AND forwarded_from IS NULL AND quoted IS NULL
                 AND CAST(message_text AS TEXT) = message_text AND message_text NOT LIKE '/%'
             ORDER BY id DESC LIMIT ?2",
        )?;
        let rows = statement.query_map((format_rfc3339(since), limit as i64), |row| {
            let at: String = row.get(2)?;
            Ok((row.get(0)?, row.get(1)?, parse_time(&at), row.get(3)?))
        })?;
        let mut messages = rows.collect::<sql::QueryResult<Vec<OwnWords>>>()?;
        messages.reverse();
        Ok(messages)
    }
}
