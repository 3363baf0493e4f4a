//! Daily figures, computed by the database: money and tokens, the durations of turns, and the outcomes of cycles. A day is a pair of
//! moments; the caller knows the time zone of its midnight.

use chrono::{DateTime, Utc};

use reveille_base::{clock::format_rfc3339, types::Usage};

use super::rows::CycleState;
use crate::{
    Result, Spent,
    areas::{CycleHistory, ReadStore},
    sql::{self, Row},
    to_json,
};

/// The cost of one model on one day.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDay {
    /// The day's index among the requested days.
    pub day: u32,
    /// The model.
    pub model: String,
    /// Tokens and money.
    pub spent: Spent,
}

/// The durations of the turns of one day's cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTimes {
    /// See [`ModelDay::day`]. A turn counts on the day its cycle started.
    pub day: u32,
    /// The number of turns.
    pub turns: u32,
    /// The median, in milliseconds.
    pub median_ms: i64,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: i64,
}

/// The number of one day's cycles in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateDay {
    /// See [`ModelDay::day`].
    pub day: u32,
    /// The cycles' final or current state.
    pub state: CycleState,
    /// The number of cycles.
    pub cycles: u32,
}

/// The bounds of days as JSON for the database: a list of pairs.
fn format_bounds(bounds: &[DateTime<Utc>], format: impl Fn(DateTime<Utc>) -> String) -> String {
    let texts: Vec<String> = bounds.iter().map(|at| format(*at)).collect();
    to_json(&texts.iter().zip(texts.iter().skip(1)).collect::<Vec<_>>())
}

/// The prefix of the ids of cycles that start at this moment. It lets queries by time use the index on ids.
pub(super) fn id_prefix_at(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

const DAYS: &str = "WITH days AS (SELECT key AS day, json_extract(value, '$[0]') AS begins, json_extract(value, '$[1]') AS ends FROM json_each(?1))";

impl<S: ReadStore> CycleHistory<S> {
    /// The cost per day and model. `bounds` holds each day's start, then the end of the last day.
    pub fn spent_by_day(&self, bounds: &[DateTime<Utc>]) -> Result<Vec<ModelDay>> {
        let sql = format!(
            "{DAYS} SELECT day, model, sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost_usd)
             FROM days CROSS JOIN ledger WHERE at >= begins AND at < ends GROUP BY day, model ORDER BY day, model"
        );
        let tokens = |row: &Row<'_>, index| row.get::<_, i64>(index).map(|n| u64::try_from(n).unwrap_or(0));
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map([format_bounds(bounds, format_rfc3339)], |row| {
            let usage = Usage {
                input: tokens(row, 2)?,
                output: tokens(row, 3)?,
                cache_read: tokens(row, 4)?,
                cache_write: tokens(row, 5)?,
            };
            let spent = Spent { tokens: usage, cost_usd: row.get(6)? };
            Ok(ModelDay { day: row.get(0)?, model: row.get(1)?, spent })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The durations of turns by the day on which their cycles started, for cycles whose journal still exists. Days without turns are
    /// omitted.
    pub fn turn_times_by_day(&self, bounds: &[DateTime<Utc>]) -> Result<Vec<TurnTimes>> {
        // The rank of a turn's duration among the day's turns gives the percentiles.
        let sql = format!(
            "{DAYS}, asked AS (
                 SELECT day, kind, at, lag(at) OVER one AS asked_at, lag(kind) OVER one AS before
                 FROM days CROSS JOIN cycle_journal WHERE cycle_id >= begins AND cycle_id < ends
                     AND kind IN ('asked', 'turn', 'discarded') WINDOW one AS (PARTITION BY cycle_id ORDER BY seq)
             ), took AS (
                 SELECT day, CASE WHEN julianday(at) > julianday(asked_at)
                             THEN CAST(round((julianday(at) - julianday(asked_at)) * 86400000) AS BIGINT) ELSE 0 END AS ms
                 FROM asked WHERE kind = 'turn' AND before = 'asked' AND julianday(at) IS NOT NULL
                     AND julianday(asked_at) IS NOT NULL
             ), placed AS (
                 SELECT day, ms, row_number() OVER (PARTITION BY day ORDER BY ms) AS place,
                        count(*) OVER (PARTITION BY day) AS turns
                 FROM took
             )
             SELECT day, turns, max(ms) FILTER (WHERE place = (turns + 1) / 2),
                    max(ms) FILTER (WHERE place = (turns * 95 + 99) / 100)
             FROM placed GROUP BY day, turns ORDER BY day"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map([format_bounds(bounds, id_prefix_at)], |row| {
            Ok(TurnTimes { day: row.get(0)?, turns: row.get(1)?, median_ms: row.get(2)?, p95_ms: row.get(3)? })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The number of cycles started per day, by state.
    pub fn states_by_day(&self, bounds: &[DateTime<Utc>]) -> Result<Vec<StateDay>> {
        let sql = format!(
            "{DAYS} SELECT day, state, count(*) FROM days CROSS JOIN cycles WHERE id >= begins AND id < ends
             GROUP BY day, state ORDER BY day, state"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map([format_bounds(bounds, id_prefix_at)], |row| {
            Ok(StateDay { day: row.get(0)?, state: CycleState::parse(&row.get::<_, String>(1)?), cycles: row.get(2)? })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}
