//! An incremental parser for server-sent events, as models and MCP servers stream them. Does no I/O.

use std::time::Duration;

use serde_json::{Value, json};

/// Parses a stream piece by piece; the events don't depend on the size of the pieces.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Option<String>,
    is_after_cr: bool,
    has_begun: bool,
    is_lenient: bool,
    /// The id of the last event that had one, for resuming the stream.
    pub last_id: Option<String>,
    /// The wait that the server asks for before a reconnect.
    pub retry: Option<Duration>,
}

/// The error for an event longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Events {
    /// Creates a parser that also accepts two habits of some servers between events: a bare line of JSON, and an `error` field. Both
    /// count as data.
    pub fn new_lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    /// Ends the stream. Returns the data of an event without its closing empty line.
    pub fn flush(&mut self) -> Option<String> {
        let event = if self.line.is_empty() { None } else { self.end_of_line() };
        event.or_else(|| self.data.take())
    }

    /// Parses the next bytes and returns the data of each completed event. Skips comments, other fields and events without data. The
    /// format says to drop an unfinished event at the end of the stream.
    ///
    /// # Errors
    /// [`TooLong`] if an event is longer than `max_bytes`.
    pub fn parse_bytes(&mut self, mut piece: &[u8], max_bytes: usize) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        while let Some(first) = piece.first() {
            if std::mem::take(&mut self.is_after_cr) && *first == b'\n' {
                piece = piece.get(1..).unwrap_or_default();
                continue;
            }
            let end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (head, rest) = piece.split_at(end.unwrap_or(piece.len()));
            self.line.extend_from_slice(head);
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > max_bytes {
                return Err(TooLong);
            }
            if end.is_some() {
                events.extend(self.end_of_line());
            }
            self.is_after_cr = rest.first() == Some(&b'\r');
            piece = rest.get(1..).unwrap_or_default();
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let line = if is_first { line.trim_start_matches('\u{feff}') } else { &line };
        if line.is_empty() {
            return self.data.take();
        }
        if self.is_lenient && line.starts_with('{') {
            add_line(&mut self.data, line);
            return None;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => add_line(&mut self.data, value),
            "error" if self.is_lenient => {
                let error = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                add_line(&mut self.data, &json!({"error": error}).to_string());
            }
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
        }
        None
    }
}

fn add_line(data: &mut Option<String>, line: &str) {
    match data {
        None => *data = Some(line.to_owned()),
        Some(data) => {
            data.push('\n');
            data.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\nid: 1\nretry: 500\ndata: \n\nevent: message\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nid: 2\n\ndata: cut";

    #[test]
    fn however_the_stream_is_cut_the_same_events_come_out() {
        for size in 1..STREAM.len() {
            let mut events = Events::default();
            let pieces = STREAM.as_bytes().chunks(size);
            let got: Vec<String> = pieces.flat_map(|piece| events.parse_bytes(piece, 1_000).unwrap()).collect();
            assert_eq!(got, ["", "{\"a\":\n1}"], "pieces of {size}");
            assert_eq!((events.last_id.as_deref(), events.retry), (Some("2"), Some(Duration::from_millis(500))));
        }
    }

    #[test]
    fn line_ends_comments_and_split_data_do_not_matter() {
        let text =
            "\u{feff}: hello\r\nid: 3\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nevent: x\n\ndata\n\ndata:  two\r\rdata: lost";
        assert_eq!(Events::default().parse_bytes(text.as_bytes(), 1_000).unwrap(), ["{\"a\":\n1}", "", " two"]);
    }

    #[test]
    fn a_lenient_reader_takes_bare_json_error_fields_and_an_unfinished_end() {
        let text = "data: 1\n\n{\"a\": 1}\n\nerror: {\"code\":429}\n\nerror: busy\n\ndata: cut";
        let mut events = Events::new_lenient();
        let mut got = events.parse_bytes(text.as_bytes(), 1_000).unwrap();
        got.extend(events.flush());
        assert_eq!(got, ["1", r#"{"a": 1}"#, r#"{"error":{"code":429}}"#, r#"{"error":"busy"}"#, "cut"]);
        assert_eq!(events.flush(), None);
        assert_eq!(Events::default().parse_bytes(text.as_bytes(), 1_000).unwrap(), ["1"]);
    }

    #[test]
    fn an_endless_event_is_given_up() {
        for endless in ["a".repeat(101), "data: 0123456789\n".repeat(11), "data\n".repeat(102)] {
            assert_eq!(Events::default().parse_bytes(endless.as_bytes(), 100), Err(TooLong));
        }
        let whole = "data: 0123456789\n\n".repeat(11);
        assert_eq!(Events::default().parse_bytes(whole.as_bytes(), 100).unwrap().len(), 11);
    }
}
