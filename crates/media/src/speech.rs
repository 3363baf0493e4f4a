//! Types shared by the transcriber and its callers. They are kept apart from the engine: a program that links the engine's crate contains
//! whisper.cpp, and loads the C++ library at each start.

use serde::{Deserialize, Serialize};

/// `true` if this build can transcribe speech.
pub const IS_BUILT: bool = cfg!(feature = "voice");

/// The error of a build without speech.
pub const NOT_BUILT: &str = "this build has no speech: it was built without the feature `voice`";

/// The reason a recording wasn't transcribed, by what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unheard {
    /// A later attempt may succeed.
    #[error("{0}")]
    Later(String),
    /// The recording itself is at fault.
    #[error("{0}")]
    Never(String),
    /// A person has to repair the set-up; the recording is fine.
    #[error("{0}")]
    SetUp(String),
}
