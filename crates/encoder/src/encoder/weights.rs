//! A model's weights in a `safetensors` file: a length, a JSON header and numbers. Tensors are read on demand, so that only the vocabulary
//! rows of the present text are ever in memory.

use std::{
    collections::BTreeMap,
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use ndarray::{Array1, Array2};
use serde::Deserialize;

use crate::EncoderError;

/// The largest header read, in bytes.
const MAX_HEADER_BYTES: u64 = 8 << 20;
/// The size of a 32-bit number in bytes.
const FLOAT_BYTES: u64 = 4;
/// The bytes read at once: a whole matrix is never in memory twice.
const PIECE_BYTES: usize = 1 << 18;

#[derive(Debug, Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

/// An open file of weights.
#[derive(Debug)]
pub(super) struct Weights {
    path: PathBuf,
    file: File,
    tensors: BTreeMap<String, Tensor>,
    /// The offset of the first number.
    begin: u64,
}

impl Weights {
    pub(super) fn open(path: &Path) -> Result<Self, EncoderError> {
        let unreadable = |source| EncoderError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut size = [0; 8];
        file.read_exact_at(&mut size, 0).map_err(unreadable)?;
        let size = u64::from_le_bytes(size);
        let damaged = |why: &str| EncoderError::for_damaged_file(path, why);
        if size > MAX_HEADER_BYTES || size.saturating_add(8) > length {
            return Err(damaged("it doesn't begin as a safetensors file"));
        }
        let mut header = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_exact_at(&mut header, 8).map_err(unreadable)?;
        let mut header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&header).map_err(|_| damaged("its header isn't JSON"))?;
        header.remove("__metadata__");
        let tensor = |(name, value): (String, serde_json::Value)| {
            // A model saved with a task's head prefixes the names of its encoder's tensors.
            let name = name.strip_prefix("bert.").map_or(name.clone(), str::to_owned);
            serde_json::from_value(value).map(|tensor: Tensor| (name, tensor))
        };
        let tensors: BTreeMap<String, Tensor> = header
            .into_iter()
            .map(tensor)
            .collect::<Result<_, _>>()
            .map_err(|_| damaged("its header describes no tensors"))?;
        let begin = size + 8;
        if tensors.values().any(|tensor| tensor.data_offsets.iter().any(|at| begin.saturating_add(*at) > length)) {
            return Err(damaged("it ends early"));
        }
        Ok(Self { path: path.to_owned(), file, tensors, begin })
    }

    /// Reads a matrix of `rows` by `columns`.
    pub(super) fn read_matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, EncoderError> {
        let at = self.find_tensor(name, &[rows, columns])?;
        let numbers = self.read_numbers(at, rows * columns)?;
        Array2::from_shape_vec((rows, columns), numbers).map_err(|_| EncoderError::for_damaged_file(&self.path, name))
    }

    /// Reads a row of numbers.
    pub(super) fn read_row(&self, name: &str, length: usize) -> Result<Array1<f32>, EncoderError> {
        let at = self.find_tensor(name, &[length])?;
        Ok(Array1::from_vec(self.read_numbers(at, length)?))
    }

    /// Returns the offset of a matrix whose rows are read one by one.
    pub(super) fn find_rows(&self, name: &str, rows: usize, columns: usize) -> Result<u64, EncoderError> {
        self.find_tensor(name, &[rows, columns])
    }

    /// Reads `count` numbers from an offset in the file.
    pub(super) fn read_numbers(&self, mut at: u64, count: usize) -> Result<Vec<f32>, EncoderError> {
        let mut numbers = Vec::with_capacity(count);
        let mut piece = vec![0; PIECE_BYTES.min(count * FLOAT_BYTES as usize)];
        while numbers.len() < count {
            let wanted = ((count - numbers.len()) * FLOAT_BYTES as usize).min(piece.len());
            let Some(bytes) = piece.get_mut(..wanted) else { break };
            self.file
                .read_exact_at(bytes, at)
                .map_err(|source| EncoderError::Unreadable { path: self.path.clone(), source })?;
            numbers.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            at += wanted as u64;
        }
        Ok(numbers)
    }

    fn find_tensor(&self, name: &str, shape: &[usize]) -> Result<u64, EncoderError> {
        let damaged = |why: String| EncoderError::for_damaged_file(&self.path, why);
        let tensor = self.tensors.get(name).ok_or_else(|| damaged(format!("it has no {name}")))?;
        if tensor.dtype != "F32" {
            return Err(damaged(format!("{name} is of {}, and only F32 is read", tensor.dtype)));
        }
        let [begin, end] = tensor.data_offsets;
        let bytes = shape.iter().map(|side| *side as u64).product::<u64>() * FLOAT_BYTES;
        if tensor.shape != shape || end.checked_sub(begin) != Some(bytes) {
            return Err(damaged(format!("{name} has the shape {:?}, and config.json says {shape:?}", tensor.shape)));
        }
        Ok(self.begin + begin)
    }
}
