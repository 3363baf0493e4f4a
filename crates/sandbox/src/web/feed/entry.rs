//! A feed entry during parsing, with candidates for its link and title.

use reqwest::Url;

use super::FeedEntry;
use crate::web::clean::clean_line;

/// Maximum length of an entry's title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of an entry's link, in bytes. A longer link is dropped, because a cut one would lead elsewhere.
const MAX_LINK_BYTES: usize = 2_000;
/// Maximum number of links compared for an entry.
const MAX_LINKS: usize = 50;
/// Allowed schemes of links.
const SCHEMES: [&str; 6] = ["https", "http", "ftp", "gemini", "gopher", "magnet"];

/// The meaning of an address for its entry. The best resolvable address becomes the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkRank {
    /// The page itself, where the feed's own link goes through a click counter.
    Original,
    /// The page.
    Page,
    /// The entry in another format than HTML.
    OtherFormat,
    /// The subject of the entry.
    Related,
    /// The entry's id, if that is an address.
    Id,
    /// The entry's address within the feed.
    Itself,
    /// An attached file.
    Enclosure,
}

/// An unfinished entry.
#[derive(Debug, Default)]
pub(super) struct EntryDraft {
    pub(super) id: String,
    pub(super) title: String,
    /// The beginning of the text, used if there is no title.
    pub(super) summary: String,
    links: Vec<(LinkRank, String, Option<Url>)>,
}

impl EntryDraft {
    /// Creates an entry with only an id.
    pub(super) fn with_id(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Adds an address, with the base given by the document.
    pub(super) fn add_link(&mut self, rank: LinkRank, href: &str, base: Option<Url>) {
        if !href.trim().is_empty() && self.links.len() < MAX_LINKS {
            self.links.push((rank, href.trim().to_owned(), base));
        }
    }

    /// Finishes the entry. Relative links without a base of their own are resolved against `base`. `None` if the entry is empty.
    pub(super) fn finish(mut self, base: &Url) -> Option<FeedEntry> {
        self.links.sort_by_key(|(rank, ..)| *rank);
        let mut links = self.links.iter();
        let link = links.find_map(|(_, href, own)| resolve_link(href, own.as_ref().unwrap_or(base)));
        // If all links are attached files, the name of the file can serve as the title.
        let file = link
            .as_deref()
            .and_then(|link| link.rsplit('/').next())
            .filter(|_| self.links.first().is_some_and(|(rank, ..)| *rank == LinkRank::Enclosure));
        let words = [self.title.as_str(), &self.summary, file.unwrap_or_default()];
        let title = words.iter().map(|words| clean_line(words, MAX_TITLE_CHARS)).find(|title| !title.is_empty());
        let id = self.id.trim().to_owned();
        (!id.is_empty() || title.is_some() || link.is_some()).then(|| FeedEntry {
            id,
            title: title.unwrap_or_default(),
            link,
        })
    }
}

/// Resolves an address of an allowed scheme. Doubly escaped ampersands are repaired.
fn resolve_link(href: &str, base: &Url) -> Option<String> {
    let href: String = href.replace("&amp;", "&").chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    let href = if href.starts_with("www.") { format!("https://{href}") } else { href };
    let url = base.join(&href).ok().filter(|url| SCHEMES.contains(&url.scheme()))?;
    // A link in its own script is easier to read than percent codes.
    let is_whole = Url::parse(&href).is_ok() && href.contains("://") && !href.contains(char::is_whitespace);
    let link = if is_whole { clean_line(&href, MAX_LINK_BYTES) } else { url.to_string() };
    (link.len() <= MAX_LINK_BYTES).then_some(link)
}
