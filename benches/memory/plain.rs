//! The yardsticks over the same pieces: BM25 as FTS5 has it, with the porter stemmer, and the cosine of exact vectors.

use rusqlite::Connection;

use super::fill::Piece;

/// Hits that are considered.
pub(crate) const DEPTH: usize = 100;

/// BM25 over the pieces' texts, each after its speaker or heading, as in the embedded text.
pub(crate) struct Bm25(Connection);

impl Bm25 {
    pub(crate) fn new(pieces: &[Piece]) -> Self {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')").unwrap();
        let tx = conn.transaction().unwrap();
        for (at, piece) in pieces.iter().enumerate() {
            tx.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?1, ?2)")
                .unwrap()
                .execute((i64::try_from(at).unwrap(), &piece.embedded))
                .unwrap();
        }
        tx.commit().unwrap();
        Self(conn)
    }

    /// Finds pieces with any of the question's words.
    pub(crate) fn search(&self, question: &str) -> Vec<usize> {
        let words: Vec<String> = question
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""))
            .collect();
        let mut statement =
            self.0.prepare_cached("SELECT rowid FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT ?2").unwrap();
        let rows = statement.query_map((words.join(" OR "), DEPTH as i64), |row| row.get::<_, i64>(0)).unwrap();
        rows.map(|row| usize::try_from(row.unwrap()).unwrap()).collect()
    }
}

/// The nearest vectors by cosine; all vectors have length 1.
pub(crate) fn nearest(vectors: &[&[f32]], question: &[f32]) -> Vec<usize> {
    let mut all: Vec<(f32, usize)> = vectors
        .iter()
        .enumerate()
        .map(|(at, vector)| (vector.iter().zip(question).map(|(one, other)| one * other).sum(), at))
        .collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    all.truncate(DEPTH);
    all.into_iter().map(|(_, at)| at).collect()
}
