//! The index of the memory: searches every Markdown file under `memory/` and `skills/`, and both sides of all conversations, by words and
//! by meaning.
//!
//! `index.db` is derived and may be deleted at any time. Texts become chunks (`chunk`), stored with the hash of their content, and only
//! changes are rewritten (`refresh`). A search gathers candidates by rare words, neighbours and vectors (`search`), and a small linear
//! ranker orders them ([`weights`]). Each chunk records the chats that may see it.

mod access;
mod blocks;
mod chunk;
mod days;
pub mod embed;
mod file;
mod gather;
mod hash;
mod place;
mod ready;
mod recorded;
mod refresh;
mod scope;
mod score;
mod scrub;
mod search;
mod spoken;
mod stem;
mod terms;
mod vectors;
pub mod weights;
mod write;

use reveille_base::types::ChatRef;
use reveille_store::StoreError;

pub use chunk::ChunkKind;
pub use place::IndexPlace;
pub use ready::Ready;
pub use refresh::{OtherDocuments, Refreshed, Sources};
pub use vectors::{ChunkKey, QueryVector};

use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use rusqlite::{Connection, OptionalExtension as _};
use vectors::Codes;
use weights::Features;

/// The index, opened by one process.
pub struct Index {
    conn: Connection,
    /// The file's path; `None` in memory.
    path: Option<PathBuf>,
    /// The file's device and inode.
    inode: Option<(u64, u64)>,
    /// Whether the previous file had to be deleted.
    was_rebuilt: bool,
    /// The bits of a model's vectors, as last read.
    codes: Option<Codes>,
}

/// The reason the index can't answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Another process has been writing for a long time: try again.
    #[error("the memory's index is busy: another process is writing to it. Try again")]
    Busy,
    /// The disk is full; nothing was changed.
    #[error("the disk is full: the memory's index can't be written")]
    Full,
    /// The index can't be written here: search in memory.
    #[error("the memory's index can't be written: {0}")]
    ReadOnly(String),
    /// The file is damaged: delete it, and it is rebuilt.
    #[error("the memory's index is damaged: {0}")]
    Damaged(String),
    /// Another program's file is at the index's path, and came back after it was deleted.
    #[error("{} isn't the memory's index, and can't be replaced", .0.display())]
    Foreign(PathBuf),
    /// The file can't be deleted or read.
    #[error("the memory's index: {0}")]
    File(std::io::Error),
    /// The conversations can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An unusable vector: the wrong length, or a value that isn't a number.
    #[error("an embedding can't be used: {0}")]
    Vector(String),
    /// Any other SQLite error.
    #[error("the memory's index: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly(error.to_string())
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            _ => Self::Sqlite(error),
        }
    }
}

/// The input of a search.
#[derive(Default, Clone, Copy)]
pub struct SearchQuery<'a> {
    /// A question, or words.
    pub text: &'a str,
    /// The maximum number of hits.
    pub limit: usize,
    /// Today's date in the person's time zone, from which "last week" is counted.
    pub today: NaiveDate,
    /// Only content that was known on that day. The documents must be in the state of that day ([`Index::with_documents`]).
    pub as_of: Option<NaiveDate>,
    /// With `as_of`: also filters documents by their own days. Undated content is excluded, because its age is unknown.
    pub only_dated: bool,
    /// Only content of this file or folder; `messages` and `answers` select the conversations.
    pub within: Option<&'a str>,
    /// The reading guest, who sees only their own content and content for all.
    pub reader: Option<ChatRef>,
    /// The owner's chat. Its messages, and those at the terminal, are trusted.
    pub owner: ChatRef,
    /// The question's embedding, made by a model.
    pub vector: Option<QueryVector<'a>>,
    /// Chats to exclude, with everything that belongs to them.
    pub without_chats: &'a [ChatRef],
    /// Decides which paths are hidden from this search.
    pub hidden: Option<&'a dyn Fn(&str) -> bool>,
}

/// The source of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ChunkOrigin {
    /// The wake that wrote the text or answered the message.
    pub wake: Option<String>,
    /// The message that holds the text.
    pub message: Option<i64>,
    /// The chat of the message, or the chat the text was written for.
    pub chat: Option<ChatNumber>,
}

/// A chat's number in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatNumber(pub ChatRef);

impl serde::Serialize for ChatNumber {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.number())
    }
}

/// A hit of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The path in the repository; `messages/<id>` or `answers/<id>` for conversations.
    pub path: String,
    /// The line, counted from 1; in a message, counted within it.
    pub line: usize,
    /// The last line.
    pub last_line: usize,
    /// The kind of content.
    pub kind: ChunkKind,
    /// The text.
    pub text: String,
    /// The heading above.
    pub heading: String,
    /// The speaker.
    pub speaker: String,
    /// The day of the content.
    pub date: Option<NaiveDate>,
    /// The source.
    pub origin: ChunkOrigin,
    /// The untrusted sources the text may contain, from the reader's point of view.
    pub taint: Option<String>,
    /// The relevance: higher is better, within the same query.
    pub score: f32,
    /// The features of the ranking, named in [`weights::FEATURES`].
    pub features: Features,
    /// Whether the query's vector was compared. Otherwise the ranking used words alone.
    pub has_vector: bool,
}

impl SearchHit {
    /// Returns whether the text itself matches, rather than only its surroundings.
    pub fn speaks_for_itself(&self) -> bool {
        weights::speaks_for_itself(&self.features)
    }

    /// Explains the ranking: each present feature with its part of the score.
    pub fn explain_score(&self) -> Vec<(&'static str, f32)> {
        weights::list_contributions(&self.features, weights::select_weights(self.has_vector))
    }
}

/// The size of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct IndexStats {
    /// Files of the memory and the skills.
    pub documents: i64,
    /// Chunks of these files.
    pub chunks: i64,
    /// Chunks of people's messages.
    pub messages: i64,
    /// Chunks of the assistant's answers.
    pub answers: i64,
    /// Distinct words.
    pub words: i64,
    /// The file's size in bytes, including its log.
    pub bytes: i64,
    /// The embedding models, with their progress.
    pub models: Vec<ModelStats>,
}

/// The progress of a model's embeddings.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelStats {
    /// The model's id.
    pub model: String,
    /// The number of dimensions per vector.
    pub dims: i64,
    /// Distinct texts with a vector.
    pub embedded: i64,
    /// Distinct texts still without a vector, except refused ones.
    pub missing: i64,
}

impl Index {
    /// Opens the index at a path. Rebuilds a damaged file, another program's file, or an index of another version, whose vectors are kept.
    ///
    /// # Errors
    /// The file can't be read or created.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        let index = Self::open_alone(path)?;
        if let Some(old) = file::find_moved_aside(path) {
            index.copy_vectors(&old);
            file::remove(&old)?;
        }
        Ok(index)
    }

    /// Opens the index at a path. Ignores an older index that was moved aside.
    fn open_alone(path: &Path) -> Result<Self, IndexError> {
        let (conn, was_rebuilt) = file::open(path)?;
        Ok(Self { conn, path: Some(path.to_owned()), inode: file::read_inode(path), was_rebuilt, codes: None })
    }

    /// Creates an empty index that ends with this process.
    ///
    /// # Errors
    /// There isn't enough memory.
    pub fn open_in_memory() -> Result<Self, IndexError> {
        Ok(Self { conn: file::open_in_memory()?, path: None, inode: None, was_rebuilt: false, codes: None })
    }

    /// Returns whether the opened file is still the one at its path.
    fn is_in_place(&self) -> bool {
        self.inode.is_some() && self.path.as_deref().and_then(file::read_inode) == self.inode
    }

    /// Prepares the index for another question. `None` if it must be reopened. Clears `was_rebuilt`, which was already reported.
    fn into_reusable(self) -> Option<Self> {
        (self.path.is_some() && self.conn.is_autocommit()).then_some(Self { was_rebuilt: false, ..self })
    }

    /// Returns whether a foreign or damaged file at the path was deleted.
    pub fn was_rebuilt(&self) -> bool {
        self.was_rebuilt
    }

    /// Empties the file except for vectors, which take hours to make. The next [`Index::refresh`] rebuilds the rest.
    ///
    /// # Errors
    /// The file can't be replaced.
    pub fn clear(self) -> Result<Self, IndexError> {
        let (index, old) = self.set_aside()?;
        if let Some(old) = old {
            index.copy_vectors(&old);
            file::remove(&old)?;
        }
        Ok(index)
    }

    /// Moves the file aside and creates an empty index at the same path. Returns the new index and the old path.
    fn set_aside(self) -> Result<(Self, Option<PathBuf>), IndexError> {
        let Self { conn, path, .. } = self;
        file::checkpoint_log(&conn);
        drop(conn);
        let Some(path) = path else { return Ok((Self::open_in_memory()?, None)) };
        let old = file::move_aside(&path)?;
        Ok((Self::open_alone(&path)?, old))
    }

    /// Counts the content.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn stats(&self) -> Result<IndexStats, IndexError> {
        let count = |sql: &str| self.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        let (message, answer) = (ChunkKind::Message.number(), ChunkKind::Answer.number());
        let mut models = self.conn.prepare(
            "SELECT name, dims, (SELECT count(*) FROM codes c WHERE c.model = m.id),
                 (SELECT count(DISTINCT key) FROM chunks k
                  WHERE NOT EXISTS (SELECT 1 FROM codes c WHERE c.model = m.id AND c.key = k.key)
                      AND NOT EXISTS (SELECT 1 FROM refused r WHERE r.model = m.id AND r.key = k.key))
             FROM models m ORDER BY id",
        )?;
        let models = models.query_map([], |row| {
            Ok(ModelStats { model: row.get(0)?, dims: row.get(1)?, embedded: row.get(2)?, missing: row.get(3)? })
        })?;
        Ok(IndexStats {
            documents: count("SELECT count(*) FROM documents WHERE path NOT LIKE 'chat/%'")?,
            chunks: count("SELECT count(*) FROM chunks WHERE message IS NULL")?,
            messages: count(&format!("SELECT count(*) FROM chunks WHERE kind = {message}"))?,
            answers: count(&format!("SELECT count(*) FROM chunks WHERE kind = {answer}"))?,
            words: count("SELECT count(*) FROM words WHERE chunks > 0")?,
            bytes: self.path.as_deref().map_or(0, file::count_bytes).cast_signed(),
            models: models.collect::<rusqlite::Result<_>>()?,
        })
    }

    /// Records a name, and returns whether it is new. `false` if it can't be recorded.
    pub fn record_first(&self, name: &str) -> bool {
        self.read_state(name).is_ok_and(|known| known.is_none()) && self.set_state(name, 1).is_ok()
    }

    /// Reads a stored number.
    fn read_state(&self, name: &str) -> Result<Option<i64>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT value FROM state WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0)).optional()?)
    }

    fn set_state(&self, name: &str, value: i64) -> Result<(), IndexError> {
        self.conn
            .prepare_cached(
                "INSERT INTO state VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            )?
            .execute((name, value))?;
        Ok(())
    }
}

/// Formats numbers for SQLite's `json_each`: one statement for all numbers takes half as long as one for each.
fn sql_list<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> String {
    let mut list = String::from("[");
    for number in numbers {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&number.to_string());
    }
    list + "]"
}

#[cfg(test)]
mod tests;
