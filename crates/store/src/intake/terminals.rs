//! Terminals: all of them are chat 0, and a session identifies a terminal that waits for its answers.
//!
//! A text for the terminal counts as delivered once a person was shown it. An answer belongs to the terminal that waits for it. Any other
//! text may be shown at the next opportunity, or go to the owner's chat instead.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::format_rfc3339,
    process::Identity,
    random::{self, NoRandomness},
    types::ChatRef,
};

use super::orders;
use crate::{
    Exchange, FencedStore, NewIncoming, Ordered, OutgoingKind, Result,
    areas::{ReadStore, Terminals, WriteStore},
    chats::channel::TERMINAL,
    messages::{
        attachments::{self, LandedFile},
        queue,
    },
    odd_rows::read_text,
    outbox::attempts::DELIVERABLE,
    sql::{self, OptionalExtension as _},
    to_json,
};

/// The length of a session's id, in random bytes.
const SESSION_BYTES: usize = 8;

/// The age up to which a text is news for the desktop.
const NEW: TimeDelta = TimeDelta::minutes(10);

/// SQL condition: text `o` belongs to no waiting terminal, so any may show it.
const FOR_ANY_TERMINAL: &str = "(o.session IS NULL OR o.session NOT IN (SELECT id FROM sessions))";

/// A terminal that waits for its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalSession(String);

impl TerminalSession {
    /// A new session with a random id.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn generate() -> std::result::Result<Self, NoRandomness> {
        Ok(Self(random::format_hex(&random::generate_bytes::<SESSION_BYTES>()?)))
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.0
    }
}

/// A place in the conversation at the terminals: the first rows after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TalkMark {
    /// The first later message of a person.
    pub incoming_id: i64,
    /// The first later text of ours.
    pub outgoing_id: i64,
}

impl TalkMark {
    /// The place after everything.
    pub const END: Self = Self { incoming_id: i64::MAX, outgoing_id: i64::MAX };

    /// Moves the place before an exchange.
    #[must_use]
    pub fn before(mut self, exchange: &Exchange) -> Self {
        let id = if exchange.from.is_some() { &mut self.incoming_id } else { &mut self.outgoing_id };
        *id = exchange.row.min(*id);
        self
    }
}

/// A part of the conversation at the terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalkPart {
    /// All of it.
    Whole,
    /// What was said before a place.
    Before(TalkMark),
    /// What was said from a place on.
    From(TalkMark),
}

/// The state of a message a terminal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Still to be answered by a wake.
    Open,
    /// Answered or held: nothing more will come for now.
    Settled,
}

impl<S: ReadStore> Terminals<S> {
    /// The terminal that waits for a cycle's answers, if any.
    pub fn find_cycle_session(&self, cycle_id: &str) -> Result<Option<String>> {
        let sql = "SELECT s.id FROM taken_up t JOIN incoming_messages m ON m.id = t.message_id JOIN sessions s ON s.id = m.session
                   WHERE t.cycle_id = ?1 LIMIT 1";
        Ok(self.0.conn().prepare(sql)?.query_row([cycle_id], |row| row.get(0)).optional()?)
    }

    /// The latest cycle that claimed a message.
    pub fn find_claiming_cycle(&self, message: i64) -> Result<Option<String>> {
        let sql = "SELECT cycle_id FROM taken_up WHERE message_id = ?1 ORDER BY cycle_id DESC LIMIT 1";
        Ok(self.0.conn().prepare(sql)?.query_row([message], |row| row.get(0)).optional()?)
    }

    /// Returns whether a stop of the terminal's chat holds back waiting work.
    pub fn is_terminal_paused(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = 0)
             AND (EXISTS (SELECT 1 FROM cycles WHERE chat_id = 0 AND state IN ('running', 'waiting'))
                 OR EXISTS (SELECT 1 FROM incoming_messages WHERE chat_id = 0 AND processed = 0 AND held_for IS NULL))";
        Ok(self.0.conn().prepare(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Returns whether a text asks for an approval.
    pub fn is_question(&self, outgoing: i64) -> Result<bool> {
        let sql = "SELECT kind = ?2 FROM outgoing_messages WHERE id = ?1";
        let kind = OutgoingKind::Approval.as_str();
        let is_question = self.0.conn().prepare(sql)?.query_row((outgoing, kind), |row| row.get(0)).optional()?;
        Ok(is_question.unwrap_or(false))
    }

    /// The state of a message.
    pub fn read_message_state(&self, id: i64) -> Result<Awaited> {
        let is_settled = self
            .0
            .conn()
            .query_row(
                "SELECT (m.processed = 1 OR m.held_for IS NOT NULL)
                     AND NOT EXISTS (SELECT 1 FROM cycles c WHERE c.id = m.cycle_id AND c.state = 'running')
                 FROM incoming_messages m WHERE m.id = ?1",
                [id],
                |row| row.get(0),
            )
            .optional()?;
        Ok(if is_settled.unwrap_or(true) { Awaited::Settled } else { Awaited::Open })
    }

    /// The unshown texts for the terminal, oldest first, as (row, text): those for any terminal, and those for this session.
    pub fn console_unshown(&self, session: Option<&TerminalSession>) -> Result<Vec<(i64, String)>> {
        let sql = format!(
            "SELECT o.id, o.message_text FROM outgoing_messages o
             WHERE o.chat_id = 0 AND o.sent_at IS NULL AND {DELIVERABLE} AND ({FOR_ANY_TERMINAL} OR o.session = ?1)
             ORDER BY o.id"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows =
            statement.query_map([session.map(TerminalSession::id)], |row| Ok((row.get(0)?, read_text(row, 1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The newest exchanges of a part of the conversation at the terminals, both ways, oldest first. Leaves out a cycle's texts before its
    /// commit.
    pub fn list_terminal_exchanges(&self, part: TalkPart, limit: usize) -> Result<Vec<Exchange>> {
        let (asked, told) = match part {
            TalkPart::Whole => ("TRUE".to_owned(), "TRUE".to_owned()),
            TalkPart::Before(mark) => (format!("m.id < {}", mark.incoming_id), format!("o.id < {}", mark.outgoing_id)),
            TalkPart::From(mark) => (format!("m.id >= {}", mark.incoming_id), format!("o.id >= {}", mark.outgoing_id)),
        };
        let told = format!("{told} AND (o.sent_at IS NOT NULL OR {DELIVERABLE})");
        self.0.store().inbox().exchanges_where(ChatRef::TERMINAL, &asked, &told, limit)
    }

    /// Returns whether [`crate::Terminals::send_to_owner`] would find something.
    pub fn has_for_owner(&self) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM outgoing_messages o WHERE {})", for_owner());
        Ok(self.0.store().outbox().has_unsent()? && self.0.conn().prepare(&sql)?.query_row([], |row| row.get(0))?)
    }

    /// The texts for a desktop notification, oldest first, as (row, text): unshown texts for the terminal (of those moved to the owner's
    /// chat only recent ones), recent reminders in the owner's chat, and open questions there.
    pub fn to_notify(&self, owner_chat: ChatRef, now: DateTime<Utc>) -> Result<Vec<(i64, String)>> {
        let sql = format!(
            "SELECT o.id, o.message_text FROM outgoing_messages o
             WHERE o.notified_at IS NULL AND {DELIVERABLE} AND {FOR_ANY_TERMINAL}
               AND (o.chat_id = 0 AND o.sent_at IS NULL OR o.chat_id != 0 AND o.channel = '{TERMINAL}' AND o.created_at >= ?1)
             UNION
             SELECT o.id, o.message_text FROM outgoing_messages o
             WHERE o.id IN (
                   SELECT id FROM outgoing_messages INDEXED BY outgoing_reminders WHERE kind = 'reminder' AND created_at >= ?1
                   UNION ALL
                   SELECT outgoing_id FROM approvals INDEXED BY approvals_pending WHERE state = 'pending' AND expires_at > ?3)
               AND o.notified_at IS NULL AND {DELIVERABLE} AND +o.chat_id = ?2 AND o.chat_id != 0
             ORDER BY 1"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map((format_rfc3339(now - NEW), owner_chat, format_rfc3339(now)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Terminals<S> {
    /// Registers a terminal that waits for its answers, until [`Terminals::close_session`] or the end of its process.
    pub fn open_session(&mut self, session: &TerminalSession, me: &Identity, now: DateTime<Utc>) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO sessions (id, channel, holder, opened_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, holder = excluded.holder,
                     opened_at = excluded.opened_at",
                (session.id(), TERMINAL, to_json(me), format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// Removes a waiting terminal. Later texts for it may be shown by any terminal.
    pub fn close_session(&mut self, session: &TerminalSession) -> Result<()> {
        self.0.write_relaxed(|tx| Ok(tx.execute("DELETE FROM sessions WHERE id = ?1", [session.id()]).map(drop)?))
    }

    /// Removes the sessions of dead processes. Writes nothing if there are none.
    pub fn forget_dead_sessions(&mut self) -> Result<()> {
        let rows = {
            let mut statement = self.0.conn().prepare("SELECT id, holder FROM sessions")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<sql::QueryResult<Vec<(String, String)>>>()?
        };
        let is_alive = |holder: &str| {
            serde_json::from_str::<Identity>(holder).is_ok_and(|holder| self.0.store().may_live(&holder))
        };
        let dead: Vec<String> = rows.into_iter().filter(|(_, holder)| !is_alive(holder)).map(|(id, _)| id).collect();
        for id in dead {
            self.close_session(&TerminalSession(id))?;
        }
        Ok(())
    }

    /// Queues a message from a terminal, with its files; returns its row.
    pub fn say_at_terminal(
        &mut self,
        text: &str,
        files: &[LandedFile],
        session: &TerminalSession,
        now: DateTime<Utc>,
    ) -> Result<i64> {
        let message = NewIncoming {
            chat: ChatRef::TERMINAL,
            text: text.to_owned(),
            kind: "text".to_owned(),
            ..NewIncoming::default()
        };
        self.0.write(|tx| {
            let id = queue::insert(tx, None, &message, now)?.unwrap_or_default();
            tx.execute(
                "UPDATE incoming_messages SET channel = ?2, session = ?3 WHERE id = ?1",
                (id, TERMINAL, session.id()),
            )?;
            attachments::insert_landed_files(tx, id, files)?;
            Ok(id)
        })
    }

    /// Carries out a command from a terminal, and plans its answer.
    pub fn order_at_terminal(
        &mut self,
        ordered: &Ordered,
        session: &TerminalSession,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.0.write(|tx| {
            if let Some(orders::AnswerState::Planned(id)) = orders::accept_order(tx, ordered, now)? {
                tx.execute("UPDATE outgoing_messages SET session = ?2 WHERE id = ?1", (id, session.id()))?;
            }
            Ok(())
        })
    }

    /// Marks a text for the terminal as shown.
    pub fn record_shown_text(&mut self, id: i64, now: DateTime<Utc>) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute(
                "UPDATE outgoing_messages SET sent_at = ?2 WHERE id = ?1 AND sent_at IS NULL",
                (id, format_rfc3339(now)),
            )?;
            tx.execute("UPDATE outgoing_parts SET state = 'sent' WHERE outgoing_id = ?1", [id])?;
            Ok(())
        })
    }

    /// Records that notifications showed these texts.
    pub fn record_notified_texts(&mut self, ids: &[i64], now: DateTime<Utc>) -> Result<()> {
        self.0.write_relaxed(|tx| {
            let sql = "UPDATE outgoing_messages SET notified_at = ?2 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))";
            Ok(tx.execute(sql, (to_json(ids), format_rfc3339(now))).map(drop)?)
        })
    }
}

impl Terminals<&mut FencedStore<'_>> {
    /// Moves texts for the terminal that no session waits for to the owner's chat. Questions stay: a question is decided in the chat
    /// where it was asked.
    pub fn send_to_owner(&mut self, owner_chat: ChatRef) -> Result<()> {
        let sql = format!(
            "UPDATE outgoing_messages AS o SET chat_id = ?1, reply_to = NULL, thread_id = NULL, channel = '{TERMINAL}'
             WHERE {}",
            for_owner()
        );
        self.0.write(|tx| Ok(tx.execute(&sql, [owner_chat]).map(drop)?))
    }
}

fn for_owner() -> String {
    format!(
        "o.chat_id = 0 AND o.sent_at IS NULL AND o.kind != '{}' AND {DELIVERABLE} AND {FOR_ANY_TERMINAL}",
        OutgoingKind::Approval.as_str()
    )
}
