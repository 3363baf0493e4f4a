//! The only module that asks the system for secure random bytes.

use ring::rand::{SecureRandom as _, SystemRandom};

/// The error for a system without a source of randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// Returns unguessable random bytes.
///
/// # Errors
/// [`NoRandomness`] if the system has no source.
#[expect(clippy::disallowed_methods, reason = "the one home of randomness")]
pub fn generate_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// The random source for signatures.
#[expect(clippy::disallowed_methods, reason = "the one home of randomness")]
pub fn create_source() -> SystemRandom {
    SystemRandom::new()
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(format_hex(&[0, 9, 0xab, 0xff]), "0009abff");
        assert_eq!(format_hex(&[]), "");
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(generate_bytes::<16>(), generate_bytes::<16>());
    }
}
