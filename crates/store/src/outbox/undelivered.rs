//! What hasn't come of the messages out, for people who ask. A message may be of several parts; one of them tells how it
//! stands.

use reveille_base::types::ChatRef;

use crate::{PartState, Result, Store, odd_rows::text_of, sql};

/// Messages that are listed at most. All are counted.
const MAX_LISTED: i64 = 200;

/// Messages `o` that aren't fully delivered. Part `p` tells how one stands: of those that weren't confirmed the worst off, and of
/// several the first. Worst is what the channel will never take, then what is in doubt (for good, before what is sent once
/// more), then what is under way; what is planned is best. A message that was written by hand may have no parts yet.
const UNDELIVERED: &str = "outgoing_messages o LEFT JOIN outgoing_parts p ON p.outgoing_id = o.id AND p.part = (
        SELECT part FROM outgoing_parts WHERE outgoing_id = o.id AND state != 'sent'
        ORDER BY CASE state WHEN 'failed' THEN 1 WHEN 'unknown' THEN 2 WHEN 'attempting' THEN 3 ELSE 4 END, repeats DESC, part
        LIMIT 1)
    WHERE o.sent_at IS NULL AND o.taken_back_at IS NULL AND CAST(o.chat_id AS BIGINT) = o.chat_id";

/// A message that isn't fully delivered, and why: what its part that is worst off tells.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Undelivered {
    /// Its row.
    pub id: i64,
    /// Where to.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// How far it is; never [`PartState::Sent`].
    pub state: PartState,
    /// Whether it is or was sent once more after a doubt: no further one is risked.
    #[serde(skip)]
    pub is_repeat: bool,
    /// When it was written.
    pub created_at: String,
    /// Not tried again before.
    pub not_before: Option<String>,
    /// The last error.
    pub error: Option<String>,
    /// Attempts so far.
    pub attempts: i64,
}

/// What becomes of a message that isn't fully delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// It is tried, or tried again.
    Tried,
    /// It was sent twice without the channel's word: it may have come, and nobody tries it any more.
    InDoubt,
    /// The channel will never take it.
    Refused,
}

impl Prospect {
    fn of(state: PartState, is_repeat: bool) -> Self {
        match state {
            PartState::Failed => Self::Refused,
            PartState::Unknown if is_repeat => Self::InDoubt,
            PartState::Planned | PartState::Attempting | PartState::Sent | PartState::Unknown => Self::Tried,
        }
    }
}

impl Undelivered {
    /// What becomes of it.
    pub fn prospect(&self) -> Prospect {
        Prospect::of(self.state, self.is_repeat)
    }
}

/// How many messages aren't fully delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// That are tried, or tried again.
    pub tried: usize,
    /// That were sent twice without the channel's word.
    pub in_doubt: usize,
    /// That the channel will never take.
    pub refused: usize,
    /// That the next wake shows on the console.
    pub console: usize,
}

impl Outstanding {
    /// All of them.
    pub fn total(&self) -> usize {
        self.tried + self.in_doubt + self.refused + self.console
    }
}

impl Store {
    /// Messages not fully delivered, oldest first, the first 200.
    pub fn undelivered(&self) -> Result<Vec<Undelivered>> {
        self.undelivered_where("TRUE", [])
    }

    /// Where the delivery of one message stands; `None` once every part was confirmed.
    pub fn undelivered_message(&self, id: i64) -> Result<Option<Undelivered>> {
        Ok(self.undelivered_where("o.id = ?1", [id])?.pop())
    }

    fn undelivered_where(&self, condition: &str, values: impl sql::Params) -> Result<Vec<Undelivered>> {
        let mut statement = self.conn.prepare(&format!(
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
                created_at: text_of(row, 4)?,
                not_before: row.get(5)?,
                error: row.get(6)?,
                attempts: row.get(7)?,
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// How many messages aren't fully delivered.
    pub fn outstanding(&self) -> Result<Outstanding> {
        let mut statement = self.conn.prepare(&format!(
            "SELECT o.chat_id = 0, COALESCE(p.state, 'planned'), COALESCE(p.repeats, 0) > 0, count(*)
             FROM {UNDELIVERED} GROUP BY 1, 2, 3",
        ))?;
        let mut rows = statement.query([])?;
        let mut outstanding = Outstanding::default();
        while let Some(row) = rows.next()? {
            let prospect = Prospect::of(PartState::parse(&row.get::<_, String>(1)?), row.get(2)?);
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
