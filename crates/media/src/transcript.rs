//! The result of transcribing a recording.

use serde::{Deserialize, Serialize};

/// A machine transcript of a recording, stored as JSON beside the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transcript {
    /// The words; empty if nobody spoke.
    pub text: String,
    /// Their language as an ISO 639-1 code, such as `en`; `None` without words.
    pub language: Option<String>,
    /// The model's confidence, 0 to 1: the geometric mean of the tokens' probabilities. 0 without words.
    pub confidence: f64,
    /// The recording's length in seconds.
    pub seconds: f64,
    /// The model's probability that nobody spoke, 0 to 1: the lowest of all parts. If the recording is only silence or steady noise, the
    /// model isn't asked and this is 1.
    pub no_speech: f64,
    /// Text that the model wrote over parts without speech; left out of `text`.
    pub dropped: Vec<String>,
    /// The number of repeats left out because the model seemed caught in a loop. They are in `dropped`.
    #[serde(default)]
    pub repeats_cut: usize,
    /// `true` if the file is damaged or cut off: `text` covers the readable part.
    pub is_damaged: bool,
}

impl Transcript {
    /// Returns `true` if nobody spoke.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
