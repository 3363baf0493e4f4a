//! The origin of a line, from the comment that a wake puts at its end.

use reveille_base::types::ChatRef;

use super::text::split_comment;

/// The content of a line's comment: `wake ID message N chat C after ORIGINS`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineOrigin {
    /// The wake that wrote the line.
    pub wake: String,
    /// The message with this content.
    pub message: Option<i64>,
    /// The chat the line is for, if not the owner's.
    pub chat: Option<ChatRef>,
    /// The untrusted sources read by the wake beforehand.
    pub after: Option<String>,
}

/// Returns a line without its list mark and its comment.
pub fn strip_mark_and_comment(line: &str) -> &str {
    let text = split_comment(line).0.trim();
    text.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with([' ', '\t'])).map_or(text, str::trim)
}

/// Parses the origin comment at a line's end. `None` if no wake wrote the comment.
pub fn parse_origin(line: &str) -> Option<LineOrigin> {
    let comment = split_comment(line).1?;
    let (own, after) = match comment.split_once(" after ") {
        Some((own, after)) => (own, Some(after.trim().to_owned())),
        None => (comment, None),
    };
    let mut words = own.split_whitespace();
    if words.next() != Some("wake") {
        return None;
    }
    let mut origin = LineOrigin { wake: words.next()?.to_owned(), after, ..LineOrigin::default() };
    while let Some(word) = words.next() {
        match word {
            "message" => origin.message = words.next().and_then(|number| number.parse().ok()),
            "chat" => origin.chat = words.next().and_then(|chat| chat.parse().ok()),
            _ => {}
        }
    }
    Some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lines_comment_is_read_and_a_persons_own_is_none() {
        let line =
            "- Eve is kind <!-- wake 20261121T140302Z-812 message 41 chat 5555 after https://example.org, a file -->\n";
        assert_eq!(strip_mark_and_comment(line), "Eve is kind");
        assert_eq!(
            parse_origin(line),
            Some(LineOrigin {
                wake: "20261121T140302Z-812".to_owned(),
                message: Some(41),
                chat: Some(ChatRef::from_telegram(5555)),
                after: Some("https://example.org, a file".to_owned()),
            })
        );
        let own = parse_origin("- 14:03 did it <!-- wake 1 own -->").unwrap();
        assert_eq!((own.wake.as_str(), own.message, own.after), ("1", None, None));
        assert_eq!(
            (parse_origin("- by hand"), parse_origin("- x <!-- a note -->"), parse_origin("- x <!-- wake -->")),
            (None, None, None)
        );
    }
}
