//! Waiting cycles. Readers see each cycle that waits for a person, with its question. The wake sees everything that open cycles already
//! handle.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use reveille_base::clock::parse_time;

use crate::{
    Approval, Result,
    areas::{Cycles, ReadStore},
    outcome::OPEN,
    sql,
};

/// A cycle that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedCycle {
    /// The cycle.
    pub cycle_id: String,
    /// The start time.
    pub started_at: Option<DateTime<Utc>>,
    /// The last question; `None` if the question is gone.
    pub question: Option<Approval>,
    /// Whether the message with the question was delivered. The terminal shows it at the wake's end.
    pub is_delivered: bool,
}

/// The reasons for a wake, and the commits, that cycles were shown. While such a cycle is open, they don't start another cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CycleReports {
    /// Keys of reasons.
    pub handles: BTreeSet<String>,
    /// The heads of the repository up to which the cycles were shown people's commits.
    pub heads: Vec<String>,
}

impl<S: ReadStore> Cycles<S> {
    /// The reasons and commits shown to the waiting cycles: those that wait for a person or a model.
    pub fn read_waiting_reports(&self) -> Result<CycleReports> {
        self.read_reports_where(&waiting_condition(), [])
    }

    /// The reasons and commits shown to one cycle, as far as its journal is readable.
    pub fn read_cycle_reports(&self, cycle_id: &str) -> Result<CycleReports> {
        self.read_reports_where("c.id = ?1", [cycle_id])
    }

    fn read_reports_where(&self, which: &str, values: impl sql::Params) -> Result<CycleReports> {
        let mut statement = self.0.conn().prepare(&reports_query(which))?;
        let rows = statement.query_map(values, |row| Ok((row.get::<_, Option<String>>(0)?, row.get(1)?)))?;
        let mut reports = CycleReports::default();
        for row in rows {
            let (handles, head): (Option<String>, Option<String>) = row?;
            reports
                .handles
                .extend(serde_json::from_str::<Vec<String>>(&handles.unwrap_or_default()).unwrap_or_default());
            reports.heads.extend(head);
        }
        Ok(reports)
    }

    /// The cycles that wait for a person, oldest first.
    pub fn parked_cycles(&self) -> Result<Vec<ParkedCycle>> {
        let mut statement = self.0.conn().prepare(
            "SELECT c.id, c.started_at, a.id, o.sent_at IS NOT NULL FROM cycles c
             LEFT JOIN approvals a ON a.id = (SELECT max(id) FROM approvals WHERE cycle_id = c.id)
             LEFT JOIN outgoing_messages o ON o.id = a.outgoing_id
             WHERE c.state = 'parked' ORDER BY c.started_at, c.id",
        )?;
        let rows = statement.query_map([], |row| {
            let question: Option<i64> = row.get(2)?;
            let started_at: Option<String> = row.get(1)?;
            Ok((row.get::<_, String>(0)?, started_at, question, row.get(3)?))
        })?;
        let rows: Vec<_> = rows.collect::<sql::QueryResult<_>>()?;
        rows.into_iter()
            .map(|(cycle_id, started_at, question, is_delivered)| {
                Ok(ParkedCycle {
                    cycle_id,
                    started_at: started_at.as_deref().and_then(parse_time),
                    question: question.map_or(Ok(None), |id| self.0.store().approvals().find_approval(id))?,
                    is_delivered,
                })
            })
            .collect()
    }
}

/// SQL condition for waiting cycles. The states appear twice, since SQLite uses a partial index only if a query repeats its condition.
pub(crate) fn waiting_condition() -> String {
    format!("c.state IN {OPEN} AND c.state IN ('waiting', 'parked')")
}

/// SQL query for the reasons and commits shown to these cycles. The cycles come first in the join, so that only their journals are read:
/// the journals of all other cycles are much longer.
pub(crate) fn reports_query(which: &str) -> String {
    format!(
        "SELECT json_extract(j.body, '$.handles'), json_extract(j.body, '$.head') FROM cycles c
         CROSS JOIN cycle_journal j
         WHERE j.cycle_id = c.id AND j.kind IN ('said', 'by_rule') AND {which} AND json_valid(j.body) ORDER BY c.started_at, c.id, j.seq"
    )
}
