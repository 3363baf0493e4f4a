//! What was heard.

use serde::{Deserialize, Serialize};

/// A recording as text, made by a machine. It is kept as JSON beside the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The words; empty when nobody spoke.
    pub text: String,
    /// Their language as an ISO 639-1 code, such as `en`; none without words.
    pub language: Option<String>,
    /// How sure the model was of its words, 0 to 1: the geometric mean of the tokens' probabilities. 0 without words.
    pub confidence: f64,
    /// How long the recording is.
    pub seconds: f64,
    /// The model's probability that nobody spoke, 0 to 1: the lowest of all parts. 1 if it wasn't asked, since the recording
    /// is silent or steady noise.
    pub no_speech: f64,
    /// What the model wrote over parts where nobody spoke, in its words. It isn't in `text`.
    pub dropped: Vec<String>,
    /// How many repeats of the same words were left out, since the model seemed to be caught in a loop. They are in `dropped`.
    #[serde(default)]
    pub repeats_cut: usize,
    /// Whether the file is damaged or cut off: `text` is of what could be read.
    pub is_damaged: bool,
}

impl Transcript {
    /// Whether nobody spoke.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
