//! Rebuilds the index after content was forgotten, to clear it from the rows and the free pages of the file. Vectors of remaining texts are
//! kept, since they cost time or money.

use std::path::Path;

use rusqlite::TransactionBehavior;

use super::{
    Index, IndexError, Sources, file,
    vectors::{BLOCK, put_block},
};

impl Index {
    /// Rebuilds the file at a path from its sources. Does nothing if the file doesn't exist.
    ///
    /// # Errors
    /// The index can't be replaced, or its sources can't be read.
    pub fn scrub(path: &Path, sources: &Sources<'_>) -> Result<(), IndexError> {
        if !path.exists() {
            return Ok(());
        }
        let (mut new, aside) = Self::open(path)?.set_aside()?;
        new.refresh(sources, None)?;
        if let Some(aside) = aside {
            new.conn.execute("ATTACH DATABASE ?1 AS old", [aside.display().to_string()])?;
            let taken = new.copy_remaining_vectors();
            new.conn.execute_batch("DETACH DATABASE old")?;
            file::remove(&aside)?;
            taken?;
        }
        Ok(())
    }

    /// Copies the vectors of remaining texts from the attached index `old`.
    fn copy_remaining_vectors(&mut self) -> Result<(), IndexError> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute("INSERT INTO models SELECT * FROM old.models", [])?;
        let models: Vec<i64> =
            tx.prepare("SELECT id FROM models")?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for id in models {
            let (mut block, mut keys, mut bits) = (0, Vec::new(), Vec::new());
            let mut statement = tx.prepare(
                "SELECT key, code FROM old.codes c
                 WHERE model = ?1 AND EXISTS (SELECT 1 FROM main.chunks k WHERE k.key = c.key)",
            )?;
            let mut rows = statement.query([id])?;
            while let Some(row) = rows.next()? {
                let (key, code): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                tx.prepare_cached("INSERT INTO main.codes VALUES (?1, ?2, ?3)")?.execute((id, key, &code))?;
                if keys.len() >= 8 * BLOCK {
                    put_block(&tx, id, block, &keys, &bits)?;
                    (block, keys, bits) = (block + 1, Vec::new(), Vec::new());
                }
                keys.extend(key.to_le_bytes());
                bits.extend(bits_of_code(&code));
            }
            put_block(&tx, id, block, &keys, &bits)?;
        }
        tx.execute("INSERT INTO state VALUES ('vectors', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", [])?;
        Ok(tx.commit()?)
    }
}

/// Converts a code to one bit per dimension, as `vectors` makes from the vector itself. A code has four bytes of scale, then a byte per
/// dimension.
fn bits_of_code(code: &[u8]) -> Vec<u8> {
    let values = code.get(4..).unwrap_or_default();
    let word = |values: &[u8]| {
        let positive = values.iter().enumerate().filter(|(_, value)| value.cast_signed() > 0);
        positive.fold(0_u64, |word, (at, _)| word | 1 << at)
    };
    values.chunks(64).flat_map(|values| word(values).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueryVector, SearchQuery};
    use reveille_base::zone::Tz;

    #[test]
    fn what_is_gone_from_the_sources_is_in_no_byte_of_the_file_and_other_vectors_stay() {
        let dir = tempfile::tempdir().unwrap();
        let facts = dir.path().join("memory/agent-memory/semantic-memory.md");
        std::fs::create_dir_all(facts.parent().unwrap()).unwrap();
        std::fs::write(&facts, "## Home\n- the gate is blue\n- the canaryword is kept\n").unwrap();
        let path = dir.path().join("index.db");
        let sources = Sources { brain: dir.path(), store: None, zone: Tz::UTC };
        let mut index = Index::open(&path).unwrap();
        index.refresh(&sources, None).unwrap();
        let texts = index.list_unembedded("m", 9).unwrap();
        assert_eq!(texts.len(), 2);
        let direction = |text: &str| if text.contains("gate") { vec![1.0, 0.0, 0.1] } else { vec![0.0, 1.0, 0.1] };
        let vectors: Vec<_> = texts.iter().map(|(key, text)| (*key, direction(text))).collect();
        index.put_vectors("m", 3, &vectors).unwrap();
        drop(index);
        let holds = || {
            let files =
                ["index.db", "index.db-wal"].map(|name| std::fs::read(dir.path().join(name)).unwrap_or_default());
            files.iter().any(|bytes| String::from_utf8_lossy(bytes).contains("canaryword"))
        };
        assert!(holds());
        std::fs::write(&facts, "## Home\n- the gate is blue\n").unwrap();
        Index::scrub(&path, &sources).unwrap();
        assert!(!holds());
        let mut index = Index::open(&path).unwrap();
        assert_eq!(index.stats().unwrap().models[0].embedded, 1);
        let query = SearchQuery {
            text: "colour",
            limit: 3,
            vector: Some(QueryVector { model: "m", values: &[1.0, 0.0, 0.0] }),
            ..SearchQuery::default()
        };
        let found = index.search(&query).unwrap();
        assert_eq!(found.iter().map(|hit| hit.text.as_str()).collect::<Vec<_>>(), ["the gate is blue"]);
        Index::scrub(&dir.path().join("none.db"), &sources).unwrap();
        assert!(!dir.path().join("none.db").exists());
    }
}
