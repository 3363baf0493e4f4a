//! The undelivered messages, for people who ask. A message may have several parts; one part stands for its state.

use reveille_base::types::ChatRef;

use crate::{
    PartState, Result,
    areas::{Outbox, ReadStore},
    odd_rows::read_text,
    sql,
};

/// The maximum number of listed messages. Counts cover all.
const MAX_LISTED: i64 = 200;

/// SQL fragment: the messages `o` that aren't fully delivered. Part `p` stands for a message's state: the worst of its unconfirmed parts,
/// and the first of several. The order from worst to best is failed, unknown (final before repeatable), attempting, planned. A
/// handwritten message may have no parts yet.
const UNDELIVERED: &str = "outgoing_messages o LEFT JOIN outgoing_parts p ON p.outgoing_id = o.id AND p.part = (
        SELECT part FROM outgoing_parts WHERE outgoing_id = o.id AND state != 'sent'
        ORDER BY CASE state WHEN 'failed' THEN 1 WHEN 'unknown' THEN 2 WHEN 'attempting' THEN 3 ELSE 4 END, repeats DESC, part
        LIMIT 1)
    WHERE o.sent_at IS NULL AND o.taken_back_at IS NULL AND CAST(o.chat_id AS BIGINT) = o.chat_id";

/// A message that isn't fully delivered, with the state of its worst part.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Undelivered {
    /// The row id.
    pub id: i64,
    /// The chat.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The part's state; never [`PartState::Sent`].
    pub state: PartState,
    /// Whether this is a repeat after an unknown outcome; a further repeat is too risky.
    #[serde(skip)]
    pub is_repeat: bool,
    /// The time of writing.
    pub created_at: String,
    /// The earliest time of the next attempt.
    pub not_before: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// The number of attempts so far.
    pub attempts: i64,
}

/// The outlook of a message that isn't fully delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// The sender will try, or try again.
    Tried,
    /// Two attempts had unknown outcomes: the message may have arrived, and there is no further attempt.
    InDoubt,
    /// The channel refuses the message for good.
    Refused,
}

impl Prospect {
    fn from_state(state: PartState, is_repeat: bool) -> Self {
        match state {
            PartState::Failed => Self::Refused,
            PartState::Unknown if is_repeat => Self::InDoubt,
            PartState::Planned | PartState::Attempting | PartState::Sent | PartState::Unknown => Self::Tried,
        }
    }
}

impl Undelivered {
    /// The message's outlook.
    pub fn prospect(&self) -> Prospect {
        Prospect::from_state(self.state, self.is_repeat)
    }
}

/// The numbers of messages that aren't fully delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Messages still to be tried.
    pub tried: usize,
    /// Messages with two unknown outcomes.
    pub in_doubt: usize,
    /// Messages refused for good.
    pub refused: usize,
    /// Messages for the terminal, shown by the next wake.
    pub console: usize,
}

impl Outstanding {
    /// The total.
    pub fn total(&self) -> usize {
        self.tried + self.in_doubt + self.refused + self.console
    }
}

impl<S: ReadStore> Outbox<S> {
    /// The messages that aren't fully delivered, oldest first, at most 200.
    pub fn list_undelivered_messages(&self) -> Result<Vec<Undelivered>> {
        self.undelivered_where("TRUE", [])
    }

    /// The state of one message's delivery; `None` once every part was confirmed.
    pub fn undelivered_message(&self, id: i64) -> Result<Option<Undelivered>> {
        Ok(self.undelivered_where("o.id = ?1", [id])?.pop())
    }

    fn undelivered_where(&self, condition: &str, values: impl sql::Params) -> Result<Vec<Undelivered>> {
        let mut statement = self.0.conn().prepare(&format!(
            "SELECT o.id, o.chat_id, COALESCE(p.state, 'planned'), COALESCE(p.repeats, 0) > 0, o.created_at, p.not_before,
                    p.error, COALESCE(p.attempts, 0)
             FROM {UNDELIVERED} AND {condition} ORDER BY o.id LIMIT {MAX_LISTED}",
        ))?;
        let rows = statement.query_map(values, |row| {
            Ok(Undelivered {
                id: row.get(0)?,
                chat: row.get(1)?,
                state: PartState::parse(&row.get::<_, String>(2)?),
                is_repeat: row.get(3)?,
                created_at: read_text(row, 4)?,
                not_before: row.get(5)?,
                error: row.get(6)?,
                attempts: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The numbers of messages that aren't fully delivered.
    pub fn count_outstanding(&self) -> Result<Outstanding> {
        let mut statement = self.0.conn().prepare(&format!(
            "SELECT o.chat_id = 0, COALESCE(p.state, 'planned'), COALESCE(p.repeats, 0) > 0, count(*)
             FROM {UNDELIVERED} GROUP BY 1, 2, 3",
        ))?;
        let mut rows = statement.query([])?;
        let mut outstanding = Outstanding::default();
        while let Some(row) = rows.next()? {
            let prospect = Prospect::from_state(PartState::parse(&row.get::<_, String>(1)?), row.get(2)?);
            *match (row.get(0)?, prospect) {
                (true, _) => &mut outstanding.console,
                (false, Prospect::Tried) => &mut outstanding.tried,
                (false, Prospect::InDoubt) => &mut outstanding.in_doubt,
                (false, Prospect::Refused) => &mut outstanding.refused,
            } += row.get::<_, u32>(3)? as usize;
        }
        Ok(outstanding)
    }
}
