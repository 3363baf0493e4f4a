//! `/stop`: a row that outlives restarts. While the owner's stands, no wake works and nothing but answers to commands is sent. What
//! anybody else orders concerns their chat alone: its cycle ends, its messages are kept.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{parse_time, rfc3339},
    types::ChatRef,
};

use crate::{
    Result, Store,
    sql::{self, OptionalExtension as _, Transaction},
};

/// That all work was ordered to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Stopped {
    /// Since when; a time that can't be read is none.
    pub at: Option<DateTime<Utc>>,
    /// The chat whose order it is; 0 is the console.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
}

impl Store {
    /// Whether all work is stopped. Cheap: a wake asks it before each step, and ten times a second while it waits.
    pub fn stopped(&self) -> Result<Option<Stopped>> {
        let row = self
            .conn
            .prepare("SELECT at, chat_id FROM stopped")?
            .query_row([], |row| Ok(Stopped { at: parse_time(&row.get::<_, String>(0)?), chat: row.get(1)? }));
        Ok(row.optional()?)
    }

    /// The chats besides the owner's that have ordered a stop for themselves, and since when; a time that can't be read is none.
    pub fn stopped_chats(&self) -> Result<BTreeMap<ChatRef, Option<DateTime<Utc>>>> {
        let mut chats = self.conn.prepare("SELECT chat_id, at FROM stopped_chats")?;
        let chats = chats.query_map([], |row| Ok((row.get(0)?, parse_time(&row.get::<_, String>(1)?))))?;
        Ok(chats.collect::<sql::QueryResult<_>>()?)
    }

    /// Whether nothing is to be done for a chat: all work is stopped, or its own.
    pub fn is_stopped_for(&self, chat: Option<ChatRef>) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM stopped) OR EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = ?1)";
        Ok(self.conn.prepare(sql)?.query_row([chat], |row| row.get(0))?)
    }
}

/// It has been stopped since the first order.
pub(crate) fn stop(tx: &Transaction<'_>, chat: ChatRef, is_owners: bool, now: DateTime<Utc>) -> Result<()> {
    let sql = match is_owners {
        true => {
            "INSERT INTO stopped (id, at, chat_id) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET chat_id = excluded.chat_id"
        }
        false => "INSERT INTO stopped_chats (at, chat_id) VALUES (?1, ?2) ON CONFLICT (chat_id) DO NOTHING",
    };
    tx.execute(sql, (rfc3339(now), chat))?;
    Ok(())
}

/// Work goes on for the chat, and by the owner's word for all.
pub(crate) fn resume(tx: &Transaction<'_>, chat: ChatRef, is_owners: bool) -> Result<()> {
    if is_owners {
        tx.execute("DELETE FROM stopped", [])?;
    }
    tx.execute("DELETE FROM stopped_chats WHERE chat_id = ?1", [chat])?;
    Ok(())
}
