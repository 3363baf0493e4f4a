//! The settings in the encoder's folder, in the files of the sentence-transformers library.

use std::path::Path;

use serde::{Deserialize, de::DeserializeOwned};

use super::tokens::Spelling;
use crate::EncoderError;

/// The largest settings file read, in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// The largest dimension accepted, as a bound against a damaged file.
const MAX_DIMENSION: usize = 1 << 18;

/// `config.json`.
#[derive(Debug, Deserialize)]
struct ModelFile {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    vocab_size: usize,
    layer_norm_eps: f32,
    #[serde(default = "default_position_type")]
    position_embedding_type: String,
}

fn default_position_type() -> String {
    "absolute".to_owned()
}

/// `tokenizer_config.json`.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct TokenizerFile {
    do_lower_case: bool,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: bool,
}

impl Default for TokenizerFile {
    fn default() -> Self {
        Self { do_lower_case: true, strip_accents: None, tokenize_chinese_chars: true }
    }
}

/// `sentence_bert_config.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LengthFile {
    max_seq_length: Option<usize>,
}

/// `1_Pooling/config.json`.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct PoolingFile {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
}

impl Default for PoolingFile {
    fn default() -> Self {
        Self { pooling_mode_cls_token: false, pooling_mode_mean_tokens: true }
    }
}

/// A model's dimensions and options.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncoderSettings {
    /// The numbers per token, and per vector.
    pub(super) width: usize,
    /// The numbers per token in the middle of a layer.
    pub(super) inner_width: usize,
    pub(super) heads: usize,
    pub(super) layers: usize,
    pub(super) positions: usize,
    /// The number of tokens in the vocabulary.
    pub(super) vocabulary_size: usize,
    /// The number of sentence kinds: BERT tells a first and a second sentence apart.
    pub(super) kinds: usize,
    pub(super) epsilon: f32,
    /// The most tokens read from a text.
    pub(super) most_tokens: usize,
    /// `true` to represent a text by the first marker's row instead of the mean of all rows.
    pub(super) uses_first_marker: bool,
    pub(super) spelling: Spelling,
}

impl EncoderSettings {
    /// Reads a folder's files, of which only `config.json` is required.
    pub(super) fn load(folder: &Path) -> Result<Self, EncoderError> {
        let model: ModelFile = read_json(&folder.join("config.json"))?;
        let tokenizer: TokenizerFile = read_json_or_default(&folder.join("tokenizer_config.json"))?;
        let length: LengthFile = read_json_or_default(&folder.join("sentence_bert_config.json"))?;
        let pooling: PoolingFile = read_json_or_default(&folder.join("1_Pooling/config.json"))?;
        let unfit = |why: String| Err(EncoderError::Unfit(why));
        if model.model_type != "bert" || model.position_embedding_type != "absolute" {
            return unfit(format!("it is of the kind {}, and only bert is supported", model.model_type));
        }
        if model.hidden_act != "gelu" {
            return unfit(format!("its activation is {}, and only gelu is supported", model.hidden_act));
        }
        if pooling.pooling_mode_cls_token == pooling.pooling_mode_mean_tokens {
            return unfit(
                "it combines tokens into a vector in an unsupported way: only mean and cls are supported".to_owned(),
            );
        }
        let sides = [model.hidden_size, model.intermediate_size, model.num_attention_heads, model.num_hidden_layers];
        let more = [model.max_position_embeddings, model.type_vocab_size, model.vocab_size];
        let are_sane = sides.iter().chain(&more).all(|side| (1..=MAX_DIMENSION).contains(side));
        if !are_sane || !model.hidden_size.is_multiple_of(model.num_attention_heads) {
            return unfit("the dimensions in its config.json can't be right".to_owned());
        }
        let lowercases = tokenizer.do_lower_case;
        Ok(Self {
            width: model.hidden_size,
            inner_width: model.intermediate_size,
            heads: model.num_attention_heads,
            layers: model.num_hidden_layers,
            positions: model.max_position_embeddings,
            vocabulary_size: model.vocab_size,
            kinds: model.type_vocab_size,
            epsilon: model.layer_norm_eps,
            most_tokens: length.max_seq_length.unwrap_or(usize::MAX).min(model.max_position_embeddings).max(2),
            uses_first_marker: pooling.pooling_mode_cls_token,
            spelling: Spelling {
                lowercases,
                strips_accents: tokenizer.strip_accents.unwrap_or(lowercases),
                splits_ideographs: tokenizer.tokenize_chinese_chars,
            },
        })
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, EncoderError> {
    let text = super::read_text(path, MAX_SETTINGS_BYTES)?;
    serde_json::from_str(&text).map_err(|error| EncoderError::for_damaged_file(path, error.to_string()))
}

fn read_json_or_default<T: DeserializeOwned + Default>(path: &Path) -> Result<T, EncoderError> {
    if path.exists() { read_json(path) } else { Ok(T::default()) }
}
