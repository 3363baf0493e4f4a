//! Updates the conversations in the index. Each update reads the rows after the last indexed one, and reads unsettled rows again. If the
//! store's counter shows that older rows changed, the update compares all rows.

use std::collections::HashMap;

use reveille_base::zone::Tz;
use reveille_store::{Spoken, SpokenRows, Store};

use super::{
    Index, IndexError,
    chunk::{self, Chunk, ChunkKind},
    hash::hash,
    refresh::Refreshed,
    write::{Changes, Placed},
};

/// The number of rows per transaction.
const ROWS: usize = 2_000;
/// The maximum number of unsettled rows checked again.
const MAX_UNSETTLED: usize = 500;

/// A side of the conversations.
#[derive(Clone, Copy)]
struct Side {
    kind: ChunkKind,
    /// The name of the state with the last row read.
    last: &'static str,
}

const SIDES: [Side; 2] =
    [Side { kind: ChunkKind::Message, last: "last_message" }, Side { kind: ChunkKind::Answer, last: "last_answer" }];

impl Index {
    /// Updates the conversations.
    pub(super) fn refresh_conversations(
        &mut self,
        store: &Store,
        zone: Tz,
        is_late: &dyn Fn() -> bool,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        let changes = store.inbox().count_spoken_changes()?;
        let witness = read_witness(store, self.read_state("last_message")?.unwrap_or(0))?;
        let known = self.read_state("changes")?;
        let is_same = known.is_none_or(|known| known == changes)
            && self.read_state("witness")?.is_none_or(|known| known == witness);
        if known != Some(changes) || !is_same {
            self.begin_transaction()?;
            // Stores the counter before it reads any row, so that the next refresh notices later changes.
            self.set_state("changes", changes)?;
        }
        if !is_same {
            // This rare case compares everything. If time runs out, the next refresh continues.
            self.restart_reading(store)?;
            self.remove_deleted(store, done)?;
            self.commit()?;
        }
        for side in SIDES {
            self.recheck_unsettled(store, side, zone, done)?;
            loop {
                let last = self.read_state(side.last)?.unwrap_or(0);
                let rows = read_rows(store, side, SpokenRows::After(last, ROWS))?;
                let Some(end) = rows.last().map(|row| row.row) else { break };
                self.write_rows(side, zone, &rows, Some(end), done)?;
                if side.kind == ChunkKind::Message {
                    self.set_state("witness", read_witness(store, end)?)?;
                }
                if rows.len() < ROWS {
                    break;
                }
                self.commit()?;
                if is_late() {
                    done.is_partial = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Makes the next reads start at the first row.
    fn restart_reading(&self, store: &Store) -> Result<(), IndexError> {
        for side in SIDES {
            self.set_state(side.last, 0)?;
        }
        self.set_state("witness", read_witness(store, 0)?)
    }

    /// Reads the rows again that were unsettled when they were indexed.
    fn recheck_unsettled(
        &mut self,
        store: &Store,
        side: Side,
        zone: Tz,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        let prefix = unsettled_prefix(side);
        let rows: Vec<i64> = self
            .conn
            .prepare_cached("SELECT value FROM state WHERE name >= ?1 AND name < ?1 || '~' LIMIT ?2")?
            .query_map((&prefix, MAX_UNSETTLED as i64), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut found = read_rows(store, side, SpokenRows::These(&rows))?;
        let there: Vec<i64> = found.iter().map(|row| row.row).collect();
        found.extend(rows.iter().filter(|row| !there.contains(row)).map(|row| Spoken {
            row: *row,
            is_settled: true,
            ..Spoken::default()
        }));
        self.write_rows(side, zone, &found, None, done)
    }

    /// Removes chunks of deleted rows.
    fn remove_deleted(&mut self, store: &Store, done: &mut Refreshed) -> Result<(), IndexError> {
        for side in SIDES {
            let mut all = Vec::new();
            let mut last = 0;
            loop {
                let rows = read_rows(store, side, SpokenRows::After(last, ROWS))?;
                let Some(end) = rows.last() else { break };
                last = end.row;
                all.extend(rows.iter().filter(|row| row.is_findable).map(|row| row.row));
            }
            let known: Vec<(i64, i64)> = self
                .conn
                .prepare("SELECT id, message FROM chunks WHERE kind = ?1 AND message IS NOT NULL")?
                .query_map([side.kind.number()], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            self.begin_transaction()?;
            let mut changes = Changes::default();
            for (id, _) in known.iter().filter(|(_, message)| all.binary_search(message).is_err()) {
                changes.remove(&self.conn, *id)?;
                done.removed += 1;
            }
            changes.finish(&self.conn)?;
        }
        Ok(())
    }

    /// Writes the changes of one side's rows, and `end` as the last row read.
    fn write_rows(
        &mut self,
        side: Side,
        zone: Tz,
        rows: &[Spoken],
        end: Option<i64>,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        self.begin_transaction()?;
        let tx = &self.conn;
        let mut changes = Changes::default();
        let mut documents: HashMap<i64, i64> = HashMap::new();
        let prefix = unsettled_prefix(side);
        for row in rows {
            let chat = row.chat.number();
            let document = match documents.get(&chat) {
                Some(document) => *document,
                None => {
                    let document = tx.query_row(
                        "INSERT INTO documents (path) VALUES (?1) ON CONFLICT (path) DO UPDATE SET bytes = 0 RETURNING id",
                        [format!("chat/{chat}")],
                        |found| found.get(0),
                    )?;
                    documents.insert(chat, document);
                    document
                }
            };
            let new = if row.is_findable { place_message(row, side.kind, zone) } else { Vec::new() };
            let old: Vec<(i64, i64)> = tx
                .prepare_cached("SELECT id, identity FROM chunks WHERE message = ?1 AND kind = ?2 ORDER BY id")?
                .query_map((row.row, side.kind.number()), |found| Ok((found.get(0)?, found.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            if !old.iter().map(|(_, identity)| *identity).eq(new.iter().map(Placed::identity)) {
                for (id, _) in &old {
                    changes.remove(tx, *id)?;
                }
                for placed in &new {
                    changes.add(tx, document, placed)?;
                }
                done.added += new.len();
                done.removed += old.len();
            }
            let name = format!("{prefix}{}", row.row);
            if !row.is_settled {
                tx.prepare_cached("INSERT OR IGNORE INTO state VALUES (?1, ?2)")?.execute((name, row.row))?;
            } else if end.is_none() {
                tx.prepare_cached("DELETE FROM state WHERE name = ?1")?.execute([name])?;
            }
        }
        changes.finish(tx)?;
        if let Some(end) = end {
            self.set_state(side.last, end)?;
        }
        Ok(())
    }
}

/// Returns a value that tells whether the store is still the one whose messages were indexed: a hash of the last message's arrival.
fn read_witness(store: &Store, message: i64) -> Result<i64, IndexError> {
    Ok(store.inbox().time_of_message(message)?.map_or(0, |time| hash(&[time.as_bytes()])))
}

fn unsettled_prefix(side: Side) -> String {
    format!("unsettled/{}/", side.kind.number())
}

fn read_rows(store: &Store, side: Side, rows: SpokenRows<'_>) -> Result<Vec<Spoken>, IndexError> {
    Ok(match side.kind {
        ChunkKind::Message => store.inbox().said_by_people(rows)?,
        _ => store.inbox().list_own_messages(rows)?,
    })
}

/// Returns the chunks of a message or an answer.
fn place_message(row: &Spoken, kind: ChunkKind, zone: Tz) -> Vec<Placed> {
    let millis = row.at.map_or(0, |at| at.timestamp_millis());
    let place = |chunk: Chunk| {
        let speaker = row.speaker.clone().unwrap_or_default();
        let date = row.at.map(|at| at.with_timezone(&zone).date_naive());
        let origin = row.wake.as_ref().map(|wake| format!("wake {wake}")).unwrap_or_default();
        Placed {
            chunk: Chunk { speaker, date, origin, ..chunk },
            ord: millis,
            message: Some(row.row),
            chat: Some(row.chat),
            is_for_all: false,
            taint: row.taint.clone(),
            is_untrusted_to_guest: row.taint.is_some(),
        }
    };
    chunk::split_message(&row.text, kind).into_iter().map(place).collect()
}
