//! The replacement of speech in a build without it.

use std::path::Path;

use super::{Transcript, VoiceError};

/// A speech model that can't exist in this build.
#[derive(Debug)]
pub enum Transcriber {}

impl Transcriber {
    /// Returns the error of a build without speech.
    pub fn open(_model: &Path) -> Result<Self, VoiceError> {
        Err(VoiceError::NotBuilt)
    }

    /// Unreachable, since this type has no value.
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
        assert!(error.is_setup_fault() && !error.is_worth_a_retry());
        assert!(error.to_string().contains("this build has no speech"), "{error}");
    }
}
