//! Updates the index by rewriting only changes.
//!
//! A file's modification time and size hint at a change, and its hash confirms it. `spoken` updates the conversations, `recorded` the
//! recordings.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, VecDeque},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::{
    clock::{self, Clock as _},
    zone::Tz,
};
use reveille_memory::{episodic::without_undone, is_disguised, is_log, others};
use reveille_store::Store;

use super::{
    Index, IndexError,
    access::LineAccess,
    chunk::{self, Chunk},
    hash::hash,
    recorded::is_from_store,
    write::{Changes, Placed},
};

/// The maximum size of a searched file, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// The approximate number of chunks written per transaction.
const CHUNKS: usize = 5_000;
/// A file that was written less than this before it was read, in nanoseconds, may change again without a new time stamp.
const RACY_NS: i64 = 2_000_000_000;
/// The searched folders.
const FOLDERS: [&str; 2] = ["memory", "skills"];

/// The sources of the index.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The work tree of the memory.
    pub brain: &'a Path,
    /// The store with both sides of the conversations.
    pub store: Option<&'a Store>,
    /// The person's time zone, for the days of messages.
    pub zone: Tz,
}

/// The result of a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Refreshed {
    /// The number of chunks written.
    pub added: usize,
    /// The number of chunks removed.
    pub removed: usize,
    /// Whether time ran out; the next refresh continues.
    pub is_partial: bool,
}

/// A file's size and modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileMark {
    bytes: i64,
    mtime_ns: i64,
}

/// A document as stored in the index.
struct Known {
    id: i64,
    hash: i64,
    mark: FileMark,
}

/// Whether a search that puts other documents in place of stored ones still finds the remaining ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherDocuments {
    /// It finds them, too.
    Shown,
    /// It hides them.
    Hidden,
}

impl Index {
    /// Updates the index from its sources, within a time limit if given.
    ///
    /// # Errors
    /// The index can't be written, or the conversations can't be read. An unreadable file is skipped.
    pub fn refresh(&mut self, sources: &Sources<'_>, within: Option<Duration>) -> Result<Refreshed, IndexError> {
        let end = within.map(|within| clock::read_awake_time() + within);
        let is_late = || end.is_some_and(|end| clock::read_awake_time() >= end);
        let mut done = Refreshed::default();
        match self.refresh_all(sources, &is_late, &mut done).and_then(|()| self.commit()) {
            Ok(()) => {
                // Only without a time limit, since this rewrites all posting lists.
                if done.added + done.removed >= CHUNKS && within.is_none() {
                    self.gather_postings();
                }
                Ok(done)
            }
            Err(error) => {
                if !self.conn.is_autocommit() {
                    self.conn.execute_batch("ROLLBACK").ok();
                }
                Err(error)
            }
        }
    }

    /// Merges the many posting lists left by a large refresh, because each search reads all of them.
    fn gather_postings(&self) {
        if let Err(error) = self.conn.execute_batch("INSERT INTO postings (postings) VALUES ('optimize')") {
            tracing::debug!(%error, "the index's lists stay as they are; what was indexed is kept");
        }
    }

    fn refresh_all(
        &mut self,
        sources: &Sources<'_>,
        is_late: &dyn Fn() -> bool,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        self.refresh_files(sources.brain, is_late, done)?;
        if let Some(store) = sources.store {
            self.refresh_recordings(store, sources.zone, done)?;
            self.refresh_conversations(store, sources.zone, is_late, done)?;
        }
        Ok(())
    }

    /// Begins a transaction if none is open. A refresh uses as few as possible, because each rewrites the same pages of words.
    pub(super) fn begin_transaction(&self) -> Result<(), IndexError> {
        if self.conn.is_autocommit() {
            self.conn.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Commits the changes since [`Index::begin_transaction`].
    pub(super) fn commit(&self) -> Result<(), IndexError> {
        if !self.conn.is_autocommit() {
            self.conn.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    fn refresh_files(
        &mut self,
        brain: &Path,
        is_late: &dyn Fn() -> bool,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        let mut known = self.known_documents()?;
        let (mut has_written, mut committed) = (false, 0);
        for (path, mark) in list_files(brain) {
            let before = known.remove(&path);
            if before.as_ref().is_some_and(|known| known.mark == mark) {
                continue;
            }
            // Even if time has run out, each refresh makes some progress.
            if has_written && is_late() {
                done.is_partial = true;
                continue;
            }
            let read_ns = clock::SystemClock.now().timestamp_nanos_opt();
            let Ok(bytes) = std::fs::read(brain.join(&path)) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            // The next refresh reads a freshly written file again.
            let is_racy = read_ns.is_none_or(|now| now.saturating_sub(mark.mtime_ns) < RACY_NS);
            let mark = if is_racy { FileMark { mtime_ns: 0, ..mark } } else { mark };
            let hash = hash(&[text.as_bytes()]);
            if before.as_ref().is_some_and(|known| known.hash == hash) {
                if before.is_some_and(|known| known.mark != mark) {
                    self.note_mark(&path, mark)?;
                }
                continue;
            }
            self.write_document(&path, &text, hash, mark, done)?;
            has_written = true;
            if done.added + done.removed >= committed + CHUNKS {
                committed = done.added + done.removed;
                self.commit()?;
            }
        }
        for (path, document) in known.into_iter().filter(|(path, _)| !is_from_store(path)) {
            tracing::debug!(path, "a file is gone from the memory");
            self.remove_document(document.id, done)?;
        }
        Ok(())
    }

    fn known_documents(&self) -> Result<BTreeMap<String, Known>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT path, id, hash, bytes, mtime_ns FROM documents")?;
        let rows = statement.query_map([], |row| {
            let mark = FileMark { bytes: row.get(3)?, mtime_ns: row.get(4)? };
            Ok((row.get(0)?, Known { id: row.get(1)?, hash: row.get(2)?, mark }))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn note_mark(&self, path: &str, mark: FileMark) -> Result<(), IndexError> {
        self.begin_transaction()?;
        let mut statement =
            self.conn.prepare_cached("UPDATE documents SET bytes = ?2, mtime_ns = ?3 WHERE path = ?1")?;
        statement.execute((path, mark.bytes, mark.mtime_ns))?;
        Ok(())
    }

    /// Writes the changes of a document.
    fn write_document(
        &mut self,
        path: &str,
        text: &str,
        hash: i64,
        mark: FileMark,
        done: &mut Refreshed,
    ) -> Result<(), IndexError> {
        self.begin_transaction()?;
        let document = self.conn.query_row(
            "INSERT INTO documents (path, hash, bytes, mtime_ns) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, bytes = excluded.bytes, mtime_ns = excluded.mtime_ns
             RETURNING id",
            (path, hash, mark.bytes, mark.mtime_ns),
            |row| row.get(0),
        )?;
        replace_chunks(&self.conn, document, place_document(path, text), done)
    }

    fn remove_document(&mut self, document: i64, done: &mut Refreshed) -> Result<(), IndexError> {
        self.begin_transaction()?;
        replace_chunks(&self.conn, document, Vec::new(), done)?;
        self.conn.execute("DELETE FROM documents WHERE id = ?1", [document])?;
        Ok(())
    }

    /// Runs a search as if these documents were stored: a running cycle's staged changes, or an earlier commit.
    ///
    /// # Errors
    /// The index can't be written, or the search fails.
    pub fn with_documents<T>(
        &mut self,
        documents: &[(String, String)],
        others: OtherDocuments,
        search: impl FnOnce(&mut Self) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        if documents.is_empty() && others == OtherDocuments::Shown {
            return search(self);
        }
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let found = self.put_documents(documents, others).and_then(|()| search(self));
        // A full disk or a failed read has already ended the transaction.
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            return found.and(Err(error.into()));
        }
        found
    }

    fn put_documents(&mut self, documents: &[(String, String)], others: OtherDocuments) -> Result<(), IndexError> {
        let mut known = self.known_documents()?;
        let mut done = Refreshed::default();
        for (path, text) in documents.iter().filter(|(path, _)| is_searched(path)) {
            let before = known.remove(path);
            let hash = hash(&[text.as_bytes()]);
            if before.as_ref().is_some_and(|known| known.hash == hash) {
                continue;
            }
            let document = match before {
                Some(known) => known.id,
                None => {
                    self.conn.execute("INSERT INTO documents (path) VALUES (?1)", [path])?;
                    self.conn.last_insert_rowid()
                }
            };
            replace_chunks(&self.conn, document, place_document(path, text), &mut done)?;
        }
        let hides_others = others == OtherDocuments::Hidden;
        for (_, document) in known.into_iter().filter(|(path, _)| hides_others && !is_from_store(path)) {
            replace_chunks(&self.conn, document.id, Vec::new(), &mut done)?;
        }
        Ok(())
    }
}

/// Returns the chunks of a document with their access rights.
fn place_document(path: &str, text: &str) -> Vec<Placed> {
    let access = LineAccess::for_document(path, text);
    let shown = if is_log(path) { Cow::Owned(without_undone(text)) } else { Cow::Borrowed(text) };
    let chunks = chunk::split_document(path, &shown).into_iter().enumerate();
    let place = |(ord, mut chunk): (usize, Chunk)| {
        let whose = access.find_readers(chunk.line, chunk.last_line);
        access.hide_headings(whose, &mut chunk);
        Placed::for_document(chunk, ord, whose, others::ORIGIN)
    };
    chunks.map(place).collect()
}

/// Replaces a document's chunks. Unchanged chunks stay and get their new positions.
pub(super) fn replace_chunks(
    conn: &rusqlite::Connection,
    document: i64,
    new: Vec<Placed>,
    done: &mut Refreshed,
) -> Result<(), IndexError> {
    let mut old: HashMap<i64, VecDeque<(i64, [i64; 3])>> = HashMap::new();
    {
        let mut statement = conn
            .prepare_cached("SELECT identity, id, ord, line, last_line FROM chunks WHERE document = ?1 ORDER BY ord")?;
        let mut rows = statement.query([document])?;
        while let Some(row) = rows.next()? {
            let place = [row.get(2)?, row.get(3)?, row.get(4)?];
            old.entry(row.get(0)?).or_default().push_back((row.get(1)?, place));
        }
    }
    let mut changes = Changes::default();
    let mut added = Vec::new();
    for placed in new {
        match old.get_mut(&placed.identity()).and_then(VecDeque::pop_front) {
            Some((id, place)) => {
                let number = |line: usize| i64::try_from(line).unwrap_or(i64::MAX);
                let now = [placed.ord, number(placed.chunk.line), number(placed.chunk.last_line)];
                if now != place {
                    let [ord, line, last_line] = now;
                    conn.prepare_cached("UPDATE chunks SET ord = ?2, line = ?3, last_line = ?4 WHERE id = ?1")?
                        .execute((id, ord, line, last_line))?;
                }
            }
            None => added.push(placed),
        }
    }
    for (id, _) in old.into_values().flatten() {
        changes.remove(conn, id)?;
        done.removed += 1;
    }
    for placed in &added {
        changes.add(conn, document, placed)?;
    }
    done.added += added.len();
    changes.finish(conn)
}

/// Returns whether a path is searched: a Markdown file of the memory or the skills, in canonical spelling.
fn is_searched(path: &str) -> bool {
    let is_below = FOLDERS.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
    is_below && path.ends_with(".md") && !is_disguised(path)
}

/// Returns the searched files, without hidden, linked and oversized ones.
fn list_files(brain: &Path) -> Vec<(String, FileMark)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        let is_link = std::fs::symlink_metadata(brain.join(&folder)).is_ok_and(|folder| folder.is_symlink());
        let Ok(entries) = std::fs::read_dir(brain.join(&folder)) else { continue };
        for entry in entries.filter_map(Result::ok).filter(|_| !is_link) {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = folder.join(entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if let Some(name) = path.to_str().filter(|name| metadata.is_file() && is_searched(name))
                && metadata.len() <= MAX_FILE_BYTES
            {
                let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
                let bytes = i64::try_from(metadata.len()).unwrap_or(i64::MAX);
                found.push((name.to_owned(), FileMark { bytes, mtime_ns }));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}
