//! Server-sent events, as far as MCP uses them: an incremental reader. Values in, values out.

use std::time::Duration;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Event {
    /// Its data, lines joined; empty for one that only carries an id.
    pub(super) data: String,
}

/// Reads a stream piece by piece.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    data: Vec<String>,
    bytes: usize,
    /// The id of the last event that had one: where the stream is gone on with.
    pub(super) last_id: Option<String>,
    /// How long the server asks to wait before that.
    pub(super) retry: Option<Duration>,
}

/// The stream holds an event that is longer than what is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Events {
    /// Takes a piece of the stream, and gives the events that end in it. One may be `max_bytes` long.
    pub(super) fn take(&mut self, piece: &[u8], max_bytes: usize) -> Result<Vec<Event>, TooLong> {
        self.buffer.extend_from_slice(piece);
        let mut events = Vec::new();
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            self.line(line.trim_end_matches(['\n', '\r']), &mut events);
            if self.bytes > max_bytes {
                return Err(TooLong);
            }
        }
        if self.bytes + self.buffer.len() > max_bytes { Err(TooLong) } else { Ok(events) }
    }

    fn line(&mut self, line: &str, events: &mut Vec<Event>) {
        if line.is_empty() {
            self.bytes = 0;
            if !self.data.is_empty() {
                events.push(Event { data: std::mem::take(&mut self.data).join("\n") });
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                self.bytes += value.len();
                self.data.push(value.to_owned());
            }
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            _ => {}
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
            let mut got = Vec::new();
            for piece in STREAM.as_bytes().chunks(size) {
                got.extend(events.take(piece, 1_000).unwrap());
            }
            let data: Vec<&str> = got.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["", "{\"a\":\n1}"], "pieces of {size}");
            assert_eq!((events.last_id.as_deref(), events.retry), (Some("2"), Some(Duration::from_millis(500))));
        }
    }

    #[test]
    fn an_endless_event_is_given_up() {
        let mut events = Events::default();
        assert_eq!(events.take(&[b'a'; 101], 100), Err(TooLong));
        let mut events = Events::default();
        let lines = "data: 0123456789\n".repeat(11);
        assert_eq!(events.take(lines.as_bytes(), 100), Err(TooLong));
    }
}
