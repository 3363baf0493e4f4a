//! Terminals: they are all chat 0, and a session tells one that waits for its answers from the others.
//!
//! A text for the terminal counts as delivered when somebody was shown it. One that answers a terminal that waits is that
//! terminal's; any other may be shown by whoever looks next, or go to the owner's chat in its place.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::rfc3339,
    process::Identity,
    random::{self, NoRandomness},
    types::ChatRef,
};

use super::orders;
use crate::{
    Exchange, FencedStore, NewIncoming, Ordered, OutgoingKind, Result, Store,
    chats::channel::TERMINAL,
    json,
    messages::{
        attachments::{self, LandedFile},
        queue,
    },
    odd_rows::text_of,
    outbox::attempts::DELIVERABLE,
    sql::{self, OptionalExtension as _},
};

/// A session's id, in random bytes.
const SESSION_BYTES: usize = 8;

/// What was written so lately is still news at the desktop.
const NEW: TimeDelta = TimeDelta::minutes(10);

/// No terminal that still waits is to be shown text `o`: it is anybody's.
const IS_ANYBODYS: &str = "(o.session IS NULL OR o.session NOT IN (SELECT id FROM sessions))";

/// A terminal that waits for its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalSession(String);

impl TerminalSession {
    /// A new one, with a random id.
    ///
    /// # Errors
    /// When the system has no random numbers to give.
    pub fn fresh() -> std::result::Result<Self, NoRandomness> {
        Ok(Self(random::hex(&random::bytes::<SESSION_BYTES>()?)))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.0
    }
}

/// How it stands with a message that a terminal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A wake has still to answer it.
    Open,
    /// It is answered, or kept: nothing more comes of it now.
    Settled,
}

impl Store {
    /// Lets a terminal wait for its answers, until [`Store::close_session`] or the end of its process.
    pub fn open_session(&mut self, session: &TerminalSession, me: &Identity, now: DateTime<Utc>) -> Result<()> {
        self.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO sessions (id, channel, holder, opened_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, holder = excluded.holder,
                     opened_at = excluded.opened_at",
                (session.id(), TERMINAL, json(me), rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// A terminal waits no more. What comes for it later is anybody's.
    pub fn close_session(&mut self, session: &TerminalSession) -> Result<()> {
        self.write_relaxed(|tx| Ok(tx.execute("DELETE FROM sessions WHERE id = ?1", [session.id()]).map(drop)?))
    }

    /// Terminals whose process died wait no more. Where there are none, nothing is written.
    pub fn forget_dead_sessions(&mut self) -> Result<()> {
        let rows = {
            let mut statement = self.conn.prepare("SELECT id, holder FROM sessions")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<sql::QueryResult<Vec<(String, String)>>>()?
        };
        let is_alive =
            |holder: &str| serde_json::from_str::<Identity>(holder).is_ok_and(|holder| self.may_live(&holder));
        let dead: Vec<String> = rows.into_iter().filter(|(_, holder)| !is_alive(holder)).map(|(id, _)| id).collect();
        for id in dead {
            self.close_session(&TerminalSession(id))?;
        }
        Ok(())
    }

    /// The terminal that waits for what a cycle says, if one does.
    pub fn session_of(&self, cycle_id: &str) -> Result<Option<String>> {
        let sql = "SELECT s.id FROM taken_up t JOIN incoming_messages m ON m.id = t.message_id JOIN sessions s ON s.id = m.session
                   WHERE t.cycle_id = ?1 LIMIT 1";
        Ok(self.conn.prepare(sql)?.query_row([cycle_id], |row| row.get(0)).optional()?)
    }

    /// Queues what was said at a terminal, with the files that came with it; returns its row.
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
        self.write(|tx| {
            let id = queue::insert(tx, None, &message, now)?.unwrap_or_default();
            tx.execute(
                "UPDATE incoming_messages SET channel = ?2, session = ?3 WHERE id = ?1",
                (id, TERMINAL, session.id()),
            )?;
            attachments::insert_landed(tx, id, files)?;
            Ok(id)
        })
    }

    /// The cycle that a message was taken up by, the latest one.
    pub fn cycle_with(&self, message: i64) -> Result<Option<String>> {
        let sql = "SELECT cycle_id FROM taken_up WHERE message_id = ?1 ORDER BY cycle_id DESC LIMIT 1";
        Ok(self.conn.prepare(sql)?.query_row([message], |row| row.get(0)).optional()?)
    }

    /// Whether work for the terminals is stopped, and something waits for its end.
    pub fn is_terminal_paused(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM stopped_chats WHERE chat_id = 0)
             AND (EXISTS (SELECT 1 FROM cycles WHERE chat_id = 0 AND state IN ('running', 'waiting'))
                 OR EXISTS (SELECT 1 FROM incoming_messages WHERE chat_id = 0 AND processed = 0 AND held_for IS NULL))";
        Ok(self.conn.prepare(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Whether a text asks whether something may be done.
    pub fn is_question(&self, outgoing: i64) -> Result<bool> {
        let sql = "SELECT kind = ?2 FROM outgoing_messages WHERE id = ?1";
        let kind = OutgoingKind::Approval.as_str();
        let is_question = self.conn.prepare(sql)?.query_row((outgoing, kind), |row| row.get(0)).optional()?;
        Ok(is_question.unwrap_or(false))
    }

    /// Carries out a command that was given at a terminal, and plans its answer.
    pub fn order_at_terminal(
        &mut self,
        ordered: &Ordered,
        session: &TerminalSession,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.write(|tx| {
            if let Some(orders::AnswerState::Planned(id)) = orders::accept(tx, ordered, now)? {
                tx.execute("UPDATE outgoing_messages SET session = ?2 WHERE id = ?1", (id, session.id()))?;
            }
            Ok(())
        })
    }

    /// How it stands with a message.
    pub fn awaited(&self, id: i64) -> Result<Awaited> {
        let is_settled = self
            .conn
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

    /// Texts for the terminal that weren't shown yet, oldest first, as (row, text): those that are anybody's, and those for this
    /// session.
    pub fn console_unshown(&self, session: Option<&TerminalSession>) -> Result<Vec<(i64, String)>> {
        let sql = format!(
            "SELECT o.id, o.message_text FROM outgoing_messages o
             WHERE o.chat_id = 0 AND o.sent_at IS NULL AND {DELIVERABLE} AND ({IS_ANYBODYS} OR o.session = ?1)
             ORDER BY o.id"
        );
        let mut statement = self.conn.prepare(&sql)?;
        let rows =
            statement.query_map([session.map(TerminalSession::id)], |row| Ok((row.get(0)?, text_of(row, 1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// What was said at the terminals, both ways, oldest first, without what may not be heard yet: what a cycle says leaves after its
    /// commit.
    pub fn at_terminals(&self, limit: usize) -> Result<Vec<Exchange>> {
        self.exchanges_where(ChatRef::TERMINAL, "TRUE", &format!("(o.sent_at IS NOT NULL OR {DELIVERABLE})"), limit)
    }

    /// Marks a text for the terminal as shown.
    pub fn mark_shown(&mut self, id: i64, now: DateTime<Utc>) -> Result<()> {
        self.write_relaxed(|tx| {
            tx.execute(
                "UPDATE outgoing_messages SET sent_at = ?2 WHERE id = ?1 AND sent_at IS NULL",
                (id, rfc3339(now)),
            )?;
            tx.execute("UPDATE outgoing_parts SET state = 'sent' WHERE outgoing_id = ?1", [id])?;
            Ok(())
        })
    }

    /// Whether [`crate::FencedStore::send_to_owner`] would find something.
    pub fn has_for_owner(&self) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM outgoing_messages o WHERE {})", for_owner());
        Ok(self.has_unsent()? && self.conn.prepare(&sql)?.query_row([], |row| row.get(0))?)
    }

    /// What no notification told of, oldest first, as (row, text): texts for the terminal that nobody was shown there (of those that went
    /// to the owner's chat what is new), reminders that have just come in the owner's chat, and questions that wait there.
    pub fn to_notify(&self, owner_chat: ChatRef, now: DateTime<Utc>) -> Result<Vec<(i64, String)>> {
        let sql = format!(
            "SELECT o.id, o.message_text FROM outgoing_messages o
             WHERE o.notified_at IS NULL AND {DELIVERABLE} AND {IS_ANYBODYS}
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
        let mut statement = self.conn.prepare(&sql)?;
        let rows = statement
            .query_map((rfc3339(now - NEW), owner_chat, rfc3339(now)), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// Notes that notifications told of these texts.
    pub fn mark_notified(&mut self, ids: &[i64], now: DateTime<Utc>) -> Result<()> {
        self.write_relaxed(|tx| {
            let sql = "UPDATE outgoing_messages SET notified_at = ?2 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))";
            Ok(tx.execute(sql, (json(ids), rfc3339(now))).map(drop)?)
        })
    }
}

impl FencedStore<'_> {
    /// Lets texts for the terminal that nobody waits for there go to the owner's chat in its place. Questions stay: they are
    /// decided where they were asked.
    pub fn send_to_owner(&mut self, owner_chat: ChatRef) -> Result<()> {
        let sql = format!(
            "UPDATE outgoing_messages AS o SET chat_id = ?1, reply_to = NULL, thread_id = NULL, channel = '{TERMINAL}'
             WHERE {}",
            for_owner()
        );
        self.fenced(|tx| Ok(tx.execute(&sql, [owner_chat]).map(drop)?))
    }
}

fn for_owner() -> String {
    format!(
        "o.chat_id = 0 AND o.sent_at IS NULL AND o.kind != '{}' AND {DELIVERABLE} AND {IS_ANYBODYS}",
        OutgoingKind::Approval.as_str()
    )
}
