//! Reads the body of a model's answer piece by piece, either as events of a stream or as whole JSON. The form and a gzip packing are
//! detected from the bytes, since headers are often wrong about both. Pure.

use std::io::Write as _;

use flate2::write::MultiGzDecoder;
use serde_json::value::RawValue;

use reveille_base::sse::Events;

/// Bytes unpacked at a time; the result is checked against the size limit before the next piece.
const UNPACKED_AT_ONCE: usize = 4 * 1024;
/// The first byte of a gzip member. No text begins with this byte.
const GZIP: u8 = 0x1f;
/// Bytes skipped before the deciding first byte: white space and a byte order mark.
const BEFORE: [u8; 7] = [b' ', b'\t', b'\r', b'\n', 0xef, 0xbb, 0xbf];

/// Reads the body of one answer.
pub(super) struct AnswerBody {
    form: Form,
    unpacker: Option<Box<MultiGzDecoder<Vec<u8>>>>,
    bytes: usize,
    max_bytes: usize,
}

enum Form {
    /// Nothing decisive has arrived yet.
    Unknown(Vec<u8>),
    Events(Box<Events>),
    Whole(Vec<u8>),
}

/// The reason for giving up on a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// The body exceeds the size limit.
    TooLong,
    /// The gzip data is damaged.
    Damaged,
}

impl AnswerBody {
    /// Creates a reader for a body of at most `max_bytes`, counted unpacked.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { form: Form::Unknown(Vec::new()), unpacker: None, bytes: 0, max_bytes }
    }

    /// Accepts the next bytes and returns the data of each completed event.
    ///
    /// # Errors
    /// [`BodyFault`]
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, BodyFault> {
        let is_first = matches!(&self.form, Form::Unknown(head) if head.is_empty()) && self.unpacker.is_none();
        if is_first && bytes.first() == Some(&GZIP) {
            self.unpacker = Some(Box::new(MultiGzDecoder::new(Vec::new())));
        }
        let Some(mut unpacker) = self.unpacker.take() else { return self.take_bytes(bytes) };
        let mut events = Vec::new();
        for piece in bytes.chunks(UNPACKED_AT_ONCE) {
            unpacker.write_all(piece).map_err(|_| BodyFault::Damaged)?;
            let unpacked = std::mem::take(unpacker.get_mut());
            events.extend(self.take_bytes(&unpacked)?);
        }
        self.unpacker = Some(unpacker);
        Ok(events)
    }

    fn take_bytes(&mut self, bytes: &[u8]) -> Result<Vec<String>, BodyFault> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.max_bytes {
            return Err(BodyFault::TooLong);
        }
        match &mut self.form {
            Form::Events(events) => events.parse_bytes(bytes, self.max_bytes).map_err(|_| BodyFault::TooLong),
            Form::Whole(whole) => {
                whole.extend_from_slice(bytes);
                Ok(Vec::new())
            }
            Form::Unknown(head) => {
                head.extend_from_slice(bytes);
                let Some(first) = head.iter().find(|byte| !BEFORE.contains(byte)) else { return Ok(Vec::new()) };
                // No field of an event stream begins like this: the body is JSON or an HTML page.
                if matches!(first, b'{' | b'[' | b'<') {
                    self.form = Form::Whole(std::mem::take(head));
                    return Ok(Vec::new());
                }
                let mut events = Box::new(Events::new_lenient());
                let data = events.parse_bytes(head, self.max_bytes).map_err(|_| BodyFault::TooLong);
                self.form = Form::Events(events);
                data
            }
        }
    }

    /// Ends the body and returns the rest: the last event if its end is missing, or each JSON text of a whole body.
    ///
    /// # Errors
    /// Same as [`AnswerBody::push`].
    pub(super) fn finish(&mut self) -> Result<Vec<String>, BodyFault> {
        let mut data = Vec::new();
        if let Some(mut unpacker) = self.unpacker.take() {
            // A gzip stream that was cut off still yields everything before the cut.
            if unpacker.try_finish().is_ok() {
                data.extend(self.take_bytes(&std::mem::take(unpacker.get_mut()))?);
            }
        }
        match &mut self.form {
            Form::Events(events) => data.extend(events.flush()),
            Form::Whole(bytes) | Form::Unknown(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let text = text.trim_start_matches('\u{feff}').trim();
                if !text.is_empty() {
                    data.extend(split_json(text).into_iter().map(str::to_owned));
                }
                bytes.clear();
            }
        }
        Ok(data)
    }

    /// True if the body is whole JSON or a page, as opposed to events.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.form, Form::Whole(_))
    }
}

/// Splits a text into its consecutive JSON texts. Anything after the last valid JSON stays in one piece at the end.
pub(super) fn split_json(text: &str) -> Vec<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let (mut found, mut end) = (Vec::new(), 0);
    while let Some(Ok(value)) = values.next() {
        found.push(value.get());
        end = values.byte_offset();
    }
    let rest = text.get(end..).unwrap_or_default().trim();
    found.extend(Some(rest).filter(|rest| !rest.is_empty()));
    found
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8], cut: usize) -> Result<Vec<String>, BodyFault> {
        let mut reader = AnswerBody::new(10_000);
        let mut data = Vec::new();
        for piece in body.chunks(cut.max(1)) {
            data.extend(reader.push(piece)?);
        }
        data.extend(reader.finish()?);
        Ok(data)
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_body_tells_its_form_whatever_its_headers_say() {
        for (body, wanted) in [
            ("data: {\"a\":1}\n\ndata: [DONE]\n\n", &[r#"{"a":1}"#, "[DONE]"][..]),
            ("\u{feff}\r\n: hi\r\ndata: 1\r\n\r\n", &["1"]),
            ("data: 1\n\ndata: 2", &["1", "2"]),
            (" \n {\"a\": 1}\n", &[r#"{"a": 1}"#]),
            ("\u{feff}{\"a\":1}", &[r#"{"a":1}"#]),
            ("{\"a\":1}\n{\"b\":2}\n", &[r#"{"a":1}"#, r#"{"b":2}"#]),
            ("[{\"error\":{}}]", &[r#"[{"error":{}}]"#]),
            ("{\"a\":1}{\"b\":", &[r#"{"a":1}"#, r#"{"b":"#]),
            ("<html>", &["<html>"]),
            ("error: {\"code\":429}\n\n", &[r#"{"error":{"code":429}}"#]),
            ("data: 1\n\n{\"error\":\"x\"}", &["1", r#"{"error":"x"}"#]),
            ("", &[]),
            ("\n\n ", &[]),
        ] {
            for cut in [1, 2, 3, 7, 10_000] {
                assert_eq!(read(body.as_bytes(), cut).unwrap(), wanted, "{body:?} in pieces of {cut}");
                assert_eq!(read(&packed(body), cut).unwrap(), wanted, "{body:?} packed, in pieces of {cut}");
            }
        }
    }

    #[test]
    fn what_is_too_long_or_damaged_is_given_up() {
        let long = "x".repeat(10_001);
        for body in [long.clone(), format!("{{{long}"), format!("data: {long}")] {
            assert_eq!(read(body.as_bytes(), 64), Err(BodyFault::TooLong));
            assert_eq!(read(&packed(&body), 64), Err(BodyFault::TooLong));
        }
        assert_eq!(read(&packed(&" ".repeat(50_000_000)), 1_000_000), Err(BodyFault::TooLong));
        assert_eq!(read(&[GZIP, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 64), Err(BodyFault::Damaged));
        let cut = packed("data: 1\n\ndata: 2\n\n");
        read(cut.split_at(cut.len() - 9).0, 64).unwrap();
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same(bytes in prop::collection::vec(prop::num::u8::ANY, 0..300), cut in 1..40_usize) {
            prop_assert_eq!(read(&bytes, cut), read(&bytes, 10_000));
        }

        #[test]
        fn lines_in_any_pieces_give_the_same(lines in prop::collection::vec(
            "(data: ?|error: ?|event: ?|: ?|)(\\{\"a\":[0-9]\\}|\\[DONE\\]|x|)(\n|\r\n|\r|\n\n)", 0..20), cut in 1..40_usize) {
            let body = lines.concat();
            prop_assert_eq!(read(body.as_bytes(), cut), read(body.as_bytes(), 10_000));
        }
    }
}
