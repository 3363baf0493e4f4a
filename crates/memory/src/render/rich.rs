//! Renders Markdown as the HTML of a rich Telegram message, with real tables, headings, nested lists and formulas.
//!
//! The HTML is written from the parsed Markdown, never from its source. It holds no media: an image becomes a link. A text beyond one of
//! Telegram's limits isn't rendered, and is sent as plain messages instead.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

use super::{
    REPEAT_MARK,
    blocks::{is_openable, parse_language},
    split::{ADDRESS_BYTES_MAX, is_blank},
    styled::{escape_attribute, escape_text},
};
use crate::markdown::render_math_events;

/// The maximum length of a rich message in UTF-16 code units, less the room for [`REPEAT_MARK`].
const UNITS_MAX: usize = 32_768 - 128;
/// The maximum number of blocks, less the one of the mark. List items and table rows count here too.
const BLOCKS_MAX: usize = 499;
/// The maximum nesting. Inline formatting counts here too.
const LEVELS_MAX: usize = 16;
/// The maximum number of columns of a table.
const COLUMNS_MAX: usize = 20;
/// The characters that make a formula of what stands between two dollar signs. Without one, they are prices.
const FORMULA_SIGNS: [char; 5] = ['\\', '^', '_', '=', '{'];

/// A text as one rich message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RichMessage {
    /// HTML with the tags of rich messages.
    pub html: String,
    /// True if the text has a table, a heading, a nested list or a formula, which a plain message can't show.
    pub is_structured: bool,
}

/// Renders Markdown as one rich message. `None` if nothing would be visible, or if it exceeds a limit.
pub fn render_rich(markdown: &str) -> Option<RichMessage> {
    let mut writer = RichWriter::default();
    render_math_events(markdown, |event| writer.on_event(event));
    writer.finish()
}

/// Appends a note that the message may be a repeat. Every message made here has room for it.
pub fn mark_rich_repeat(html: &str) -> String {
    format!("{html}<p><i>{REPEAT_MARK}</i></p>")
}

#[derive(Default)]
struct RichWriter {
    html: String,
    /// The length of the visible text.
    units: usize,
    blocks: usize,
    address_bytes: usize,
    /// The names of the open tags.
    open: Vec<&'static str>,
    open_links: Vec<OpenRichLink>,
    /// True if the next text starts a paragraph.
    wants_paragraph: bool,
    is_structured: bool,
    /// True if the text has something that a rich message can't hold.
    is_unfit: bool,
    has_visible_text: bool,
    lists: usize,
    /// The alignments of the open table's columns, and the present column.
    alignments: Vec<Alignment>,
    column: usize,
    is_in_head: bool,
    /// The code block being collected.
    code: Option<String>,
}

struct OpenRichLink {
    url: String,
    label: String,
    is_clickable: bool,
}

impl RichWriter {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.write_text(&text),
            Event::Code(code) => self.write_inline("code", &code),
            Event::Html(text) | Event::InlineHtml(text) => self.write_lines(&text),
            Event::InlineMath(formula) => self.write_inline_math(&formula),
            Event::DisplayMath(formula) => self.write_display_math(&formula),
            Event::FootnoteReference(label) => self.write_text(&format!("[{label}]")),
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.count_block();
                self.html.push_str("<hr/>");
            }
            Event::TaskListMarker(is_done) => self.write_text(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.wants_paragraph = true,
            Tag::Heading { level, .. } => {
                self.is_structured = true;
                self.open_block(heading_name(level), "");
            }
            Tag::BlockQuote(_) => self.open_block("blockquote", ""),
            Tag::CodeBlock(kind) => self.start_code(&kind),
            Tag::Table(alignments) => {
                self.is_structured = true;
                self.is_unfit |= alignments.len() > COLUMNS_MAX;
                self.alignments = alignments;
                self.open_block("table", " bordered");
            }
            Tag::TableHead | Tag::TableRow => {
                self.is_in_head = matches!(tag, Tag::TableHead);
                self.column = 0;
                self.open_block("tr", "");
            }
            Tag::TableCell => self.start_cell(),
            Tag::List(first) => {
                self.lists += 1;
                self.is_structured |= self.lists > 1;
                // Whether a list may begin with another number isn't documented.
                self.is_unfit |= first.is_some_and(|first| first != 1);
                self.open_block(if first.is_some() { "ol" } else { "ul" }, "");
            }
            Tag::Item => self.open_block("li", ""),
            Tag::FootnoteDefinition(label) => {
                self.wants_paragraph = true;
                self.write_text(&format!("[{label}] "));
            }
            Tag::Emphasis => self.open_inline("i"),
            Tag::Strong => self.open_inline("b"),
            Tag::Strikethrough => self.open_inline("s"),
            Tag::Link { link_type, dest_url, .. } => self.start_link(link_type, &dest_url),
            Tag::Image { link_type, dest_url, .. } => self.start_link(link_type, &dest_url),
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
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.end_paragraph(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists = self.lists.saturating_sub(1);
                self.close_tag();
            }
            TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::Table
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::Item => {
                self.end_paragraph();
                self.close_tag();
            }
            TagEnd::TableCell => {
                self.column += 1;
                self.close_tag();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.close_tag(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn count_block(&mut self) {
        self.blocks += 1;
        self.is_unfit |= self.blocks > BLOCKS_MAX;
    }

    fn open_block(&mut self, name: &'static str, attributes: &str) {
        self.end_paragraph();
        self.count_block();
        self.open_tag(name, attributes);
    }

    fn open_inline(&mut self, name: &'static str) {
        self.start_paragraph();
        self.open_tag(name, "");
    }

    fn open_tag(&mut self, name: &'static str, attributes: &str) {
        self.html.push_str(&format!("<{name}{attributes}>"));
        self.open.push(name);
        self.is_unfit |= self.open.len() > LEVELS_MAX;
    }

    fn close_tag(&mut self) {
        if let Some(name) = self.open.pop() {
            self.html.push_str(&format!("</{name}>"));
        }
    }

    /// Opens the paragraph that is due. An empty paragraph is never written.
    fn start_paragraph(&mut self) {
        if std::mem::take(&mut self.wants_paragraph) {
            self.count_block();
            self.open_tag("p", "");
        }
    }

    fn end_paragraph(&mut self) {
        self.wants_paragraph = false;
        if self.open.last() == Some(&"p") {
            self.close_tag();
        }
    }

    /// Starts another paragraph, which is the only line break that is documented. Within formatting, a list item or a cell, a blank has
    /// to do.
    fn break_line(&mut self) {
        if self.open.last() == Some(&"p") {
            self.close_tag();
            self.wants_paragraph = true;
        } else if !self.wants_paragraph {
            self.write_text(" ");
        }
    }

    fn write_lines(&mut self, text: &str) {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            self.write_text(line);
        }
    }

    fn write_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        self.start_paragraph();
        for link in &mut self.open_links {
            link.label.push_str(text);
        }
        self.write_escaped(text);
    }

    fn write_escaped(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n')).collect();
        self.units += text.encode_utf16().count();
        self.is_unfit |= self.units > UNITS_MAX;
        self.has_visible_text |= !is_blank(&text);
        escape_text(&text, &mut self.html);
    }

    fn write_inline(&mut self, name: &'static str, text: &str) {
        self.open_inline(name);
        self.write_text(text);
        self.close_tag();
    }

    fn write_inline_math(&mut self, formula: &str) {
        if formula.contains(FORMULA_SIGNS) {
            self.is_structured = true;
            self.write_inline("tg-math", formula);
        } else {
            self.write_text(&format!("${formula}$"));
        }
    }

    /// Writes a formula as a block of its own, or within the line if the line has to go on.
    fn write_display_math(&mut self, formula: &str) {
        self.is_structured = true;
        let is_between_lines = self.wants_paragraph || matches!(self.open.last(), Some(&"p" | &"li"));
        if !is_between_lines || !self.open_links.is_empty() {
            self.write_inline("tg-math", formula.trim());
            return;
        }
        let goes_on = self.open.last() != Some(&"li");
        self.open_block("tg-math-block", "");
        self.write_escaped(formula.trim());
        self.close_tag();
        self.wants_paragraph = goes_on;
    }

    fn start_cell(&mut self) {
        let align = match self.alignments.get(self.column) {
            Some(Alignment::Right) => " align=\"right\"",
            Some(Alignment::Center) => " align=\"center\"",
            Some(Alignment::Left | Alignment::None) | None => "",
        };
        self.open_tag(if self.is_in_head { "th" } else { "td" }, align);
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        self.open_block("pre", "");
        let class = parse_language(kind).map(|language| {
            let mut class = " class=\"language-".to_owned();
            escape_attribute(&language, &mut class);
            class + "\""
        });
        self.open_tag("code", &class.unwrap_or_default());
        self.code = Some(String::new());
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        self.write_escaped(code.trim_end_matches('\n'));
        self.close_tag();
        self.close_tag();
    }

    fn start_link(&mut self, link_type: LinkType, dest_url: &str) {
        let url = match link_type {
            LinkType::Email => format!("mailto:{dest_url}"),
            _ => dest_url.to_owned(),
        };
        let is_clickable = self.open_links.is_empty() && is_openable(&url);
        if is_clickable {
            self.start_paragraph();
            self.address_bytes += url.len();
            self.is_unfit |= self.address_bytes > ADDRESS_BYTES_MAX;
            let mut attribute = " href=\"".to_owned();
            escape_attribute(&url, &mut attribute);
            self.open_tag("a", &(attribute + "\""));
        }
        self.open_links.push(OpenRichLink { url, label: String::new(), is_clickable });
    }

    fn end_link(&mut self) {
        let Some(link) = self.open_links.pop() else { return };
        if is_blank(&link.label) {
            self.write_text(&link.url);
        } else if !link.is_clickable && self.open_links.is_empty() && link.label != link.url {
            self.write_text(&format!(" ({})", link.url));
        }
        if link.is_clickable {
            self.close_tag();
        }
    }

    fn finish(mut self) -> Option<RichMessage> {
        self.end_paragraph();
        let fits = !self.is_unfit && self.has_visible_text && self.open.is_empty();
        fits.then_some(RichMessage { html: self.html, is_structured: self.is_structured })
    }
}

fn heading_name(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h1",
        HeadingLevel::H2 => "h2",
        HeadingLevel::H3 => "h3",
        HeadingLevel::H4 => "h4",
        HeadingLevel::H5 => "h5",
        HeadingLevel::H6 => "h6",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::render::tests::markdownish;

    fn html(markdown: &str) -> String {
        render_rich(markdown).unwrap().html
    }

    #[test]
    fn tables_headings_nested_lists_and_formulas_keep_their_structure() {
        for (markdown, expected) in [
            ("## Plan\nfirst\nsecond", "<h2>Plan</h2><p>first</p><p>second</p>"),
            (
                "| a | b |\n|---|--:|\n| **x** | 1 < 2 |",
                "<table bordered><tr><th>a</th><th align=\"right\">b</th></tr>\
                 <tr><td><b>x</b></td><td align=\"right\">1 &lt; 2</td></tr></table>",
            ),
            ("- a\n  1. b\n- [x] c", "<ul><li>a<ol><li>b</li></ol></li><li>☑ c</li></ul>"),
            ("so $a^2 < b$ holds", "<p>so <tg-math>a^2 &lt; b</tg-math> holds</p>"),
            ("so\n$$\\sum x$$\nholds", "<p>so</p><tg-math-block>\\sum x</tg-math-block><p>holds</p>"),
        ] {
            let rich = render_rich(markdown).unwrap();
            assert_eq!((rich.html.as_str(), rich.is_structured), (expected, true), "{markdown}");
        }
    }

    #[test]
    fn other_text_has_no_structure_that_a_plain_message_lacks() {
        for (markdown, expected) in [
            ("a *b* `c`", "<p>a <i>b</i> <code>c</code></p>"),
            ("it costs $5-$6", "<p>it costs $5-$6</p>"),
            ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
            ("> a\n\n---", "<blockquote><p>a</p></blockquote><hr/>"),
            ("```rust\nlet a = \"<\";\n```", "<pre><code class=\"language-rust\">let a = \"&lt;\";</code></pre>"),
            ("[a](https://e.org/?x=\"1)", "<p><a href=\"https://e.org/?x=&quot;1\">a</a></p>"),
            ("[a](file:///etc)", "<p>a (file:///etc)</p>"),
            ("<img src=x>", "<p>&lt;img src=x&gt;</p>"),
            ("![a cat](https://e.org/cat.png)", "<p><a href=\"https://e.org/cat.png\">a cat</a></p>"),
        ] {
            let rich = render_rich(markdown).unwrap();
            assert_eq!((rich.html.as_str(), rich.is_structured), (expected, false), "{markdown}");
        }
        assert_eq!(render_rich(" \n"), None);
    }

    #[test]
    fn a_text_beyond_a_limit_is_left_to_plain_messages() {
        let nested =
            |levels: usize| (0..levels).map(|level| format!("{}- a\n", "  ".repeat(level))).collect::<String>();
        let table = |columns: usize| format!("|{}\n|{}\n", "a|".repeat(columns), "-|".repeat(columns));
        let links = |n: usize| format!("[a](https://e.org/{}) ", "x".repeat(982)).repeat(n);
        for (fits, beyond) in [
            ("a".repeat(32_640), "a".repeat(32_641)),
            ("a\n\n".repeat(499), "a\n\n".repeat(500)),
            (nested(8), nested(9)),
            (table(20), table(21)),
            (links(9), links(10)),
            ("1. a".to_owned(), "2. a".to_owned()),
        ] {
            assert!(render_rich(&fits).is_some(), "{}", fits.get(..40).unwrap_or(&fits));
            assert_eq!(render_rich(&beyond), None);
        }
    }

    #[test]
    fn the_repeat_mark_is_a_paragraph_of_its_own() {
        let marked = mark_rich_repeat(&html("# a"));
        assert!(marked.starts_with("<h1>a</h1><p><i>↻ ") && marked.ends_with("</i></p>"), "{marked}");
    }

    /// Checks that tags are known, balanced and nested within the limits, and returns the number of blocks.
    fn check(html: &str) -> Result<usize, String> {
        const BLOCKS: [&str; 15] = [
            "p",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "blockquote",
            "pre",
            "table",
            "tr",
            "ul",
            "ol",
            "li",
            "tg-math-block",
        ];
        let (mut open, mut blocks) = (Vec::new(), 0);
        for tag in html.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').ok_or("an open tag")?;
            let name = tag.split(' ').next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return Err(format!("{tag} closes another")),
                Some(_) => {}
                None if name == "hr/" => blocks += 1,
                None => {
                    blocks += usize::from(BLOCKS.contains(&name));
                    let is_known = BLOCKS.contains(&name)
                        || matches!(name, "th" | "td" | "code" | "b" | "i" | "s" | "a" | "tg-math");
                    if !is_known {
                        return Err(format!("an unknown tag: {tag}"));
                    }
                    open.push(name);
                    if open.len() > LEVELS_MAX {
                        return Err("too deep".to_owned());
                    }
                }
            }
        }
        if open.is_empty() { Ok(blocks) } else { Err(format!("unclosed: {open:?}")) }
    }

    proptest! {
        #[test]
        fn any_text_becomes_balanced_html_within_the_limits(markdown in markdownish()) {
            if let Some(rich) = render_rich(&markdown) {
                let blocks = check(&rich.html).map_err(TestCaseError::fail)?;
                prop_assert!(blocks <= BLOCKS_MAX, "{} blocks", blocks);
            }
        }
    }
}
