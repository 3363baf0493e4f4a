//! `/stop`: a row that outlives restarts. The owner's stop halts every wake and all sending except answers to commands. A guest's stop
//! concerns that guest's chat alone: its cycle ends, its messages are kept.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use crate::{
    Result,
    areas::{Chats, ReadStore},
    sql::{self, OptionalExtension as _, Transaction},
};

/// The owner's order to stop all work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Stopped {
    /// The time of the order; `None` if the stored time is unreadable.
    pub at: Option<DateTime<Utc>>,
    /// The chat that gave the order; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
}

impl<S: ReadStore> Chats<S> {
    /// The owner's stop order. Cheap: a wake asks before each step, and ten times a second while waiting.
    pub fn find_stop_order(&self) -> Result<Option<Stopped>> {
        let row = self
            .0
            .conn()
            .prepare("SELECT at, chat_id FROM stopped")?
            .query_row([], |row| Ok(Stopped { at: parse_time(&row.get::<_, String>(0)?), chat: row.get(1)? }));
        Ok(row.optional()?)
    }

    /// The chats that guests have stopped, each with the time of its order; `None` if the stored time is unreadable.
    pub fn stopped_chats(&self) -> Result<BTreeMap<ChatRef, Option<DateTime<Utc>>>> {
        let mut chats = self.0.conn().prepare("SELECT chat_id, at FROM stopped_chats")?;
        let chats = chats.query_map([], |row| Ok((row.get(0)?, parse_time(&row.get::<_, String>(1)?))))?;
        Ok(chats.collect::<sql::QueryResult<_>>()?)
    }

    /// The chats for which a wake works now, or was interrupted a moment ago.
    pub fn list_working_chats(&self) -> Result<BTreeSet<ChatRef>> {
        let sql = "SELECT DISTINCT chat_id FROM cycles WHERE state = 'running' AND chat_id IS NOT NULL";
        let mut chats = self.0.conn().prepare(sql)?;
        Ok(chats.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// Returns whether work for a chat is stopped, by the owner's order or by the chat's own.
    pub fn is_work_stopped(&self, chat: Option<ChatRef>) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM stopped) OR EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = ?1)";
        Ok(self.0.conn().prepare(sql)?.query_row([chat], |row| row.get(0))?)
    }
}

/// Stores the owner's order to stop all work; the time of the first order stays.
pub(crate) fn stop_all_work(tx: &Transaction<'_>, chat: ChatRef, now: DateTime<Utc>) -> Result<()> {
    let sql = "INSERT INTO stopped (id, at, chat_id) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET chat_id = excluded.chat_id";
    tx.execute(sql, (format_rfc3339(now), chat))?;
    Ok(())
}

/// Stores a chat's order to stop its own work; the time of the first order stays.
pub(crate) fn stop_chat_work(tx: &Transaction<'_>, chat: ChatRef, now: DateTime<Utc>) -> Result<()> {
    let sql = "INSERT INTO stopped_chats (at, chat_id) VALUES (?1, ?2) ON CONFLICT (chat_id) DO NOTHING";
    tx.execute(sql, (format_rfc3339(now), chat))?;
    Ok(())
}

/// Lets work resume for the chat, and for all if the owner asks.
pub(crate) fn resume_work(tx: &Transaction<'_>, chat: ChatRef, is_owners: bool) -> Result<()> {
    if is_owners {
        tx.execute("DELETE FROM stopped", [])?;
    }
    tx.execute("DELETE FROM stopped_chats WHERE chat_id = ?1", [chat])?;
    Ok(())
}
