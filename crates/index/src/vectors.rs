//! Quantised sentence embeddings: one bit per dimension to scan all vectors, eight bits to compare the nearest.
//!
//! Vectors are stored by model and by the hash of the embedded text. A search uses only vectors of its query's model.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::{OptionalExtension as _, TransactionBehavior};

use reveille_base::types::ChatRef;

use super::{
    ChunkKind, Index, IndexError,
    hash::{ByNumber, KeySet},
    scope::Scope,
    sql_list,
    write::render_embedding_text,
};

/// The number of codes per block.
pub(super) const BLOCK: usize = 1_024;
/// The number of vectors chosen by their bits alone.
const MAX_BY_BITS: usize = 2_048;
/// The number of these chosen by the question's values, and then compared by their bytes.
const MAX_BY_BYTES: usize = 192;
/// The mean absolute value of a normal distribution divided by its root mean square: the square root of 2/π.
const SIGNS_COSINE: f32 = 0.797_884_6;
/// A distance larger than any real one.
const OUT_OF_REACH: u16 = u16::MAX;
/// The number of leading bits that distinguish a key from most others.
const FIRST_BITS: u32 = 14;
/// The maximum number of dimensions.
const MAX_DIMS: usize = 8_192;
/// The maximum length of embedded text, in bytes: models read no more.
const MAX_EMBEDDED_BYTES: usize = 2_000;

/// The key of a vector: the hash of the embedded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkKey(pub i64);

/// A question's embedding.
#[derive(Debug, Clone, Copy)]
pub struct QueryVector<'a> {
    /// The model's id.
    pub model: &'a str,
    /// The values, of any length.
    pub values: &'a [f32],
}

/// The bits of all vectors of a model, at one moment.
pub(super) struct Codes {
    model: i64,
    stamp: i64,
    /// The number of 64-bit words per vector.
    words: usize,
    blocks: Vec<Block>,
}

/// The bits of a block of vectors, stored by column: the first 64 bits of all vectors come first, for fast comparison of many at once.
struct Block {
    keys: Vec<i64>,
    columns: Vec<Vec<u64>>,
}

/// The cosines with a question, by key.
pub(super) type Cosines = HashMap<i64, f32, ByNumber>;

/// A question's vector of length 1.
pub(super) struct Direction {
    pub(super) model: i64,
    values: Vec<f32>,
}

impl Direction {
    /// Computes the cosine with a code.
    fn cosine(&self, code: &[u8]) -> f32 {
        let Some((scale, code)) = code.split_first_chunk::<4>() else { return 0.0 };
        let sum: f32 = self.values.iter().zip(code).map(|(value, byte)| value * f32::from(byte.cast_signed())).sum();
        sum * f32::from_le_bytes(*scale)
    }
}

impl Index {
    /// Returns texts that a model has neither embedded nor refused, newest first, at most `limit`.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn list_unembedded(&mut self, model: &str, limit: usize) -> Result<Vec<(ChunkKey, String)>, IndexError> {
        self.list_unembedded_except(model, limit, &BTreeSet::new())
    }

    /// Returns texts to embed like [`Self::list_unembedded`], except those of certain chats.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn list_unembedded_except(
        &mut self,
        model: &str,
        limit: usize,
        left_out: &BTreeSet<ChatRef>,
    ) -> Result<Vec<(ChunkKey, String)>, IndexError> {
        let model_id = self.model_id(model)?.unwrap_or(-1);
        let done_to = format!("embedded/{model}");
        let after = self.read_state(&done_to)?.unwrap_or(0);
        // Read first, because other processes may add chunks during the search.
        let last: Option<i64> = self.conn.query_row("SELECT max(id) FROM chunks", [], |row| row.get(0))?;
        let mut statement = self.conn.prepare_cached(
            "SELECT key, kind, heading, speaker, text FROM chunks k
             WHERE id > ?1 AND NOT EXISTS (SELECT 1 FROM codes c WHERE c.model = ?2 AND c.key = k.key)
                 AND NOT EXISTS (SELECT 1 FROM refused r WHERE r.model = ?2 AND r.key = k.key)
                 AND (k.chat IS NULL OR k.chat NOT IN (SELECT value FROM json_each(?4)))
             ORDER BY id DESC LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let left_out_list = sql_list(&left_out.iter().map(|chat| chat.number()).collect::<Vec<_>>());
        let rows = statement.query_map((after, model_id, limit, left_out_list), |row| {
            let kind = ChunkKind::from_number(row.get(1)?);
            let (heading, speaker, text): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
            let mut text = render_embedding_text(kind, &heading, &speaker, &text);
            text.truncate(text.floor_char_boundary(MAX_EMBEDDED_BYTES));
            Ok((ChunkKey(row.get(0)?), text))
        })?;
        let mut found: Vec<(ChunkKey, String)> = rows.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let mut seen = HashSet::new();
        found.retain(|(key, _)| seen.insert(*key));
        if found.is_empty() {
            // Every chunk up to here has a vector, and needn't be checked again.
            if left_out.is_empty() && last.is_some_and(|last| last > after) {
                self.set_state(&done_to, last.unwrap_or(0))?;
            }
        }
        Ok(found)
    }

    /// Stores vectors of a model; known ones stay unchanged.
    ///
    /// # Errors
    /// [`IndexError::Vector`] if any vector hasn't `dims` values or has an invalid one; no vector is then stored.
    pub fn put_vectors(
        &mut self,
        model: &str,
        dims: usize,
        vectors: &[(ChunkKey, Vec<f32>)],
    ) -> Result<(), IndexError> {
        if dims == 0 || dims > MAX_DIMS {
            return Err(IndexError::Vector(format!("{dims} dimensions; 1 to {MAX_DIMS} are kept")));
        }
        let mut codes = Vec::with_capacity(vectors.len());
        for (key, vector) in vectors {
            let unit = scale_to_unit(vector, dims)?;
            codes.push((key.0, encode_bytes(&unit), encode_bits(&unit)));
        }
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(
            "INSERT INTO models (name, dims) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            (model, i64::try_from(dims).unwrap_or(0)),
        )?;
        let (id, known): (i64, i64) =
            tx.query_row("SELECT id, dims FROM models WHERE name = ?1", [model], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if usize::try_from(known) != Ok(dims) {
            return Err(IndexError::Vector(format!("{model} had {known} dimensions before, and {dims} now")));
        }
        let last: Option<(i64, Vec<u8>, Vec<u8>)> = tx
            .query_row(
                "SELECT block, keys, bits FROM blocks WHERE model = ?1 ORDER BY block DESC LIMIT 1",
                [id],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let (mut block, mut keys, mut bits) = last.unwrap_or_default();
        for (key, code, own_bits) in codes {
            let is_new = tx
                .prepare_cached("INSERT INTO codes VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
                .execute((id, key, code))?
                > 0;
            if !is_new {
                continue;
            }
            if keys.len() >= 8 * BLOCK {
                put_block(&tx, id, block, &keys, &bits)?;
                (block, keys, bits) = (block + 1, Vec::new(), Vec::new());
            }
            keys.extend(key.to_le_bytes());
            bits.extend(own_bits);
        }
        put_block(&tx, id, block, &keys, &bits)?;
        tx.execute("INSERT INTO state VALUES ('vectors', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", [])?;
        tx.commit()?;
        Ok(())
    }

    /// Records texts refused by a model, to skip them until the index is rebuilt. Records nothing for a model without embeddings.
    ///
    /// # Errors
    /// The index can't be written.
    pub fn put_refused(&mut self, model: &str, keys: &[ChunkKey]) -> Result<(), IndexError> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for key in keys {
            tx.prepare_cached("INSERT OR IGNORE INTO refused SELECT id, ?2 FROM models WHERE name = ?1")?
                .execute((model, key.0))?;
        }
        Ok(tx.commit()?)
    }

    /// Deletes the vectors of all other models, once this model is complete.
    ///
    /// # Errors
    /// The index can't be written.
    pub fn forget_other_models(&mut self, model: &str) -> Result<(), IndexError> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for table in ["codes", "blocks", "refused"] {
            tx.execute(
                &format!("DELETE FROM {table} WHERE model IN (SELECT id FROM models WHERE name != ?1)"),
                [model],
            )?;
        }
        tx.execute("DELETE FROM models WHERE name != ?1", [model])?;
        tx.execute("DELETE FROM state WHERE name LIKE 'embedded/%' AND name != 'embedded/' || ?1", [model])?;
        tx.commit()?;
        Ok(())
    }

    /// Returns the number of dimensions of a model. `None` before its first embedding.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn count_dimensions(&self, model: &str) -> Result<Option<usize>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT dims FROM models WHERE name = ?1")?;
        let dims: Option<i64> = statement.query_row([model], |row| row.get(0)).optional()?;
        Ok(dims.and_then(|dims| usize::try_from(dims).ok()))
    }

    /// Copies the vectors of another index, if this one has none. An unreadable index yields none.
    pub(super) fn copy_vectors(&self, old: &std::path::Path) {
        let copy = || -> rusqlite::Result<()> {
            self.conn.execute("ATTACH DATABASE ?1 AS old", [old.display().to_string()])?;
            let copied = self.conn.execute_batch(
                "BEGIN IMMEDIATE;
                 INSERT INTO codes SELECT * FROM old.codes WHERE NOT EXISTS (SELECT 1 FROM main.models);
                 INSERT INTO blocks SELECT * FROM old.blocks WHERE NOT EXISTS (SELECT 1 FROM main.models);
                 INSERT INTO models SELECT * FROM old.models WHERE NOT EXISTS (SELECT 1 FROM main.models);
                 COMMIT",
            );
            if copied.is_err() {
                self.conn.execute_batch("ROLLBACK").ok();
            }
            self.conn.execute_batch("DETACH DATABASE old")?;
            copied
        };
        if let Err(error) = copy() {
            tracing::warn!(%error, "the index's vectors are lost; they will be computed again");
        }
    }

    fn model_id(&self, model: &str) -> Result<Option<i64>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT id FROM models WHERE name = ?1")?;
        Ok(statement.query_row([model], |row| row.get(0)).optional()?)
    }

    /// Returns a question's vector for its model. `None` before the model's first embedding.
    pub(super) fn find_direction(&self, query: QueryVector<'_>) -> Result<Option<Direction>, IndexError> {
        let found: Option<(i64, i64)> = self
            .conn
            .prepare_cached("SELECT id, dims FROM models WHERE name = ?1")?
            .query_row([query.model], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((model, dims)) = found else { return Ok(None) };
        Ok(Some(Direction { model, values: scale_to_unit(query.values, usize::try_from(dims).unwrap_or(0))? }))
    }

    /// Returns the keys of the vectors nearest to a question's with their cosines, nearest first.
    pub(super) fn find_nearest(&mut self, direction: &Direction, scope: &Scope) -> Result<Vec<(i64, f32)>, IndexError> {
        let stamp = self.read_state("vectors")?.unwrap_or(0);
        let is_fresh = |codes: &Codes| codes.model == direction.model && codes.stamp == stamp;
        if !self.codes.as_ref().is_some_and(is_fresh) {
            self.codes = Some(self.read_codes(direction, stamp)?);
        }
        let within = if scope.is_open() { None } else { Some(self.list_keys(scope)?) };
        let Some(codes) = &self.codes else { return Ok(Vec::new()) };
        let mut found = Vec::with_capacity(MAX_BY_BYTES);
        let mut statement = self.conn.prepare_cached(
            "SELECT key, code FROM (SELECT value AS sought FROM json_each(?2)) CROSS JOIN codes
             ON model = ?1 AND key = sought",
        )?;
        // Reads in storage order, since each row is then close to the one before.
        let mut sought = codes.find_nearest(direction, within.as_ref());
        sought.sort_unstable();
        let mut rows = statement.query((direction.model, sql_list(&sought)))?;
        while let Some(row) = rows.next()? {
            found.push((row.get(0)?, direction.cosine(row.get_ref(1)?.as_blob().unwrap_or_default())));
        }
        found.sort_by(|(a, one): &(i64, f32), (b, other)| other.total_cmp(one).then(a.cmp(b)));
        Ok(found)
    }

    /// Returns the keys of the searchable chunks, for a restricted scope.
    fn list_keys(&self, scope: &Scope) -> Result<KeySet, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT key, id FROM chunks")?;
        let mut rows = statement.query([])?;
        let mut keys = KeySet::default();
        while let Some(row) = rows.next()? {
            if scope.is_allowed(row.get(1)?) {
                keys.insert(row.get(0)?);
            }
        }
        Ok(keys)
    }

    /// Estimates the cosines of a question with some keys' vectors, from the bits read last.
    pub(super) fn estimate_cosines(&self, direction: &Direction, keys: &KeySet) -> Cosines {
        let Some(codes) = &self.codes else { return Cosines::default() };
        let parts = compute_byte_sums(&direction.values);
        let all: f32 = direction.values.iter().sum();
        // The cosine between a normally distributed vector and its signs, as a unit vector.
        let scale = SIGNS_COSINE * (direction.values.len() as f32).sqrt();
        let mut found = Cosines::default();
        // Keys are hashes, so their first bits rule out most others.
        let first_bits = |key: i64| usize::try_from(key.cast_unsigned() >> (64 - FIRST_BITS)).unwrap_or(0);
        let mut is_sought = vec![false; 1 << FIRST_BITS];
        for key in keys {
            is_sought.get_mut(first_bits(*key)).into_iter().for_each(|is_sought| *is_sought = true);
        }
        for block in &codes.blocks {
            for (at, key) in block.keys.iter().enumerate() {
                if is_sought.get(first_bits(*key)) == Some(&true) && keys.contains(key) {
                    found.insert(*key, (2.0 * block.sum_positive(at, &parts) - all) / scale);
                }
            }
        }
        found
    }

    fn read_codes(&self, direction: &Direction, stamp: i64) -> Result<Codes, IndexError> {
        let words = direction.values.len().div_ceil(64);
        let mut codes = Codes { model: direction.model, stamp, words, blocks: Vec::new() };
        let mut statement =
            self.conn.prepare_cached("SELECT keys, bits FROM blocks WHERE model = ?1 ORDER BY block")?;
        let mut rows = statement.query([direction.model])?;
        while let Some(row) = rows.next()? {
            let keys = iter_words(row.get_ref(0)?.as_blob().unwrap_or_default());
            let bits: Vec<u64> = iter_words(row.get_ref(1)?.as_blob().unwrap_or_default()).collect();
            let column = |word| bits.iter().skip(word).step_by(words.max(1)).copied().collect();
            codes
                .blocks
                .push(Block { keys: keys.map(u64::cast_signed).collect(), columns: (0..words).map(column).collect() });
        }
        Ok(codes)
    }
}

fn iter_words(blob: &[u8]) -> impl Iterator<Item = u64> {
    blob.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

impl Codes {
    /// Returns the probably nearest keys: first those with the fewest differing bits, among them those that match the question's largest
    /// values.
    fn find_nearest(&self, direction: &Direction, within: Option<&KeySet>) -> Vec<i64> {
        let bits = encode_bits(&direction.values);
        let wanted: Vec<u64> = iter_words(&bits).collect();
        let mut counts = vec![0_usize; self.words * 64 + 1];
        let mut distances = vec![0_u16; BLOCK * self.blocks.len()];
        for (block, distances) in self.blocks.iter().zip(distances.chunks_mut(BLOCK)) {
            block.add_distances(&wanted, within, distances);
            for (distance, _) in distances.iter().zip(&block.keys) {
                // [`OUT_OF_REACH`] isn't counted.
                if let Some(count) = counts.get_mut(usize::from(*distance)) {
                    *count += 1;
                }
            }
        }
        let mut left = MAX_BY_BITS;
        let cutoff = counts.iter().position(|count| {
            let is_enough = *count >= left;
            left = left.saturating_sub(*count);
            is_enough
        });
        let cutoff = u16::try_from(cutoff.unwrap_or(counts.len() - 1)).unwrap_or(OUT_OF_REACH - 1);
        let parts = compute_byte_sums(&direction.values);
        let mut near: Vec<(f32, i64)> = Vec::with_capacity(2 * MAX_BY_BITS);
        for (block, distances) in self.blocks.iter().zip(distances.chunks(BLOCK)) {
            // Most vectors are far, so skip sixteen at once.
            for (first, distances) in distances.chunks(16).enumerate() {
                if distances.iter().fold(u16::MAX, |least, distance| least.min(*distance)) > cutoff {
                    continue;
                }
                for (at, _) in distances.iter().enumerate().filter(|(_, distance)| **distance <= cutoff) {
                    let at = 16 * first + at;
                    near.extend(block.keys.get(at).map(|key| (block.sum_positive(at, &parts), *key)));
                }
            }
        }
        let order = |one: &(f32, i64), other: &(f32, i64)| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1));
        if near.len() > MAX_BY_BYTES {
            near.select_nth_unstable_by(MAX_BY_BYTES, order);
            near.truncate(MAX_BY_BYTES);
        }
        near.into_iter().map(|(_, key)| key).collect()
    }
}

impl Block {
    /// Adds the number of bits in which each vector differs from `wanted` to zeroed distances. Excluded vectors get [`OUT_OF_REACH`].
    fn add_distances(&self, wanted: &[u64], within: Option<&KeySet>, distances: &mut [u16]) {
        for (columns, wanted) in self.columns.chunks(3).zip(wanted.chunks(3)) {
            if let ([a, b, c], [wanted_a, wanted_b, wanted_c]) = (columns, wanted) {
                // Adds three words bitwise before counting: two counts instead of three.
                for (((distance, a), b), c) in distances.iter_mut().zip(a).zip(b).zip(c) {
                    let (a, b, c) = (a ^ wanted_a, b ^ wanted_b, c ^ wanted_c);
                    let differ = a ^ b;
                    let (ones, twos) = (differ ^ c, (a & b) | (differ & c));
                    *distance += (ones.count_ones() + 2 * twos.count_ones()) as u16;
                }
                continue;
            }
            for (column, wanted) in columns.iter().zip(wanted) {
                for (distance, bits) in distances.iter_mut().zip(column) {
                    *distance += (bits ^ wanted).count_ones() as u16;
                }
            }
        }
        if let Some(within) = within {
            let others = distances.iter_mut().zip(&self.keys).filter(|(_, key)| !within.contains(key));
            others.for_each(|(distance, _)| *distance = OUT_OF_REACH);
        }
    }

    /// Sums the question's values where a vector is positive. `parts` holds the sums for each possible byte of the vector's bits.
    fn sum_positive(&self, at: usize, parts: &[ByteSums]) -> f32 {
        let mut sums = [0.0; 8];
        for (column, parts) in self.columns.iter().zip(parts.chunks(8)) {
            let bytes = column.get(at).copied().unwrap_or(0).to_le_bytes();
            for ((sum, byte), parts) in sums.iter_mut().zip(bytes).zip(parts) {
                *sum += parts.get(usize::from(byte)).copied().unwrap_or(0.0);
            }
        }
        sums.into_iter().sum()
    }
}

/// For eight dimensions and each byte of their bits, the sum of the values with a set bit.
type ByteSums = [f32; 256];

/// Computes the sums for every eight dimensions.
fn compute_byte_sums(values: &[f32]) -> Vec<ByteSums> {
    let sums = |values: &[f32]| {
        let mut sums = [0.0; 256];
        // Bits beyond the last dimension count as zero.
        for (bit, value) in values.iter().chain(std::iter::repeat(&0.0)).take(8).enumerate() {
            // The known sums of the lower bits, and the same sums with this bit.
            let (below, with) = sums.split_at_mut(1 << bit);
            with.iter_mut().zip(below).for_each(|(with, below)| *with = *below + value);
        }
        sums
    };
    values.chunks(8).map(sums).collect()
}

pub(super) fn put_block(
    conn: &rusqlite::Connection,
    model: i64,
    block: i64,
    keys: &[u8],
    bits: &[u8],
) -> Result<(), IndexError> {
    conn.prepare_cached(
        "INSERT INTO blocks VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (model, block) DO UPDATE SET keys = excluded.keys, bits = excluded.bits",
    )?
    .execute((model, block, keys, bits))?;
    Ok(())
}

/// Scales a vector to length 1.
fn scale_to_unit(vector: &[f32], dims: usize) -> Result<Vec<f32>, IndexError> {
    if vector.len() != dims {
        return Err(IndexError::Vector(format!("it has {} dimensions, and {dims} were expected", vector.len())));
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return Err(IndexError::Vector("it has a value that isn't a number, or only zeros".to_owned()));
    }
    Ok(vector.iter().map(|value| value / length).collect())
}

/// Encodes a vector as a scale followed by eight bits per dimension.
fn encode_bytes(unit: &[f32]) -> Vec<u8> {
    let most = unit.iter().fold(0.0_f32, |most, value| most.max(value.abs())).max(f32::MIN_POSITIVE);
    let scale = most / 127.0;
    // Rounds without loading the maths library.
    let codes = unit.iter().map(|value| ((value / scale + 128.5) as i16 - 128) as i8).map(i8::cast_unsigned);
    scale.to_le_bytes().into_iter().chain(codes).collect()
}

/// Encodes the sign of each dimension as one bit, in whole 64-bit words.
fn encode_bits(unit: &[f32]) -> Vec<u8> {
    let word = |values: &[f32]| {
        values.iter().enumerate().filter(|(_, value)| **value > 0.0).fold(0_u64, |word, (at, _)| word | 1 << at)
    };
    unit.chunks(64).flat_map(|values| word(values).to_le_bytes()).collect()
}
