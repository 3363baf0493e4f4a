//! The stand-in for the encoder in a build without it.

use std::path::Path;

use crate::EncoderError;

/// A stand-in for the sentence encoder, without any value.
#[derive(Debug)]
pub enum NoEncoder {}

impl NoEncoder {
    /// Returns the error of a build without an encoder.
    ///
    /// # Errors
    /// Always [`EncoderError::NotBuilt`].
    pub fn open(_folder: &Path) -> Result<Self, EncoderError> {
        Err(EncoderError::NotBuilt)
    }

    /// Unreachable, since this type has no value.
    ///
    /// # Errors
    /// None.
    pub fn embed(&self, _texts: &[String]) -> Result<Vec<Vec<f32>>, EncoderError> {
        match *self {}
    }
}
