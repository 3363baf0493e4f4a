//! Copies a whole store: from a file into a shared database, and back. The copy is read again and compared row by row before it counts.

use rusqlite::{ToSql, types::Value};

use super::{
    Result, Store, StoreError, schema,
    sql::{self, OptionalExtension as _, SqlConnection},
};

/// The table the schema itself fills, separately in each store.
const OWN: &str = "readable_from";

/// A row's values.
type WholeRow = Vec<Value>;

impl Store {
    /// Copies everything into an empty store, in one transaction of that store. Returns the number of rows.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the target isn't empty, or its rows differ from the written ones; the copy is then rolled back.
    pub fn copy_all_rows(&self, to: &mut Store) -> Result<usize> {
        let snapshot = self.conn.begin_read()?;
        let copied = to.write(|target| {
            let mut count = 0;
            for table in schema::list_tables().iter().filter(|table| *table != OWN) {
                let columns = list_columns(&self.conn, table)?;
                if columns != self::list_columns(target, table)? {
                    return Err(StoreError::Damaged(format!("{table} has different columns in the target")));
                }
                let rows = read_rows(&self.conn, table, &columns)?;
                write_rows(target, table, &columns, &rows)?;
                continue_ids(&self.conn, target, table)?;
                if sort_rows(&self::read_rows(target, table, &columns)?) != sort_rows(&rows) {
                    return Err(StoreError::Damaged(format!("{table} in the target differs from what was written")));
                }
                count += rows.len();
            }
            Ok(count)
        });
        drop(snapshot);
        copied
    }
}

fn list_columns(conn: &SqlConnection, table: &str) -> Result<Vec<String>> {
    let sql = conn.pick_statement(
        "SELECT name FROM pragma_table_info(?1)",
        "SELECT column_name FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = ?1 AND column_name <> 'rowid'",
    );
    let mut statement = conn.prepare(sql)?;
    let mut columns = statement.query_map([table], |row| row.get(0))?.collect::<sql::QueryResult<Vec<String>>>()?;
    columns.sort();
    Ok(columns)
}

/// Reads a table's rows, in the order of insertion if any query depends on that order.
fn read_rows(conn: &SqlConnection, table: &str, columns: &[String]) -> Result<Vec<WholeRow>> {
    let order = if ["cycles", "outgoing_parts"].contains(&table) { " ORDER BY rowid" } else { "" };
    let mut statement = conn.prepare(&format!("SELECT {} FROM {table}{order}", columns.join(", ")))?;
    let read =
        |row: &sql::Row<'_>| (0..row.column_count()).map(|at| row.get(at)).collect::<sql::QueryResult<WholeRow>>();
    Ok(statement.query_map([], read)?.collect::<sql::QueryResult<_>>()?)
}

fn write_rows(target: &SqlConnection, table: &str, columns: &[String], rows: &[WholeRow]) -> Result<()> {
    if table == "processing_lock" {
        // A new store has one row already: that of a lease that was never taken.
        target.execute("DELETE FROM processing_lock WHERE fence = 0", [])?;
    }
    let is_empty: bool =
        target.query_row(&format!("SELECT NOT EXISTS (SELECT 1 FROM {table})"), [], |row| row.get(0))?;
    if !is_empty {
        return Err(StoreError::Damaged(format!("{table} in the target isn't empty: nothing was copied")));
    }
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let sql = format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), places.join(", "));
    let mut statement = target.prepare(&sql)?;
    for row in rows {
        let values: Vec<&dyn ToSql> = row.iter().map(|value| value as &dyn ToSql).collect();
        statement.execute(values.as_slice())?;
    }
    Ok(())
}

/// Continues the id sequence, so that no id is used twice, even if its row is gone.
fn continue_ids(from: &SqlConnection, target: &SqlConnection, table: &str) -> Result<()> {
    let last = from.pick_statement(
        "SELECT seq FROM sqlite_sequence WHERE name = ?1",
        "SELECT s.last_value FROM pg_sequences s
         WHERE quote_ident(s.schemaname) || '.' || quote_ident(s.sequencename) = pg_get_serial_sequence(?1, 'id')",
    );
    let last = match has_id_sequence(from, table)? {
        true => from.query_row(last, [table], |row| row.get::<_, Option<i64>>(0)).optional()?.flatten(),
        false => None,
    };
    if !has_id_sequence(target, table)? {
        return Ok(());
    }
    let greatest = target.query_row(&format!("SELECT max(id) FROM {table}"), [], |row| row.get::<_, Option<i64>>(0))?;
    let Some(last) = last.max(greatest).filter(|last| *last > 0) else { return Ok(()) };
    if target.as_sqlite().is_some() {
        target.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))?;
    } else {
        target.query_row("SELECT setval(pg_get_serial_sequence(?1, 'id'), ?2)", (table, last), |row| {
            row.get::<_, i64>(0)
        })?;
    }
    Ok(())
}

/// Returns whether a table's ids come from a sequence.
fn has_id_sequence(conn: &SqlConnection, table: &str) -> Result<bool> {
    let sql = conn.pick_statement(
        "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%')",
        "SELECT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = current_schema()
             AND table_name = ?1 AND column_name = 'id' AND is_identity = 'YES')",
    );
    Ok(conn.query_row(sql, [table], |row| row.get(0))?)
}

fn sort_rows(rows: &[WholeRow]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort_unstable();
    rows
}
