//! The index of the memory: every Markdown file under `memory/` and `skills/`, and both sides of all conversations, found by their
//! words and by what they mean.
//!
//! `index.db` is derived and may be deleted at any time. Texts become chunks (`chunk`), kept with the hash of what they say, so that
//! only what changed is written anew (`refresh`). A search gathers candidates by rare words, neighbours and vectors
//! (`search`), and a small linear ranker orders them ([`weights`]). What each chat may see is written down with each chunk.

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
pub use refresh::{Refreshed, Sources};
pub use vectors::{ChunkKey, QueryVector};

use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use rusqlite::{Connection, OptionalExtension as _};
use vectors::Codes;
use weights::Features;

/// The index, opened by one process.
pub struct Index {
    conn: Connection,
    /// Where it is kept; none in memory.
    path: Option<PathBuf>,
    /// Its file's device and inode.
    inode: Option<(u64, u64)>,
    /// Whether what was there had to go.
    was_rebuilt: bool,
    /// The codes that were read last.
    codes: Option<Codes>,
}

/// Why the index can't answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Another process has been writing to it for long: try again.
    #[error("the memory's index is busy: another process is writing to it. Try again")]
    Busy,
    /// No room: nothing was changed.
    #[error("the disk is full: the memory's index can't be written")]
    Full,
    /// It can't be written here: search in memory.
    #[error("the memory's index can't be written: {0}")]
    ReadOnly(String),
    /// The file is damaged: delete it, it is made anew.
    #[error("the memory's index is damaged: {0}")]
    Damaged(String),
    /// Another program's file stands in its place, and comes back when it is deleted.
    #[error("{} isn't the memory's index, and can't be replaced", .0.display())]
    Foreign(PathBuf),
    /// The file can't be deleted or read.
    #[error("the memory's index: {0}")]
    File(std::io::Error),
    /// What was said can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A vector that can't be used: another length, or a value that is no number.
    #[error("an embedding can't be used: {0}")]
    Vector(String),
    /// Anything else that SQLite says.
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

/// What is looked for.
#[derive(Default, Clone, Copy)]
pub struct SearchQuery<'a> {
    /// A question, or words.
    pub text: &'a str,
    /// Hits at most.
    pub limit: usize,
    /// Today, by the person's calendar: what "last week" is told by.
    pub today: NaiveDate,
    /// Only what was said by that day. The documents are to be those of the day ([`Index::with_documents`]).
    pub as_of: Option<NaiveDate>,
    /// With `as_of`: documents are told by their own days, too. What has none isn't found: nobody knows whether it was known by then.
    pub only_dated: bool,
    /// Only in this file or folder; `messages` and `answers` are what was said.
    pub within: Option<&'a str>,
    /// A guest: sees their own and what is for all.
    pub reader: Option<ChatRef>,
    /// The owner's chat: what is said there, and at the terminal, isn't others' words.
    pub owner: ChatRef,
    /// What the question means, by a model.
    pub vector: Option<QueryVector<'a>>,
    /// Chats whose words, and what is theirs, aren't found.
    pub without_chats: &'a [ChatRef],
    /// Paths that may not be read.
    pub hidden: Option<&'a dyn Fn(&str) -> bool>,
}

/// Where a text comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ChunkOrigin {
    /// The wake that wrote it, or that answered it.
    pub wake: Option<String>,
    /// The message that said it.
    pub message: Option<i64>,
    /// The chat that it was said in, or written for.
    pub chat: Option<ChatNumber>,
}

/// A chat as JSON has it: its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatNumber(pub ChatRef);

impl serde::Serialize for ChatNumber {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.number())
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// Its path in the repository; `messages/<id>` or `answers/<id>` of what was said.
    pub path: String,
    /// The line, counted from 1; of what was said, within it.
    pub line: usize,
    /// The last line that belongs to it.
    pub last_line: usize,
    /// What kind of thing it is.
    pub kind: ChunkKind,
    /// The words.
    pub text: String,
    /// The heading that it stands under.
    pub heading: String,
    /// Who said it.
    pub speaker: String,
    /// The day that it is of.
    pub date: Option<NaiveDate>,
    /// Where it comes from.
    pub origin: ChunkOrigin,
    /// Whose words it may hold, besides the reader's own person's.
    pub taint: Option<String>,
    /// How well it fits: higher is better, of the same query.
    pub score: f32,
    /// What it was ranked by, as [`weights::FEATURES`] names it.
    pub features: Features,
    /// Whether what it means was compared, too. Else it was ranked by its words alone.
    pub has_vector: bool,
}

impl Recalled {
    /// Whether it is found for what it says itself, and not only for what stands around it.
    pub fn speaks_for_itself(&self) -> bool {
        weights::speaks_for_itself(&self.features)
    }

    /// What it was ranked by: each feature that it has, with its part of the score.
    pub fn why(&self) -> Vec<(&'static str, f32)> {
        weights::contributions(&self.features, self.has_vector)
    }
}

/// What the index holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct IndexStats {
    /// Files of the memory and of skills.
    pub documents: i64,
    /// Parts of them.
    pub chunks: i64,
    /// Parts of what people said.
    pub messages: i64,
    /// Parts of what the assistant said.
    pub answers: i64,
    /// Distinct words.
    pub words: i64,
    /// The file's size, its log's included.
    pub bytes: i64,
    /// Models that something was embedded by, and how much.
    pub models: Vec<ModelStats>,
}

/// How far a model's embeddings are.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelStats {
    /// Its id.
    pub model: String,
    /// Dimensions of a vector.
    pub dims: i64,
    /// Distinct texts that have a vector.
    pub embedded: i64,
    /// Distinct texts that have none yet, and weren't refused.
    pub missing: i64,
}

impl Index {
    /// Opens the index at a path, and makes it anew where it is damaged, another program's or of another version. Of another version the
    /// vectors are kept.
    ///
    /// # Errors
    /// It can't be read or made there.
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        let index = Self::open_alone(path)?;
        if let Some(old) = file::left_aside(path) {
            index.take_vectors_of(&old);
            file::remove(&old)?;
        }
        Ok(index)
    }

    /// Opens the index at a path, and leaves alone what was moved aside.
    fn open_alone(path: &Path) -> Result<Self, IndexError> {
        let (conn, was_rebuilt) = file::open(path)?;
        Ok(Self { conn, path: Some(path.to_owned()), inode: file::inode(path), was_rebuilt, codes: None })
    }

    /// An empty index that ends with this process.
    ///
    /// # Errors
    /// There isn't the memory for it.
    pub fn in_memory() -> Result<Self, IndexError> {
        Ok(Self { conn: file::in_memory()?, path: None, inode: None, was_rebuilt: false, codes: None })
    }

    /// Whether its file is still the one at its path.
    fn is_in_place(&self) -> bool {
        self.inode.is_some() && self.path.as_deref().and_then(file::inode) == self.inode
    }

    /// The same for a further question; none if it is better opened anew then. That it was rebuilt was told.
    fn reusable(self) -> Option<Self> {
        (self.path.is_some() && self.conn.is_autocommit()).then_some(Self { was_rebuilt: false, ..self })
    }

    /// Whether what stood at its path was no index of ours, or a damaged one, and is gone.
    pub fn was_rebuilt(&self) -> bool {
        self.was_rebuilt
    }

    /// Makes the file anew, empty but for vectors, which take hours. What else it held is built by the next [`Index::refresh`].
    ///
    /// # Errors
    /// The file can't be replaced.
    pub fn clear(self) -> Result<Self, IndexError> {
        let (index, old) = self.set_aside()?;
        if let Some(old) = old {
            index.take_vectors_of(&old);
            file::remove(&old)?;
        }
        Ok(index)
    }

    /// An empty one at the same path, and where the old one stands now.
    fn set_aside(self) -> Result<(Self, Option<PathBuf>), IndexError> {
        let Self { conn, path, .. } = self;
        file::settle(&conn);
        drop(conn);
        let Some(path) = path else { return Ok((Self::in_memory()?, None)) };
        let old = file::move_aside(&path)?;
        Ok((Self::open_alone(&path)?, old))
    }

    /// What it holds.
    ///
    /// # Errors
    /// It can't be read.
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
            bytes: self.path.as_deref().map_or(0, file::bytes).cast_signed(),
            models: models.collect::<rusqlite::Result<_>>()?,
        })
    }

    /// Whether this is asked for the first time, by its name; what can't be kept isn't.
    pub fn is_first(&self, name: &str) -> bool {
        self.state(name).is_ok_and(|known| known.is_none()) && self.set_state(name, 1).is_ok()
    }

    /// A number that is kept.
    fn state(&self, name: &str) -> Result<Option<i64>, IndexError> {
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

/// Numbers as SQLite's `json_each` reads them: one statement for all of them takes half as long as one for each.
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
