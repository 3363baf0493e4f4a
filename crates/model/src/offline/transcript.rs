//! Reads back what a conversation shows: the messages, and what was said before them. `cycle/decide/brief` writes the same elements.

use chrono::{DateTime, Utc};

use crate::conversation::SpokenMessage;

/// A message as it stands in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMessage {
    /// Its row.
    pub id: i64,
    /// When it was said.
    pub at: Option<DateTime<Utc>>,
    /// Whether it is a person's own words: not forwarded, and text.
    pub is_own_text: bool,
    /// Whether it replies to words that others may have had a hand in.
    pub is_reply: bool,
    /// The words that it replies to, if they are the assistant's or the person's own.
    pub replies_to: Option<String>,
    /// Whether it says what an earlier message says now.
    pub is_correction: bool,
    /// The words.
    pub text: String,
}

/// Reads the messages back that a user message shows.
pub fn shown(raw: &str) -> Vec<ShownMessage> {
    texts_that_begin(raw, "<messages>").iter().flat_map(|text| shown_in(text)).collect()
}

/// What was said earlier, as an opening tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Whether the assistant said it.
    pub is_mine: bool,
    /// When, as people read it.
    pub at: Option<String>,
    /// The words; none where they are withheld.
    pub text: Option<String>,
}

/// Reads the recent exchange back that a user message tells of, oldest first.
pub fn exchanged(raw: &str) -> Vec<Earlier> {
    texts_that_begin(raw, "<recent_exchange>").iter().flat_map(|text| exchanged_in(text)).collect()
}

/// A message's texts that begin so.
fn texts_that_begin(raw: &str, start: &str) -> Vec<String> {
    let message = SpokenMessage::read(raw);
    message
        .iter()
        .flat_map(|message| message.texts())
        .filter(|text| text.starts_with(start))
        .map(str::to_owned)
        .collect()
}

fn exchanged_in(block: &str) -> Vec<Earlier> {
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

fn shown_in(block: &str) -> Vec<ShownMessage> {
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
                text: unescape(body_after_quote),
            })
        })
        .collect()
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&")
}
