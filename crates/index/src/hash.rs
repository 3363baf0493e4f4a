//! Hashes stable across runs and compiler versions, as required for storing them in the index.

/// Computes a 64-bit hash: FNV-1a over the terminated parts, with a final mix to spread all bits.
pub(super) fn hash(parts: &[&[u8]]) -> i64 {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        // Eight bytes at a time, because files can have many megabytes.
        let mut words = part.chunks_exact(8);
        for word in &mut words {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            state = (state ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        for byte in words.remainder() {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        state = (state ^ part.len() as u64 ^ 0xff00).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
    }
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^= state >> 33;
    state = state.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (state ^ (state >> 33)).cast_signed()
}

/// A hasher for maps and sets keyed by ids or hashes.
pub(super) type ByNumber = std::hash::BuildHasherDefault<NumberHasher>;
pub(super) type KeySet = std::collections::HashSet<i64, ByNumber>;

/// Mixes a number once: enough for consecutive ids and for hashes.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl std::hash::Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_their_borders_count() {
        let all = [hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]), hash(&[b"abc"]), hash(&[b"abc", b""]), hash(&[])];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{all:?}");
        }
        assert_eq!(hash(&[b"the same text, twice"]), hash(&[b"the same text, twice"]));
    }
}
