//! Circuit breakers, one per model: a model that failed isn't asked again before its back-off is over.
//!
//! A model without a row is closed, so requests go through. A failure makes a row, which is open until its `not_before`; then the next
//! request tries the model (half-open). Another failure extends the wait; an answer deletes the row.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::clock::{format_rfc3339, is_over, parse_time};

use super::backoff::compute_retry_wait;
use crate::{
    FencedStore, Result,
    areas::{Maintenance, ReadStore, WriteStore},
    sql::{self, OptionalExtension as _, Row},
};

/// The fault of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFault {
    /// The server is unreachable, or can't answer at the moment.
    Outage,
    /// The key, the account or its spending limit: a person must act.
    Account,
    /// The server doesn't have this model, so a setting is wrong. There is no fallback, so that the mistake is noticed.
    Missing,
}

impl ModelFault {
    /// The value in the database.
    fn as_str(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::Account => "account",
            Self::Missing => "missing",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "outage" => Self::Outage,
            "missing" => Self::Missing,
            _ => Self::Account,
        }
    }

    /// Returns whether to fall back to the next model of the chain meanwhile.
    pub fn may_fall_back(self) -> bool {
        self != Self::Missing
    }

    /// Returns whether a person has to act.
    pub fn needs_person(self) -> bool {
        self != Self::Outage
    }
}

/// A model with failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBreaker {
    /// The model's name.
    pub model: String,
    /// The fault at the last failure.
    pub fault: ModelFault,
    /// The number of consecutive failures.
    pub failures: u32,
    /// The time of the first of them.
    pub since: Option<DateTime<Utc>>,
    /// The earliest time of the next request.
    pub not_before: Option<DateTime<Utc>>,
    /// The last failure, without secrets.
    pub error: String,
}

impl ModelBreaker {
    /// Returns whether its back-off is over, so that the next request may try it.
    pub fn may_try(&self, now: DateTime<Utc>) -> bool {
        self.not_before.is_none_or(|at| is_over(at, now))
    }

    const COLUMNS: &str = "model, fault, failures, since, not_before, error";

    fn from_row(row: &Row<'_>) -> sql::QueryResult<Self> {
        Ok(Self {
            model: row.get(0)?,
            fault: ModelFault::parse(&row.get::<_, String>(1)?),
            failures: row.get(2)?,
            since: parse_time(&row.get::<_, String>(3)?),
            not_before: row.get::<_, Option<String>>(4)?.as_deref().and_then(parse_time),
            error: row.get(5)?,
        })
    }
}

impl<S: ReadStore> Maintenance<S> {
    /// All models with failures.
    pub fn list_breakers(&self) -> Result<Vec<ModelBreaker>> {
        let sql = format!("SELECT {} FROM model_breakers ORDER BY model", ModelBreaker::COLUMNS);
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], ModelBreaker::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The breaker of a model, if it has failures.
    pub fn find_breaker(&self, model: &str) -> Result<Option<ModelBreaker>> {
        let sql = format!("SELECT {} FROM model_breakers WHERE model = ?1", ModelBreaker::COLUMNS);
        Ok(self.0.conn().prepare(&sql)?.query_row([model], ModelBreaker::from_row).optional()?)
    }
}

impl Maintenance<&mut FencedStore<'_>> {
    /// Records a model's failure: the wait grows each time. `at_least` is the wait its server asked for.
    pub fn record_model_failure(
        &mut self,
        model: &str,
        fault: ModelFault,
        error: &str,
        at_least: Option<TimeDelta>,
    ) -> Result<()> {
        let now = self.0.now();
        let failures = self.find_breaker(model)?.map_or(0, |breaker| breaker.failures).saturating_add(1);
        let not_before = now + compute_retry_wait(failures).max(at_least.unwrap_or_default());
        self.0.write_relaxed(|tx| {
            tx.execute(
                "INSERT INTO model_breakers (model, fault, failures, since, not_before, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (model) DO UPDATE SET fault = excluded.fault, failures = excluded.failures,
                     not_before = excluded.not_before, error = excluded.error",
                (model, fault.as_str(), failures, format_rfc3339(now), format_rfc3339(not_before), error),
            )?;
            Ok(())
        })
    }

    /// Records a model's answer. Writes only after a failure.
    pub fn record_model_answer(&mut self, model: &str) -> Result<()> {
        if self.find_breaker(model)?.is_none() {
            return Ok(());
        }
        self.0.write_relaxed(|tx| {
            tx.execute("DELETE FROM model_breakers WHERE model = ?1", [model])?;
            Ok(())
        })
    }
}
