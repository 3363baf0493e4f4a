//! `/undo`: which wake is taken back, and what of it can be, here in the database. Its memory is the repository's affair.
//!
//! It goes in three steps, each a transaction, so that a kill between any two leads to one undo: the wish ([`crate::Order`]);
//! what stands in the database, with the words for it; and, with the end of the cycle whose commit restores the memory, the
//! answer.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{parse_time, rfc3339},
    types::ChatRef,
};

use super::undo_line;
use crate::{
    CycleRow, FencedStore, NewOutgoing, OutgoingKind, Result, Store, json,
    outbox::planned,
    recordings::rows,
    sql::{self, OptionalExtension as _, Row, Transaction},
};

/// The shortest beginning of a wake's or a commit's id that is looked up.
const MIN_PREFIX: usize = 4;
/// Whether a cycle can be undone: it ended in a commit that a model worked for, and nobody has asked for it yet.
const UNDOABLE: &str = "cycles.state = 'done' AND cycles.commit_id IS NOT NULL AND cycles.model <> 'none'
    AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = cycles.id)";

/// A wake that is to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Its row.
    pub id: i64,
    /// The cycle that is taken back.
    pub wake: String,
    /// Who asked.
    pub chat: ChatRef,
    /// When; `None` if what is written there is no time.
    pub asked_at: Option<DateTime<Utc>>,
}

/// What of a cycle was taken back in the database, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TakenBack {
    /// Reminders that it had set, cancelled now.
    pub cancelled: Vec<String>,
    /// Reminders that it had set and that are over.
    pub over: Vec<String>,
    /// Reminders that it had ended, active again.
    pub active_again: Vec<String>,
    /// Messages of it of which nothing was sent, and nothing will be.
    pub unsent: usize,
    /// Messages of it that were sent, in full or in part.
    pub sent: usize,
    /// Messages that it had answered: put aside until they are retried.
    pub messages: Vec<i64>,
    /// Settings that it had changed, as they are again: a sentence each.
    #[serde(default)]
    pub settings: Vec<String>,
}

impl Store {
    /// The wakes that can be undone, with their commits, the newest first: of these chats, or of all when none is named.
    pub fn all_undoable(&self, chats: &[ChatRef], limit: u32) -> Result<Vec<(String, String)>> {
        let sql = format!(
            "SELECT id, commit_id FROM cycles WHERE {UNDOABLE}
                 AND (?1 = '[]' OR COALESCE(chat_id, 0) IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))
             ORDER BY ended_at DESC NULLS LAST, started_at DESC, id DESC LIMIT ?2"
        );
        let mut statement = self.conn.prepare(&sql)?;
        let rows = statement.query_map((json(chats), limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The cycles of these chats, or of all when none is named, whose id, or whose commit's, begins so (four characters at least):
    /// two at most, which is one too many. One whose id it is in full is meant alone.
    pub fn cycles_called(&self, prefix: &str, chats: &[ChatRef]) -> Result<Vec<CycleRow>> {
        if prefix.len() < MIN_PREFIX {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {} FROM cycles WHERE (substr(id, 1, length(?1)) = ?1 OR substr(commit_id, 1, length(?1)) = ?1)
                 AND (?2 = '[]' OR COALESCE(chat_id, 0) IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)))
             ORDER BY id = ?1 DESC, started_at DESC, id DESC LIMIT 2",
            CycleRow::COLUMNS
        );
        let mut statement = self.conn.prepare(&sql)?;
        let mut rows: Vec<CycleRow> =
            statement.query_map((prefix, json(chats)), CycleRow::read)?.collect::<sql::QueryResult<_>>()?;
        if rows.first().is_some_and(|row| row.cycle.id == prefix) {
            rows.truncate(1);
        }
        Ok(rows)
    }

    /// Whether a cycle that has ended left copies of what it had changed in a person's folders.
    pub fn has_copies(&self, wake: &str) -> Result<bool> {
        let sql = "SELECT has_copies FROM cycles WHERE id = ?1";
        Ok(self.conn.query_row(sql, [wake], |row| row.get(0)).optional()?.unwrap_or(false))
    }

    /// Whether a cycle was undone (`true`), is to be (`false`), or neither.
    pub fn undone(&self, wake: &str) -> Result<Option<bool>> {
        let sql = "SELECT done_at IS NOT NULL FROM undos WHERE wake = ?1";
        Ok(self.conn.query_row(sql, [wake], |row| row.get(0)).optional()?)
    }

    /// What is to be undone, in the order in which it was asked for.
    pub fn open_undos(&self) -> Result<Vec<Undo>> {
        let mut statement =
            self.conn.prepare("SELECT id, wake, chat_id, asked_at FROM undos WHERE done_at IS NULL ORDER BY id")?;
        let read = |row: &Row<'_>| {
            let asked_at = parse_time(&row.get::<_, String>(3)?);
            Ok(Undo { id: row.get(0)?, wake: row.get(1)?, chat: row.get(2)?, asked_at })
        };
        Ok(statement.query_map([], read)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The messages that the last undo in a chat put aside and nobody has retried since, oldest first.
    pub fn undone_messages(&self, chat: ChatRef) -> Result<Vec<i64>> {
        let mut statement = self.conn.prepare(
            "SELECT m.id FROM incoming_messages m WHERE m.chat_id = ?1 AND m.processed = 1 AND m.outcome = 'undone'
                 AND m.cycle_id = (SELECT l.cycle_id FROM incoming_messages l JOIN undos u ON u.wake = l.cycle_id
                                   WHERE l.chat_id = ?1 AND l.processed = 1 AND l.outcome = 'undone'
                                   ORDER BY u.done_at IS NOT NULL, u.done_at DESC NULLS LAST, u.id DESC LIMIT 1)
             ORDER BY m.id",
        )?;
        Ok(statement.query_map([chat], |row| row.get(0))?.collect::<sql::QueryResult<_>>()?)
    }
}

impl FencedStore<'_> {
    /// Takes back what stands in the database, once, and keeps the words for all of it until the cycle `by` has ended: a second
    /// call tells what the first one did.
    pub fn take_back(&mut self, undo: &Undo, by: &str, words: impl FnOnce(&TakenBack) -> String) -> Result<TakenBack> {
        let now = self.now();
        self.fenced(|tx| {
            let kept: Option<String> =
                tx.query_row("SELECT taken_back FROM undos WHERE id = ?1", [undo.id], |row| row.get(0))?;
            // fault: undo-begun-again-forgets
            let taken = match kept.and_then(|kept| serde_json::from_str(&kept).ok()) {
                Some(taken) => taken,
                None => take_back(tx, &undo.wake, by, now)?,
            };
            tx.execute(
                "UPDATE undos SET cycle_id = ?2, taken_back = ?3, answer = ?4 WHERE id = ?1",
                (undo.id, by, json(&taken), words(&taken)),
            )?;
            Ok(taken)
        })
    }
}

pub(crate) fn ask(tx: &Transaction<'_>, wake: &str, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    tx.execute(
        "INSERT INTO undos (wake, asked_at, chat_id, thread_id, reply_to) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        (wake, rfc3339(now), answer.chat, answer.thread_id, answer.reply_to),
    )?;
    Ok(())
}

/// With the end of the cycle that did it: it is done, and whoever asked is told.
pub(crate) fn conclude(tx: &Transaction<'_>, cycle_id: &str, now: DateTime<Utc>) -> Result<()> {
    let done = tx
        .prepare(
            "UPDATE undos SET done_at = ?2 WHERE cycle_id = ?1 AND done_at IS NULL
             RETURNING id, chat_id, thread_id, reply_to, answer",
        )?
        .query_row((cycle_id, rfc3339(now)), |row| {
            Ok(NewOutgoing {
                key: Some(format!("undone/{}", row.get::<_, i64>(0)?)),
                chat: row.get(1)?,
                thread_id: row.get(2)?,
                reply_to: row.get(3)?,
                text: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
                kind: OutgoingKind::Command,
                cycle_id: Some(cycle_id.to_owned()),
                // It quotes what is taken back, whoever's words that holds.
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
    let (unsent, sent) = withdraw(tx, wake, now)?;
    // What was taken back is no example.
    rows::drop_of(tx, wake)?;
    let messages = tx
        .prepare(
            "UPDATE incoming_messages SET outcome = 'undone' WHERE cycle_id = ?1 AND processed = 1
                 AND outcome IN ('answered', 'refused') RETURNING id",
        )?
        .query_map([wake], |row| row.get(0))?
        .collect::<sql::QueryResult<Vec<i64>>>()?;
    let settings = undo_line::take_back_setting(tx, wake, now)?.into_iter().collect();
    Ok(TakenBack { cancelled, over, active_again, unsent, sent, messages, settings })
}

/// What was not begun to be sent never is; gives how many messages that are, and how many of others there are. A key that nobody
/// has read may be used again.
fn withdraw(tx: &Transaction<'_>, wake: &str, now: DateTime<Utc>) -> Result<(usize, usize)> {
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
        (wake, rfc3339(now)),
    )?;
    tx.execute(
        "UPDATE outgoing_messages SET taken_back_at = ?2 WHERE cycle_id = ?1 AND sent_at IS NULL AND taken_back_at IS NULL",
        (wake, rfc3339(now)),
    )?;
    // What waits for the end of the night is not said either.
    tx.execute("UPDATE job_runs SET held = NULL WHERE cycle_id = ?1", [wake])?;
    Ok((unsent, usize::try_from(sent).unwrap_or(0)))
}
