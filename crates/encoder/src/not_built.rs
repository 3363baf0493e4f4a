//! The replacement of the encoder in a build without it.

use std::path::Path;

use crate::EncoderError;

/// A sentence encoder that can't exist in this build.
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
