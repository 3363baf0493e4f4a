//! The encoder's forward pass: BERT over the tokens of several texts, as rows of one matrix without padding. Only the attention separates
//! the texts.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, Slice, linalg::general_mat_mul};

use super::{math, settings::EncoderSettings, weights::Weights};
use crate::EncoderError;

/// A linear map: rows times a matrix, plus a row.
#[derive(Debug)]
struct Linear {
    /// One row per output.
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    fn load(weights: &Weights, name: &str, outputs: usize, inputs: usize) -> Result<Self, EncoderError> {
        Ok(Self {
            weight: weights.read_matrix(&format!("{name}.weight"), outputs, inputs)?,
            bias: weights.read_row(&format!("{name}.bias"), outputs)?,
        })
    }

    /// Joins several maps side by side: one large product is faster than several small ones.
    fn join(parts: &[Self]) -> Result<Self, EncoderError> {
        let weights: Vec<_> = parts.iter().map(|part| part.weight.view()).collect();
        let biases: Vec<_> = parts.iter().map(|part| part.bias.view()).collect();
        let unlike = |_| EncoderError::Unfit("the parts of its attention don't match".to_owned());
        Ok(Self {
            weight: ndarray::concatenate(Axis(0), &weights).map_err(unlike)?,
            bias: ndarray::concatenate(Axis(0), &biases).map_err(unlike)?,
        })
    }

    fn apply(&self, rows: &Array2<f32>) -> Array2<f32> {
        let shape = (rows.nrows(), self.weight.nrows());
        let mut out = Array2::zeros(shape);
        general_mat_mul(1.0, rows, &self.weight.t(), 0.0, &mut out);
        for mut row in out.rows_mut() {
            row += &self.bias;
        }
        out
    }
}

/// A layer norm: each row scaled to mean 0 and variance 1, then stretched and shifted.
#[derive(Debug)]
struct Norm {
    scale: Array1<f32>,
    shift: Array1<f32>,
    epsilon: f32,
}

impl Norm {
    fn load(weights: &Weights, name: &str, settings: &EncoderSettings) -> Result<Self, EncoderError> {
        Ok(Self {
            scale: weights.read_row(&format!("{name}.weight"), settings.width)?,
            shift: weights.read_row(&format!("{name}.bias"), settings.width)?,
            epsilon: settings.epsilon,
        })
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            if let (Some(row), Some(scale), Some(shift)) =
                (row.as_slice_mut(), self.scale.as_slice(), self.shift.as_slice())
            {
                math::normalise_row(row, scale, shift, self.epsilon);
            }
        }
    }
}

#[derive(Debug)]
struct Layer {
    /// Queries, keys and values side by side.
    attention: Linear,
    /// Mixes the heads' results.
    attention_output: Linear,
    after_attention: Norm,
    widen: Linear,
    narrow: Linear,
    after_narrow: Norm,
}

impl Layer {
    fn load(weights: &Weights, number: usize, settings: &EncoderSettings) -> Result<Self, EncoderError> {
        let (width, inner) = (settings.width, settings.inner_width);
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let linear = |part: &str, outputs, inputs| Linear::load(weights, &name(part), outputs, inputs);
        let parts = ["attention.self.query", "attention.self.key", "attention.self.value"]
            .map(|part| linear(part, width, width));
        Ok(Self {
            attention: Linear::join(&parts.into_iter().collect::<Result<Vec<_>, _>>()?)?,
            attention_output: linear("attention.output.dense", width, width)?,
            after_attention: Norm::load(weights, &name("attention.output.LayerNorm"), settings)?,
            widen: linear("intermediate.dense", inner, width)?,
            narrow: linear("output.dense", width, inner)?,
            after_narrow: Norm::load(weights, &name("output.LayerNorm"), settings)?,
        })
    }

    fn apply(&self, rows: &mut Array2<f32>, lengths: &[usize], heads: usize) {
        let mixed = self.attention_output.apply(&compute_attention(&self.attention.apply(rows), lengths, heads));
        *rows += &mixed;
        self.after_attention.apply(rows);
        let mut inner = self.widen.apply(rows);
        if let Some(inner) = inner.as_slice_mut() {
            math::apply_gelu(inner);
        }
        *rows += &self.narrow.apply(&inner);
        self.after_narrow.apply(rows);
    }
}

/// Computes the attention of each token to the others of its text, head by head. `projected` has queries, keys and values side by side.
fn compute_attention(projected: &Array2<f32>, lengths: &[usize], heads: usize) -> Array2<f32> {
    let width = projected.ncols() / 3;
    let mut out = Array2::zeros((projected.nrows(), width));
    let mut begin = 0;
    for length in lengths {
        let of_text = Slice::from(begin..begin + length);
        compute_text_attention(&projected.slice_axis(Axis(0), of_text), out.slice_axis_mut(Axis(0), of_text), heads);
        begin += length;
    }
    out
}

fn compute_text_attention(projected: &ArrayView2<'_, f32>, mut out: ArrayViewMut2<'_, f32>, heads: usize) {
    let width = out.ncols();
    let head_width = width / heads;
    let scale = 1.0 / (head_width as f32).sqrt();
    let columns = |at: usize| Slice::from(at..at + head_width);
    let mut scores = Array2::zeros((projected.nrows(), projected.nrows()));
    for at in (0..width).step_by(head_width) {
        let part = |nth: usize| projected.slice_axis(Axis(1), columns(nth * width + at));
        general_mat_mul(scale, &part(0), &part(1).t(), 0.0, &mut scores);
        for mut row in scores.rows_mut() {
            if let Some(row) = row.as_slice_mut() {
                math::apply_softmax(row);
            }
        }
        general_mat_mul(1.0, &scores, &part(2), 0.0, &mut out.slice_axis_mut(Axis(1), columns(at)));
    }
}

/// The whole model except the vocabulary's rows, which stay in the file.
#[derive(Debug)]
pub(super) struct Layers {
    weights: Weights,
    /// The offset of the vocabulary's rows in the file.
    words_at: u64,
    positions: Array2<f32>,
    /// The row for the first kind of sentence; the second isn't used.
    kind: Array1<f32>,
    after_words: Norm,
    layers: Vec<Layer>,
    heads: usize,
    width: usize,
}

impl Layers {
    pub(super) fn load(weights: Weights, settings: &EncoderSettings) -> Result<Self, EncoderError> {
        let EncoderSettings { width, positions, vocabulary_size, kinds, .. } = *settings;
        Ok(Self {
            words_at: weights.find_rows("embeddings.word_embeddings.weight", vocabulary_size, width)?,
            positions: weights.read_matrix("embeddings.position_embeddings.weight", positions, width)?,
            kind: weights.read_matrix("embeddings.token_type_embeddings.weight", kinds, width)?.row(0).to_owned(),
            after_words: Norm::load(&weights, "embeddings.LayerNorm", settings)?,
            layers: (0..settings.layers).map(|n| Layer::load(&weights, n, settings)).collect::<Result<_, _>>()?,
            heads: settings.heads,
            width,
            weights,
        })
    }

    /// Returns one row per token, text after text.
    pub(super) fn apply(&self, texts: &[&[u32]]) -> Result<Array2<f32>, EncoderError> {
        let mut rows = self.embed_words(texts)?;
        self.after_words.apply(&mut rows);
        let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        for layer in &self.layers {
            layer.apply(&mut rows, &lengths, self.heads);
        }
        Ok(rows)
    }

    fn embed_words(&self, texts: &[&[u32]]) -> Result<Array2<f32>, EncoderError> {
        let count = texts.iter().map(|text| text.len()).sum();
        let mut rows = Array2::zeros((count, self.width));
        let tokens = texts.iter().flat_map(|text| text.iter().zip(self.positions.rows()));
        for (mut row, (token, position)) in rows.rows_mut().into_iter().zip(tokens) {
            let at = self.words_at + u64::from(*token) * self.width as u64 * 4;
            row += &Array1::from_vec(self.weights.read_numbers(at, self.width)?);
            row += &position;
            row += &self.kind;
        }
        Ok(rows)
    }
}
