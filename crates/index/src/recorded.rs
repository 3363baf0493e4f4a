//! Recordings as documents `recordings/<number>` of the index. A recording never changes, so its number alone tells whether it is indexed.

use std::collections::BTreeMap;

use reveille_base::{
    words::{one_line, truncate_text},
    zone::Tz,
};
use reveille_store::{Recording, Store};

use super::{
    Index, IndexError, Refreshed,
    chunk::{self, Chunk, ChunkKind},
    refresh::replace_chunks,
    write::Placed,
};

/// The path prefix of recordings among the documents.
pub(super) const RECORDINGS: &str = "recordings/";

/// The maximum length of a request used as a recording's heading, in characters.
const MAX_HEADING_CHARS: usize = 200;

/// Returns whether a document comes from the store rather than the memory's files: a chat or a recording.
pub(super) fn is_from_store(path: &str) -> bool {
    path.starts_with("chat/") || path.starts_with(RECORDINGS)
}

impl Index {
    /// Updates the recordings.
    pub(super) fn refresh_recordings(
        &mut self,
        store: &Store,
        zone: Tz,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        let mut known: BTreeMap<i64, i64> = self
            .conn
            .prepare_cached("SELECT path, id FROM documents WHERE path >= 'recordings/' AND path < 'recordings0'")?
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?
            .filter_map(|row| {
                row.map(|(path, id)| Some((path.strip_prefix(RECORDINGS)?.parse().ok()?, id))).transpose()
            })
            .collect::<rusqlite::Result<_>>()?;
        let new: Vec<i64> =
            store.recordings().recording_ids()?.into_iter().filter(|id| known.remove(id).is_none()).collect();
        if new.is_empty() && known.is_empty() {
            return Ok(());
        }
        self.begin_transaction()?;
        let tx = &self.conn;
        for document in known.into_values() {
            replace_chunks(tx, document, Vec::new(), done)?;
            tx.execute("DELETE FROM documents WHERE id = ?1", [document])?;
        }
        for id in new {
            let Some(recording) = store.recordings().find_recording(id)? else { continue };
            let path = format!("{RECORDINGS}{id}");
            // Another process may have written the recording meanwhile.
            let document = tx.query_row(
                "INSERT INTO documents (path) VALUES (?1) ON CONFLICT (path) DO UPDATE SET path = path RETURNING id",
                [path],
                |row| row.get(0),
            )?;
            replace_chunks(tx, document, place_recording(&recording, zone), done)?;
        }
        Ok(())
    }
}

/// Returns the chunks of a recording: its narrative, with the request as the heading.
fn place_recording(recording: &Recording, zone: Tz) -> Vec<Placed> {
    let kept = &recording.kept;
    // The conversation's documents hold the request itself; here it only gives the context.
    let chunks = chunk::split_message(&kept.narrative, ChunkKind::Note);
    let place = |(ord, chunk): (usize, Chunk)| Placed {
        chunk: Chunk {
            date: recording.at.map(|at| at.with_timezone(&zone).date_naive()),
            origin: format!("wake {}", kept.cycle_id),
            heading: truncate_text(&one_line(&kept.request), MAX_HEADING_CHARS),
            ..chunk
        },
        ord: i64::try_from(ord).unwrap_or(i64::MAX),
        message: None,
        chat: kept.chat,
        is_for_all: false,
        taint: kept.taint.clone(),
        is_untrusted_to_guest: kept.taint.is_some(),
    };
    chunks.into_iter().enumerate().map(place).collect()
}
