//! Sentence embeddings of texts, kept in a file between runs, since making them takes minutes.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// The known vectors, by text.
pub(crate) struct Vectors {
    file: PathBuf,
    dims: usize,
    known: HashMap<u64, Vec<f32>>,
}

impl Vectors {
    /// Reads the vectors of earlier runs.
    pub(crate) fn open(file: &Path, dims: usize) -> Self {
        let bytes = std::fs::read(file).unwrap_or_default();
        let known = bytes
            .chunks_exact(8 + 4 * dims)
            .map(|record| {
                let (key, values) = record.split_first_chunk::<8>().unwrap();
                let values =
                    values.chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap())).collect();
                (u64::from_le_bytes(*key), values)
            })
            .collect();
        Self { file: file.to_owned(), dims, known }
    }

    pub(crate) fn of(&self, text: &str) -> &[f32] {
        self.known.get(&key(text)).unwrap_or_else(|| panic!("no vector of {text:?}"))
    }

    /// The texts that have no vector yet.
    pub(crate) fn missing(&self, texts: &[String]) -> Vec<String> {
        let mut missing: Vec<String> =
            texts.iter().filter(|text| !self.known.contains_key(&key(text))).cloned().collect();
        missing.sort_by_key(|text| (text.len(), text.clone()));
        missing.dedup();
        missing
    }

    /// Adds vectors, in memory and in the file.
    pub(crate) fn add(&mut self, texts: &[String], vectors: Vec<Vec<f32>>) {
        use std::io::Write as _;
        let mut record = Vec::new();
        for (text, vector) in texts.iter().zip(vectors) {
            assert_eq!(vector.len(), self.dims);
            record.extend(key(text).to_le_bytes());
            record.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
            self.known.insert(key(text), vector);
        }
        let mut file = std::fs::File::options().create(true).append(true).open(&self.file).unwrap();
        file.write_all(&record).unwrap();
    }
}

/// FNV-1a.
fn key(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
