//! Why a recording wasn't understood, as it is said between the program that listens and who asks it.

use serde::{Deserialize, Serialize};

use super::VoiceError;

/// Why a recording wasn't understood, by what should be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unheard {
    /// Try again.
    #[error("{0}")]
    Later(String),
    /// The recording itself is at fault.
    #[error("{0}")]
    Never(String),
    /// A person has to mend the set-up; the recording isn't at fault.
    #[error("{0}")]
    SetUp(String),
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
