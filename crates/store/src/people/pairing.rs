//! People who paired with the bot, and the one-time codes for pairing.
//!
//! A code is stored as a hash. A code is open until used, expired, or voided by too many wrong codes. The bot and `bot pair` are
//! separate processes that share only these rows.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    NewOutgoing, Result,
    areas::{People, ReadStore, WriteStore},
    chats::moved,
    outbox::{planned, recipients::withhold_texts},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The number of wrong codes, by any senders, that voids the open codes.
pub const MAX_WRONG_CODES: i64 = 10;

/// Whether the settings list a person too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsListing {
    /// The settings list the person.
    Listed,
    /// Only the pairing admits the person.
    Unlisted,
}

/// A person who paired.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Paired {
    /// The person's numeric id, which is also the id of the private chat.
    pub user_id: i64,
    /// The person's display name at that time.
    pub name: String,
    /// The time of pairing.
    pub at: Option<DateTime<Utc>>,
}

/// A person who sent a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPaired {
    /// The person's numeric id.
    pub user_id: i64,
    /// The person's display name.
    pub name: String,
    /// The code's hash.
    pub hash: String,
    /// The messages to send once paired.
    pub words: Vec<NewOutgoing>,
}

/// The state of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeState {
    /// Unused and valid.
    Open,
    /// Used by this person to pair.
    Used(i64),
    /// Expired, or void because of too many wrong codes.
    Void,
}

/// SQL condition for an open code: unused, within its time, and below the limit of wrong codes. A clock that was set back closes it.
const IS_OPEN: &str = "used_by IS NULL AND wrong < ?2 AND made_at <= ?1 AND expires_at > ?1";

impl<S: ReadStore> People<S> {
    /// The paired people, in order of pairing.
    pub fn list_paired_people(&self) -> Result<Vec<Paired>> {
        let mut statement =
            self.0.conn().prepare("SELECT user_id, name, paired_at FROM paired ORDER BY paired_at, user_id")?;
        let row = |row: &sql::Row<'_>| {
            Ok(Paired {
                user_id: row.get(0)?,
                name: row.get(1)?,
                at: row.get::<_, Option<String>>(2)?.as_deref().and_then(parse_time),
            })
        };
        Ok(statement.query_map([], row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The state of a code.
    pub fn code_state(&self, id: i64, now: DateTime<Utc>) -> Result<CodeState> {
        let sql = format!("SELECT used_by, {IS_OPEN} FROM pairing_codes WHERE id = ?3");
        let found = self
            .0
            .conn()
            .prepare(&sql)?
            .query_row((format_rfc3339(now), MAX_WRONG_CODES, id), |row| {
                Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?))
            })
            .optional()?;
        Ok(match found {
            Some((Some(user_id), _)) => CodeState::Used(user_id),
            Some((None, true)) => CodeState::Open,
            Some((None, false)) | None => CodeState::Void,
        })
    }

    /// The hashes of all open codes.
    pub fn open_codes(&self, now: DateTime<Utc>) -> Result<Vec<String>> {
        let sql = format!("SELECT hash FROM pairing_codes WHERE {IS_OPEN} ORDER BY id");
        let mut statement = self.0.conn().prepare(&sql)?;
        let hashes = statement.query_map((format_rfc3339(now), MAX_WRONG_CODES), |row| row.get(0))?;
        Ok(hashes.collect::<sql::QueryResult<_>>()?)
    }

    /// Returns whether a person was unpaired, and neither paired nor listed since.
    pub fn is_unpaired(&self, user_id: i64) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM unpaired WHERE user_id = ?1)";
        Ok(self.0.conn().prepare(sql)?.query_row([user_id], |row| row.get(0))?)
    }
}

impl<S: WriteStore> People<S> {
    /// Stores a code by its hash, valid until `expires_at`; replaces an earlier code of the same maker. Returns the code's row.
    pub fn offer_code(
        &mut self,
        hash: &str,
        made_by: &str,
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<i64> {
        self.0.write(|tx| {
            tx.execute(
                "DELETE FROM pairing_codes WHERE made_by = ?1 OR expires_at <= ?2",
                (made_by, format_rfc3339(now)),
            )?;
            Ok(tx.query_row(
                "INSERT INTO pairing_codes (hash, made_by, made_at, expires_at) VALUES (?1, ?2, ?3, ?4) RETURNING id",
                (hash, made_by, format_rfc3339(now), format_rfc3339(expires_at)),
                |row| row.get(0),
            )?)
        })
    }

    /// Deletes a code.
    pub fn withdraw_code(&mut self, id: i64) -> Result<()> {
        self.0.write(|tx| Ok(tx.execute("DELETE FROM pairing_codes WHERE id = ?1", [id]).map(drop)?))
    }

    /// Deletes all codes of one maker.
    pub fn withdraw_codes(&mut self, made_by: &str) -> Result<()> {
        self.0.write(|tx| Ok(tx.execute("DELETE FROM pairing_codes WHERE made_by = ?1", [made_by]).map(drop)?))
    }

    /// Unpairs a person and ends their reminders. Unless the settings list the person too, unsent texts to them are withdrawn, and their
    /// unanswered messages leave the queue; these stay visible and can be restored by hand. Returns the number of dropped messages; `None`
    /// if the person wasn't paired.
    pub fn unpair_person(
        &mut self,
        user_id: i64,
        listing: SettingsListing,
        now: DateTime<Utc>,
    ) -> Result<Option<usize>> {
        self.0.write(|tx| {
            let gone = tx.execute("DELETE FROM paired WHERE user_id = ?1", [user_id])?;
            let mut dropped = 0;
            if gone > 0 {
                tx.execute(
                    "UPDATE reminders SET state = 'cancelled' WHERE chat_id = ?1 AND state = 'active'",
                    [user_id],
                )?;
                // Undoing the wake that ended a reminder must not bring the reminder back.
                tx.execute("UPDATE reminders SET ended_by = NULL WHERE chat_id = ?1", [user_id])?;
            }
            if gone > 0 && listing == SettingsListing::Unlisted {
                dropped = tx.execute(
                    "UPDATE incoming_messages SET processed = 1, outcome = 'dropped', processed_at = ?2
                     WHERE chat_id = ?1 AND processed = 0",
                    (user_id, format_rfc3339(now)),
                )?;
                tx.execute(
                    "INSERT INTO unpaired (user_id, at) VALUES (?1, ?2) ON CONFLICT (user_id) DO UPDATE SET at = excluded.at",
                    (user_id, format_rfc3339(now)),
                )?;
                withhold_texts(tx, now)?;
            }
            Ok((gone > 0).then_some(dropped))
        })
    }

    /// Readmits those of `listed` who were unpaired, and groups whose new ids are among them, since the settings list them now. Writes
    /// nothing if there are none.
    pub fn readmit_people(&mut self, listed: &[ChatRef]) -> Result<()> {
        moved::mark_listed_groups(&mut self.0, listed)?;
        for user_id in listed.iter().filter_map(|chat| chat.person_id()) {
            if self.is_unpaired(user_id)? {
                self.0.write(|tx| Ok(tx.execute("DELETE FROM unpaired WHERE user_id = ?1", [user_id]).map(drop)?))?;
            }
        }
        Ok(())
    }
}

/// Uses up an open code and pairs its sender; `None` if the code isn't open. Returns the rows of the planned messages.
pub(crate) fn pair_sender(
    tx: &Transaction<'_>,
    bot_id: i64,
    who: &NewPaired,
    now: DateTime<Utc>,
) -> Result<Option<Vec<i64>>> {
    let sql = format!(
        "UPDATE pairing_codes SET used_by = ?3 WHERE id =
             (SELECT id FROM pairing_codes WHERE {IS_OPEN} AND hash = ?4 LIMIT 1)"
    );
    let used = tx.execute(&sql, (format_rfc3339(now), MAX_WRONG_CODES, who.user_id, &who.hash))?;
    if used != 1 {
        return Ok(None);
    }
    tx.execute(
        "INSERT INTO paired (user_id, name, paired_at, bot_id) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (user_id) DO UPDATE SET name = excluded.name",
        (who.user_id, &who.name, format_rfc3339(now), bot_id),
    )?;
    tx.execute("DELETE FROM unpaired WHERE user_id = ?1", [who.user_id])?;
    let mut rows = Vec::new();
    for message in &who.words {
        rows.extend(planned::insert(tx, message, now)?);
    }
    Ok(Some(rows))
}

/// Counts wrong codes against all open ones.
pub(crate) fn count_wrong(tx: &Transaction<'_>, wrong: u32, now: DateTime<Utc>) -> Result<()> {
    if wrong > 0 {
        let sql = format!("UPDATE pairing_codes SET wrong = wrong + ?3 WHERE {IS_OPEN}");
        tx.execute(&sql, (format_rfc3339(now), MAX_WRONG_CODES, wrong))?;
    }
    Ok(())
}
