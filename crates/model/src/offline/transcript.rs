//! Parses the messages and the recent exchange from a conversation. `cycle/decide/brief` writes the same elements.

use chrono::{DateTime, Utc};

use reveille_base::words::SENT_AGAIN;

use crate::conversation::SpokenMessage;

/// A message shown in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMessage {
    /// The row in the queue.
    pub id: i64,
    /// Time of the message.
    pub at: Option<DateTime<Utc>>,
    /// True for text that the sender wrote, as opposed to a forwarded message.
    pub is_own_text: bool,
    /// True for a reply to possibly untrusted words.
    pub is_reply: bool,
    /// The quoted words, if they are the assistant's or the person's own.
    pub replies_to: Option<String>,
    /// True for an edit of an earlier message.
    pub is_correction: bool,
    /// The text.
    pub text: String,
}

/// Parses the messages shown in a user message.
pub fn parse_messages(raw: &str) -> Vec<ShownMessage> {
    texts_that_begin(raw, "<messages>").iter().flat_map(|text| parse_message_block(text)).collect()
}

/// An earlier statement in a conversation's opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// True for a statement of the assistant.
    pub is_mine: bool,
    /// The displayed time.
    pub at: Option<String>,
    /// The text. `None` if withheld.
    pub text: Option<String>,
}

/// Parses the recent exchange in a user message, oldest first.
pub fn parse_exchange(raw: &str) -> Vec<Earlier> {
    texts_that_begin(raw, "<recent_exchange>").iter().flat_map(|text| parse_exchange_block(text)).collect()
}

/// Returns the texts of a message that begin with `start`.
fn texts_that_begin(raw: &str, start: &str) -> Vec<String> {
    let message = SpokenMessage::parse(raw);
    message
        .iter()
        .flat_map(|message| message.texts())
        .filter(|text| text.starts_with(start))
        .map(str::to_owned)
        .collect()
}

fn parse_exchange_block(block: &str) -> Vec<Earlier> {
    let elements = block.split("\n<said ").skip(1);
    elements
        .map(|element| {
            let (head, rest) = element.split_once(">\n").unwrap_or((element, ""));
            let attribute = |name: &str| {
                let (_, value) = head.split_once(&format!("{name}=\""))?;
                Some(unescape(value.split_once('"')?.0))
            };
            let body = rest.rsplit_once("\n</said>").map(|(text, _)| unescape(text));
            let is_withheld = attribute("withheld").is_some();
            Earlier {
                is_mine: attribute("by").as_deref() == Some("you"),
                at: attribute("at"),
                text: body.filter(|_| !is_withheld),
            }
        })
        .collect()
}

fn parse_message_block(block: &str) -> Vec<ShownMessage> {
    let elements = block.split("<message ").skip(1);
    elements
        .filter_map(|element| {
            let (head, rest) = element.split_once(">\n")?;
            let body = rest.split_once("\n</message>")?.0;
            let body = body.split_once("\n<attachment ").map_or(body, |(text, _)| text);
            let attribute = |name: &str| {
                let (_, value) = head.split_once(&format!("{name}=\""))?;
                Some(unescape(value.split_once('"')?.0))
            };
            let (quote, body_after_quote) = match body.split_once("</quoted>\n") {
                Some((quote, text)) => (Some(quote), text),
                None => (None, body),
            };
            let own_quote = quote.and_then(|quote| quote.strip_prefix("<quoted own=\"yes\">")).map(unescape);
            Some(ShownMessage {
                id: attribute("id")?.parse().ok()?,
                at: attribute("at").and_then(|at| reveille_base::clock::parse_time(&at)),
                is_own_text: attribute("forwarded_from").is_none() && attribute("kind").as_deref() == Some("text"),
                is_reply: quote.is_some() && own_quote.is_none(),
                replies_to: own_quote,
                is_correction: attribute("kind").as_deref() == Some("correction"),
                text: unescape(without_mark(body_after_quote)),
            })
        })
        .collect()
}

/// Takes the mark of a repeated message off, which is none of its words.
fn without_mark(text: &str) -> &str {
    text.strip_prefix(SENT_AGAIN).map_or(text, str::trim_start)
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&")
}
