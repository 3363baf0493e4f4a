//! The cost of the models: one row per request, including discarded turns. The row exists before the request leaves, with the maximum
//! cost, and is updated as the answer arrives. If the wake is killed meanwhile, the row still counts the most the request may have cost
//! by then.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::Usage,
};

use super::journal;
use crate::{
    Entry, FencedStore, Result,
    areas::{Ledger, ReadStore, WriteStore},
    sql::{self, Row, SqlConnection, Transaction},
};

/// Tokens and money of a period or a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Spent {
    /// Tokens by kind.
    pub tokens: Usage,
    /// US dollars.
    pub cost_usd: f64,
}

/// A calendar period with a spending limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// `DAILY_BUDGET_USD`.
    Day,
    /// `MONTHLY_BUDGET_USD`.
    Month,
}

impl Cap {
    /// The possessive for a sentence, such as `today's`.
    pub fn possessive(self) -> &'static str {
        match self {
            Self::Day => "today's",
            Self::Month => "this month's",
        }
    }

    /// The setting's name.
    pub fn setting_name(self) -> &'static str {
        match self {
            Self::Day => "DAILY_BUDGET_USD",
            Self::Month => "MONTHLY_BUDGET_USD",
        }
    }

    /// `day` or `month`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The end of the period, for the end of a sentence.
    pub fn describe_end(self) -> &'static str {
        match self {
            Self::Day => "tomorrow",
            Self::Month => "when the next month begins",
        }
    }
}

/// A limit on spending from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpendCap {
    /// The kind of period.
    pub cap: Cap,
    /// The start of the day or the month.
    pub since: DateTime<Utc>,
    /// US dollars.
    pub usd: f64,
}

/// The maximum cost of a request, reserved before the request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation(pub(crate) i64);

/// The end of a reserved request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settlement {
    /// The reservation.
    pub reservation: Reservation,
    /// The actual cost.
    pub spent: Spent,
    /// True if the turn was cut off and isn't kept.
    pub is_discarded: bool,
}

impl Settlement {
    /// The end of a request whose turn is kept.
    pub fn kept(reservation: Reservation, spent: Spent) -> Self {
        Self { reservation, spent, is_discarded: false }
    }

    /// The end of a request whose turn was cut off.
    pub fn discarded(reservation: Reservation, spent: Spent) -> Self {
        Self { reservation, spent, is_discarded: true }
    }
}

impl<S: ReadStore> Ledger<S> {
    /// The reserved part of the spending since `since`, in US dollars: the maximum cost of each running request, and of each request that
    /// was cut off at an unknown cost.
    pub fn reserved_since(&self, since: DateTime<Utc>) -> Result<f64> {
        let sql = "SELECT COALESCE(sum(cost_usd), 0.0) FROM ledger WHERE reserved = 1 AND at >= ?1";
        Ok(self.0.conn().query_row(sql, [format_rfc3339(since)], |row| row.get(0))?)
    }

    /// The spending since a moment, such as the local day's start.
    pub fn spent_since(&self, since: DateTime<Utc>) -> Result<Spent> {
        Ok(sum_cost(self.0.conn(), "at >= ?1", &format_rfc3339(since))?)
    }

    /// The time of the request for a model's last answer.
    pub fn last_answer(&self, model: &str) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT max(at) FROM ledger WHERE model = ?1 AND reserved = 0 AND discarded = 0";
        let at: Option<String> = self.0.conn().query_row(sql, [model], |row| row.get(0))?;
        Ok(at.as_deref().and_then(parse_time))
    }

    /// The cost of a cycle.
    pub fn sum_cycle_cost(&self, cycle_id: &str) -> Result<Spent> {
        Ok(sum_cost(self.0.conn(), "cycle_id = ?1", cycle_id)?)
    }

    /// The cost so far of the background jobs whose name has this prefix.
    pub fn sum_job_cost(&self, work: &str) -> Result<Spent> {
        let condition =
            "cycle_id IN (SELECT id FROM cycles WHERE work IS NOT NULL AND substr(work, 1, length(?1)) = ?1)";
        Ok(sum_cost(self.0.conn(), condition, work)?)
    }

    /// The cost of each model since a moment, the most expensive first.
    pub fn spent_by_model(&self, since: DateTime<Utc>) -> Result<Vec<(String, Spent)>> {
        let mut statement = self.0.conn().prepare(
            "SELECT sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost_usd), model
             FROM ledger WHERE at >= ?1 GROUP BY model ORDER BY sum(cost_usd) DESC, model",
        )?;
        let rows = statement.query_map([format_rfc3339(since)], |row| Ok((row.get(5)?, read_cost(row)?)))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Ledger<S> {
    /// Reserves the maximum cost of a request outside any cycle, such as an embedding. Returns the cap that has no room for it, and then
    /// writes nothing.
    pub fn reserve_apart(
        &mut self,
        model: &str,
        most_usd: f64,
        caps: &[SpendCap],
        now: DateTime<Utc>,
    ) -> Result<std::result::Result<Reservation, Cap>> {
        self.0.write(|tx| insert_reservation(tx, ("", model), most_usd, caps, now))
    }

    /// Replaces such a reservation with the actual cost. A request without cost leaves no row.
    pub fn settle_apart(&mut self, reservation: Reservation, spent: &Spent) -> Result<()> {
        self.0.write_relaxed(|tx| apply_settlement(tx, &Settlement::kept(reservation, *spent)))
    }
}

impl Ledger<&mut FencedStore<'_>> {
    /// Journals that a request is about to be sent, and reserves its maximum cost, in one transaction. Returns the cap that has no room
    /// for it, and then writes nothing. Two concurrent requests can't pass a cap together.
    pub fn reserve_cost(
        &mut self,
        (cycle_id, model): (&str, &str),
        most_usd: f64,
        caps: &[SpendCap],
    ) -> Result<std::result::Result<Reservation, Cap>> {
        let now = self.0.now();
        self.0.write(|tx| {
            let reserved = insert_reservation(tx, (cycle_id, model), most_usd, caps, now)?;
            if reserved.is_ok() {
                journal::append_entry(tx, cycle_id, &Entry::Asked, now)?;
            }
            Ok(reserved)
        })
    }

    /// Replaces the reservation of a running request with the most it may have cost so far. The caller repeats this as the answer grows.
    pub fn bring_along(&mut self, reservation: Reservation, most: &Spent) -> Result<()> {
        // A power cut that loses this leaves a larger reservation, or the previous step's.
        self.0.write_relaxed(|tx| {
            tx.prepare(
                "UPDATE ledger SET input = ?2, output = ?3, cache_read = ?4, cache_write = ?5, cost_usd = ?6 WHERE id = ?1 AND reserved = 1",
            )?
            .execute((
                reservation.0,
                clamp_tokens(most.tokens.input),
                clamp_tokens(most.tokens.output),
                clamp_tokens(most.tokens.cache_read),
                clamp_tokens(most.tokens.cache_write),
                most.cost_usd,
            ))?;
            Ok(())
        })
    }

    /// Replaces a reservation with the actual cost, and journals the end of the request. A request that used nothing leaves no row.
    pub fn settle_reservation(&mut self, cycle_id: &str, settlement: &Settlement, entries: &[Entry]) -> Result<()> {
        let now = self.0.now();
        let book = |tx: &Transaction<'_>| {
            apply_settlement(tx, settlement)?;
            entries.iter().try_for_each(|entry| journal::append_entry(tx, cycle_id, entry, now))
        };
        if settlement.is_discarded {
            return self.0.write(book);
        }
        // The next step journals the turn again, synced, before acting on it. A power cut before that is as if the answer had been lost a
        // moment earlier in transit; its maximum cost stays counted.
        self.0.write_relaxed(book)
    }
}

/// Inserts a reservation, unless a cap has no room for it.
fn insert_reservation(
    tx: &Transaction<'_>,
    (cycle_id, model): (&str, &str),
    most_usd: f64,
    caps: &[SpendCap],
    now: DateTime<Utc>,
) -> Result<std::result::Result<Reservation, Cap>> {
    for cap in caps {
        // fault: request-passes-cap
        if sum_cost(tx, "at >= ?1", &format_rfc3339(cap.since))?.cost_usd + most_usd > cap.usd {
            return Ok(Err(cap.cap));
        }
    }
    let id = tx
        .prepare(
            "INSERT INTO ledger (cycle_id, at, model, input, output, cache_read, cache_write, cost_usd, reserved)
             VALUES (?1, ?2, ?3, 0, 0, 0, 0, ?4, 1) RETURNING id",
        )?
        .query_row((cycle_id, format_rfc3339(now), model, most_usd), |row| row.get(0))?;
    Ok(Ok(Reservation(id)))
}

/// Replaces a reservation with the actual cost, or deletes it if nothing was used.
fn apply_settlement(tx: &Transaction<'_>, settlement: &Settlement) -> Result<()> {
    let Settlement { reservation, spent: Spent { tokens: used, cost_usd }, is_discarded } = *settlement;
    if used == Usage::default() {
        tx.execute("DELETE FROM ledger WHERE id = ?1 AND reserved = 1", [reservation.0])?;
        return Ok(());
    }
    tx.prepare(
        "UPDATE ledger SET input = ?2, output = ?3, cache_read = ?4, cache_write = ?5, cost_usd = ?6, discarded = ?7,
             reserved = 0
         WHERE id = ?1 AND reserved = 1",
    )?
    .execute((
        reservation.0,
        clamp_tokens(used.input),
        clamp_tokens(used.output),
        clamp_tokens(used.cache_read),
        clamp_tokens(used.cache_write),
        cost_usd,
        is_discarded,
    ))?;
    Ok(())
}

fn sum_cost(conn: &SqlConnection, condition: &str, value: &str) -> sql::QueryResult<Spent> {
    let sql = format!(
        "SELECT COALESCE(sum(input), 0), COALESCE(sum(output), 0), COALESCE(sum(cache_read), 0),
                COALESCE(sum(cache_write), 0), COALESCE(sum(cost_usd), 0.0) FROM ledger WHERE {condition}"
    );
    conn.prepare(&sql)?.query_row([value], read_cost)
}

fn read_cost(row: &Row<'_>) -> sql::QueryResult<Spent> {
    Ok(Spent {
        tokens: Usage {
            input: to_count(row.get(0)?),
            output: to_count(row.get(1)?),
            cache_read: to_count(row.get(2)?),
            cache_write: to_count(row.get(3)?),
        },
        cost_usd: row.get(4)?,
    })
}

/// Clamps to SQLite's signed integers.
fn clamp_tokens(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn to_count(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or(0)
}
