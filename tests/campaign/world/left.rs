//! The leftovers that an injected fault can cause: in the database, the directories and the lock. They are found without the product's
//! own code. A `health check` has to name each.

use std::{
    fs::{self, File},
    path::Path,
    time::SystemTime,
};

use rusqlite::Connection;

use super::{
    World,
    files::{files, locks},
};

/// A leftover: the id of the health check that has to report it, and a description.
type Trace = (&'static str, String);

/// Possible leftovers in the database: the check's id, a description, and a query that counts them at the time `?1`.
const ROWS: [(&str, &str, &str); 5] = [
    ("lock", "the claim of a wake", "SELECT total(is_locked) FROM processing_lock WHERE ?1 <> ''"),
    ("cycles", "a cycle that was cut off", "SELECT count(*) FROM cycles WHERE state = 'running' AND ?1 <> ''"),
    (
        "outbox",
        "a message that nobody knows to have arrived",
        "SELECT count(*) FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
         WHERE chat_id <> 0 AND sent_at IS NULL AND taken_back_at IS NULL AND ?1 <> ''
             AND (p.state = 'attempting' OR p.state = 'unknown' AND p.repeats = 0)",
    ),
    (
        "outbox",
        "the line of a cycle that is over",
        "SELECT count(*) FROM status_lines WHERE cycle_id NOT IN (SELECT id FROM cycles) AND ?1 <> ''",
    ),
    (
        "due",
        "an undo that nobody does",
        "SELECT count(*) FROM undos WHERE done_at IS NULL AND (julianday(?1) - julianday(asked_at)) * 24 * 60 > 15.1",
    ),
];

impl World {
    /// Lists the leftovers in this world; empty while a program is running.
    pub(super) fn left_lying(&self) -> Result<Vec<Trace>, String> {
        let lock = self.env.workspace().join(".wake-lock");
        let is_free = File::open(&lock).is_ok_and(|file| fs2::FileExt::try_lock_shared(&file).is_ok());
        if !is_free {
            return Ok(Vec::new());
        }
        let mut left = self.left_in_database().map_err(|error| format!("the database: {error}"))?;
        if fs::metadata(&lock).is_ok_and(|found| found.len() > 0) {
            left.push(("lock", "the line of a wake".to_owned()));
        }
        let git_dir = self.env.brain().join(".git");
        let private = git_dir.join("reveille");
        if private.exists() {
            let of_git = locks(&git_dir).into_iter().filter(|lock| !lock.starts_with(git_dir.join("objects")));
            left.extend(of_git.map(|lock| ("repository", lock.display().to_string())));
            let notes = [private.join("move.json")].into_iter().filter(|note| note.exists());
            left.extend(notes.map(|note| ("repository", note.display().to_string())));
        }
        for part in ["voice", "files"].iter().flat_map(|folder| files(&self.env.workspace().join(folder))) {
            if part.extension().is_some_and(|ending| ending == "part") {
                // The check spares files younger than an hour, which could be in use, so this one is made older.
                File::options().write(true).open(&part).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
                left.push(("files", part.display().to_string()));
            }
        }
        Ok(left)
    }

    /// Lists the leftovers in the database and among the plans. It reads a copy, since opening and closing the database itself would
    /// clean it up.
    fn left_in_database(&self) -> Result<Vec<Trace>, Box<dyn std::error::Error>> {
        let copy = tempfile::tempdir()?;
        let name = Path::new("messages.db");
        for file in [name, Path::new("messages.db-wal")] {
            let from = self.env.workspace().join(file);
            if from.exists() {
                fs::copy(from, copy.path().join(file))?;
            }
        }
        let database = Connection::open(copy.path().join(name))?;
        let mut left = Vec::new();
        for (check, what, sql) in ROWS {
            if database.query_row(sql, [self.env.now()], |row| row.get::<_, f64>(0))? > 0.0 {
                left.push((check, what.to_owned()));
            }
        }
        let mut parked = database.prepare("SELECT id FROM cycles WHERE state = 'parked'")?;
        let parked = parked.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        for entry in fs::read_dir(self.env.workspace())?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let cycle = name.strip_prefix("plan-").and_then(|name| name.strip_suffix(".md"));
            if cycle.is_some_and(|cycle| !parked.iter().any(|parked| parked == cycle)) {
                left.push(("plans", name));
            }
        }
        Ok(left)
    }
}
