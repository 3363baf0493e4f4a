//! Encodes vectors as text, so that two of our programs can exchange them.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Encodes a vector as text: its bytes in base64.
pub fn to_text(vector: &[f32]) -> String {
    STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

/// Decodes a vector from text; `None` if it is malformed.
pub fn from_text(text: &str) -> Option<Vec<f32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (numbers, rest) = bytes.as_chunks();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_survives_as_text() {
        let vector = vec![1.0, -0.25, f32::MIN_POSITIVE];
        assert_eq!(from_text(&to_text(&vector)), Some(vector));
        assert_eq!((from_text("AAA="), from_text("?")), (None, None));
    }
}
