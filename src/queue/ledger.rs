//! What the minds cost: one row a request, discarded turns included.

use chrono::{DateTime, Utc};
use rusqlite::Row;

use super::{Fence, Result, Store};
use crate::{clock::rfc3339, model::Usage};

/// Tokens and money of some stretch of time or of a cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Spent {
    /// Tokens by kind.
    pub tokens: Usage,
    /// US dollars.
    pub cost_usd: f64,
}

impl Store {
    /// Books one request; `discarded` says that its turn was cut off and isn't kept. The journal's entry of it
    /// follows, and syncs both.
    pub fn book(
        &mut self,
        fence: Fence,
        cycle_id: &str,
        model: &str,
        spent: &Spent,
        discarded: bool,
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.fenced_relaxed(fence, |tx| {
            tx.execute(
                "INSERT INTO ledger (cycle_id, at, model, input, output, cache_read, cache_write, cost_usd, discarded)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                rusqlite::params![
                    cycle_id,
                    rfc3339(now),
                    model,
                    tokens(spent.tokens.input),
                    tokens(spent.tokens.output),
                    tokens(spent.tokens.cache_read),
                    tokens(spent.tokens.cache_write),
                    spent.cost_usd,
                    discarded
                ],
            )?;
            Ok(())
        })
    }

    /// What was spent since a moment, such as the local day's beginning.
    pub fn spent_since(&self, since: DateTime<Utc>) -> Result<Spent> {
        self.spent("at >= ?1", &rfc3339(since))
    }

    /// What a cycle cost.
    pub fn spent_by(&self, cycle_id: &str) -> Result<Spent> {
        self.spent("cycle_id = ?1", cycle_id)
    }

    /// What each model was paid since a moment, the dearest first.
    pub fn spent_by_model(&self, since: DateTime<Utc>) -> Result<Vec<(String, Spent)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost_usd), model
             FROM ledger WHERE at >= ?1 GROUP BY model ORDER BY sum(cost_usd) DESC, model",
        )?;
        let rows = statement.query_map([rfc3339(since)], |row| Ok((row.get(5)?, read(row)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn spent(&self, condition: &str, value: &str) -> Result<Spent> {
        let sql = format!(
            "SELECT COALESCE(sum(input), 0), COALESCE(sum(output), 0), COALESCE(sum(cache_read), 0),
                    COALESCE(sum(cache_write), 0), COALESCE(sum(cost_usd), 0.0) FROM ledger WHERE {condition}"
        );
        Ok(self.conn.query_row(&sql, [value], read)?)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Spent> {
    Ok(Spent {
        tokens: Usage {
            input: count(row.get(0)?),
            output: count(row.get(1)?),
            cache_read: count(row.get(2)?),
            cache_write: count(row.get(3)?),
        },
        cost_usd: row.get(4)?,
    })
}

/// SQLite's integers are signed.
fn tokens(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or(0)
}
