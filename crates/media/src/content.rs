//! The content of a file, judged by its bytes: its name, and the media type that the sender gives, are only claims. Images that the model
//! can see are recognised by their first bytes, with their dimensions; text is UTF-8 without control characters.

/// The number of bytes examined; so many because a preview may precede an image's header.
pub const HEAD_BYTES: usize = 256 * 1024;
/// The longest side of an image that the model's server accepts, in pixels.
pub const MAX_SIDE_PX: u32 = 8_000;

/// The largest image shown, in bytes: encoding adds a third, and the model's server accepts 5 MB.
pub const MAX_IMAGE_BYTES: u64 = 3_500_000;

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An image that the model can see.
    Image {
        /// Its media type.
        mime: &'static str,
        /// Its width and height in pixels.
        size: (u32, u32),
    },
    /// A PDF, by its first bytes.
    Pdf,
    /// Text in UTF-8.
    Text,
    /// Anything else.
    Other,
}

/// Classifies a file by its first [`HEAD_BYTES`] bytes; a shorter file is passed whole.
pub fn sniff(head: &[u8]) -> Content {
    let to_image = |mime, size: Option<(u32, u32)>| {
        size.filter(|(width, height)| *width > 0 && *height > 0).map(|size| Content::Image { mime, size })
    };
    let image = if head.starts_with(b"\xff\xd8\xff") {
        to_image("image/jpeg", read_jpeg_size(head))
    } else if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        to_image("image/png", read_u32_be(head, 16).zip(read_u32_be(head, 20)))
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        to_image("image/gif", read_little_endian(head, 6, 2).zip(read_little_endian(head, 8, 2)))
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        to_image("image/webp", read_webp_size(head))
    } else {
        None
    };
    image.unwrap_or(match head {
        head if is_pdf(head) => Content::Pdf,
        head if is_text(head) => Content::Text,
        _ => Content::Other,
    })
}

/// Returns `true` if a PDF's marker is near the beginning; PDF readers accept other bytes before it.
fn is_pdf(head: &[u8]) -> bool {
    const MARK: &[u8] = b"%PDF-";
    const MARK_WITHIN_BYTES: usize = 1_024;
    head.get(..MARK_WITHIN_BYTES.min(head.len())).unwrap_or_default().windows(MARK.len()).any(|bytes| bytes == MARK)
}

/// Returns `true` if the bytes are text; the last character may be cut off.
pub fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\x0c'))
}

/// Reads a JPEG's dimensions from its frame header, after any number of other segments.
fn read_jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        while bytes.get(at..at + 2)? == [0xff, 0xff] {
            at += 1;
        }
        let (0xff, marker) = (*bytes.get(at)?, *bytes.get(at + 1)?) else {
            return None;
        };
        match marker {
            // Frame headers; the three exceptions in this range mark tables and extensions.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return read_u16_be(bytes, at + 7).zip(read_u16_be(bytes, at + 5));
            }
            0x01 | 0xd0..=0xd8 => at += 2,
            // The image's data or its end, before any frame header.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::try_from(read_u16_be(bytes, at + 2)?.max(2)).ok()?,
        }
    }
}

fn read_webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((read_little_endian(bytes, 26, 2)? & 0x3fff, read_little_endian(bytes, 28, 2)? & 0x3fff)),
        b"VP8L" => {
            let bits = read_little_endian(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((read_little_endian(bytes, 24, 3)? + 1, read_little_endian(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

fn read_u16_be(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn read_u32_be(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a number of up to four bytes, the lowest byte first.
fn read_little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    Some(bytes.get(at..at + length)?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02";

    fn image(mime: &'static str, width: u32, height: u32) -> Content {
        Content::Image { mime, size: (width, height) }
    }

    #[test]
    fn images_and_their_dimensions_are_recognised_by_their_bytes() {
        assert_eq!(sniff(PNG), image("image/png", 320, 240));
        assert_eq!(sniff(b"GIF89a\x40\x01\xf0\0rest"), image("image/gif", 320, 240));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc4\0\x03x\xff\xc2\0\x11\x08\0\xf0\x01\x40\x03";
        assert_eq!(sniff(jpeg), image("image/jpeg", 320, 240));
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0"), image("image/webp", 320, 240));
        assert_eq!(
            sniff(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\0"),
            image("image/webp", 320, 240)
        );
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\0"), image("image/webp", 320, 240));
    }

    #[test]
    fn an_image_without_dimensions_is_not_an_image() {
        let flat = [PNG.get(..16).unwrap(), &[0; 16]].concat();
        for bytes in [&PNG[..20], &flat, b"\xff\xd8\xff\xda\0\x02", b"\xff\xd8\xff\xe0\xff\xff", b"GIF89a"] {
            assert!(!matches!(sniff(bytes), Content::Image { .. }), "{bytes:?}");
        }
    }

    #[test]
    fn a_pdf_is_recognised_by_the_marker_near_its_beginning() {
        assert_eq!(sniff(b"%PDF-1.7\n%\xe2\xe3"), Content::Pdf);
        assert_eq!(sniff(b"\xef\xbb\xbf\n%PDF-1.4"), Content::Pdf);
        assert_eq!(sniff(format!("{}%PDF-1.4", " ".repeat(2_000)).as_bytes()), Content::Text);
    }

    #[test]
    fn text_is_utf8_whose_last_character_may_be_cut() {
        assert_eq!(sniff("Grüße\r\n\tvon".as_bytes()), Content::Text);
        assert_eq!(sniff(&"Grü".as_bytes()[..3]), Content::Text);
        for bytes in [b"a\xfcb".as_slice(), b"a\0b", b"", b"\x1b[2J"] {
            assert_eq!(sniff(bytes), Content::Other, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn sniffing_never_panics(
            magic in prop::sample::select(vec![b"\xff\xd8\xff".to_vec(), PNG.to_vec(), b"RIFF\0\0\0\0WEBPVP8X".to_vec(), Vec::new()]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            sniff(&[magic, rest].concat());
        }
    }
}
