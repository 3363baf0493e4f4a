//! Why a recording wasn't written down, by what can be done about it.

use std::path::PathBuf;

use reveille_media::speech::NOT_BUILT;

use super::{MAX_SECONDS, Unheard};

/// Each variant is another thing to do.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    /// A person has to build it anew.
    #[error("{NOT_BUILT}")]
    NotBuilt,
    /// A person has to correct the setting, or get the file (`scripts/fetch-model`).
    #[error("the speech model {} can't be read ({why}); scripts/fetch-model gets one, WHISPER_MODEL names it", path.display())]
    ModelMissing {
        /// As `WHISPER_MODEL` names it.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// A person has to get the file anew.
    #[error("{} isn't a whole speech model ({why}); scripts/fetch-model gets one anew", path.display())]
    ModelDamaged {
        /// As `WHISPER_MODEL` names it.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file holds no sound that can be read, and never will.
    #[error("there is no sound in it that can be read: {0}")]
    Undecodable(String),
    /// It is over the bound, and stays so.
    #[error("it is too long: {0}")]
    TooLong(String),
    /// Something failed that may go better another time.
    #[error("it could not be written down: {0}")]
    Failed(String),
}

impl VoiceError {
    /// Whether the same file can succeed later without anybody doing anything.
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Whether a person has to mend the set-up; the recording itself isn't at fault.
    pub fn is_of_the_setup(&self) -> bool {
        matches!(self, Self::NotBuilt | Self::ModelMissing { .. } | Self::ModelDamaged { .. })
    }

    #[cfg_attr(not(feature = "voice"), expect(dead_code, reason = "only decoding finds it"))]
    pub(super) fn longer_than_the_bound() -> Self {
        Self::TooLong(format!("recordings of up to {} minutes are written down", MAX_SECONDS / 60))
    }
}

impl From<VoiceError> for Unheard {
    fn from(error: VoiceError) -> Self {
        let why = error.to_string();
        if error.is_of_the_setup() {
            Self::SetUp(why)
        } else if error.is_worth_a_retry() {
            Self::Later(why)
        } else {
            Self::Never(why)
        }
    }
}
