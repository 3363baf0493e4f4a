//! What stands in for speech in a build without it.

use std::path::Path;

use super::{Transcript, VoiceError};

/// A speech model, which this build can't have.
#[derive(Debug)]
pub enum Transcriber {}

impl Transcriber {
    /// Says that this build has no speech.
    pub fn open(_model: &Path) -> Result<Self, VoiceError> {
        Err(VoiceError::NotBuilt)
    }

    /// Can't be called: there is no value of this type.
    pub fn transcribe(&self, _recording: &Path) -> Result<Transcript, VoiceError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_speech_says_so() {
        let error = Transcriber::open(Path::new("/models/ggml-tiny.en.bin")).unwrap_err();
        assert!(error.is_of_the_setup() && !error.is_worth_a_retry());
        assert!(error.to_string().contains("this build has no speech"), "{error}");
    }
}
