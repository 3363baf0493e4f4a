//! Converts foreign texts to UTF-8. Decodes texts with a recognisable encoding, and rejoins emoji written as two halves (CESU-8).

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// The byte order mark of UTF-8, written by some editors.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
/// The replacement character in UTF-8.
const REPLACEMENT: &[u8] = b"\xef\xbf\xbd";

/// Recognises UTF-16 at the beginning of a text: by its mark, or by the zeros beside JSON's first character.
pub(super) fn find_utf16(begin: &[u8]) -> Option<&'static Encoding> {
    match *begin {
        [0xff, 0xfe, ..] => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        [b'[' | b'{', 0, ..] => Some(UTF_16LE),
        [0, b'[' | b'{', ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// Decodes a text without its byte order mark. `None` if the bytes aren't text.
pub(super) fn decode_text(bytes: &[u8]) -> Option<String> {
    let text = match find_utf16(bytes) {
        Some(encoding) => encoding.decode(bytes).0.into_owned(),
        None => String::from_utf8(join_halves(strip_mark(bytes)).into_owned()).ok()?,
    };
    (!text.contains('\0')).then_some(text)
}

/// Decodes a text, replacing invalid bytes with U+FFFD.
pub(super) fn decode_lossy(bytes: &[u8]) -> String {
    match find_utf16(bytes) {
        Some(encoding) => encoding.decode(bytes).0.into_owned(),
        None => String::from_utf8_lossy(&join_halves(strip_mark(bytes))).into_owned(),
    }
}

/// Removes the byte order mark of UTF-8.
pub(super) fn strip_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes)
}

/// Joins surrogate halves encoded separately. A lone half becomes U+FFFD.
fn join_halves(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.windows(2).any(|pair| matches!(*pair, [0xed, 0xa0..=0xbf])) {
        return Cow::Borrowed(bytes);
    }
    let mut joined = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        match *rest {
            [0xed, high @ 0xa0..=0xaf, second @ 0x80..=0xbf, 0xed, low @ 0xb0..=0xbf, last @ 0x80..=0xbf, ..] => {
                let unit = |middle: u8, end: u8| u32::from(middle & 0x3f) << 6 | u32::from(end & 0x3f);
                let code = 0x1_0000 + ((unit(high, second) & 0x3ff) << 10 | (unit(low, last) & 0x3ff));
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                joined.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = rest.get(6..).unwrap_or_default();
            }
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => {
                joined.extend_from_slice(REPLACEMENT);
                rest = rest.get(3..).unwrap_or_default();
            }
            _ => {
                joined.push(byte);
                rest = tail;
            }
        }
    }
    Cow::Owned(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_or_are_none() {
        for (name, bytes, expected) in [
            ("plain", "Käse 😂".as_bytes(), Some("Käse 😂")),
            ("a mark", b"\xef\xbb\xbfa", Some("a")),
            ("halves of an emoji", b"a\xed\xa0\xbd\xed\xb8\x82b", Some("a😂b")),
            ("another", b"\xed\xa0\xbe\xed\xb4\xa3", Some("🤣")),
            ("one half", b"a\xed\xa0\xbdb", Some("a\u{fffd}b")),
            ("Korean, whose letters begin like a half", "한글 힣".as_bytes(), Some("한글 힣")),
            ("UTF-16, little end first", b"\xff\xfeH\0i\0", Some("Hi")),
            ("UTF-16, big end first", b"\xfe\xff\0H\0i", Some("Hi")),
            ("JSON in UTF-16 without a mark", b"[\0]\0", Some("[]")),
            ("Latin-1", b"K\xe4se", None),
            ("a program", b"\x7fELF\0", None),
            ("empty", b"", Some("")),
        ] {
            assert_eq!(decode_text(bytes).as_deref(), expected, "{name}");
        }
        assert_eq!(decode_lossy(b"K\xe4se\xed\xa0\xbd\xed\xb8\x82"), "K\u{fffd}se😂");
    }
}
