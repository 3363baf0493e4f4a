//! Incoming messages: stored before their arrival is confirmed, then answered or kept, and never dropped.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::ChatRef,
    words::first_chars,
};

use super::attachments::{self, AWAITED, AWAITS_FILES};
use crate::{
    MessageOutcome, NewAttachment, PartOf, Result,
    areas::{Inbox, ReadStore, WriteStore},
    chats::channel::TELEGRAM,
    messages::parts::HOLD,
    odd_rows::{READABLE, read_optional_text, read_text},
    outcome::{OPEN, PUT_ASIDE},
    sql::{self, OptionalExtension as _, Row, Transaction},
    steps::{self, NewStep, SettingBefore},
    upkeep::backoff,
};

/// The maximum number of queued messages that one wake reads; the rest wait for the next.
const MAX_QUEUED_READ: i64 = 500;
/// The maximum per chat, so that one chat's flood hides no other chat. Messages claimed by open cycles are read in addition, since those
/// cycles must answer them.
const MAX_QUEUED_OF_CHAT: i64 = 100;
/// An additional maximum for messages that wait for their files, the latest of each chat: later messages wait behind them.
const MAX_AWAITING_READ: i64 = 500;
/// The number of cycles that may fail on a message before it becomes a dead letter, which only a person can retry.
pub const MAX_ATTEMPTS: i64 = 3;

/// The maximum stored length of a quotation from our own records, in characters.
const QUOTED_CHARS_MAX: usize = 1000;

/// A message from a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NewIncoming {
    /// The chat of origin; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The words, or a description of a file.
    pub text: String,
    /// `text`, `voice`, `photo`, …
    pub kind: String,
    /// The sender's numeric id and display name.
    pub sender_id: Option<i64>,
    /// See `sender_id`.
    pub sender_name: Option<String>,
    /// Forum topic.
    pub thread_id: Option<i64>,
    /// The channel's own id of the message.
    pub channel_message_id: Option<i64>,
    /// The quoted text: another message's words, never an instruction.
    pub quoted: Option<String>,
    /// Whether the quoted text is the sender's own, or ours.
    pub quotes_own: bool,
    /// The channel's id of the quoted message, if it is in the same chat.
    pub quotes: Option<i64>,
    /// The author, if forwarded.
    pub forwarded_from: Option<String>,
    /// The original update as JSON.
    pub raw: Option<String>,
    /// The channel's key of the update; a second delivery is ignored.
    pub update_id: Option<i64>,
    /// The files of the message.
    pub attachments: Vec<NewAttachment>,
    /// The time of sending, by the channel.
    pub sent_at: Option<DateTime<Utc>>,
    /// The larger whole, if it may be a part: all parts become one row.
    pub part_of: Option<PartOf>,
    /// Whether the message was said to others. It is then kept only as a part or a new version of a message to the assistant, or for a
    /// few moments while it may become a part.
    pub is_only_part: bool,
    /// The channel's id of the answered message, if `quoted` only describes it: our own record is quoted instead.
    pub answers: Option<i64>,
}

/// A message in the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Incoming {
    /// The row id.
    pub id: i64,
    /// The chat of origin; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The words.
    pub text: String,
    /// The time of arrival; an unreadable time in a handwritten row counts as now.
    pub received_at: Option<DateTime<Utc>>,
    /// `text`, `voice`, …
    pub kind: String,
    /// Display name of the sender.
    pub sender_name: Option<String>,
    /// The forum topic to answer in.
    pub thread_id: Option<i64>,
    /// The channel's own id, to reply to.
    pub channel_message_id: Option<i64>,
    /// The quoted text.
    pub quoted: Option<String>,
    /// Whether the quoted text is entirely the sender's own, or ours without untrusted text.
    #[serde(default)]
    pub quotes_own: bool,
    /// The author, if forwarded.
    pub forwarded_from: Option<String>,
    /// The number of failed cycles.
    pub attempts: i64,
    /// The model that couldn't answer.
    pub held_for: Option<String>,
    /// The earliest time of the next attempt.
    pub not_before: Option<DateTime<Utc>>,
    /// The last cycle to claim it.
    pub cycle_id: Option<String>,
    /// Whether one of its files is still to be fetched or transcribed.
    #[serde(default)]
    pub awaits_files: bool,
    /// Whether a person asked for a retry.
    #[serde(default)]
    pub asked_again: bool,
    /// The terminal that waits for the answer, if any.
    #[serde(default)]
    pub session: Option<String>,
}

/// A message of a past conversation, for the model's view of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The row, in `outgoing_messages` for the assistant's words, else in `incoming_messages`.
    pub row: i64,
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// The person's name; `None` for the assistant.
    pub from: Option<String>,
    /// The words.
    pub text: String,
    /// The other authors of untrusted text in it, if any.
    pub taint: Option<String>,
}

impl Exchange {
    /// The number for a cycle: `m17` is message 17, `a23` the assistant's own text 23.
    pub fn format_number(&self) -> String {
        format!("{}{}", if self.from.is_some() { 'm' } else { 'a' }, self.row)
    }
}

impl Incoming {
    /// The columns to read from `incoming_messages`, which must be unaliased in the statement.
    pub(crate) fn columns() -> String {
        format!(
            "id, CAST(chat_id AS BIGINT), message_text, received_at, kind, sender_name, thread_id, channel_message_id,
             quoted, forwarded_from, attempts, held_for, not_before, cycle_id, {}, quotes_own, asked_again,
             (SELECT open.id FROM sessions AS open WHERE open.id = session) AS open_session",
            attachments::AWAITS_FILES
        )
    }

    pub(crate) fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            id: row.get(0)?,
            chat: row.get(1)?,
            text: read_text(row, 2)?,
            received_at: read_optional_text(row, 3)?.as_deref().and_then(parse_time),
            kind: read_optional_text(row, 4)?.unwrap_or_default(),
            sender_name: read_optional_text(row, 5)?,
            thread_id: row.get(6)?,
            channel_message_id: row.get(7)?,
            quoted: read_optional_text(row, 8)?,
            forwarded_from: read_optional_text(row, 9)?,
            attempts: row.get(10)?,
            held_for: read_optional_text(row, 11)?,
            not_before: read_optional_text(row, 12)?.as_deref().and_then(parse_time),
            cycle_id: read_optional_text(row, 13)?,
            awaits_files: row.get(14)?,
            quotes_own: row.get(15)?,
            asked_again: row.get(16)?,
            session: row.get(17)?,
        })
    }
}

impl<S: ReadStore> Inbox<S> {
    /// The queued messages: chats in turns, the chat answered longest ago first; within a chat the oldest first. If there are more than
    /// one read may take, each chat's first messages get in, and messages held for another model give way, so that they never hide an
    /// answerable message. Messages waiting for files are counted separately.
    pub fn list_queued_messages(&self) -> Result<Vec<Incoming>> {
        // Usually the queue is empty, and planning the statement below would take longer than the rest of an idle wake.
        let is_any = "SELECT EXISTS (SELECT 1 FROM incoming_messages WHERE processed = 0)";
        if !self.0.conn().prepare(is_any)?.query_row([], |row| row.get::<_, bool>(0))? {
            return Ok(Vec::new());
        }
        // Each chat is found from the previous one, and its first messages by an index, so rows behind them are never scanned.
        let sql = format!(
            "WITH RECURSIVE chats (id) AS (
                 SELECT min(chat_id) FROM incoming_messages INDEXED BY incoming_queued WHERE processed = 0
                 UNION ALL
                 SELECT (SELECT min(chat_id) FROM incoming_messages INDEXED BY incoming_queued
                         WHERE processed = 0 AND chat_id > chats.id)
                 FROM chats WHERE chats.id IS NOT NULL
             ),
             awaiting (id, place) AS (
                 SELECT m.id, row_number() OVER (PARTITION BY m.chat_id ORDER BY m.id DESC) FROM incoming_messages m
                 WHERE m.processed = 0 AND m.id IN (
                     SELECT message_id FROM attachments INDEXED BY attachments_awaited WHERE {AWAITED})
             ),
             in_hand (id) AS MATERIALIZED (
                 SELECT m.id FROM cycles c JOIN taken_up t ON t.cycle_id = c.id
                 JOIN incoming_messages m ON m.id = t.message_id AND m.cycle_id = c.id
                 WHERE c.state IN {OPEN} AND m.processed = 0
             )
             SELECT {columns} FROM incoming_messages WHERE {READABLE} AND id IN (
                 SELECT id FROM (SELECT id FROM awaiting ORDER BY place, id LIMIT {MAX_AWAITING_READ}) AS awaited
                 UNION ALL
                 SELECT id FROM in_hand
                 UNION ALL
                 SELECT value FROM (SELECT value FROM (
                     SELECT CAST(queue.value AS BIGINT) AS value, queue.key AS place, 0 AS is_kept FROM chats, json_each((
                         SELECT '[' || string_agg(CAST(id AS TEXT), ',') || ']' FROM (
                             SELECT id FROM incoming_messages INDEXED BY incoming_answerable
                             WHERE chat_id = chats.id AND processed = 0 AND held_for IS NULL AND NOT {AWAITS_FILES}
                                 AND id NOT IN (SELECT id FROM in_hand) AND {READABLE}
                             ORDER BY id LIMIT {MAX_QUEUED_OF_CHAT}) AS first_ones)) AS queue
                     UNION ALL
                     SELECT CAST(queue.value AS BIGINT), queue.key, 1 FROM chats, json_each((
                         SELECT '[' || string_agg(CAST(id AS TEXT), ',') || ']' FROM (
                             SELECT id FROM incoming_messages INDEXED BY incoming_kept
                             WHERE chat_id = chats.id AND processed = 0 AND held_for IS NOT NULL AND NOT {AWAITS_FILES}
                                 AND id NOT IN (SELECT id FROM in_hand) AND {READABLE}
                             ORDER BY id LIMIT {MAX_QUEUED_OF_CHAT}) AS first_ones)) AS queue
                 ) AS each_chat ORDER BY is_kept, place, value LIMIT {MAX_QUEUED_READ}) AS of_chats
             )
             ORDER BY COALESCE((SELECT max(c.rowid) FROM cycles c WHERE c.chat_id = incoming_messages.chat_id), 0), id",
            columns = Incoming::columns()
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], Incoming::from_row)?.collect::<sql::QueryResult<Vec<_>>>()?)
    }

    /// The messages given up after too many failed cycles, oldest first.
    pub fn dead_letters(&self) -> Result<Vec<Incoming>> {
        self.put_aside(MessageOutcome::Dead)
    }

    /// The messages whose answer was undone, oldest first.
    pub fn undone_letters(&self) -> Result<Vec<Incoming>> {
        self.put_aside(MessageOutcome::Undone)
    }

    /// The messages put on hold because the time that they are about has passed, oldest first.
    pub fn stale_letters(&self) -> Result<Vec<Incoming>> {
        self.put_aside(MessageOutcome::Stale)
    }

    /// The messages taken out of the queue, oldest first.
    pub fn dropped_letters(&self) -> Result<Vec<Incoming>> {
        self.put_aside(MessageOutcome::Dropped)
    }

    /// Returns whether all of these messages were taken out of the queue, so that no answer is expected.
    pub fn is_dropped(&self, ids: &[i64]) -> Result<bool> {
        let sql = "SELECT count(*) FROM incoming_messages
                   WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND processed = 1 AND outcome = 'dropped'";
        let n: i64 = self.0.conn().query_row(sql, [crate::to_json(ids)], |row| row.get(0))?;
        Ok(usize::try_from(n) == Ok(ids.len()))
    }

    fn put_aside(&self, outcome: MessageOutcome) -> Result<Vec<Incoming>> {
        let sql = format!(
            "SELECT {} FROM incoming_messages
             WHERE processed = 1 AND outcome = ?1 AND {READABLE} ORDER BY id LIMIT {MAX_QUEUED_READ}",
            Incoming::columns()
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([outcome.as_str()], Incoming::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The chat of a message that [`Inbox::retry_message`] would put back.
    pub fn find_retryable_chat(&self, id: i64) -> Result<Option<ChatRef>> {
        let sql = format!(
            "SELECT CAST(chat_id AS BIGINT) FROM incoming_messages
             WHERE id = ?1 AND (processed = 0 OR outcome IN {PUT_ASIDE})"
        );
        Ok(self.0.conn().query_row(&sql, [id], |row| row.get(0)).optional()?)
    }

    /// These messages in any state, oldest first. Unreadable ones are left out.
    pub fn list_messages(&self, ids: &[i64]) -> Result<Vec<Incoming>> {
        let sql = format!(
            "SELECT {} FROM incoming_messages
             WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND {READABLE} ORDER BY id",
            Incoming::columns()
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([crate::to_json(ids)], Incoming::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The number of waiting messages, and the arrival time of the oldest.
    pub fn queue_depth(&self) -> Result<(i64, Option<DateTime<Utc>>)> {
        let row = self.0.conn().query_row(
            "SELECT count(*), min(received_at) FROM incoming_messages WHERE processed = 0",
            [],
            |row| Ok((row.get(0)?, read_optional_text(row, 1)?)),
        )?;
        Ok((row.0, row.1.as_deref().and_then(parse_time)))
    }

    /// The conversation in a chat before the queued messages, both ways, oldest first, at most `limit` entries.
    pub fn list_exchanges(&self, chat: ChatRef, limit: usize) -> Result<Vec<Exchange>> {
        let asked = "COALESCE(m.outcome, '') <> 'undone'";
        let told = "NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = o.cycle_id AND u.taken_back IS NOT NULL)";
        self.exchanges_where(chat, asked, told, limit)
    }

    /// As [`Inbox::list_exchanges`], with a condition on `m` for people's messages and one on `o` for the assistant's.
    pub(crate) fn exchanges_where(
        &self,
        chat: ChatRef,
        asked: &str,
        told: &str,
        limit: usize,
    ) -> Result<Vec<Exchange>> {
        let mut statement = self.0.conn().prepare(&format!(
            "SELECT at, who, text, id, kind, forwarded_from, taint FROM (
                 SELECT received_at AS at, COALESCE(sender_name, 'the person') AS who, message_text AS text, id, kind,
                     forwarded_from, NULL AS taint
                 FROM (SELECT * FROM incoming_messages m
                       WHERE chat_id = ?1 AND processed = 1 AND {asked} ORDER BY id DESC LIMIT ?2) AS asked
                 UNION ALL
                 SELECT created_at, NULL, message_text, id, kind, NULL, taint
                 FROM (SELECT * FROM outgoing_messages o
                       WHERE chat_id = ?1 AND taken_back_at IS NULL AND {told} ORDER BY id DESC LIMIT ?2) AS told
             ) AS said ORDER BY julianday(at) DESC NULLS LAST, who IS NULL DESC, id DESC LIMIT ?2",
        ))?;
        let mut exchanges = statement
            .query_map((chat, limit as i64), |row| {
                let (from, text) = (read_optional_text(row, 1)?, read_text(row, 2)?);
                let (kind, forwarded_from) =
                    (read_optional_text(row, 4)?.unwrap_or_default(), read_optional_text(row, 5)?);
                let taint = match from {
                    // fault: forward-stands-next-opening
                    Some(_) => super::provenance::find_incoming_authors(&kind, &text, forwarded_from.as_deref()),
                    // fault: answer-others-words-stands
                    None => read_optional_text(row, 6)?,
                };
                let at = read_optional_text(row, 0)?.as_deref().and_then(parse_time);
                Ok(Exchange { row: row.get(3)?, at, from, text, taint })
            })?
            .collect::<sql::QueryResult<Vec<_>>>()?;
        exchanges.reverse();
        Ok(exchanges)
    }
}

impl<S: WriteStore> Inbox<S> {
    /// Queues a message from this machine; returns its row.
    pub fn queue_message(&mut self, chat: ChatRef, text: &str, now: DateTime<Utc>) -> Result<i64> {
        let message = NewIncoming { chat, text: text.to_owned(), kind: "text".to_owned(), ..NewIncoming::default() };
        self.0.write(|tx| Ok(insert(tx, None, &message, now)?.unwrap_or_default()))
    }

    /// Makes a queued, given-up or undone message new again. `false` if there is no such message.
    pub fn retry_message(&mut self, id: i64) -> Result<bool> {
        self.0.write(|tx| requeue_message(tx, id))
    }

    /// Takes a queued, given-up or undone message out of the queue; its row stays. `false` if there is no such message.
    pub fn discard_message(&mut self, id: i64, now: DateTime<Utc>) -> Result<bool> {
        self.0.write(|tx| {
            let sql = "SELECT outcome FROM incoming_messages WHERE id = ?1";
            let was: Option<Option<String>> = tx.prepare(sql)?.query_row([id], |row| row.get(0)).optional()?;
            let n = tx.execute(
                "UPDATE incoming_messages SET processed = 1, outcome = 'dropped', processed_at = ?2
                 WHERE id = ?1 AND (processed = 0 OR outcome IN ('dead', 'undone', 'stale'))",
                (id, format_rfc3339(now)),
            )?;
            if n == 1 {
                // The order comes from the terminal, for any chat's message.
                let did = format!("took message {id} out of the queue");
                let step = NewStep { chat: ChatRef::TERMINAL, did, commit: None };
                steps::record_step(tx, &step, Some(&SettingBefore::Queued { message: id, was: was.flatten() }), now)?;
            }
            Ok(n == 1)
        })
    }
}

/// Inserts a row and returns its id; `None` if its update has a row already. The new row shares the hold of its chat.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    bot_id: Option<i64>,
    message: &NewIncoming,
    now: DateTime<Utc>,
) -> Result<Option<i64>> {
    let known = match message.answers {
        Some(answered) => find_words(tx, bot_id, message.chat, answered)?,
        None => None,
    };
    let album = match &message.part_of {
        Some(PartOf::Album(album)) => Some(album),
        _ => None,
    };
    let mut statement = tx.prepare(
        "INSERT INTO incoming_messages (chat_id, message_text, received_at, kind, sender_id, sender_name, thread_id,
             channel_message_id, quoted, forwarded_from, raw, bot_id, update_id, album, sent_at, quotes_own, channel, not_before)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?17, ?18,
             (SELECT max(not_before) FROM incoming_messages
              WHERE chat_id = ?1 AND processed = 0 AND attempts = 0 AND not_before > ?3 AND not_before <= ?16))
         ON CONFLICT DO NOTHING RETURNING id",
    )?;
    let id = statement
        .query_row(
            sql::params![
                message.chat,
                message.text,
                format_rfc3339(now),
                if message.kind.is_empty() { "text" } else { &message.kind },
                message.sender_id,
                message.sender_name,
                message.thread_id,
                message.channel_message_id,
                known.or_else(|| message.quoted.clone()),
                message.forwarded_from,
                message.raw,
                // fault: update-comes-again-another
                message.update_id.and(bot_id),
                message.update_id,
                album,
                message.sent_at.map(format_rfc3339),
                format_rfc3339(now + HOLD),
                // fault: answer-quoted-if-nobody
                super::provenance::quotes_own(tx, bot_id, message)?,
                message.update_id.map(|_| TELEGRAM),
            ],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(id) = id {
        attachments::insert(tx, id, message.channel_message_id, &message.attachments)?;
    }
    Ok(id)
}

/// Undoes the removal of a message from the queue: it waits again, or returns to its earlier outcome. `false` if the row is gone.
pub(crate) fn undo_removal(tx: &Transaction<'_>, id: i64, was: Option<&str>) -> Result<bool> {
    let Some(was) = was else { return requeue_message(tx, id) };
    let sql = "UPDATE incoming_messages SET outcome = ?2 WHERE id = ?1 AND outcome = 'dropped'";
    Ok(tx.execute(sql, (id, was))? == 1)
}

/// Puts a message back into the queue, as new.
pub(crate) fn requeue_message(tx: &Transaction<'_>, id: i64) -> Result<bool> {
    let n = tx.execute(
        &format!(
            "UPDATE incoming_messages SET processed = 0, outcome = NULL, processed_at = NULL, attempts = 0, held_for = NULL,
                 not_before = NULL, asked_again = 1
             WHERE id = ?1 AND (processed = 0 OR outcome IN {PUT_ASIDE})"
        ),
        [id],
    )?;
    Ok(n == 1)
}

/// The stored words of a chat's message, a person's or ours.
fn find_words(tx: &Transaction<'_>, bot_id: Option<i64>, chat: ChatRef, channel_id: i64) -> Result<Option<String>> {
    let words = tx
        .prepare(
            "SELECT message_text FROM (
                 SELECT message_text, 0 AS ours, id FROM incoming_messages
                 WHERE chat_id = ?1 AND channel_message_id = ?2 AND bot_id IS NOT DISTINCT FROM ?3
                 UNION ALL
                 SELECT m.message_text, 1, m.id FROM message_updates u JOIN incoming_messages m ON m.id = u.message_id
                 WHERE u.chat_id = ?1 AND u.channel_message_id = ?2 AND m.bot_id IS NOT DISTINCT FROM ?3
                 UNION ALL
                 SELECT o.message_text, 2, o.id FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
                 WHERE o.chat_id = ?1 AND p.channel_message_id = ?2
             ) AS found ORDER BY ours, id DESC LIMIT 1",
        )?
        .query_row((chat, channel_id, bot_id), |row| read_text(row, 0))
        .optional()?;
    Ok(words.map(|words| first_chars(&words, QUOTED_CHARS_MAX).to_owned()))
}

/// Marks messages as done in a cycle's transaction; those already done keep their first outcome.
pub(crate) fn finish_messages(
    tx: &Transaction<'_>,
    ids: &[i64],
    outcome: MessageOutcome,
    cycle: &str,
    now: DateTime<Utc>,
) -> Result<()> {
    let mut statement = tx.prepare(
        "UPDATE incoming_messages SET processed = 1, outcome = ?2, cycle_id = ?3, processed_at = ?4
         WHERE id = ?1 AND processed = 0",
    )?;
    for id in ids {
        statement.execute((id, outcome.as_str(), cycle, format_rfc3339(now)))?;
    }
    Ok(())
}

/// Counts a failed cycle against messages. They are retried after a wait; at [`MAX_ATTEMPTS`] they become dead letters, which stay
/// visible and need a person's retry.
pub(crate) fn fail_messages(tx: &Transaction<'_>, ids: &[i64], cycle: &str, now: DateTime<Utc>) -> Result<()> {
    for id in ids {
        if let Some(attempts) = count_failure(tx, *id, cycle, now)? {
            let not_before = now + backoff::compute_retry_wait(attempts);
            tx.prepare("UPDATE incoming_messages SET not_before = ?2 WHERE id = ?1")?
                .execute((id, format_rfc3339(not_before)))?;
        }
    }
    Ok(())
}

/// Makes messages dead letters at once, because a retry is useless.
pub(crate) fn make_dead_letters(tx: &Transaction<'_>, ids: &[i64], cycle: &str, now: DateTime<Utc>) -> Result<()> {
    for id in ids {
        count_failure(tx, *id, cycle, now)?;
    }
    finish_messages(tx, ids, MessageOutcome::Dead, cycle, now)
}

/// Counts one failure. Returns the attempts of a message to be retried; `None` if the message is over.
pub(crate) fn count_failure(tx: &Transaction<'_>, id: i64, cycle: &str, now: DateTime<Utc>) -> Result<Option<u32>> {
    let attempts: Option<u32> = tx
        .prepare(
            // fault: failed-cycle-doesnt-count
            "UPDATE incoming_messages SET attempts = attempts + 1, cycle_id = ?2 WHERE id = ?1 AND processed = 0
             RETURNING attempts",
            // fault end: failed-cycle-doesnt-count
        )?
        .query_row((id, cycle), |row| row.get(0))
        .optional()?;
    if attempts.is_some_and(|attempts| i64::from(attempts) >= MAX_ATTEMPTS) {
        finish_messages(tx, &[id], MessageOutcome::Dead, cycle, now)?;
        return Ok(None);
    }
    Ok(attempts)
}

/// Keeps messages for a model other than `model`.
pub(crate) fn hold_messages(tx: &Transaction<'_>, ids: &[i64], model: &str, cycle: &str) -> Result<()> {
    let mut statement =
        tx.prepare("UPDATE incoming_messages SET held_for = ?2, cycle_id = ?3 WHERE id = ?1 AND processed = 0")?;
    for id in ids {
        statement.execute((id, model, cycle))?;
    }
    Ok(())
}
