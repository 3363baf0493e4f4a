//! Reads foreign JSON one element at a time: a list may exceed the memory, and a faulty element doesn't affect the others.

use std::io::{self, Read};

use chrono::{DateTime, Utc};
use serde_json::Value;

use reveille_base::clock::parse_time;

use super::{
    encoding::{find_utf16, strip_mark},
    source::MAX_WHOLE_BYTES,
};

/// The maximum nesting of brackets that are matched; deeper ones are only counted.
const MAX_HELD: usize = 1_000;
/// The number of bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The end of a JSON file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreEnd {
    /// The file is complete.
    Whole,
    /// The file ends within a list or an element.
    BrokenOff,
    /// The file isn't JSON.
    NoJson,
}

/// Passes each element of a list to `work` as raw JSON, or `None` for an oversized element. Consecutive objects without a list also count
/// as elements.
///
/// # Errors
/// The file can't be read.
pub(super) fn visit_raw_elements(reader: &mut dyn Read, work: &mut dyn FnMut(Option<&[u8]>)) -> io::Result<StoreEnd> {
    let mut splitter = ElementSplitter::default();
    let mut begin = Vec::new();
    reader.take(4).read_to_end(&mut begin)?;
    if strip_mark(&begin).trim_ascii_start().starts_with(b"<") {
        begin = skip_to_list(reader)?;
    }
    let mut decoder = find_utf16(&begin).map(|encoding| encoding.new_decoder_with_bom_removal());
    if decoder.is_none() {
        begin = strip_mark(&begin).to_vec();
    }
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut text = String::with_capacity(CHUNK_BYTES * 3);
    let mut give = |bytes: &[u8]| match &mut decoder {
        None => splitter.split(bytes, work),
        Some(decoder) => {
            text.clear();
            let _ = decoder.decode_to_string(bytes, &mut text, false);
            splitter.split(text.as_bytes(), work);
        }
    };
    give(&begin);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(splitter.finish(work)),
            Ok(bytes) => give(chunk.get(..bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a browser page up to its data, `jsonData = [`. Returns the part of the list read so far.
fn skip_to_list(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    const VARIABLE: &[u8] = b"jsonData";
    const MAX_BETWEEN: usize = 32;
    let mut held: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = reader.read(&mut chunk)?;
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let named = held.windows(VARIABLE.len()).position(|name| name == VARIABLE).map(|at| at + VARIABLE.len());
        let list =
            named.and_then(|at| Some(at + held.get(at..)?.iter().take(MAX_BETWEEN).position(|byte| *byte == b'[')?));
        match list {
            Some(list) => return Ok(held.split_off(list)),
            None if read == 0 => return Ok(b"<".to_vec()),
            None => drop(held.drain(..held.len().saturating_sub(VARIABLE.len() + MAX_BETWEEN))),
        }
    }
}

/// Finds the bounds of elements by brackets and quotation marks alone, to end even a faulty element correctly.
#[derive(Default)]
struct ElementSplitter {
    /// The bytes of the open element.
    element: Vec<u8>,
    is_open: bool,
    is_too_large: bool,
    /// The open brackets.
    brackets: Vec<u8>,
    /// The number of deeper open brackets.
    deeper: usize,
    in_string: bool,
    is_escaped: bool,
    /// Whether the elements are in a list.
    in_list: bool,
    /// Whether a list has ended; content after it is ignored.
    had_list: bool,
    is_no_json: bool,
}

impl ElementSplitter {
    fn split(&mut self, chunk: &[u8], work: &mut dyn FnMut(Option<&[u8]>)) {
        let mut from = 0;
        for (at, byte) in chunk.iter().copied().enumerate() {
            if self.is_no_json {
                return;
            }
            if !self.is_open {
                from = at;
                self.begin_element(byte);
            } else if self.is_scalar() && matches!(byte, b',' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                self.append_bytes(chunk.get(from..at).unwrap_or_default());
                self.pass_element(work);
                if byte == b']' {
                    self.end_list();
                }
            } else if self.take_byte(byte) {
                self.append_bytes(chunk.get(from..=at).unwrap_or_default());
                self.pass_element(work);
            }
        }
        if self.is_open {
            self.append_bytes(chunk.get(from..).unwrap_or_default());
        }
    }

    /// Returns whether the open element is a number or a word.
    fn is_scalar(&self) -> bool {
        self.brackets.is_empty() && !self.in_string
    }

    fn begin_element(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
            b'[' if !self.in_list => self.in_list = true,
            b']' if self.in_list => self.end_list(),
            b'{' | b'[' => {
                self.is_open = true;
                self.brackets.push(byte);
            }
            _ if !self.in_list => self.is_no_json = true,
            b'"' => (self.is_open, self.in_string) = (true, true),
            _ => self.is_open = true,
        }
    }

    fn end_list(&mut self) {
        (self.in_list, self.had_list) = (false, true);
    }

    /// Handles one byte of the open element, and returns whether it is the last. A closing bracket also closes unclosed inner ones.
    fn take_byte(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    return self.brackets.is_empty();
                }
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' if self.brackets.len() == MAX_HELD => self.deeper += 1,
            b'{' | b'[' => self.brackets.push(byte),
            b'}' | b']' if self.deeper > 0 => self.deeper -= 1,
            b'}' | b']' => {
                let opening = if byte == b'}' { b'{' } else { b'[' };
                if let Some(at) = self.brackets.iter().rposition(|bracket| *bracket == opening) {
                    self.brackets.truncate(at);
                }
                return self.brackets.is_empty();
            }
            _ => {}
        }
        false
    }

    fn append_bytes(&mut self, bytes: &[u8]) {
        if !self.is_too_large && (self.element.len() + bytes.len()) as u64 <= MAX_WHOLE_BYTES {
            self.element.extend_from_slice(bytes);
        } else {
            self.is_too_large = true;
            self.element = Vec::new();
        }
    }

    fn pass_element(&mut self, work: &mut dyn FnMut(Option<&[u8]>)) {
        work((!self.is_too_large).then_some(&self.element));
        self.element.clear();
        (self.is_open, self.is_too_large) = (false, false);
    }

    fn finish(mut self, work: &mut dyn FnMut(Option<&[u8]>)) -> StoreEnd {
        if self.is_no_json {
            return if self.had_list { StoreEnd::Whole } else { StoreEnd::NoJson };
        }
        if self.is_open && self.is_scalar() {
            self.pass_element(work);
        }
        if self.is_open || self.in_list { StoreEnd::BrokenOff } else { StoreEnd::Whole }
    }
}

/// Returns the first of these fields that is a non-blank text.
pub(super) fn find_text<'a>(object: &'a Value, names: &[&str]) -> Option<&'a str> {
    let texts = names.iter().filter_map(|name| object.get(name)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty())
}

/// Returns the first of these fields that is a list, or an empty list.
pub(super) fn find_list<'a>(object: &'a Value, names: &[&str]) -> &'a [Value] {
    let lists = names.iter().filter_map(|name| object.get(name)?.as_array());
    lists.map(Vec::as_slice).next().unwrap_or_default()
}

/// Returns the first of these fields that is a time: a text, or seconds or milliseconds since 1970 as a number or a text.
pub(super) fn find_time(object: &Value, names: &[&str]) -> Option<DateTime<Utc>> {
    names.iter().find_map(|name| match object.get(name)? {
        Value::Number(seconds) => from_timestamp(seconds.as_f64()?),
        Value::String(text) => parse_time(text).or_else(|| from_timestamp(text.trim().parse().ok()?)),
        _ => None,
    })
}

fn from_timestamp(seconds: f64) -> Option<DateTime<Utc>> {
    // Seconds reach this number in the year 5138; milliseconds did in 1973.
    const MILLISECONDS_FROM: f64 = 1e11;
    // Nobody wrote dates beyond the year 9999.
    const MOST: f64 = 253_402_300_799.0;
    let seconds = if seconds >= MILLISECONDS_FROM { seconds / 1000.0 } else { seconds };
    (0.0..=MOST).contains(&seconds).then(|| DateTime::from_timestamp(seconds as i64, 0)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{
        super::repair::{parse_json, repair_json},
        *,
    };

    fn elements(store: &[u8]) -> (Vec<Value>, StoreEnd) {
        let mut found = Vec::new();
        let end = visit_raw_elements(&mut &store[..], &mut |raw| {
            found.push(raw.and_then(parse_json).unwrap_or_else(|| json!("not understood")));
        });
        (found, end.unwrap())
    }

    fn utf16(text: &str, mark: bool) -> Vec<u8> {
        let mark = mark.then_some(0xfeff_u16);
        mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn each_element_is_found_whatever_surrounds_it() {
        let odd = json!("not understood");
        let one = json!({"a": 1});
        for (name, store, expected, end) in [
            ("a list", b"[{\"a\":1},{\"a\":1}]".to_vec(), vec![one.clone(), one.clone()], StoreEnd::Whole),
            ("an empty list", b"[]".to_vec(), vec![], StoreEnd::Whole),
            ("nothing", b" ".to_vec(), vec![], StoreEnd::Whole),
            ("one object", b"{\"a\":1}".to_vec(), vec![one.clone()], StoreEnd::Whole),
            ("an object a line", b"{\"a\":1}\n{\"a\":1}\n".to_vec(), vec![one.clone(), one.clone()], StoreEnd::Whole),
            ("a mark", b"\xef\xbb\xbf[{\"a\":1}]".to_vec(), vec![one.clone()], StoreEnd::Whole),
            ("UTF-16", utf16("[{\"a\":\"😂\"}]", true), vec![json!({"a": "😂"})], StoreEnd::Whole),
            ("UTF-16 without a mark", utf16("[{\"a\":1}]", false), vec![one.clone()], StoreEnd::Whole),
            (
                "a number and a null",
                b"[7, null,{\"a\":1}]".to_vec(),
                vec![json!(7), json!(null), one.clone()],
                StoreEnd::Whole,
            ),
            ("brackets in a string", b"[{\"a\":\"]}\\\"[\"}]".to_vec(), vec![json!({"a": "]}\"["})], StoreEnd::Whole),
            (
                "halves as bytes",
                b"[{\"a\":\"\xed\xa0\xbd\xed\xb8\x82\"}]".to_vec(),
                vec![json!({"a": "😂"})],
                StoreEnd::Whole,
            ),
            (
                "a half as an escape",
                br#"[{"a":"x\ud83d"},{"a":1}]"#.to_vec(),
                vec![json!({"a": "x\u{fffd}"}), one.clone()],
                StoreEnd::Whole,
            ),
            (
                "two wrong halves",
                br#"[{"a":"\udc00\ud83d\u0041"}]"#.to_vec(),
                vec![json!({"a": "\u{fffd}\u{fffd}A"})],
                StoreEnd::Whole,
            ),
            (
                "a pair beside a half",
                br#"[{"a":"\ud83d\ude02\ud83d"}]"#.to_vec(),
                vec![json!({"a": "😂\u{fffd}"})],
                StoreEnd::Whole,
            ),
            ("bytes of Latin-1", b"[{\"a\":\"K\xe4se\"}]".to_vec(), vec![json!({"a": "K\u{fffd}se"})], StoreEnd::Whole),
            ("a bare line break", b"[{\"a\":\"x\ny\"}]".to_vec(), vec![json!({"a": "x\ny"})], StoreEnd::Whole),
            (
                "an unknown escape",
                br#"[{"a":"C:\x \u12"}]"#.to_vec(),
                vec![json!({"a": "C:\\x \\u12"})],
                StoreEnd::Whole,
            ),
            ("commas too many", b"[{\"a\":1,},]".to_vec(), vec![one.clone()], StoreEnd::Whole),
            (
                "words of other languages",
                b"[{\"a\":NaN,\"b\":1e999}]".to_vec(),
                vec![json!({"a": null, "b": null})],
                StoreEnd::Whole,
            ),
            ("an error in one", b"[{\"a\" 1},{\"a\":1}]".to_vec(), vec![odd.clone(), one.clone()], StoreEnd::Whole),
            (
                "a bracket left open",
                b"[{\"a\":[1},{\"a\":1}]".to_vec(),
                vec![odd.clone(), one.clone()],
                StoreEnd::Whole,
            ),
            ("broken off in an element", b"[{\"a\":1},{\"a\":".to_vec(), vec![one.clone()], StoreEnd::BrokenOff),
            ("broken off between two", b"[{\"a\":1},".to_vec(), vec![one.clone()], StoreEnd::BrokenOff),
            ("a page", b"<html>[1]</html>".to_vec(), vec![], StoreEnd::NoJson),
            (
                "a page with its data",
                b"<html><script>var a = [7]; var jsonData = [{\"a\":1}];\nvar b = {};</script></html>".to_vec(),
                vec![one.clone()],
                StoreEnd::Whole,
            ),
        ] {
            assert_eq!(elements(&store), (expected, end), "{name}");
        }
    }

    #[test]
    fn an_element_too_deep_or_too_large_affects_no_other() {
        let deep = [b"[", "[".repeat(200_000).as_bytes(), "]".repeat(200_000).as_bytes(), b",{\"a\":1}]"].concat();
        assert_eq!(elements(&deep), (vec![json!("not understood"), json!({"a": 1})], StoreEnd::Whole));
        let large = "x".repeat(usize::try_from(MAX_WHOLE_BYTES).unwrap());
        let large = format!("[{{\"a\":\"{large}\"}},{{\"a\":1}}]");
        let (mut whole, mut too_large) = (0, 0);
        let end = visit_raw_elements(&mut large.as_bytes(), &mut |raw| match raw {
            Some(_) => whole += 1,
            None => too_large += 1,
        });
        assert_eq!((end.unwrap(), whole, too_large), (StoreEnd::Whole, 1, 1));
    }

    #[test]
    fn times_are_understood_in_the_ways_they_are_written() {
        for (value, expected) in [
            (json!(1_741_957_380.5), Some(1_741_957_380)),
            (json!("1741957380.5"), Some(1_741_957_380)),
            (json!(1_741_957_380_000_u64), Some(1_741_957_380)),
            (json!("2025-03-14T13:03:00Z"), Some(1_741_957_380)),
            (json!("2025-03-14T13:03:00.123456+00:00"), Some(1_741_957_380)),
            (json!(null), None),
            (json!("soon"), None),
            (json!(-1), None),
            (json!(1e300), None),
            (json!([1]), None),
        ] {
            assert_eq!(find_time(&json!({"at": value}), &["at"]).map(|at| at.timestamp()), expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(store in prop::collection::vec(any::<u8>(), 0..400)) {
            elements(&store);
            elements(&[b"[{\"a\":\"", store.as_slice()].concat());
        }

        #[test]
        fn any_json_is_read_however_it_is_split(texts in prop::collection::vec(any::<String>(), 0..8)) {
            let values: Vec<Value> = texts.iter().map(|text| json!({"text": text, "list": [text, {}]})).collect();
            prop_assert_eq!(elements(json!(values).to_string().as_bytes()), (values.clone(), StoreEnd::Whole));
            for value in &values {
                let repaired: Value = serde_json::from_str(&repair_json(&value.to_string())).unwrap();
                prop_assert_eq!(&repaired, value);
            }
        }
    }
}
