//! Converts Markdown events to text with spans, which defines the look of each block and mark in a chat.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Tag, TagEnd};

use super::{
    Links,
    split::is_blank,
    styled::{Style, Styled},
    table::Table,
    writer::Writer,
};
use crate::markdown::{render_events, with_line_feeds};

/// The maximum length of a link's address, in bytes; longer ones are shown as text.
const URL_BYTES_MAX: usize = 2048;
/// The maximum length of a code block's language name, in characters.
const LANGUAGE_CHARS_MAX: usize = 32;

/// Renders Markdown to styled text. If nothing would be visible, the source is shown instead.
pub(super) fn parse_markdown(markdown: &str, links: Links) -> Styled {
    let mut reader = Reader { links, out: Writer::default(), lists: Vec::new(), open_links: Vec::new(), raw: None };
    render_events(markdown, |event| reader.on_event(event));
    let styled = reader.out.finish();
    let source = || with_line_feeds(markdown).trim().to_owned();
    if is_blank(&styled.text) { Styled { text: source(), spans: Vec::new() } } else { styled }
}

struct Reader {
    links: Links,
    out: Writer,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    open_links: Vec<OpenLink>,
    /// The block being collected, for layouts that need the whole content.
    raw: Option<Raw>,
}

/// A block written when it ends.
enum Raw {
    Code { language: Option<String>, text: String },
    Table(Table),
}

/// The kind of a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkKind {
    Text,
    Image,
}

/// A link or an image between its start and its end.
struct OpenLink {
    url: String,
    /// The label shown so far.
    label: String,
    shown: Shown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The label becomes the link.
    Link,
    /// The address follows the label.
    Address,
    /// Only the label, for an image within a link.
    Label,
}

impl Reader {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.write_text(&text),
            Event::Code(code) => self.write_code(&code),
            Event::Html(html) => self.write_lines(&html),
            Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.write_text(&text),
            Event::FootnoteReference(label) => self.write_text(&format!("[{label}]")),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => self.write_block(|reader| reader.write_text("———")),
            Event::TaskListMarker(done) => self.write_text(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.out.need_breaks(1),
            Tag::Heading { .. } => {
                self.out.need_breaks(1);
                self.out.open(Style::Heading);
            }
            Tag::BlockQuote(_) => {
                self.out.need_breaks(1);
                self.out.open(Style::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.raw = Some(Raw::Code { language: parse_language(&kind), text: String::new() });
            }
            Tag::Table(alignments) => self.raw = Some(Raw::Table(Table::new(alignments))),
            Tag::TableHead | Tag::TableRow => self.change_table(Table::start_row),
            Tag::TableCell => self.change_table(Table::start_cell),
            Tag::List(first) => self.lists.push(first),
            Tag::Item => self.start_item(),
            Tag::FootnoteDefinition(label) => {
                self.out.need_breaks(1);
                self.out.write_marker(&format!("[{label}] "));
            }
            Tag::Emphasis => self.out.open(Style::Italic),
            Tag::Strong => self.out.open(Style::Bold),
            Tag::Strikethrough => self.out.open(Style::Strike),
            Tag::Link { link_type, dest_url, .. } => self.start_link(link_type, &dest_url, LinkKind::Text),
            Tag::Image { link_type, dest_url, .. } => self.start_link(link_type, &dest_url, LinkKind::Image),
            Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.out.need_breaks(2),
            TagEnd::Heading(_) => {
                self.out.close();
                self.out.need_breaks(1);
            }
            TagEnd::BlockQuote(_) => {
                self.out.close();
                self.out.need_breaks(2);
            }
            TagEnd::CodeBlock | TagEnd::Table => self.end_raw(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.out.set_depth(self.lists.len());
                self.out.need_breaks(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => self.out.end_item(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.out.close(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        let depth = self.lists.len();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.out.need_breaks(1);
        self.out.set_depth(depth.saturating_sub(1));
        self.out.write_marker(&marker);
        self.out.set_depth(depth);
    }

    /// Writes a block on a line of its own, followed by a blank line.
    fn write_block(&mut self, write: impl FnOnce(&mut Self)) {
        self.out.need_breaks(1);
        write(self);
        self.out.need_breaks(2);
    }

    fn end_raw(&mut self) {
        let (language, text) = match self.raw.take() {
            Some(Raw::Code { language, text }) => (language, text.trim_end_matches('\n').to_owned()),
            Some(Raw::Table(table)) => (None, table.lay_out()),
            None => return,
        };
        if is_blank(&text) {
            return;
        }
        self.out.write_verbatim(Style::Pre { language }, &text);
        self.out.need_breaks(2);
    }

    fn change_table(&mut self, change: fn(&mut Table)) {
        if let Some(Raw::Table(table)) = &mut self.raw {
            change(table);
        }
    }

    fn start_link(&mut self, link_type: LinkType, dest_url: &CowStr<'_>, kind: LinkKind) {
        let url = match link_type {
            LinkType::Email => format!("mailto:{dest_url}"),
            _ => dest_url.to_string(),
        };
        let clickable = self.links == Links::Clickable && self.raw.is_none() && is_openable(&url);
        let shown = match self.open_links.is_empty() {
            false if kind == LinkKind::Image => Shown::Label,
            true if clickable => Shown::Link,
            _ => Shown::Address,
        };
        if shown == Shown::Link {
            self.out.open(Style::Link { url: url.clone() });
        }
        self.open_links.push(OpenLink { url, label: String::new(), shown });
    }

    fn end_link(&mut self) {
        let Some(link) = self.open_links.pop() else { return };
        if is_blank(&link.label) {
            self.write_text(&link.url);
        } else if link.shown == Shown::Address && !link.shows_address() {
            self.write_text(" (");
            self.write_text(&link.url);
            self.write_text(")");
        }
        if link.shown == Shown::Link {
            self.out.close();
        }
    }

    fn write_code(&mut self, code: &str) {
        self.out.open(Style::Code);
        self.write_text(code);
        self.out.close();
    }

    fn write_lines(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.line_break();
            }
            self.write_text(line);
        }
    }

    fn line_break(&mut self) {
        match &mut self.raw {
            Some(_) => self.write_text(" "),
            None => self.out.line_break(),
        }
    }

    /// Appends text without line breaks to the current target.
    fn write_text(&mut self, text: &str) {
        for link in &mut self.open_links {
            link.label.push_str(text);
        }
        match &mut self.raw {
            Some(Raw::Code { text: code, .. }) => code.push_str(text),
            Some(Raw::Table(table)) => table.push(text),
            None => self.out.write_text(text),
        }
    }
}

impl OpenLink {
    fn shows_address(&self) -> bool {
        self.label == self.url || self.url.strip_prefix("mailto:") == Some(self.label.as_str())
    }
}

/// Returns whether Telegram opens this address from a link.
pub(super) fn is_openable(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    matches!(scheme.as_str(), "http" | "https" | "tg" | "mailto")
        && url.len() <= URL_BYTES_MAX
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns the first word of a fence's info string, if it looks like a language name.
pub(super) fn parse_language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split([' ', '\t', ',', '{']).next()?;
    let known = word.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c));
    (known && !word.is_empty() && word.len() <= LANGUAGE_CHARS_MAX).then(|| word.to_owned())
}
