//! A text field of a JSON object that is still being written, such as an answer in the arguments of a call.

/// Reads a text field of the top level from growing JSON, and returns each time what is new.
#[derive(Debug)]
pub struct GrowingField {
    field: &'static str,
    json: String,
    /// The bytes of `json` that are read.
    at: usize,
    state: ReadState,
    /// The nesting below the arguments' object.
    depth: usize,
    name: String,
    /// The first half of a character beyond the basic plane.
    high: Option<u16>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReadState {
    /// Outside of strings. `true` if the next string of the top level is a value.
    #[default]
    Between,
    /// Behind a top-level colon.
    Value,
    /// In the name of a field.
    Name,
    /// In the text itself.
    Text,
    /// In another string.
    Other,
    /// The text is complete.
    Done,
}

impl GrowingField {
    /// Starts with empty JSON.
    pub fn new(field: &'static str) -> Self {
        let (json, name) = (String::new(), String::new());
        Self { field, json, at: 0, state: ReadState::default(), depth: 0, name, high: None }
    }

    /// Adds to the JSON, and returns what the text gains.
    pub fn push(&mut self, more: &str) -> String {
        self.json.push_str(more);
        let mut gained = String::new();
        while let Some(rest) = self.json.get(self.at..)
            && let Some(c) = rest.chars().next()
        {
            let is_in_string = matches!(self.state, ReadState::Name | ReadState::Text | ReadState::Other);
            if is_in_string && c == '\\' {
                // An escape that isn't whole yet is read with the next piece.
                let Some((unit, length)) = read_escape(rest) else { break };
                self.at += length;
                self.add_unit(unit, &mut gained);
                continue;
            }
            self.at += c.len_utf8();
            if is_in_string && c != '"' {
                self.high = None;
                self.add(c, &mut gained);
            } else {
                self.step(c);
            }
        }
        gained
    }

    /// Handles a character of the structure.
    fn step(&mut self, c: char) {
        self.state = match (self.state, c) {
            (ReadState::Done, _) | (ReadState::Text, '"') => ReadState::Done,
            (ReadState::Name | ReadState::Other, '"') => ReadState::Between,
            (ReadState::Value, '"') if self.name == self.field => ReadState::Text,
            (ReadState::Value, '"') => ReadState::Other,
            (ReadState::Between, '"') if self.depth == 1 => {
                self.name.clear();
                ReadState::Name
            }
            (ReadState::Between, '"') => ReadState::Other,
            (ReadState::Between, ':') if self.depth == 1 => ReadState::Value,
            (_, '{' | '[') => {
                self.depth += 1;
                ReadState::Between
            }
            (_, '}' | ']') => {
                self.depth = self.depth.saturating_sub(1);
                ReadState::Between
            }
            (_, ',') => ReadState::Between,
            (state, _) => state,
        };
    }

    fn add_unit(&mut self, unit: u16, gained: &mut String) {
        let units = [self.high.take().unwrap_or(unit), unit];
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        let whole = if units[0] == unit { units.get(1..) } else { units.get(..) };
        for c in char::decode_utf16(whole.unwrap_or_default().iter().copied()) {
            self.add(c.unwrap_or(char::REPLACEMENT_CHARACTER), gained);
        }
    }

    fn add(&mut self, c: char, gained: &mut String) {
        match self.state {
            ReadState::Text => gained.push(c),
            ReadState::Name => self.name.push(c),
            _ => {}
        }
    }
}

/// Reads an escape: its UTF-16 unit and its length in bytes. `None` if it isn't whole.
fn read_escape(text: &str) -> Option<(u16, usize)> {
    let kind = text.chars().nth(1)?;
    let unit = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return Some((u16::from_str_radix(text.get(2..6)?, 16).unwrap_or(0xfffd), 6)),
        other => other,
    };
    Some((u16::try_from(u32::from(unit)).unwrap_or(0xfffd), 1 + kind.len_utf8()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(pieces: &[&str]) -> String {
        let mut answer = GrowingField::new("text");
        pieces.iter().map(|piece| answer.push(piece)).collect()
    }

    #[test]
    fn only_the_text_of_the_arguments_is_read() {
        assert_eq!(
            read(&["{\"te", "xt\": \"Hel", "lo\\n", "th\\", "u00e9", "re\"", ", \"more\": \"no\"}"]),
            "Hello\nthére"
        );
        assert_eq!(read(&[r#"{"to": "text", "in": {"text": "no"}, "list": ["text", "no"], "text": "yes"}"#]), "yes");
        assert_eq!(read(&[r#"{"text": "a \ud83d"#, r#"\ude00 b"}"#]), "a 😀 b");
        assert_eq!(read(&[r#"{"text": 7}"#]), "");
    }

    proptest! {
        #[test]
        fn any_text_is_read_however_it_is_cut(text in "\\PC{0,40}", other in "\\PC{0,8}", cuts in proptest::collection::vec(1_usize..9, 0..40)) {
            let json = json!({"other": other, "text": text}).to_string();
            let (mut rest, mut answer, mut gained) = (json.as_str(), GrowingField::new("text"), String::new());
            for cut in cuts {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(cut.min(rest.len())));
                gained.push_str(&answer.push(piece));
                prop_assert!(text.starts_with(&gained));
                rest = after;
            }
            gained.push_str(&answer.push(rest));
            prop_assert_eq!(gained, text);
        }

        #[test]
        fn any_bytes_are_read(text in "(\\{|\\}|\\[|\"|:|,|\\\\|\\\\u|\\\\ud83d|text|\\PC){0,30}") {
            read(&[&text]);
        }
    }
}
