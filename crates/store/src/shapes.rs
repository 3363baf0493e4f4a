//! The shape of a store for a fault report: tables, numbers of rows, the last cycles. It contains no person's text.

use chrono::{DateTime, Utc};

use reveille_base::{clock::parse_time, types::OwnWork};

use super::{Result, Store, sql};

/// A table and its size.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TableShape {
    /// The table's name.
    pub name: String,
    /// The number of rows; `None` if they can't be counted.
    pub rows: Option<i64>,
    /// The statement that created it; `None` if the engine doesn't keep it.
    #[serde(skip)]
    pub statement: Option<String>,
}

/// A cycle without its texts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CycleShape {
    /// Its id.
    pub id: String,
    /// The wake's trigger: `cron`, `nudge`, `say` and the like.
    pub trigger: String,
    /// `done`, `failed` and the like.
    pub state: String,
    /// The model.
    pub model: String,
    /// The kind of its background job.
    pub work: Option<&'static str>,
    /// The start time.
    pub started_at: Option<DateTime<Utc>>,
    /// The end time.
    pub ended_at: Option<DateTime<Utc>>,
    /// The number of resumptions.
    pub tries: i64,
    /// Whether its last run was cut off.
    pub was_cut_off: bool,
    /// Whether an error is noted.
    pub has_error: bool,
    /// Whether a commit was made.
    pub has_commit: bool,
}

impl Store {
    /// The tables.
    ///
    /// # Errors
    /// If even the names are unreadable.
    pub fn table_shapes(&self) -> Result<Vec<TableShape>> {
        let sql = self.conn.pick_statement(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name",
            "SELECT tablename, NULL FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename",
        );
        let mut statement = self.conn.prepare(sql)?;
        let tables = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
        let tables = tables.collect::<sql::QueryResult<Vec<_>>>()?;
        let count = |name: &str| {
            let name = name.replace('"', "\"\"");
            self.conn.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0)).ok()
        };
        Ok(tables.into_iter().map(|(name, statement)| TableShape { rows: count(&name), name, statement }).collect())
    }

    /// The latest cycles, newest first. Unreadable columns are empty.
    ///
    /// # Errors
    /// The store's.
    pub fn cycle_shapes(&self, most: usize) -> Result<Vec<CycleShape>> {
        let mut statement = self.conn.prepare(
            "SELECT id, trigger, state, model, work, started_at, ended_at, tries, was_cut_off, error IS NOT NULL, commit_id IS NOT NULL
             FROM cycles ORDER BY started_at DESC, id DESC LIMIT ?1",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map([most], |row| {
            let text = |index: usize| row.get::<_, Option<String>>(index).ok().flatten().unwrap_or_default();
            Ok(CycleShape {
                id: text(0),
                trigger: text(1),
                state: text(2),
                model: text(3),
                work: text(4).parse::<OwnWork>().ok().map(|work| work_kind(&work)),
                started_at: parse_time(&text(5)),
                ended_at: parse_time(&text(6)),
                tries: row.get(7).unwrap_or_default(),
                was_cut_off: row.get(8).unwrap_or_default(),
                has_error: row.get(9).unwrap_or_default(),
                has_commit: row.get(10).unwrap_or_default(),
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }

    /// The texts written here by people and models, newest first, at most `most` per column, which a report must not contain. The second
    /// value is `false` if some were unreadable.
    pub fn private_texts(&self, most: usize) -> (Vec<String>, bool) {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (mut texts, mut is_whole) = (Vec::new(), true);
        for (table, column) in [
            ("incoming_messages", "message_text"),
            ("incoming_messages", "quoted"),
            ("message_updates", "words"),
            ("outgoing_messages", "message_text"),
            ("reminders", "text"),
            ("recordings", "request"),
            ("recordings", "narrative"),
            ("approvals", "action"),
            ("job_runs", "found"),
            ("job_runs", "output"),
            ("overheard", "message"),
            ("proposals", "title"),
            ("proposals", "files"),
        ] {
            match self.read_column(table, column, "id", most) {
                Ok(found) => texts.extend(found),
                Err(_) => is_whole = false,
            }
        }
        (texts, is_whole)
    }

    /// The names of people and of their jobs, each once, which a report must not contain either. The second value is `false` if some were
    /// unreadable.
    pub fn private_names(&self, most: usize) -> (Vec<String>, bool) {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (mut names, mut is_whole) = (Vec::new(), true);
        for (table, column, order) in [("incoming_messages", "sender_name", "id"), ("jobs", "name", "name")] {
            match self.read_column(table, column, order, most) {
                Ok(found) => names.extend(found),
                Err(_) => is_whole = false,
            }
        }
        names.sort();
        names.dedup();
        (names, is_whole)
    }

    fn read_column(&self, table: &str, column: &str, order: &str, most: i64) -> Result<Vec<String>> {
        let sql = format!("SELECT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY {order} DESC LIMIT ?1");
        let mut statement = self.conn.prepare(&sql)?;
        let rows = statement.query_map([most], |row| row.get::<_, String>(0))?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

fn work_kind(work: &OwnWork) -> &'static str {
    match work {
        OwnWork::Reflection => "reflection",
        OwnWork::Step { .. } => "step",
        OwnWork::Job { .. } => "job",
        OwnWork::Initiative { .. } => "initiative",
    }
}
