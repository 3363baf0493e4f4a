//! What is watched behind an address: a feed's entries, where a feed comes, else the page as any reader has it.

use feed_rs::{
    model::{Entry, Link, Text},
    parser,
};

use super::{
    Gate, Page, Web, WebError,
    clean::line,
    fetch::{Ask, Fetched},
    page::{self, off_thread, origin},
};

/// Entries of a feed that are looked at, as it lists them.
const MAX_ENTRIES: usize = 200;
/// The longest title of an entry, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// The longest link of an entry, in characters.
const MAX_LINK_CHARS: usize = 500;
/// How far into a body is looked for what it is, in bytes.
const SNIFFED_BYTES: usize = 1_024;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedPage {
    /// A page, or any other text.
    Page(Page),
    /// A feed: `https://host`, whose words these are, and its entries.
    Feed(String, Vec<FeedEntry>),
}

/// An entry of a feed. Its words are others' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    /// What tells it from others.
    pub id: String,
    /// On one line; empty if it has none.
    pub title: String,
    /// Where it leads.
    pub link: Option<String>,
}

impl Web {
    /// Looks at what is behind a URL. The gate is asked as for [`Web::page`].
    ///
    /// # Errors
    /// Why it can't be read, in words of ours.
    pub async fn watched(&self, url: &str, gate: Gate<'_>) -> Result<WatchedPage, WebError> {
        let fetched = self.fetch(Ask { url, headers: reqwest::header::HeaderMap::new(), gate }).await?;
        off_thread(move || read(&fetched)).await?
    }
}

fn read(fetched: &Fetched) -> Result<WatchedPage, WebError> {
    if !is_feed(&fetched.body) {
        return page::read(fetched).map(WatchedPage::Page);
    }
    if fetched.is_cut {
        return Err(WebError::Unreadable("It is a feed that is too long to be read."));
    }
    // As bytes: a feed says itself how it is encoded.
    // An entry without an id of its own is known by what it says; the crate would make up another id at each look.
    let by_words = |links: &[Link], title: &Option<Text>, _: Option<&str>| {
        let link = links.first().map(|link| link.href.as_str()).unwrap_or_default();
        format!("{link} {}", title.as_ref().map(|title| title.content.as_str()).unwrap_or_default())
    };
    let reader = parser::Builder::new().id_generator(by_words).build();
    let feed =
        reader.parse(fetched.body.as_slice()).map_err(|_| WebError::Unreadable("It is a feed that can't be read."))?;
    Ok(WatchedPage::Feed(origin(&fetched.url), feed.entries.into_iter().take(MAX_ENTRIES).map(entry).collect()))
}

/// By how it begins: feeds come as any type.
fn is_feed(body: &[u8]) -> bool {
    let (head, _) = body.split_at(body.len().min(SNIFFED_BYTES));
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let begins = head.trim_start_matches('\u{feff}').trim_start();
    let is_xml = begins.starts_with("<?xml") || begins.starts_with("<rss") || begins.starts_with("<feed");
    let is_json = begins.starts_with('{') && begins.contains("jsonfeed.org/version/");
    is_json || is_xml && ["<rss", "<feed", "<rdf:rdf"].iter().any(|root| begins.contains(root))
}

fn entry(entry: Entry) -> FeedEntry {
    let link = entry.links.into_iter().map(|link| line(&link.href, MAX_LINK_CHARS)).find(|link| !link.is_empty());
    let title = entry.title.map(|title| line(&title.content, MAX_TITLE_CHARS)).unwrap_or_default();
    FeedEntry { id: entry.id, title, link }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(content_type: &str, body: &[u8]) -> Result<WatchedPage, WebError> {
        read(&Fetched {
            url: "https://example.org/feed".parse().unwrap(),
            content_type: Some(content_type.to_owned()),
            body: body.to_vec(),
            is_cut: false,
        })
    }

    fn entries(body: &str) -> Vec<(String, Option<String>)> {
        match read_as("text/html", body.as_bytes()).unwrap() {
            WatchedPage::Feed(origin, entries) => {
                assert_eq!(origin, "https://example.org");
                entries.into_iter().map(|entry| (entry.title, entry.link)).collect()
            }
            page => panic!("{page:?}"),
        }
    }

    #[test]
    fn every_kind_of_feed_is_known_by_what_comes() {
        let wanted = [("One & only".to_owned(), Some("https://example.org/1".to_owned()))];
        for feed in [
            "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>T</title><link>https://example.org</link><description>D</description>\
             <item><title>One &amp; only</title><link>https://example.org/1</link><guid>1</guid></item></channel></rss>",
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>T</title><id>f</id><updated>2026-11-21T14:00:00Z</updated>\
             <entry><title>One &amp; only</title><id>1</id><link href=\"https://example.org/1\"/><updated>2026-11-21T14:00:00Z</updated></entry></feed>",
            "{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"T\", \"items\": [{\"id\": \"1\", \"title\": \"One & only\", \
             \"url\": \"https://example.org/1\", \"content_text\": \"x\"}]}",
        ] {
            assert_eq!(entries(feed), wanted, "{feed}");
        }
    }

    #[test]
    fn what_is_no_feed_is_a_page_and_a_broken_feed_is_told() {
        let page = read_as("text/html", b"<title>T</title><p>About &lt;rss").unwrap();
        assert!(matches!(page, WatchedPage::Page(Page { text, .. }) if text == "About <rss"));
        let broken = read_as("application/xml", b"<?xml version=\"1.0\"?><rss><channel><item>");
        assert!(matches!(broken, Ok(WatchedPage::Feed(..)) | Err(WebError::Unreadable(_))), "{broken:?}");
    }

    #[test]
    fn a_feed_that_is_made_for_it_does_no_harm() {
        let deep = format!("<rss version=\"2.0\"><channel>{}", "<a>".repeat(300_000));
        let wide = format!(
            "<rss version=\"2.0\"><channel><title>T</title>{}</channel></rss>",
            "<item><title>x</title></item>".repeat(20_000)
        );
        let entity = "<?xml version=\"1.0\"?><!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><rss version=\"2.0\"><channel><title>&b;</title></channel></rss>";
        for feed in [deep.as_str(), entity] {
            drop(read_as("application/rss+xml", feed.as_bytes()));
        }
        assert_eq!(entries(&wide).len(), MAX_ENTRIES);
    }

    #[test]
    fn entries_without_ids_are_the_same_at_each_look() {
        let feed = b"<rss version=\"2.0\"><channel><title>T</title><link>https://example.org</link><description>D</description>\
            <item><title>One</title></item><item><title>Two</title></item></channel></rss>";
        let ids = || match read_as("text/xml", feed).unwrap() {
            WatchedPage::Feed(_, entries) => entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>(),
            page => panic!("{page:?}"),
        };
        let first = ids();
        assert!(first == ids() && first[0] != first[1], "{first:?}");
    }
}
