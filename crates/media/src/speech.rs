//! Words between the program that listens to recordings and those that ask it. They lie apart from the engine: whoever names the
//! engine's crate has whisper.cpp in its program, and the C++ library at each start.

use serde::{Deserialize, Serialize};

/// Whether this build can understand speech.
pub const IS_BUILT: bool = cfg!(feature = "voice");

/// The error of a build that can't.
pub const NOT_BUILT: &str = "this build has no speech: it was built without the feature `voice`";

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
