//! What stands in for the encoder in a build without it.

use std::path::Path;

use crate::EncoderError;

/// A sentence encoder, which this build can't have.
#[derive(Debug)]
pub enum NoEncoder {}

impl NoEncoder {
    /// Says that this build has no encoder.
    ///
    /// # Errors
    /// Always [`EncoderError::NotBuilt`].
    pub fn open(_folder: &Path) -> Result<Self, EncoderError> {
        Err(EncoderError::NotBuilt)
    }

    /// Can't be called: there is no value of this type.
    ///
    /// # Errors
    /// None.
    pub fn embed(&self, _texts: &[String]) -> Result<Vec<Vec<f32>>, EncoderError> {
        match *self {}
    }
}
