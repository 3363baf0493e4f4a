//! `/undo`: the wake to undo, and its undoable effects in the database. The repository undoes the memory.
//!
//! An undo takes three steps, each a transaction, so that a kill between two steps leads to one undo: the order ([`crate::Order`]); the
//! effects in the database, with the answer's text; and the answer itself, at the end of the cycle whose commit restores the memory.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
};

use super::undo_line;
use crate::{
    CycleRow, FencedStore, NewOutgoing, OutgoingKind, Result,
    areas::{ReadStore, Undos, WriteStore},
    outbox::planned,
    recordings::rows,
    sql::{self, OptionalExtension as _, Row, Transaction},
    to_json,
};

/// The shortest prefix of a wake's or a commit's id that is looked up.
const MIN_PREFIX: usize = 4;
/// SQL condition for an undoable cycle: it ended in a commit by a model, and no undo of it was ordered yet.
const UNDOABLE: &str = "cycles.state = 'done' AND cycles.commit_id IS NOT NULL AND cycles.model <> 'none'
    AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = cycles.id)";

/// A wake to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// The row id.
    pub id: i64,
    /// The cycle to undo.
    pub wake: String,
    /// The chat that asked.
    pub chat: ChatRef,
    /// The time of the request; `None` if unreadable.
    pub asked_at: Option<DateTime<Utc>>,
}

/// The effects of a cycle that were undone in the database, and those that could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TakenBack {
    /// Its reminders, cancelled now.
    pub cancelled: Vec<String>,
    /// Its reminders that are over.
    pub over: Vec<String>,
    /// Reminders it had ended, active again.
    pub active_again: Vec<String>,
    /// The number of its texts that were withdrawn entirely unsent.
    pub unsent: usize,
    /// The number of its texts that were sent, in full or in part.
    pub sent: usize,
    /// Messages it had answered: on hold until they are retried.
    pub messages: Vec<i64>,
    /// Settings it had changed, restored: a sentence each.
    #[serde(default)]
    pub settings: Vec<String>,
}

impl<S: ReadStore> Undos<S> {
    /// The undoable wakes with their commits, newest first: of these chats, or of all if `chats` is empty.
    pub fn all_undoable(&self, chats: &[ChatRef], limit: u32) -> Result<Vec<(String, String)>> {
        let sql = format!(
            "SELECT id, commit_id FROM cycles WHERE {UNDOABLE}
                 AND (?1 = '[]' OR COALESCE(chat_id, 0) IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))
             ORDER BY ended_at DESC NULLS LAST, started_at DESC, id DESC LIMIT ?2"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map((to_json(chats), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The cycles of these chats (of all if empty) whose id or commit id has this prefix of at least four characters. At most two are
    /// returned, since two already mean an ambiguous prefix. A full id matches only its own cycle.
    pub fn find_cycles_by_prefix(&self, prefix: &str, chats: &[ChatRef]) -> Result<Vec<CycleRow>> {
        if prefix.len() < MIN_PREFIX {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {} FROM cycles WHERE (substr(id, 1, length(?1)) = ?1 OR substr(commit_id, 1, length(?1)) = ?1)
                 AND (?2 = '[]' OR COALESCE(chat_id, 0) IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)))
             ORDER BY id = ?1 DESC, started_at DESC, id DESC LIMIT 2",
            CycleRow::COLUMNS
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let mut rows: Vec<CycleRow> =
            statement.query_map((prefix, to_json(chats)), CycleRow::from_row)?.collect::<sql::QueryResult<_>>()?;
        if rows.first().is_some_and(|row| row.cycle.id == prefix) {
            rows.truncate(1);
        }
        Ok(rows)
    }

    /// Returns whether an ended cycle left copies of the files it changed in a person's folders.
    pub fn has_copies(&self, wake: &str) -> Result<bool> {
        let sql = "SELECT has_copies FROM cycles WHERE id = ?1";
        Ok(self.0.conn().query_row(sql, [wake], |row| row.get(0)).optional()?.unwrap_or(false))
    }

    /// Returns whether an undo of a cycle is done; `None` if none was ordered.
    pub fn find_undo_state(&self, wake: &str) -> Result<Option<bool>> {
        let sql = "SELECT done_at IS NOT NULL FROM undos WHERE wake = ?1";
        Ok(self.0.conn().query_row(sql, [wake], |row| row.get(0)).optional()?)
    }

    /// The open undos, in the order of the requests.
    pub fn open_undos(&self) -> Result<Vec<Undo>> {
        let mut statement =
            self.0.conn().prepare("SELECT id, wake, chat_id, asked_at FROM undos WHERE done_at IS NULL ORDER BY id")?;
        let read = |row: &Row<'_>| {
            let asked_at = parse_time(&row.get::<_, String>(3)?);
            Ok(Undo { id: row.get(0)?, wake: row.get(1)?, chat: row.get(2)?, asked_at })
        };
        Ok(statement.query_map([], read)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The messages put on hold by the last undo in a chat and not retried since, oldest first.
    pub fn undone_messages(&self, chat: ChatRef) -> Result<Vec<i64>> {
        let mut statement = self.0.conn().prepare(
            "SELECT m.id FROM incoming_messages m WHERE m.chat_id = ?1 AND m.processed = 1 AND m.outcome = 'undone'
                 AND m.cycle_id = (SELECT l.cycle_id FROM incoming_messages l JOIN undos u ON u.wake = l.cycle_id
                                   WHERE l.chat_id = ?1 AND l.processed = 1 AND l.outcome = 'undone'
                                   ORDER BY u.done_at IS NOT NULL, u.done_at DESC NULLS LAST, u.id DESC LIMIT 1)
             ORDER BY m.id",
        )?;
        Ok(statement.query_map([chat], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }
}

impl Undos<&mut FencedStore<'_>> {
    /// Undoes the effects in the database, once, and keeps the answer's text until the cycle `by` has ended. A second call returns the
    /// first call's result.
    pub fn take_back(&mut self, undo: &Undo, by: &str, words: impl FnOnce(&TakenBack) -> String) -> Result<TakenBack> {
        let now = self.0.now();
        self.0.write(|tx| {
            let kept: Option<String> =
                tx.query_row("SELECT taken_back FROM undos WHERE id = ?1", [undo.id], |row| row.get(0))?;
            // fault: undo-begun-again-forgets
            let taken = match kept.and_then(|kept| serde_json::from_str(&kept).ok()) {
                Some(taken) => taken,
                None => take_back(tx, &undo.wake, by, now)?,
            };
            tx.execute(
                "UPDATE undos SET cycle_id = ?2, taken_back = ?3, answer = ?4 WHERE id = ?1",
                (undo.id, by, to_json(&taken), words(&taken)),
            )?;
            Ok(taken)
        })
    }
}

pub(crate) fn order_undo(tx: &Transaction<'_>, wake: &str, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO undos (wake, asked_at, chat_id, thread_id, reply_to) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        (wake, format_rfc3339(now), answer.chat, answer.thread_id, answer.reply_to),
    )?;
    Ok(())
}

/// Completes the undo at the end of the cycle that did it, and answers the chat that asked.
pub(crate) fn complete_undo(tx: &Transaction<'_>, cycle_id: &str, now: DateTime<Utc>) -> Result<()> {
    let done = tx
        .prepare(
            "UPDATE undos SET done_at = ?2 WHERE cycle_id = ?1 AND done_at IS NULL
             RETURNING id, chat_id, thread_id, reply_to, answer",
        )?
        .query_row((cycle_id, format_rfc3339(now)), |row| {
            Ok(NewOutgoing {
                key: Some(format!("undone/{}", row.get::<_, i64>(0)?)),
                chat: row.get(1)?,
                thread_id: row.get(2)?,
                reply_to: row.get(3)?,
                text: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
                kind: OutgoingKind::Command,
                cycle_id: Some(cycle_id.to_owned()),
                // The answer quotes the undone content, which may hold untrusted text.
                links_as_text: true,
                ..NewOutgoing::default()
            })
        })
        .optional()?;
    if let Some(answer) = done {
        planned::insert(tx, &answer, now)?;
    }
    Ok(())
}

fn take_back(tx: &Transaction<'_>, wake: &str, by: &str, now: DateTime<Utc>) -> Result<TakenBack> {
    let texts = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> Result<Vec<String>> {
        let mut statement = tx.prepare(sql)?;
        Ok(statement.query_map(values, |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    };
    let over = texts("SELECT text FROM reminders WHERE cycle_id = ?1 AND state <> 'active' ORDER BY id", &[&wake])?;
    let cancelled = texts(
        "UPDATE reminders SET state = 'cancelled', ended_by = ?2 WHERE cycle_id = ?1 AND state = 'active' RETURNING text",
        &[&wake, &by],
    )?;
    let active_again = texts(
        "UPDATE reminders SET state = 'active', ended_by = NULL WHERE ended_by = ?1 AND state <> 'active'
             AND cycle_id IS DISTINCT FROM ?1 RETURNING text",
        &[&wake],
    )?;
    let (unsent, sent) = withdraw_texts(tx, wake, now)?;
    // An undone cycle is no example.
    rows::delete_recording(tx, wake)?;
    let messages = tx
        .prepare(
            "UPDATE incoming_messages SET outcome = 'undone' WHERE cycle_id = ?1 AND processed = 1
                 AND outcome IN ('answered', 'refused') RETURNING id",
        )?
        .query_map([wake], |row| row.get(0))?
        .collect::<sql::QueryResult<Vec<i64>>>()?;
    let settings = undo_line::restore_setting(tx, wake, now)?.into_iter().collect();
    Ok(TakenBack { cancelled, over, active_again, unsent, sent, messages, settings })
}

/// Withdraws the texts whose sending never started. Returns the numbers of withdrawn texts and of the others. The key of a withdrawn text
/// becomes free again.
fn withdraw_texts(tx: &Transaction<'_>, wake: &str, now: DateTime<Utc>) -> Result<(usize, usize)> {
    let begun = "sent_at IS NOT NULL
        OR EXISTS (SELECT 1 FROM outgoing_parts p WHERE p.outgoing_id = outgoing_messages.id AND p.state <> 'planned')";
    let sent: i64 = tx.query_row(
        &format!("SELECT count(*) FROM outgoing_messages WHERE cycle_id = ?1 AND ({begun})"),
        [wake],
        |row| row.get(0),
    )?;
    let unsent = tx.execute(
        &format!(
            "UPDATE outgoing_messages SET taken_back_at = ?2, key = 'undone/' || id || '/' || key
             WHERE cycle_id = ?1 AND NOT ({begun})"
        ),
        (wake, format_rfc3339(now)),
    )?;
    tx.execute(
        "UPDATE outgoing_messages SET taken_back_at = ?2 WHERE cycle_id = ?1 AND sent_at IS NULL AND taken_back_at IS NULL",
        (wake, format_rfc3339(now)),
    )?;
    // Texts held until the quiet hours end are dropped too.
    tx.execute("UPDATE job_runs SET held = NULL WHERE cycle_id = ?1", [wake])?;
    Ok((unsent, usize::try_from(sent).unwrap_or(0)))
}
