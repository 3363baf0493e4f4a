//! JSON Feed of any version, tolerant of publishers' mistakes: numbers as ids, raw line breaks, lone surrogates.

use reqwest::Url;
use serde_json::Value;

use super::{
    EntryDraft, FeedEntry, LinkRank,
    title::{TextFormat, extract_words},
};

/// The format's mark in a feed's `version`.
const VERSION: &str = "jsonfeed.org/version/";

/// Returns true if a text may be a JSON feed. Some programs escape the slashes of the mark.
pub(super) fn may_be_json_feed(text: &str, is_declared: bool) -> bool {
    text.trim_start().starts_with('{')
        && (is_declared || text.contains(VERSION) || text.contains(&VERSION.replace('/', "\\/")))
}

/// Reads the entries of a JSON feed. `None` if the text isn't a feed; an error if its JSON is invalid.
pub(super) fn read_entries(text: &str, feed_url: &Url) -> Result<Option<Vec<FeedEntry>>, serde_json::Error> {
    // A raw line break is invalid within a string, and equals a blank elsewhere.
    let text = text.trim().replace(['\n', '\r', '\t'], " ");
    let feed: Value = serde_json::from_str(&text).or_else(|_| serde_json::from_str(&mend_surrogates(&text)))?;
    let Some(items) = feed.get("items").and_then(Value::as_array) else { return Ok(None) };
    let site = read_string(&feed, "home_page_url").and_then(|url| Url::parse(&url).ok());
    let base = site.as_ref().unwrap_or(feed_url);
    Ok(Some(items.iter().filter(|item| item.is_object()).filter_map(|item| read_entry(item, base)).collect()))
}

fn read_entry(item: &Value, base: &Url) -> Option<FeedEntry> {
    let mut draft = EntryDraft::with_id(read_string(item, "id").unwrap_or_default());
    let id_as_link = Some(draft.id.clone()).filter(|id| id.contains("://"));
    let links = [
        (LinkRank::Page, read_string(item, "url")),
        (LinkRank::Related, read_string(item, "external_url")),
        (LinkRank::Id, id_as_link),
        (LinkRank::Enclosure, item.pointer("/attachments/0").and_then(|attachment| read_string(attachment, "url"))),
    ];
    for (rank, link) in links.into_iter().filter_map(|(rank, link)| Some((rank, link?))) {
        draft.add_link(rank, &link, None);
    }
    draft.title = extract_words(&read_string(item, "title").unwrap_or_default(), TextFormat::Escaped);
    for (name, format) in
        [("summary", TextFormat::Escaped), ("content_text", TextFormat::Plain), ("content_html", TextFormat::Html)]
    {
        if draft.summary.trim().is_empty() {
            draft.summary = extract_words(&read_string(item, name).unwrap_or_default(), format);
        }
    }
    draft.finish(base)
}

/// Returns a string, or a number as a string.
fn read_string(value: &Value, name: &str) -> Option<String> {
    match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Replaces each `\u` escape of a lone surrogate.
fn mend_surrogates(text: &str) -> String {
    let unit = |at: usize| {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut mended, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = rest.find('\\').unwrap_or(rest.len());
        mended.push_str(rest.get(..plain).unwrap_or_default());
        at += plain;
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push('\u{fffd}');
                at += 6;
                continue;
            }
            // A backslash with its escaped character.
            _ => text.get(at..).map_or(0, |rest| rest.chars().take(2).map(char::len_utf8).sum()),
        };
        mended.push_str(text.get(at..at + length).unwrap_or_default());
        at += length;
    }
    mended
}
