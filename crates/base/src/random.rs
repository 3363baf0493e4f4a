//! Randomness from the system's own source of secrets, and bytes as text: the one place that asks for it.

use ring::rand::{SecureRandom as _, SystemRandom};

/// The system has no randomness to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// Random bytes that nobody guesses.
///
/// # Errors
/// When the system has none to give.
#[expect(clippy::disallowed_methods, reason = "the one home of randomness")]
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// What a signature takes its random numbers from.
#[expect(clippy::disallowed_methods, reason = "the one home of randomness")]
pub fn source() -> SystemRandom {
    SystemRandom::new()
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex(&[0, 9, 0xab, 0xff]), "0009abff");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(bytes::<16>(), bytes::<16>());
    }
}
