//! RSS of every version and Atom, tolerant of unclosed and misnested tags and of undeclared namespaces.
//!
//! One pass over the markup. Entries are `item` or `entry` elements at any depth; their fields are direct children. An
//! unclosed field ends at the first tag that it can't contain.

use std::collections::HashMap;

use html5ever::Attribute;
use reqwest::Url;

use reveille_base::words::first_bytes;

use super::{
    EntryDraft, FeedEntry, LinkRank,
    entities::OwnEntities,
    markup::{Markup, find_attribute},
    title::{MAX_SEARCHED_BYTES, TextFormat, decode_entities, extract_words, is_block},
};

/// Maximum nesting of elements. Deeper ones are treated as if at this depth.
const MAX_DEPTH: usize = 256;
/// Maximum number of entries, in feed order.
const MAX_ENTRIES: usize = 2_000;
/// Field names that never occur as tags in another field's text.
const FIELDS: [&str; 9] = ["guid", "pubdate", "enclosure", "updated", "published", "modified", "issued", "id", "link"];
/// Further such names, valid only within short fields.
const FIELDS_IN_SHORT: [&str; 8] =
    ["title", "description", "summary", "content", "author", "category", "comments", "source"];

/// The vocabulary of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vocabulary {
    /// RSS, Atom, or no namespace.
    Feed,
    Rdf,
    Media,
    Dublin,
    Content,
    Itunes,
    FeedBurner,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Title,
    /// A title of another vocabulary, used if there is no other.
    OtherTitle,
    Summary,
    Id,
    /// An id of another vocabulary, used if there is no other.
    OtherId,
    Link(LinkRank),
    /// The address of the site.
    Site,
}

/// An unfinished field.
struct OpenField {
    kind: FieldKind,
    format: TextFormat,
    text: String,
    /// True if the field contains tags.
    has_tags: bool,
    /// The number of open elements, including this field.
    depth: usize,
    is_permalink: bool,
    base: Option<Url>,
}

struct OpenElement {
    /// The name as written, with its prefix.
    name: String,
    is_channel: bool,
    base: Option<Url>,
}

/// Returns true if the markup is a feed. Text before the root is skipped, such as a program's warnings, unless it is HTML.
pub(super) fn is_feed(pieces: &[Markup], is_plain_text: bool) -> bool {
    let mut is_first = true;
    for piece in pieces {
        match piece {
            Markup::Open(name, attributes) => match strip_name_prefix(name) {
                "html" | "head" | "body" | "svg" => return false,
                "rdf" => return is_rss_rdf(pieces, attributes),
                "rss" | "feed" => return true,
                "channel" | "entry" if is_first => return true,
                _ if is_plain_text => return false,
                _ => is_first = false,
            },
            Markup::Doctype(name) if name == "html" => return false,
            Markup::Text(text) if is_plain_text && !text.trim().is_empty() => return false,
            _ => {}
        }
    }
    false
}

/// Returns true if RDF is RSS. Other RDF has neither a channel nor items.
fn is_rss_rdf(pieces: &[Markup], attributes: &[Attribute]) -> bool {
    let is_rss = |uri: &str| uri.contains("purl.org/rss/") || uri.contains("netscape.com/rdf/");
    attributes.iter().any(|attribute| is_rss(&attribute.value))
        || pieces.iter().any(
            |piece| matches!(piece, Markup::Open(name, _) if ["channel", "item"].contains(&strip_name_prefix(name))),
        )
}

/// Reads the entries. If `is_cut`, an unfinished entry is dropped.
pub(super) fn read_entries(
    pieces: Vec<Markup>,
    entities: &OwnEntities,
    feed_url: &Url,
    is_cut: bool,
) -> Vec<FeedEntry> {
    let mut reader = Reader::new(feed_url, entities);
    for piece in pieces {
        match piece {
            Markup::Open(name, attributes) => reader.open_element(&name, &attributes),
            Markup::Close(name) => reader.close_element(&name),
            Markup::Text(text) => reader.add_text(&text),
            Markup::Doctype(_) => {}
        }
    }
    if !is_cut {
        reader.close_to_depth(0);
    }
    let base = reader.base_of_entries();
    reader.drafts.into_iter().filter_map(|draft| draft.finish(&base)).collect()
}

struct Reader<'a> {
    feed_url: &'a Url,
    entities: &'a OwnEntities,
    is_atom: bool,
    prefixes: HashMap<String, Vocabulary>,
    open: Vec<OpenElement>,
    /// The number of open elements beyond the maximum.
    beyond: usize,
    field: Option<OpenField>,
    /// The unfinished entry, and the number of open elements including it.
    draft: Option<(EntryDraft, usize)>,
    drafts: Vec<EntryDraft>,
    site: Option<Url>,
}

impl<'a> Reader<'a> {
    fn new(feed_url: &'a Url, entities: &'a OwnEntities) -> Self {
        Self {
            feed_url,
            entities,
            is_atom: false,
            prefixes: HashMap::new(),
            open: Vec::new(),
            beyond: 0,
            field: None,
            draft: None,
            drafts: Vec::new(),
            site: None,
        }
    }

    /// Returns the base of relative links. RSS uses its site, which may differ from the feed's host. Atom uses the
    /// feed's own address, unless the feed is another host's copy.
    fn base_of_entries(&self) -> Url {
        let is_taken = |site: &&Url| !self.is_atom || site.origin() != self.feed_url.origin();
        self.site.as_ref().filter(is_taken).unwrap_or(self.feed_url).clone()
    }

    fn open_element(&mut self, name: &str, attributes: &[Attribute]) {
        self.note_prefixes(attributes);
        let (vocabulary, local) = (self.find_vocabulary(name, attributes), strip_name_prefix(name));
        if self.open.is_empty() && self.drafts.is_empty() {
            self.is_atom |= matches!(local, "feed" | "entry");
        }
        let is_item = vocabulary == Vocabulary::Feed && matches!(local, "item" | "entry");
        if is_item {
            // An unclosed entry ends here.
            self.end_draft();
        } else if self.ends_field(vocabulary, local) {
            let depth = self.field.as_ref().map_or(0, |field| field.depth);
            self.close_to_depth(depth.saturating_sub(1));
        }
        let base = self.inherited_base(attributes);
        let is_channel = vocabulary == Vocabulary::Feed && matches!(local, "channel" | "feed");
        let is_inner = self.open.last().is_some_and(|parent| parent.is_channel);
        if self.open.len() < MAX_DEPTH {
            self.open.push(OpenElement { name: name.to_owned(), is_channel, base: base.clone() });
        } else {
            self.beyond += 1;
        }
        if is_item {
            let id = find_attribute(attributes, "rdf:about").unwrap_or_default();
            let mut draft = EntryDraft::with_id(id);
            draft.add_link(LinkRank::Id, id, base);
            self.draft = Some((draft, self.open.len()));
        } else if let Some(field) = &mut self.field {
            field.has_tags = true;
            if is_block(local) {
                field.text.push(' ');
            }
            self.note_media(vocabulary, local, attributes, base);
        } else if self.draft.is_some() {
            self.open_field(vocabulary, local, attributes, base);
        } else if is_inner && vocabulary == Vocabulary::Feed && local == "link" {
            self.open_site(attributes, base);
        }
    }

    fn note_prefixes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            if let Some(prefix) = attribute.name.local.strip_prefix("xmlns:") {
                self.prefixes.insert(prefix.to_owned(), parse_vocabulary(&attribute.value));
            }
        }
    }

    fn find_vocabulary(&self, name: &str, attributes: &[Attribute]) -> Vocabulary {
        let Some((prefix, _)) = name.split_once(':') else {
            // The default namespace of RSS is often wrong, so most values count as the feed's own.
            let own = find_attribute(attributes, "xmlns").filter(|uri| !self.open.is_empty() && !uri.is_empty());
            return match own.map(parse_vocabulary) {
                Some(Vocabulary::Other) if !own.is_some_and(|uri| uri.contains("w3.org/")) => Vocabulary::Feed,
                own => own.unwrap_or(Vocabulary::Feed),
            };
        };
        self.prefixes.get(prefix).copied().unwrap_or_else(|| usual_vocabulary(prefix))
    }

    fn inherited_base(&self, attributes: &[Attribute]) -> Option<Url> {
        let above = self.open.last().and_then(|parent| parent.base.as_ref());
        let own =
            find_attribute(attributes, "xml:base").and_then(|base| above.unwrap_or(self.feed_url).join(base).ok());
        own.or_else(|| above.cloned())
    }

    /// Returns true if a tag can't be part of the open field, which was left unclosed.
    fn ends_field(&self, vocabulary: Vocabulary, local: &str) -> bool {
        let Some(field) = &self.field else { return false };
        if vocabulary != Vocabulary::Feed {
            return matches!(vocabulary, Vocabulary::Dublin | Vocabulary::Content | Vocabulary::Itunes);
        }
        let is_long = field.kind == FieldKind::Summary;
        FIELDS.contains(&local) || !is_long && FIELDS_IN_SHORT.contains(&local)
    }

    fn open_field(&mut self, vocabulary: Vocabulary, local: &str, attributes: &[Attribute], base: Option<Url>) {
        self.note_media(vocabulary, local, attributes, base.clone());
        let Some((draft, draft_depth)) = &mut self.draft else { return };
        let is_direct = self.open.len() == *draft_depth + 1 && self.beyond == 0;
        let href = find_attribute(attributes, "href").or_else(|| find_attribute(attributes, "rdf:resource"));
        let kind = match (vocabulary, local) {
            (Vocabulary::Media, "title") => FieldKind::OtherTitle,
            _ if !is_direct => return,
            (Vocabulary::Feed, "title") => FieldKind::Title,
            (Vocabulary::Itunes | Vocabulary::Dublin, "title") => FieldKind::OtherTitle,
            (Vocabulary::Feed, "description" | "summary" | "content" | "tagline")
            | (Vocabulary::Content, "encoded") => {
                if let Some(source) = find_attribute(attributes, "src") {
                    draft.add_link(LinkRank::Related, source, base.clone());
                }
                FieldKind::Summary
            }
            (Vocabulary::Feed, "guid" | "id") => FieldKind::Id,
            (Vocabulary::Dublin, "identifier") => FieldKind::OtherId,
            (Vocabulary::Feed, "link") => match href {
                Some(href) => {
                    if let Some(rank) = rank_link(attributes) {
                        draft.add_link(rank, href, base);
                    }
                    return;
                }
                None => FieldKind::Link(LinkRank::Page),
            },
            (Vocabulary::FeedBurner, "origlink") => FieldKind::Link(LinkRank::Original),
            _ => return,
        };
        let format = match self.find_text_format(attributes) {
            // Descriptions are HTML by custom.
            TextFormat::Undeclared if kind == FieldKind::Summary => TextFormat::Html,
            format => format,
        };
        let is_permalink =
            !find_attribute(attributes, "ispermalink").is_some_and(|said| said.eq_ignore_ascii_case("false"));
        let depth = self.open.len();
        self.field = Some(OpenField { kind, format, text: String::new(), has_tags: false, depth, is_permalink, base });
    }

    /// Adds the files of an entry, at any depth.
    fn note_media(&mut self, vocabulary: Vocabulary, local: &str, attributes: &[Attribute], base: Option<Url>) {
        let Some((draft, _)) = &mut self.draft else { return };
        let is_file =
            matches!((vocabulary, local), (Vocabulary::Feed, "enclosure") | (Vocabulary::Media, "content" | "player"));
        let url = find_attribute(attributes, "url").or_else(|| find_attribute(attributes, "rdf:resource"));
        if let Some(url) = url.filter(|_| is_file) {
            draft.add_link(LinkRank::Enclosure, url, base);
        }
    }

    fn open_site(&mut self, attributes: &[Attribute], base: Option<Url>) {
        let Some(href) = find_attribute(attributes, "href") else {
            let depth = self.open.len();
            let (kind, format) = (FieldKind::Site, TextFormat::Plain);
            let field =
                OpenField { kind, format, text: String::new(), has_tags: false, depth, is_permalink: false, base };
            self.field = Some(field);
            return;
        };
        if rank_link(attributes) == Some(LinkRank::Page) {
            self.note_site(href, base.as_ref());
        }
    }

    fn note_site(&mut self, href: &str, base: Option<&Url>) {
        let site = base.unwrap_or(self.feed_url).join(href.trim()).ok();
        let site = site.filter(|site| !href.trim().is_empty() && matches!(site.scheme(), "http" | "https"));
        self.site = self.site.take().or(site);
    }

    /// Returns the text format for a field with these attributes.
    fn find_text_format(&self, attributes: &[Attribute]) -> TextFormat {
        let kind = find_attribute(attributes, "type").unwrap_or_default().to_ascii_lowercase();
        match (kind.as_str(), find_attribute(attributes, "mode")) {
            (kind, None | Some("escaped")) if kind.ends_with("html") && !kind.contains("xhtml") => TextFormat::Html,
            (kind, _) if kind.contains("html") || kind.contains("xml") => TextFormat::Plain,
            ("", _) if self.is_atom => TextFormat::Escaped,
            ("text" | "text/plain", _) if self.is_atom => TextFormat::Plain,
            _ => TextFormat::Undeclared,
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(field) = &mut self.field {
            let room = MAX_SEARCHED_BYTES.saturating_sub(field.text.len());
            field.text.push_str(first_bytes(text, room));
        }
    }

    /// Closes the element named by an end tag, with all inner elements. An end tag without a start is ignored.
    fn close_element(&mut self, name: &str) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        if let Some(field) = self.field.as_mut().filter(|_| is_block(strip_name_prefix(name))) {
            field.text.push(' ');
        }
        if let Some(at) = self.open.iter().rposition(|element| element.name == name) {
            self.close_to_depth(at);
        }
    }

    /// Closes elements down to a depth.
    fn close_to_depth(&mut self, depth: usize) {
        self.beyond = 0;
        if self.field.as_ref().is_some_and(|field| field.depth > depth) {
            self.end_field();
        }
        if self.draft.as_ref().is_some_and(|(_, own)| *own > depth) {
            self.end_draft();
        }
        self.open.truncate(depth);
    }

    fn end_field(&mut self) {
        let Some(mut field) = self.field.take() else { return };
        field.text = self.entities.replace(field.text);
        if field.kind == FieldKind::Site {
            self.note_site(&field.text, field.base.as_ref());
            return;
        }
        let Some((draft, _)) = &mut self.draft else { return };
        // Unescaped tags have already been removed.
        let format = if field.has_tags { TextFormat::Plain } else { field.format };
        match field.kind {
            FieldKind::Title => {
                let words = extract_words(&field.text, format);
                if !words.trim().is_empty() {
                    draft.title = words;
                }
            }
            FieldKind::OtherTitle if draft.title.trim().is_empty() => draft.title = extract_words(&field.text, format),
            FieldKind::Summary if draft.summary.trim().is_empty() => {
                draft.summary = extract_words(&field.text, format);
            }
            FieldKind::Id => {
                let id = field.text.trim();
                let is_link = field.is_permalink && (id.starts_with("http://") || id.starts_with("https://"));
                if !id.is_empty() {
                    id.clone_into(&mut draft.id);
                }
                if is_link {
                    draft.add_link(LinkRank::Id, id, None);
                }
            }
            FieldKind::OtherId if draft.id.is_empty() => field.text.trim().clone_into(&mut draft.id),
            FieldKind::Link(rank) => draft.add_link(rank, &decode_entities(&field.text), field.base),
            FieldKind::OtherTitle | FieldKind::Summary | FieldKind::OtherId | FieldKind::Site => {}
        }
    }

    fn end_draft(&mut self) {
        self.end_field();
        if let Some((draft, depth)) = self.draft.take() {
            self.open.truncate(depth.saturating_sub(1));
            if self.drafts.len() < MAX_ENTRIES {
                self.drafts.push(draft);
            }
        }
    }
}

/// Returns a name without its prefix.
fn strip_name_prefix(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

fn parse_vocabulary(uri: &str) -> Vocabulary {
    let uri = uri.trim().to_ascii_lowercase();
    let known = [
        ("1999/02/22-rdf-syntax", Vocabulary::Rdf),
        ("search.yahoo.com/mrss", Vocabulary::Media),
        ("purl.org/dc/", Vocabulary::Dublin),
        ("purl.org/rss/1.0/modules/content", Vocabulary::Content),
        ("itunes.com/", Vocabulary::Itunes),
        ("feedburner", Vocabulary::FeedBurner),
        ("w3.org/2005/atom", Vocabulary::Feed),
        ("purl.org/atom/", Vocabulary::Feed),
    ];
    let found = known.iter().find(|(part, _)| uri.contains(part)).map(|(_, vocabulary)| *vocabulary);
    let is_rss =
        || uri.contains("netscape.com/rdf/") || uri.contains("userland.com/") || uri.ends_with("purl.org/rss/1.0/");
    found.unwrap_or_else(|| if is_rss() { Vocabulary::Feed } else { Vocabulary::Other })
}

/// Returns the vocabulary of an undeclared prefix.
fn usual_vocabulary(prefix: &str) -> Vocabulary {
    match prefix {
        "atom" | "a10" | "rss" => Vocabulary::Feed,
        "rdf" => Vocabulary::Rdf,
        "media" => Vocabulary::Media,
        "dc" => Vocabulary::Dublin,
        "content" => Vocabulary::Content,
        "itunes" => Vocabulary::Itunes,
        "feedburner" => Vocabulary::FeedBurner,
        _ => Vocabulary::Other,
    }
}

/// Returns the rank of an Atom link; `None` if irrelevant for the entry.
fn rank_link(attributes: &[Attribute]) -> Option<LinkRank> {
    let relation = find_attribute(attributes, "rel").unwrap_or_default().to_ascii_lowercase();
    let kind = find_attribute(attributes, "type").unwrap_or_default().to_ascii_lowercase();
    match relation.rsplit('/').next().unwrap_or_default() {
        "" | "alternate" if kind.is_empty() || kind.contains("html") => Some(LinkRank::Page),
        "" | "alternate" => Some(LinkRank::OtherFormat),
        "related" | "via" => Some(LinkRank::Related),
        "self" => Some(LinkRank::Itself),
        "enclosure" => Some(LinkRank::Enclosure),
        _ => None,
    }
}
