//! Sentence embeddings on this machine, and the protocol between the embedding program and its caller.
//!
//! The encoder is the Cargo feature `embed`. Without it everything compiles, [`IS_BUILT`] is false, and opening an encoder
//! fails with [`EncoderError::NotBuilt`].

#[cfg(feature = "embed")]
mod encoder;
mod error;
#[cfg(not(feature = "embed"))]
mod not_built;
mod text;

use serde::{Deserialize, Serialize};

#[cfg(feature = "embed")]
pub use encoder::Encoder;
pub use error::EncoderError;
#[cfg(not(feature = "embed"))]
pub use not_built::NoEncoder as Encoder;
pub use text::{from_text, to_text};

/// `true` if this build has an encoder.
pub const IS_BUILT: bool = cfg!(feature = "embed");

/// A request to the child process, one line per batch.
#[derive(Debug, Serialize, Deserialize)]
pub struct EmbedderRequest {
    /// The texts.
    pub texts: Vec<String>,
}

/// The child's answer, one line per batch.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbedderAnswer {
    /// One vector for each text, in base64; see [`to_text`].
    pub vectors: Vec<String>,
    /// The reason there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
