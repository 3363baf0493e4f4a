//! `/local`: a row that outlives restarts. While the row exists, only models and embedders on this machine get the chat's words.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::ChatRef};

use crate::{
    Result,
    areas::{Chats, ReadStore},
    sql::{self, Transaction},
};

impl<S: ReadStore> Chats<S> {
    /// The chats kept on this machine.
    pub fn local_chats(&self) -> Result<BTreeSet<ChatRef>> {
        let mut chats = self.0.conn().prepare("SELECT chat_id FROM local_chats")?;
        Ok(chats.query_map([], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }

    /// Returns whether a chat is kept on this machine. Cheap: a wake asks before each request, and ten times a second while waiting.
    pub fn is_local_chat(&self, chat: ChatRef) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM local_chats WHERE chat_id = ?1)";
        Ok(self.0.conn().prepare(sql)?.query_row([chat], |row| row.get(0))?)
    }
}

/// Keeps a chat on this machine, or lifts that restriction.
pub(crate) fn set_local_chat(tx: &Transaction<'_>, chat: ChatRef, is_kept: bool, now: DateTime<Utc>) -> Result<()> {
    if is_kept {
        let sql = "INSERT INTO local_chats (chat_id, at) VALUES (?1, ?2) ON CONFLICT (chat_id) DO NOTHING";
        tx.execute(sql, (chat, format_rfc3339(now)))?;
    } else {
        tx.execute("DELETE FROM local_chats WHERE chat_id = ?1", [chat])?;
    }
    Ok(())
}
