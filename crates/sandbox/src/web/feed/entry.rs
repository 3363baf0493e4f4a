//! An entry while it is read: the addresses and words that may become its link and title.

use reqwest::Url;

use super::FeedEntry;
use crate::web::clean::line;

/// The longest title of an entry, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// The longest link of an entry, in bytes. A longer one isn't told: cut off it would lead elsewhere.
const MAX_LINK_BYTES: usize = 2_000;
/// The most links of an entry that are compared.
const MAX_LINKS: usize = 50;
/// The schemes of links that are told.
const SCHEMES: [&str; 6] = ["https", "http", "ftp", "gemini", "gopher", "magnet"];

/// What an address is to its entry. The best one that can be resolved is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkRank {
    /// The page, where the feed's own link leads through a counter.
    Original,
    /// The page.
    Page,
    /// The entry in another format than HTML.
    OtherFormat,
    /// What the entry is about.
    Related,
    /// The entry's id, which is an address.
    Id,
    /// The entry as the feed has it.
    Itself,
    /// A file that belongs to it.
    Enclosure,
}

/// What has been read of an entry.
#[derive(Debug, Default)]
pub(super) struct EntryDraft {
    pub(super) id: String,
    pub(super) title: String,
    /// What stands in for a title: the beginning of the text.
    pub(super) summary: String,
    links: Vec<(LinkRank, String, Option<Url>)>,
}

impl EntryDraft {
    /// An entry of which nothing but the id is known.
    pub(super) fn of_id(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Notes an address, with the base that the document gives for it.
    pub(super) fn add_link(&mut self, rank: LinkRank, href: &str, base: Option<Url>) {
        if !href.trim().is_empty() && self.links.len() < MAX_LINKS {
            self.links.push((rank, href.trim().to_owned(), base));
        }
    }

    /// The entry, with links that are relative resolved against `base` where the document gives none; `None` if nothing stands in it.
    pub(super) fn finish(mut self, base: &Url) -> Option<FeedEntry> {
        self.links.sort_by_key(|(rank, ..)| *rank);
        let mut links = self.links.iter();
        let link = links.find_map(|(_, href, own)| resolve_link(href, own.as_ref().unwrap_or(base)));
        let file = link
            .as_deref()
            .and_then(|link| link.rsplit('/').next())
            .filter(|_| self.links.first().is_some_and(|(rank, ..)| *rank == LinkRank::Enclosure));
        let words = [self.title.as_str(), &self.summary, file.unwrap_or_default()];
        let title = words.iter().map(|words| line(words, MAX_TITLE_CHARS)).find(|title| !title.is_empty());
        let id = self.id.trim().to_owned();
        (!id.is_empty() || title.is_some() || link.is_some()).then(|| FeedEntry {
            id,
            title: title.unwrap_or_default(),
            link,
        })
    }
}

/// An absolute address of a scheme that can be told. Ampersands that were escaped twice are mended.
fn resolve_link(href: &str, base: &Url) -> Option<String> {
    let href: String = href.replace("&amp;", "&").chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    let href = if href.starts_with("www.") { format!("https://{href}") } else { href };
    let url = base.join(&href).ok().filter(|url| SCHEMES.contains(&url.scheme()))?;
    // Letters of other scripts are read more easily than their codes.
    let is_whole = Url::parse(&href).is_ok() && href.contains("://") && !href.contains(char::is_whitespace);
    let link = if is_whole { line(&href, MAX_LINK_BYTES) } else { url.to_string() };
    (link.len() <= MAX_LINK_BYTES).then_some(link)
}
