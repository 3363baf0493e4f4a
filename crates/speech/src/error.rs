//! The reasons a recording wasn't transcribed, by the possible remedy.

use std::path::PathBuf;

use reveille_media::speech::NOT_BUILT;

use super::{MAX_SECONDS, Unheard};

/// An error of transcription; each variant has its own remedy.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    /// This build has no speech: a person has to build it with the feature `voice`.
    #[error("{NOT_BUILT}")]
    NotBuilt,
    /// A person has to correct the setting, or get the file (`scripts/fetch-model`).
    #[error("the speech model {} can't be read ({why}); scripts/fetch-model gets one, WHISPER_MODEL names it", path.display())]
    ModelMissing {
        /// The path in `WHISPER_MODEL`.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// A person has to download the file again.
    #[error("{} isn't a whole speech model ({why}); scripts/fetch-model downloads it again", path.display())]
    ModelDamaged {
        /// The path in `WHISPER_MODEL`.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The file holds no readable sound, and never will.
    #[error("there is no sound in it that can be read: {0}")]
    Undecodable(String),
    /// The recording exceeds a limit, so a retry is useless.
    #[error("it is too long: {0}")]
    TooLong(String),
    /// A failure that may not recur.
    #[error("it could not be transcribed: {0}")]
    Failed(String),
}

impl VoiceError {
    /// Returns `true` if the same file can succeed later without any change.
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns `true` if a person has to repair the set-up; the recording itself is fine.
    pub fn is_setup_fault(&self) -> bool {
        matches!(self, Self::NotBuilt | Self::ModelMissing { .. } | Self::ModelDamaged { .. })
    }

    #[cfg_attr(not(feature = "voice"), expect(dead_code, reason = "only decoding finds it"))]
    pub(super) fn over_time_limit() -> Self {
        Self::TooLong(format!("recordings of up to {} minutes are transcribed", MAX_SECONDS / 60))
    }
}

impl From<VoiceError> for Unheard {
    fn from(error: VoiceError) -> Self {
        let why = error.to_string();
        if error.is_setup_fault() {
            Self::SetUp(why)
        } else if error.is_worth_a_retry() {
            Self::Later(why)
        } else {
            Self::Never(why)
        }
    }
}
