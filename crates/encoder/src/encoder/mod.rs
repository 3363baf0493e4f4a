//! A sentence encoder in this process: it reads a folder as written by the sentence-transformers library (BERT only), and returns vectors.
//!
//! The forward pass is ours (`layers`, `math`), as are the tokens (`tokens`) and the file of weights (`weights`): a general library would
//! mean 70 crates for six layers. The encoder needs as much memory as the layers' weights, and all processors while it works, so callers
//! run it in a short-lived child process.

mod layers;
mod math;
mod settings;
mod tokens;
mod weights;

use std::{
    fs::File,
    io::Read as _,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use ndarray::{Array1, Axis, Slice};

use crate::EncoderError;
use layers::Layers;
use settings::EncoderSettings;
use tokens::WordPieces;
use weights::Weights;

/// The most threads, to leave room for other programs.
const MAX_THREADS: usize = 4;
/// The most tokens in one pass through the layers: more would take memory and save no time.
const TOKENS_AT_ONCE: usize = 512;

/// A sentence encoder in memory.
#[derive(Debug)]
pub struct Encoder {
    words: WordPieces,
    layers: Layers,
    settings: EncoderSettings,
    threads: usize,
}

impl Encoder {
    /// Reads a folder: `config.json`, `model.safetensors`, `vocab.txt` and optional settings.
    ///
    /// # Errors
    /// The file that is missing or damaged, or the reason the model isn't supported.
    pub fn open(folder: &Path) -> Result<Self, EncoderError> {
        let settings = EncoderSettings::load(folder)?;
        let vocabulary = folder.join("vocab.txt");
        let words = WordPieces::open(&vocabulary, settings.spelling)?;
        if words.count_rows() > settings.vocabulary_size {
            return Err(EncoderError::for_damaged_file(&vocabulary, "it has more tokens than the model"));
        }
        let layers = Layers::load(Weights::open(&folder.join("model.safetensors"))?, &settings)?;
        let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS));
        Ok(Self { words, layers, settings, threads })
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// Returns the length of a vector.
    pub fn dimensions(&self) -> usize {
        self.settings.width
    }

    /// Returns the text's token numbers, with the markers at both ends.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.words.encode(text, self.settings.most_tokens)
    }

    /// Returns each text's vector, of length 1, in order. Only the beginning of a long text counts.
    ///
    /// # Errors
    /// The weights can't be read any more.
    pub fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EncoderError> {
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| self.tokenize(text)).collect();
        let groups = group_by_length(&tokens);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); texts.len()]));
        let work = || -> Result<(), EncoderError> {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                let of_group: Vec<&[u32]> = group.iter().filter_map(|at| tokens.get(*at)).map(Vec::as_slice).collect();
                let vectors = self.encode_group(&of_group)?;
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                for (at, vector) in group.iter().zip(vectors) {
                    if let Some(place) = done.get_mut(*at) {
                        *place = vector;
                    }
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let helpers = self.threads.min(groups.len()).saturating_sub(1);
            let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
            let all = helpers.into_iter().map(|helper| {
                helper
                    .join()
                    .unwrap_or_else(|_| Err(EncoderError::Unfit("a thread of its computation panicked".to_owned())))
            });
            std::iter::once(work()).chain(all).collect::<Result<(), _>>()
        })?;
        Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn encode_group(&self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, EncoderError> {
        let rows = self.layers.apply(texts)?;
        let mut begin = 0;
        let pool = |text: &&[u32]| {
            let end = begin + text.len();
            let of_text = rows.slice_axis(Axis(0), Slice::from(begin..end));
            begin = end;
            let mut vector = if self.settings.uses_first_marker {
                of_text.row(0).to_owned()
            } else {
                of_text.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(rows.ncols()))
            };
            let length = vector.dot(&vector).sqrt();
            vector /= length.max(f32::MIN_POSITIVE);
            vector.to_vec()
        };
        Ok(texts.iter().map(pool).collect())
    }
}

/// Groups the texts that go through the layers together: of similar length, so that all threads end together.
fn group_by_length(tokens: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let mut order: Vec<(usize, usize)> = tokens.iter().map(Vec::len).zip(0..).collect();
    order.sort_unstable_by(|left, right| right.cmp(left));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (length, at) in order {
        match groups.last_mut().filter(|_| length <= room) {
            Some(group) => group.push(at),
            None => {
                groups.push(vec![at]);
                room = TOKENS_AT_ONCE.max(length);
            }
        }
        room -= length;
    }
    groups
}

/// Reads the text of a small file.
fn read_text(path: &Path, max_bytes: u64) -> Result<String, EncoderError> {
    let unreadable = |source| EncoderError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(max_bytes + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > max_bytes {
        return Err(EncoderError::for_damaged_file(path, format!("it is larger than {max_bytes} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
