//! Forgets words named by a person, in all rows that are searched or shown to a model. Rows stay, since they prevent doubles; only their
//! words go. Unfinished work blocks this and is listed.
//!
//! | row that holds the words                                  | effect                                          |
//! |-----------------------------------------------------------|-------------------------------------------------|
//! | a finished message, its update, files, quotation          | its words are replaced; if on hold, it is dropped |
//! | the name of such a message's sender or first author       | deleted                                         |
//! | a sent or withdrawn answer                                | its words are replaced                          |
//! | a finished cycle's journal                                | deleted whole, as when it is old                |
//! | its approvals, proposals, reasons and error               | emptied                                         |
//! | a recording                                               | deleted whole                                   |
//! | a finished reminder, an undo's answer, a list or nudge    | the words are replaced or deleted               |
//! | a job's last look, or the result of its run               | deleted; the job's next look only records       |
//! | a key with a task's title, or the model's own words       | deleted; an answer gets another key             |
//! | a waiting message, an unsent answer, an open cycle        | blocks                                          |
//! | a nudge whose pressed button waits for a wake             | blocks                                          |

use rusqlite::types::{Value, ValueRef};

use reveille_base::types::ChatRef;

use crate::{
    FencedStore, Result,
    areas::{ReadStore, Retention, WriteStore},
    outcome::{OPEN, PUT_ASIDE},
    sql::{self, SqlConnection, Transaction},
    to_json,
};

/// A predicate that finds the words to forget in a text; with `true` the text is JSON.
pub type HoldsWords<'a> = dyn Fn(&str, bool) -> bool + 'a;

/// The prefixes of keys with a person's words: a task's title, or the model's name for its message.
const KEYS_WITH_WORDS: [&str; 4] = ["at/", "decay/", "due/", "tell/"];

/// The text that replaces forgotten words in a row.
pub const FORGOTTEN_ROW: &str = "[forgotten]";

/// A row with words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldWords {
    /// The row id.
    pub id: i64,
    /// Its chat.
    pub chat: ChatRef,
    /// The time of arrival or writing.
    pub at: String,
    /// The text.
    pub text: String,
}

/// PostgreSQL's VACUUM FULL for the tables with words only, since the server's own tables are shared.
const VACUUM_FULL: &str =
    "VACUUM FULL incoming_messages, message_updates, attachments, outgoing_messages, outgoing_parts, cycles,
    cycle_journal, approvals, handled, recordings, reminders, job_runs, jobs, undos, undo_line, nudges, shown_tasks";

/// The rows that hold the words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldInRows {
    /// Finished messages.
    pub incoming: Vec<HeldWords>,
    /// Finished messages with the words only in a quotation or the raw update: the message's own text stays.
    pub quoting: Vec<i64>,
    /// Finished messages whose sender or first author has such a name: the name is deleted.
    pub named: Vec<i64>,
    /// Texts of ours.
    pub outgoing: Vec<HeldWords>,
    /// Finished cycles with the words in the journal, reasons, error or approvals.
    pub cycles: Vec<String>,
    /// Recordings.
    pub recordings: Vec<i64>,
    /// Finished reminders.
    pub old_reminders: Vec<i64>,
    /// Finished runs of standing jobs.
    pub job_runs: Vec<i64>,
    /// Standing jobs with the words in their last look.
    pub jobs: Vec<String>,
    /// Active reminders: they stay.
    pub reminders: Vec<HeldWords>,
    /// Files of such messages, by their paths below the workspace: they stay.
    pub files: Vec<String>,
    /// Messages that wait to be answered; they block.
    pub waiting: Vec<i64>,
    /// Unsent answers; they block.
    pub unsent: Vec<i64>,
    /// Open cycles; they block.
    pub open: Vec<String>,
    /// Messages on hold whose cycle's journal, with the record of work done for them, would be deleted; they block.
    pub on_hold: Vec<i64>,
    /// Texts of ours with a pressed button still to be handled by a wake; they block.
    pub pressed: Vec<i64>,
}

impl HeldInRows {
    /// Returns whether unfinished work blocks the forgetting.
    pub fn is_blocked(&self) -> bool {
        !(self.waiting.is_empty()
            && self.unsent.is_empty()
            && self.open.is_empty()
            && self.on_hold.is_empty()
            && self.pressed.is_empty())
    }

    /// Returns whether nothing would be deleted.
    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty()
            && self.quoting.is_empty()
            && self.named.is_empty()
            && self.outgoing.is_empty()
            && self.cycles.is_empty()
            && self.recordings.is_empty()
            && self.old_reminders.is_empty()
            && self.job_runs.is_empty()
            && self.jobs.is_empty()
    }
}

impl<S: ReadStore> Retention<S> {
    /// Finds the words in everything that is ever shown.
    pub fn find_held_words(&self, holds: &HoldsWords<'_>) -> Result<HeldInRows> {
        let conn = self.0.conn();
        let mut held = HeldInRows::default();
        find_messages(conn, holds, &mut held)?;
        let ours = read_rows(
            conn,
            "SELECT id, chat_id, created_at, message_text, sent_at IS NULL AND taken_back_at IS NULL FROM outgoing_messages",
        )?;
        for row in ours.into_iter().filter(|row| holds(row.text(3), false)) {
            if row.is_set(4) {
                held.unsent.push(row.number(0));
            } else {
                held.outgoing.push(row.to_held_words());
            }
        }
        held.cycles = find_cycles(conn, holds, &format!("state NOT IN {OPEN}"))?;
        held.open = find_cycles(conn, holds, &format!("state IN {OPEN}"))?;
        for row in read_rows(conn, "SELECT id, request, narrative, calls FROM recordings ORDER BY id")? {
            if holds(row.text(1), false) || holds(row.text(2), false) || holds(row.text(3), true) {
                held.recordings.push(row.number(0));
            }
        }
        for row in read_rows(conn, "SELECT id, chat_id, created_at, text, state = 'active' FROM reminders ORDER BY id")?
        {
            if holds(row.text(3), false) {
                match row.is_set(4) {
                    true => held.reminders.push(row.to_held_words()),
                    false => held.old_reminders.push(row.number(0)),
                }
            }
        }
        for row in read_rows(conn, "SELECT id, found, output, held FROM job_runs WHERE state != 'open' ORDER BY id")? {
            if holds(row.text(1), false) || holds(row.text(2), false) || holds(row.text(3), true) {
                held.job_runs.push(row.number(0));
            }
        }
        for row in read_rows(conn, "SELECT name, seen, error FROM jobs ORDER BY name")? {
            if holds(row.text(1), true) || holds(row.text(2), false) {
                held.jobs.push(row.text(0).to_owned());
            }
        }
        let pressed = read_rows(conn, "SELECT outgoing_id, task FROM nudges WHERE is_open = 1 ORDER BY outgoing_id")?;
        held.pressed.extend(pressed.iter().filter(|row| holds(row.text(1), false)).map(|row| row.number(0)));
        held.on_hold = find_claimed_messages(conn, &held)?;
        Ok(held)
    }
}

impl Retention<&mut FencedStore<'_>> {
    /// Forgets the rows found by [`Retention::find_held_words`], with names, undo answers, keys and task lists that hold the words, in one
    /// transaction. Then rewrites the file, because its free pages still hold the old content. `false` if other readers prevented the
    /// rewriting.
    pub fn forget_words(&mut self, held: &HeldInRows, holds: &HoldsWords<'_>) -> Result<bool> {
        self.0.write(|tx| delete_held_words(tx, held, holds))?;
        let vacuum = self.0.conn().pick_statement("VACUUM", VACUUM_FULL);
        Ok(self.0.conn().execute_batch(vacuum).is_ok() && self.0.store().restart_log().unwrap_or(false))
    }
}

/// Finds messages, by their updates, files and quotations.
fn find_messages(conn: &SqlConnection, holds: &HoldsWords<'_>, held: &mut HeldInRows) -> Result<()> {
    let all = read_rows(
        conn,
        "SELECT id, chat_id, received_at, message_text, processed = 0, quoted, raw, sender_name, forwarded_from
         FROM incoming_messages ORDER BY id",
    )?;
    let mut beside: Vec<i64> = Vec::new();
    for row in read_rows(conn, "SELECT message_id, words FROM message_updates")? {
        beside.extend(holds(row.text(1), false).then(|| row.number(0)));
    }
    let mut named: Vec<(i64, String)> = Vec::new();
    for row in read_rows(conn, "SELECT message_id, transcript, name, path FROM attachments")? {
        if holds(row.text(1), true) || holds(row.text(2), false) {
            beside.push(row.number(0));
        }
        named.extend((!row.text(3).is_empty()).then(|| (row.number(0), row.text(3).to_owned())));
    }
    for row in all {
        let is_own = holds(row.text(3), false) || beside.contains(&row.number(0));
        let is_quoting = holds(row.text(5), false) || holds(row.text(6), true);
        let is_named = holds(row.text(7), false) || holds(row.text(8), false);
        if is_named && !row.is_set(4) {
            held.named.push(row.number(0));
        }
        match (row.is_set(4), is_own, is_quoting || is_named && row.is_set(4)) {
            (_, false, false) => {}
            (true, ..) => held.waiting.push(row.number(0)),
            (false, true, _) => {
                held.files.extend(named.iter().filter(|(id, _)| *id == row.number(0)).map(|(_, path)| path.clone()));
                held.incoming.push(row.to_held_words());
            }
            (false, false, true) => held.quoting.push(row.number(0)),
        }
    }
    Ok(())
}

/// Finds cycles of which any record holds the words.
fn find_cycles(conn: &SqlConnection, holds: &HoldsWords<'_>, which: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let ids = read_rows(
        conn,
        &format!("SELECT id, reasons, error, system, tools FROM cycles WHERE {which} ORDER BY started_at, id"),
    )?;
    let mut journal = conn.prepare("SELECT body FROM cycle_journal WHERE cycle_id = ?1")?;
    let mut staged = conn.prepare("SELECT base, content FROM cycle_files WHERE cycle_id = ?1")?;
    let mut asked = conn.prepare("SELECT action, reasons, named FROM approvals WHERE cycle_id = ?1")?;
    let mut proposed = conn.prepare("SELECT title, files FROM proposals WHERE cycle_id = ?1")?;
    for row in ids {
        let id = row.text(0);
        let holds_any = |statement: &mut sql::Statement<'_>, is_json: bool| -> Result<bool> {
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                for column in 0..row.column_count() {
                    if let ValueRef::Text(text) = row.get_ref(column)?
                        && holds(&String::from_utf8_lossy(text), is_json)
                    {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        };
        let in_row = (1..=4).any(|column| holds(row.text(column), column != 2));
        if in_row
            || holds_any(&mut journal, true)?
            || holds_any(&mut staged, false)?
            || holds_any(&mut asked, true)?
            || holds_any(&mut proposed, true)?
        {
            found.push(id.to_owned());
        }
    }
    Ok(found)
}

/// Messages on hold that stay themselves, but were claimed by a cycle whose journal goes: a retry would do their work twice. The work of
/// an undone cycle was taken back, so it doesn't block.
fn find_claimed_messages(conn: &SqlConnection, held: &HeldInRows) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT DISTINCT m.id FROM taken_up t JOIN incoming_messages m ON m.id = t.message_id
         WHERE t.cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1)) AND (m.processed = 0 OR m.outcome IN {PUT_ASIDE})
             AND NOT EXISTS (SELECT 1 FROM undos u WHERE u.wake = t.cycle_id AND u.done_at IS NOT NULL)
             AND m.id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?2)) ORDER BY m.id"
    );
    let going: Vec<i64> = held.incoming.iter().map(|row| row.id).chain(held.waiting.iter().copied()).collect();
    let mut statement = conn.prepare(&sql)?;
    Ok(statement
        .query_map((to_json(&held.cycles), to_json(&going)), |row| row.get(0))?
        .collect::<sql::QueryResult<_>>()?)
}

fn delete_held_words(tx: &Transaction<'_>, held: &HeldInRows, holds: &HoldsWords<'_>) -> Result<()> {
    let numbers = |rows: &[HeldWords]| to_json(&rows.iter().map(|row| row.id).collect::<Vec<_>>());
    let incoming = numbers(&held.incoming);
    tx.execute(
        &format!(
            "UPDATE incoming_messages SET message_text = ?2, quoted = NULL, raw = NULL,
                 outcome = CASE WHEN outcome IN {PUT_ASIDE} THEN 'dropped' ELSE outcome END
             WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND processed = 1"
        ),
        (&incoming, FORGOTTEN_ROW),
    )?;
    tx.execute(
        "UPDATE message_updates SET words = ?2 WHERE message_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        (&incoming, FORGOTTEN_ROW),
    )?;
    tx.execute(
        "UPDATE attachments SET transcript = NULL, name = NULL WHERE message_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        [&incoming],
    )?;
    tx.execute(
        "UPDATE incoming_messages SET quoted = NULL, raw = NULL WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND processed = 1",
        [to_json(&held.quoting)],
    )?;
    for row in read_rows(tx, "SELECT id, sender_name, forwarded_from FROM incoming_messages WHERE processed = 1")? {
        if holds(row.text(1), false) {
            tx.execute("UPDATE incoming_messages SET sender_name = NULL WHERE id = ?1", [row.number(0)])?;
        }
        // The mark of a forward stays, since its words are untrusted.
        if holds(row.text(2), false) {
            let sql = "UPDATE incoming_messages SET forwarded_from = ?2 WHERE id = ?1";
            tx.execute(sql, (row.number(0), FORGOTTEN_ROW))?;
        }
    }
    let outgoing = numbers(&held.outgoing);
    tx.execute(
        "UPDATE outgoing_messages SET message_text = ?2 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        (&outgoing, FORGOTTEN_ROW),
    )?;
    tx.execute(
        "UPDATE outgoing_parts SET html = '', plain = '' WHERE outgoing_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        [&outgoing],
    )?;
    let cycles = to_json(&held.cycles);
    for sql in [
        "DELETE FROM cycle_journal WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
        "DELETE FROM taken_up WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
        "UPDATE cycles SET system = '[]', tools = '[]', has_journal = 0, reasons = '[]', error = NULL
         WHERE id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
        "UPDATE approvals SET action = '', reasons = '[]', named = NULL WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
        "UPDATE proposals SET title = '', files = '[]', tell_at = NULL WHERE cycle_id IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
    ] {
        tx.execute(sql, [&cycles])?;
    }
    tx.execute(
        "DELETE FROM recordings WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        [to_json(&held.recordings)],
    )?;
    tx.execute(
        "UPDATE reminders SET text = ?2 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND state <> 'active'",
        (to_json(&held.old_reminders), FORGOTTEN_ROW),
    )?;
    tx.execute(
        "UPDATE job_runs SET found = NULL, output = ?2, held = NULL WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND state != 'open'",
        (to_json(&held.job_runs), FORGOTTEN_ROW),
    )?;
    tx.execute(
        "UPDATE jobs SET seen = NULL, error = NULL WHERE name IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
        [to_json(&held.jobs)],
    )?;
    for row in read_rows(tx, "SELECT id, answer, taken_back FROM undos WHERE done_at IS NOT NULL")? {
        if holds(row.text(1), false) || holds(row.text(2), true) {
            tx.execute("UPDATE undos SET answer = NULL, taken_back = '{}' WHERE id = ?1", [row.number(0)])?;
        }
    }
    for row in read_rows(tx, "SELECT id, did, before FROM undo_line")? {
        if holds(row.text(1), false) || holds(row.text(2), true) {
            tx.execute("UPDATE undo_line SET did = ?2, before = NULL WHERE id = ?1", (row.number(0), FORGOTTEN_ROW))?;
        }
    }
    for row in read_rows(tx, "SELECT outgoing_id, task FROM nudges WHERE is_open = 0")? {
        if holds(row.text(1), false) {
            tx.execute("UPDATE nudges SET task = NULL WHERE outgoing_id = ?1", [row.number(0)])?;
        }
    }
    let names_words = |key: &str| {
        KEYS_WITH_WORDS.iter().any(|begins| key.strip_prefix(begins).is_some_and(|rest| holds(rest, false)))
    };
    for row in read_rows(tx, "SELECT key FROM handled")?.iter().filter(|row| names_words(row.text(0))) {
        tx.execute("DELETE FROM handled WHERE key = ?1", [row.text(0)])?;
    }
    let sql = "SELECT id, key FROM outgoing_messages WHERE sent_at IS NOT NULL OR taken_back_at IS NOT NULL";
    for row in read_rows(tx, sql)?.iter().filter(|row| names_words(row.text(1))) {
        let sql = "UPDATE outgoing_messages SET key = ?2 WHERE id = ?1";
        tx.execute(sql, (row.number(0), format!("{FORGOTTEN_ROW}/{}", row.number(0))))?;
    }
    for row in read_rows(tx, "SELECT chat_id, number, title FROM shown_tasks")? {
        if holds(row.text(2), false) {
            tx.execute("DELETE FROM shown_tasks WHERE chat_id = ?1 AND number = ?2", (row.number(0), row.number(1)))?;
        }
    }
    Ok(())
}

/// A row read leniently: a value of another type reads as empty.
struct LooseRow(Vec<Value>);

impl LooseRow {
    fn text(&self, at: usize) -> &str {
        match self.0.get(at) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    fn number(&self, at: usize) -> i64 {
        match self.0.get(at) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    fn is_set(&self, at: usize) -> bool {
        self.number(at) != 0
    }

    /// Reads a row of `id, chat_id, at, text, …`.
    fn to_held_words(&self) -> HeldWords {
        let chat = ChatRef::from_number(self.number(1));
        HeldWords { id: self.number(0), chat, at: self.text(2).to_owned(), text: self.text(3).to_owned() }
    }
}

fn read_rows(conn: &SqlConnection, sql: &str) -> Result<Vec<LooseRow>> {
    let mut statement = conn.prepare(sql)?;
    let read = |row: &sql::Row<'_>| {
        (0..row.column_count()).map(|at| row.get(at)).collect::<sql::QueryResult<_>>().map(LooseRow)
    };
    Ok(statement.query_map([], read)?.collect::<sql::QueryResult<_>>()?)
}
