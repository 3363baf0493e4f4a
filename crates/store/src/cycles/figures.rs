//! Figures on the effect of a change to the assistant's own orders: requests, money, questions and finished tasks over a period.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::format_rfc3339,
    types::{Figure, Measured, OwnWork},
};

use super::days::id_prefix_at;
use crate::{
    Entry, Result,
    areas::{CycleHistory, ReadStore},
    sql::Row,
};

/// SQL condition for the cycles that count: a job's runs (?3 is the prefix of their work), or answers in chats.
const IN_SCOPE: &str = "CASE WHEN CAST(?3 AS TEXT) IS NULL THEN c.work IS NULL AND c.chat_id IS NOT NULL
    ELSE c.work IS NOT NULL AND substr(c.work, 1, length(?3)) = ?3 END";

impl<S: ReadStore> CycleHistory<S> {
    /// A figure over the cycles started from `since` until `until`: the runs of `job`, or the answers in chats. Finished tasks count from
    /// every cycle, as far back as journals are kept.
    pub fn measure_figure(
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
            Figure::Rounds => paid("CAST(count(*) AS DOUBLE PRECISION)"),
            Figure::Cost => paid("COALESCE(sum(l.cost_usd), 0.0)"),
            Figure::Questions => format!(
                "SELECT CAST(count(*) AS DOUBLE PRECISION), {pieces} FROM approvals a JOIN cycles c ON c.id = a.cycle_id
                 WHERE {began} AND {IN_SCOPE}"
            ),
            Figure::TasksDone => format!(
                "SELECT CAST(count(*) AS DOUBLE PRECISION), {pieces} FROM nudges n
                 WHERE n.answer = 'done' AND n.answered_at >= ?1 AND n.answered_at < ?2"
            ),
        };
        let work = job.map(OwnWork::job_prefix);
        let mut statement = self.0.conn().prepare(&sql)?;
        let read = |row: &Row<'_>| Ok(Measured { total: row.get(0)?, pieces: row.get(1)? });
        let mut measured = statement.query_row((format_rfc3339(since), format_rfc3339(until), work), read)?;
        if figure == Figure::TasksDone {
            measured.total += f64::from(self.count_finished_tasks(since, until)?);
        }
        Ok(measured)
    }

    /// The number of tasks finished by a tool in the cycles started in that period.
    fn count_finished_tasks(&self, since: DateTime<Utc>, until: DateTime<Utc>) -> Result<u32> {
        let sql = "SELECT body FROM cycle_journal WHERE cycle_id >= ?1 AND cycle_id < ?2 AND kind = 'outcome'
            AND body LIKE '%\"task_done\"%'";
        let mut statement = self.0.conn().prepare(sql)?;
        let mut finished = 0;
        for body in statement.query_map((id_prefix_at(since), id_prefix_at(until)), |row| row.get::<_, String>(0))? {
            let entry = serde_json::from_str::<Entry>(&body?);
            let is_finished = |receipt: &String| receipt.starts_with("Finished ");
            if matches!(entry, Ok(Entry::Outcome { name, receipt: Some(receipt), .. }) if name == "task_done" && is_finished(&receipt))
            {
                finished += 1;
            }
        }
        Ok(finished)
    }
}
