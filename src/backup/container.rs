//! The backup file: a plain tar (ustar) in a single fixed form, which any `tar` lists and unpacks.
//!
//! A reader that knows the next member also knows every byte between the contents. So only the first member's size and
//! time are parsed; everything else is compared with the expected bytes. Links, devices, long names, gaps and trailing
//! data are then simply unexpected.

use std::io::{self, Read, Write};

use ring::digest::{Context, SHA256};

use reveille_base::random::format_hex;

use super::BackupError;

/// The size of a tar block.
const BLOCK: usize = 512;
/// Maximum bytes of a member's name in its header.
pub(super) const NAME_BYTES_MAX: usize = 100;
/// Maximum bytes of a member, by the eleven octal digits of a header.
pub(super) const MEMBER_BYTES_MAX: u64 = (1 << 33) - 1;
/// Positions of the size and the time in the first header.
const SIZE_AT: std::ops::Range<usize> = 124..135;
const TIME_AT: std::ops::Range<usize> = 136..147;
/// Bytes copied at once.
const CHUNK: usize = 64 << 10;

/// Builds the header of a file that its owner may read and write.
fn build_header(name: &str, bytes: u64, time: u64) -> Vec<u8> {
    let with_checksum = |checksum: &[u8]| {
        let mut block = Vec::with_capacity(BLOCK);
        let fields: [(&[u8], usize); 10] = [
            (name.as_bytes(), NAME_BYTES_MAX),
            (b"0000600\0", 8),
            (b"0000000\0", 8),
            (b"0000000\0", 8),
            (&format_octal(bytes), 12),
            (&format_octal(time), 12),
            (checksum, 8),
            (b"0", 1),
            (b"", 100),
            (b"ustar\x0000", BLOCK - 257),
        ];
        for (field, width) in fields {
            let end = block.len() + width;
            block.extend(field.iter().take(width));
            block.resize(end, 0);
        }
        block
    };
    // The checksum is computed with spaces in its own field.
    let checksum: u32 = with_checksum(b"        ").iter().map(|byte| u32::from(*byte)).sum();
    with_checksum(format!("{checksum:06o}\0 ").as_bytes())
}

fn format_octal(number: u64) -> Vec<u8> {
    format!("{number:011o}\0").into_bytes()
}

fn count_padding(bytes: u64) -> usize {
    let over = usize::try_from(bytes % BLOCK as u64).unwrap_or(0);
    (BLOCK - over) % BLOCK
}

/// Writes members in sequence.
pub(super) struct Packer<W> {
    to: W,
    time: u64,
}

impl<W: Write> Packer<W> {
    /// Creates a packer. `time` is the time of the backup, in seconds since 1970.
    pub(super) fn new(to: W, time: u64) -> Self {
        Self { to, time }
    }

    /// Copies a member of this size, and returns its SHA-256.
    pub(super) fn add(&mut self, name: &str, bytes: u64, from: &mut dyn Read) -> io::Result<String> {
        self.to.write_all(&build_header(name, bytes, self.time))?;
        let digest = copy_exact(from, bytes, &mut self.to)?;
        self.to.write_all(&vec![0; count_padding(bytes)])?;
        Ok(digest)
    }

    /// Writes the end of the file.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.to.write_all(&[0; 2 * BLOCK])?;
        Ok(self.to)
    }
}

/// Reads members in the order in which they were written.
pub(super) struct Unpacker<R> {
    from: R,
    time: u64,
}

impl<R: Read> Unpacker<R> {
    /// Starts with a first member of this name and at most this size, and returns its contents.
    pub(super) fn open(mut from: R, name: &str, bytes_max: u64) -> Result<(Self, Vec<u8>), BackupError> {
        let mut first = [0; BLOCK];
        let is_complete = fill_buffer(&mut from, &mut first)?;
        let number = |at: std::ops::Range<usize>| {
            let text = std::str::from_utf8(first.get(at)?).ok()?;
            u64::from_str_radix(text, 8).ok()
        };
        let (Some(bytes), Some(time), true) = (number(SIZE_AT), number(TIME_AT), is_complete) else {
            return Err(BackupError::NotOurs);
        };
        if build_header(name, bytes, time) != first || bytes > bytes_max {
            return Err(BackupError::NotOurs);
        }
        let mut unpacker = Self { from, time };
        let mut content = Vec::new();
        unpacker.copy_content(name, bytes, &mut content)?;
        Ok((unpacker, content))
    }

    /// Reads the next member, which must be this one, and returns its SHA-256.
    pub(super) fn next(&mut self, name: &str, bytes: u64, to: &mut dyn Write) -> Result<String, BackupError> {
        self.expect_bytes(&build_header(name, bytes, self.time), name)?;
        self.copy_content(name, bytes, to)
    }

    /// Checks that nothing follows.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        self.expect_bytes(&[0; 2 * BLOCK], "its end")?;
        match fill_buffer(&mut self.from, &mut [0])? {
            false => Ok(()),
            true => Err(BackupError::Damaged("something follows its end".to_owned())),
        }
    }

    fn copy_content(&mut self, name: &str, bytes: u64, to: &mut dyn Write) -> Result<String, BackupError> {
        let digest = copy_exact(&mut self.from, bytes, to).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => BackupError::Damaged(format!("it ends within {name}")),
            _ => BackupError::io("copying", name)(error),
        })?;
        self.expect_bytes(&vec![0; count_padding(bytes)], name)?;
        Ok(digest)
    }

    fn expect_bytes(&mut self, expected: &[u8], what: &str) -> Result<(), BackupError> {
        let mut found = vec![0; expected.len()];
        match fill_buffer(&mut self.from, &mut found)? && found == expected {
            true => Ok(()),
            false => Err(BackupError::Damaged(format!("it was altered at {what}"))),
        }
    }
}

/// Fills the buffer. Returns `false` if the data ends first.
fn fill_buffer(from: &mut impl Read, bytes: &mut [u8]) -> Result<bool, BackupError> {
    match from.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(BackupError::io("reading", "the backup")(error)),
    }
}

/// Copies exactly this many bytes, and returns their SHA-256.
fn copy_exact(from: &mut dyn Read, bytes: u64, to: &mut dyn Write) -> io::Result<String> {
    let mut digest = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let chunk = chunk.get_mut(..n).unwrap_or_default();
        from.read_exact(chunk)?;
        digest.update(chunk);
        to.write_all(chunk)?;
        left -= n as u64;
    }
    Ok(format_hex(digest.finish().as_ref()))
}

/// Returns the size and the SHA-256 of a stream.
pub(super) fn measure_stream(from: &mut dyn Read) -> io::Result<(u64, String)> {
    let mut digest = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let n = from.read(&mut chunk)?;
        if n == 0 {
            return Ok((bytes, format_hex(digest.finish().as_ref())));
        }
        digest.update(chunk.get(..n).unwrap_or_default());
        bytes += n as u64;
    }
}
