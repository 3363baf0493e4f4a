//! Sentence embeddings on this machine, and what is said between the program that makes them and who asks it.
//!
//! The encoder is the Cargo feature `embed`. Without it everything compiles, [`IS_BUILT`] is false, and opening one is
//! [`EncoderError::NotBuilt`].

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

/// Whether this build has an encoder.
pub const IS_BUILT: bool = cfg!(feature = "embed");

/// What the child is told, a line a batch.
#[derive(Debug, Serialize, Deserialize)]
pub struct EmbedderRequest {
    /// The texts.
    pub texts: Vec<String>,
}

/// What it says, a line a batch.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbedderAnswer {
    /// Base64, a vector each; see [`to_text`].
    pub vectors: Vec<String>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
