//! What a change of the assistant's own orders did, counted: requests, money, questions and finished tasks over some stretch of time.

use chrono::{DateTime, Utc};
use rusqlite::params;

use super::days::id_from;
use crate::{
    clock::rfc3339,
    store::{Result, Store},
    types::{Figure, Measured, OwnWork},
};

/// Which cycles count: the runs of a job (?3 is how their work begins), or what was answered in chats.
const IN_SCOPE: &str = "CASE WHEN ?3 IS NULL THEN c.work IS NULL AND c.chat_id IS NOT NULL
    ELSE c.work IS NOT NULL AND substr(c.work, 1, length(?3)) = ?3 END";

impl Store {
    /// A figure over what began from `since` until `until`: the runs of `job`, or what was answered in chats. Finished tasks count
    /// wherever they were finished, as far back as journals are kept.
    pub fn measured(
        &self,
        figure: Figure,
        job: Option<&str>,
        since: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Measured> {
        let began = "c.started_at >= ?1 AND c.started_at < ?2";
        let pieces = format!("(SELECT count(*) FROM cycles c WHERE {began} AND {IN_SCOPE})");
        let paid = |what: &str| {
            format!(
                "SELECT {what}, count(DISTINCT l.cycle_id) FROM ledger l JOIN cycles c ON c.id = l.cycle_id
                 WHERE {began} AND l.discarded = 0 AND {IN_SCOPE}"
            )
        };
        let sql = match figure {
            Figure::Rounds => paid("CAST(count(*) AS REAL)"),
            Figure::Cost => paid("COALESCE(sum(l.cost_usd), 0.0)"),
            Figure::Questions => format!(
                "SELECT CAST(count(*) AS REAL), {pieces} FROM approvals a JOIN cycles c ON c.id = a.cycle_id
                 WHERE {began} AND {IN_SCOPE}"
            ),
            Figure::TasksDone => format!(
                "SELECT CAST((SELECT count(*) FROM cycle_journal j WHERE j.cycle_id >= ?4 AND j.cycle_id < ?5 AND j.kind = 'outcome'
                      AND j.body ->> '$.name' = 'task_done' AND j.body ->> '$.receipt' LIKE 'Finished %')
                     + (SELECT count(*) FROM nudges n WHERE n.answer = 'done' AND n.answered_at >= ?1 AND n.answered_at < ?2)
                     AS REAL), {pieces}"
            ),
        };
        let work = job.map(OwnWork::of_job);
        let mut statement = self.conn.prepare_cached(&sql)?;
        let given = params![rfc3339(since), rfc3339(until), work, id_from(since), id_from(until)];
        let of_tasks = figure == Figure::TasksDone;
        let given = if of_tasks { given } else { given.get(..3).unwrap_or(given) };
        Ok(statement.query_row(given, |row| Ok(Measured { total: row.get(0)?, pieces: row.get(1)? }))?)
    }
}
