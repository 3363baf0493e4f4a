//! A response body, unpacked piece by piece up to a limit.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use super::WebError;

/// Collects pieces of a body up to a limit.
pub(super) struct Body {
    taken: Taken,
    max_bytes: usize,
    packed_bytes: usize,
    is_cut: bool,
}

enum Taken {
    Plain(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
}

/// A buffer with a maximum size, which fails when full.
pub(super) struct Sink {
    pub(super) bytes: Vec<u8>,
    max_bytes: usize,
}

impl Sink {
    /// Creates a buffer of this size.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), max_bytes }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.max_bytes.saturating_sub(self.bytes.len());
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (kept, _) = bytes.split_at(room.min(bytes.len()));
        self.bytes.extend_from_slice(kept);
        Ok(kept.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Body {
    /// Creates a body for a response with these headers.
    pub(super) fn new(headers: &HeaderMap, max_bytes: usize) -> Result<Self, WebError> {
        let sink = Sink::new(max_bytes);
        let coding = headers.get(CONTENT_ENCODING).map(|coding| coding.as_bytes().trim_ascii().to_ascii_lowercase());
        let taken = match coding.as_deref() {
            None | Some(b"" | b"identity") => Taken::Plain(sink),
            Some(b"gzip" | b"x-gzip") => Taken::Gzip(Box::new(MultiGzDecoder::new(sink))),
            Some(_) => {
                return Err(WebError::Unreadable("The server compressed its answer in a way that I don't support."));
            }
        };
        Ok(Self { taken, max_bytes, packed_bytes: 0, is_cut: false })
    }

    /// Adds the next piece. Returns false at the limit.
    pub(super) fn add_piece(&mut self, piece: &[u8]) -> Result<bool, WebError> {
        self.packed_bytes = self.packed_bytes.saturating_add(piece.len());
        let taken = match &mut self.taken {
            Taken::Plain(sink) => sink.write_all(piece),
            Taken::Gzip(packed) => packed.write_all(piece),
        };
        let is_empty = match &self.taken {
            Taken::Plain(sink) => sink.bytes.is_empty(),
            Taken::Gzip(packed) => packed.get_ref().bytes.is_empty(),
        };
        match taken {
            // An unpacking error at the first byte is a failure; later, the end of the body.
            Err(_) if is_empty => return Err(DAMAGED),
            Err(_) => self.is_cut = true,
            // Pieces could unpack to nothing forever.
            Ok(()) => self.is_cut = self.packed_bytes > self.max_bytes,
        }
        Ok(!self.is_cut)
    }

    /// Returns the bytes, and true if there were more.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, bool), WebError> {
        match &mut self.taken {
            Taken::Plain(sink) => Ok((std::mem::take(&mut sink.bytes), self.is_cut)),
            Taken::Gzip(packed) => {
                let is_whole = self.packed_bytes == 0 || packed.try_finish().is_ok();
                let bytes = std::mem::take(&mut packed.get_mut().bytes);
                if bytes.is_empty() && !is_whole {
                    return Err(DAMAGED);
                }
                Ok((bytes, self.is_cut || !is_whole))
            }
        }
    }
}

const DAMAGED: WebError = WebError::Unreadable("The server's answer is damaged: it can't be decompressed.");

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn read(coding: &str, pieces: &[&[u8]], max_bytes: usize) -> Result<(Vec<u8>, bool), WebError> {
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, coding.parse().unwrap())]);
        let mut body = Body::new(&headers, max_bytes)?;
        for piece in pieces {
            if !body.add_piece(piece)? {
                break;
            }
        }
        body.finish()
    }

    #[test]
    fn a_body_within_the_bound_is_whole_and_a_longer_one_is_cut_at_it() {
        let packed = gzip(b"0123456789");
        let (front, back) = packed.split_at(7);
        for (coding, pieces) in [("identity", vec![&b"01234"[..], b"56789"]), ("GZIP", vec![front, back])] {
            assert_eq!(read(coding, &pieces, 64), Ok((b"0123456789".to_vec(), false)), "{coding}");
        }
        assert_eq!(read("identity", &[b"01234", b"56789"], 10), Ok((b"0123456789".to_vec(), false)));
        assert_eq!(read("identity", &[b"01234", b"56789"], 7), Ok((b"0123456".to_vec(), true)));
        assert_eq!(read("gzip", &[&gzip(&[b'x'; 4_096])], 1_000), Ok((vec![b'x'; 1_000], true)));
    }

    #[test]
    fn a_bomb_unpacks_to_no_more_than_the_bound() {
        let bomb = gzip(&vec![0; 16 * 1024 * 1024]);
        assert!(bomb.len() < 100_000);
        let (bytes, is_cut) = read("gzip", &[&bomb], 100_000).unwrap();
        assert!(is_cut && bytes.len() == 100_000 && bytes.capacity() < 400_000, "{}", bytes.capacity());
    }

    #[test]
    fn what_unpacks_to_nothing_ends_too() {
        let nothing = gzip(b"");
        let pieces = vec![&nothing[..]; 1_000];
        assert_eq!(read("gzip", &pieces, 1_000), Ok((Vec::new(), true)));
    }

    #[test]
    fn what_is_damaged_or_packed_otherwise_is_said_to_be() {
        assert!(matches!(read("gzip", &[b"no gzip at all"], 64), Err(WebError::Unreadable(_))));
        assert!(matches!(read("br", &[b"x"], 64), Err(WebError::Unreadable(_))));
        assert!(matches!(read("gzip, gzip", &[b"x"], 64), Err(WebError::Unreadable(_))));
        let packed = gzip(&(0..20_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        let (front, _) = packed.split_at(packed.len() / 2);
        let (bytes, is_cut) = read("gzip", &[front], 1_000_000).unwrap();
        assert!(is_cut && !bytes.is_empty());
    }
}
