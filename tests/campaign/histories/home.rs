//! The place of a history's database (an SQLite file or a PostgreSQL schema), and the effect of crashes on it.

use rusqlite::Connection;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

use reveille_store::Store;

#[cfg(feature = "postgres")]
use super::shared::Schema;
use super::{look::Look, wake::text};

/// The writes of a transaction that is never committed.
const UNFINISHED: &str = "
    UPDATE incoming_messages SET processed = 1, outcome = 'answered', message_text = message_text || 'x';
    UPDATE outgoing_parts SET state = 'sent', html = html || 'x';
    UPDATE processing_lock SET fence = 0;
    DELETE FROM cycle_files; DELETE FROM cycle_journal;";

/// The place of a history's database.
pub(super) enum Home {
    /// A directory with copies of the file, and the number of the copy in use; each reboot continues with another copy.
    File { dir: TempDir, generation: u32 },
    #[cfg(feature = "postgres")]
    Shared(Box<Schema>),
}

impl Home {
    /// Creates a fresh database, copied from `template`, in a directory below `home`.
    pub(super) fn file(template: &Path, home: &Path) -> Result<Self, String> {
        let dir = tempfile::tempdir_in(home).map_err(text)?;
        fs::copy(template, copy(&dir, 0)).map_err(text)?;
        Ok(Self::File { dir, generation: 0 })
    }

    /// Returns whether wakes come from several machines, each with its own connection.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self, Self::File { .. })
    }

    pub(super) fn open(&self) -> Result<Store, String> {
        match self {
            Self::File { dir, generation } => Store::open(&copy(dir, *generation)).map_err(text),
            #[cfg(feature = "postgres")]
            Self::Shared(schema) => schema.open(),
        }
    }

    pub(super) fn look(&self) -> Result<Look, String> {
        match self {
            Self::File { dir, generation } => Connection::open(copy(dir, *generation)).map(Look::Sqlite).map_err(text),
            #[cfg(feature = "postgres")]
            Self::Shared(schema) => schema.session().map(Look::Postgres),
        }
    }

    /// Simulates a crash of all processes during an open transaction. Afterwards each connection has to be reopened.
    pub(super) fn crash(&mut self, look: &Look) -> Result<(), String> {
        match (self, look) {
            // Copies the files in their present state, with the unfinished writes in them.
            (Self::File { dir, generation }, Look::Sqlite(conn)) => {
                conn.execute_batch(&format!("PRAGMA cache_size = 1; BEGIN IMMEDIATE; {UNFINISHED}")).map_err(text)?;
                let (from, to) = (copy(dir, *generation), copy(dir, *generation + 1));
                *generation += 1;
                for ending in ["", "-wal"] {
                    let with_ending = |path: &Path| format!("{}{ending}", path.display());
                    fs::copy(with_ending(&from), with_ending(&to)).map_err(text)?;
                }
                Ok(())
            }
            // Ends the connections. The server itself doesn't crash: all histories share it, and PostgreSQL's developers test its
            // durability.
            #[cfg(feature = "postgres")]
            (Self::Shared(schema), Look::Postgres(session)) => {
                let dying = schema.session()?;
                dying.batch(&format!("BEGIN; {UNFINISHED}"))?;
                session.cut_off_others()
            }
            #[cfg(feature = "postgres")]
            _ => Err("the look is into another kind of database".to_owned()),
        }
    }
}

/// The path of a generation's copy of the file.
fn copy(dir: &TempDir, generation: u32) -> PathBuf {
    dir.path().join(generation.to_string())
}
