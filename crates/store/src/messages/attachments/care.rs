//! What retention and `health` need to know of attachments on the disk, and record about them. A row outlives its file: only its path is
//! cleared. Writes are fenced by the wake lock.

use reveille_base::clock::format_rfc3339;

use super::{Attachment, SOUND};
use crate::{
    FencedStore, Result,
    areas::{Attachments, ReadStore, WriteStore},
    outcome::PUT_ASIDE,
    sql,
};

/// The maximum number of files in one list.
const MAX_NAMED: u32 = 1_000;

/// A file that should be on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOnDisk {
    /// The row id.
    pub id: i64,
    /// The path below the workspace.
    pub path: String,
    /// Whether its message still waits for an answer, or can be retried.
    pub is_wanted: bool,
}

impl<S: ReadStore> Attachments<S> {
    /// The files of queued messages that are still to be fetched or transcribed, or have failed, oldest first.
    pub fn open_files(&self) -> Result<Vec<Attachment>> {
        let sql = format!(
            "{} WHERE m.processed = 0 AND a.replaced_at IS NULL AND (a.state IN ('wanted', 'failed') OR a.state = 'kept' AND a.kind IN {SOUND})
             ORDER BY a.id LIMIT {MAX_NAMED}",
            Attachment::SELECT
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        Ok(statement.query_map([], Attachment::from_row)?.collect::<sql::QueryResult<_>>()?)
    }

    /// The files that should be on the disk, newest first.
    pub fn files_on_disk(&self) -> Result<Vec<FileOnDisk>> {
        let sql = format!(
            "SELECT a.id, a.path, a.replaced_at IS NULL AND (m.processed = 0 OR m.outcome IN {PUT_ASIDE})
             FROM attachments a JOIN incoming_messages m ON m.id = a.message_id
             WHERE a.path IS NOT NULL ORDER BY a.id DESC LIMIT {MAX_NAMED}"
        );
        let mut statement = self.0.conn().prepare(&sql)?;
        let rows = statement.query_map([], |row| {
            Ok(FileOnDisk {
                id: row.get(0)?,
                path: row.get(1)?,
                is_wanted: row.get::<_, Option<bool>>(2)?.unwrap_or(false),
            })
        })?;
        Ok(rows.collect::<sql::QueryResult<_>>()?)
    }
}

impl Attachments<&mut FencedStore<'_>> {
    /// Records that a file is missing. The file is fetched again if its message still waits; otherwise it counts as gone.
    pub fn record_missing_file(&mut self, id: i64) -> Result<()> {
        let now = self.0.now();
        self.0.write(|tx| {
            tx.execute(
                "UPDATE attachments SET path = NULL, changed_at = ?2, attempts = 0, faults = 0, not_before = NULL, error = NULL,
                     state = CASE WHEN state = 'kept' AND file_id != '' AND EXISTS (
                         SELECT 1 FROM incoming_messages m WHERE m.id = message_id AND m.processed = 0)
                     THEN 'wanted' ELSE state END
                 WHERE id = ?1",
                (id, format_rfc3339(now)),
            )?;
            Ok(())
        })
    }

    /// Records that files are about to be removed. `paths` are below the workspace.
    pub fn forget_files(&mut self, paths: &[String]) -> Result<()> {
        self.0.write(|tx| {
            tx.execute(
                "UPDATE attachments SET path = NULL WHERE path IN (SELECT CAST(value AS TEXT) FROM json_each(?1))",
                [crate::to_json(paths)],
            )?;
            Ok(())
        })
    }
}
