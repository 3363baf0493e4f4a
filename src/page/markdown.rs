//! Renders Markdown as HTML. Raw HTML is shown as text; pictures are named, never loaded. Links in untrusted text are shown as text, since
//! opening a link discloses its address.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use reveille_memory::markdown::render_events;

use super::code::split_code;

/// Maximum bytes of a link's address; a longer one is shown as text.
const MAX_URL_BYTES: usize = 2048;
/// Beginnings of addresses that may become links.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// The author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// The person, or the assistant from the person's words alone.
    Own,
    /// Possibly others.
    Others,
}

/// Renders a text.
pub(super) fn render_markdown(text: &str, by: WrittenBy) -> Markup {
    let mut page =
        Html { by, out: String::new(), links: Vec::new(), columns: Vec::new(), column: 0, is_head: false, code: None };
    render_events(text, |event| page.write_event(event));
    PreEscaped(page.out)
}

struct Html {
    by: WrittenBy,
    out: String,
    /// The closing markup of each open link or picture.
    links: Vec<String>,
    columns: Vec<Alignment>,
    column: usize,
    is_head: bool,
    /// The open code block.
    code: Option<OpenCode>,
}

/// A code block while it is read.
struct OpenCode {
    /// The words after its fence, which begin with the language.
    fence: String,
    text: String,
}

impl Html {
    fn write_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.write_text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.write_text(&text),
            Event::FootnoteReference(label) => self.write_text(&format!("[{label}]")),
            Event::Code(code) => {
                self.out.push_str("<code>");
                self.write_text(&code);
                self.out.push_str("</code>");
            }
            // The lines of documents are wrapped, so a break there is only white space. In messages, the style sheet keeps it.
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(is_done) => self.out.push_str(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        let opening = match tag {
            Tag::Paragraph => "<p>",
            Tag::HtmlBlock => "<pre>",
            Tag::Heading { level, .. } => return self.write_format(format_args!("<h{}>", lower_level(level))),
            Tag::BlockQuote(_) => "<blockquote>\n",
            Tag::CodeBlock(kind) => {
                let fence = match kind {
                    CodeBlockKind::Fenced(fence) => fence.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(OpenCode { fence, text: String::new() });
                "<pre><code>"
            }
            Tag::List(Some(1)) => "<ol>\n",
            Tag::List(Some(first)) => return self.write_format(format_args!("<ol start=\"{first}\">\n")),
            Tag::List(None) => "<ul>\n",
            Tag::Item => "<li>",
            Tag::Table(columns) => {
                self.columns = columns;
                "<div class=\"scroll\"><table>\n"
            }
            Tag::TableHead => {
                (self.is_head, self.column) = (true, 0);
                "<thead><tr>"
            }
            Tag::TableRow => {
                self.column = 0;
                "<tr>"
            }
            Tag::TableCell => return self.start_cell(),
            Tag::Emphasis => "<em>",
            Tag::Strong => "<strong>",
            Tag::Strikethrough => "<del>",
            Tag::Link { dest_url, .. } => return self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.links.push(render_address(&dest_url));
                "<em>picture: "
            }
            Tag::FootnoteDefinition(label) => {
                return self.write_format(format_args!("<p>[{}]</p>\n", escape_html(&label)));
            }
            Tag::Superscript
            | Tag::Subscript
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => "",
        };
        self.out.push_str(opening);
    }

    fn end_tag(&mut self, tag: TagEnd) {
        let closing = match tag {
            TagEnd::Paragraph => "</p>\n",
            TagEnd::HtmlBlock => "</pre>\n",
            TagEnd::Heading(level) => return self.write_format(format_args!("</h{}>\n", lower_level(level))),
            TagEnd::BlockQuote(_) => "</blockquote>\n",
            TagEnd::CodeBlock => {
                self.write_code();
                "</code></pre>\n"
            }
            TagEnd::List(true) => "</ol>\n",
            TagEnd::List(false) => "</ul>\n",
            TagEnd::Item => "</li>\n",
            TagEnd::Table => "</tbody></table></div>\n",
            TagEnd::TableHead => {
                self.is_head = false;
                "</tr></thead>\n<tbody>"
            }
            TagEnd::TableRow => "</tr>\n",
            TagEnd::TableCell => {
                self.column += 1;
                if self.is_head { "</th>" } else { "</td>" }
            }
            TagEnd::Emphasis => "</em>",
            TagEnd::Strong => "</strong>",
            TagEnd::Strikethrough => "</del>",
            TagEnd::Link => {
                let closing = self.links.pop().unwrap_or_default();
                return self.out.push_str(&closing);
            }
            TagEnd::Image => {
                let closing = self.links.pop().unwrap_or_default();
                self.out.push_str(&closing);
                "</em>"
            }
            TagEnd::FootnoteDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => "",
        };
        self.out.push_str(closing);
    }

    fn start_cell(&mut self) {
        let name = if self.is_head { "th scope=\"col\"" } else { "td" };
        let class = match self.columns.get(self.column) {
            Some(Alignment::Right) => " class=\"right\"",
            _ => "",
        };
        self.write_format(format_args!("<{name}{class}>"));
    }

    fn start_link(&mut self, url: &str) {
        let lower = url.to_ascii_lowercase();
        let is_good = SCHEMES.iter().any(|scheme| lower.starts_with(scheme)) && url.len() <= MAX_URL_BYTES;
        if self.by == WrittenBy::Own && is_good {
            self.write_format(format_args!("<a rel=\"noreferrer\" href=\"{}\">", escape_html(url)));
            self.links.push("</a>".to_owned());
        } else {
            self.links.push(render_address(url));
        }
    }

    fn write_text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.text.push_str(text),
            None => self.out.push_str(&escape_html(text)),
        }
    }

    /// Writes the code block that ends, in the colours of its language.
    fn write_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        for (role, piece) in split_code(&code.text, &code.fence) {
            let piece = escape_html(piece);
            match role.class() {
                Some(class) => self.write_format(format_args!("<span class=\"{class}\">{piece}</span>")),
                None => self.out.push_str(&piece),
            }
        }
    }

    fn write_format(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string always succeeds.
        self.out.write_fmt(what).ok();
    }
}

/// Lowers a heading's level below the page's own headings.
fn lower_level(level: HeadingLevel) -> usize {
    (level as usize + 2).min(6)
}

fn render_address(url: &str) -> String {
    format!(" (<code>{}</code>)", escape_html(url))
}

fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> String {
        render_markdown(text, WrittenBy::Own).into_string()
    }

    #[test]
    fn markdown_becomes_html() {
        assert_eq!(
            own("Hello **you**, `a<b`\nand ~~me~~."),
            "<p>Hello <strong>you</strong>, <code>a&lt;b</code>\nand <del>me</del>.</p>\n"
        );
        assert_eq!(own("# One\n\n3. a\n4. b"), "<h3>One</h3>\n<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n");
        assert_eq!(own("- [x] done\n- [ ] open"), "<ul>\n<li>☑ done</li>\n<li>☐ open</li>\n</ul>\n");
        assert_eq!(own("```\na & b\n```"), "<pre><code>a &amp; b\n</code></pre>\n");
        assert_eq!(
            own("```rust\nlet a = \"<b>\";\n```"),
            "<pre><code><span class=\"code-k\">let</span> a = <span class=\"code-s\">&quot;&lt;b&gt;&quot;</span>;\n</code></pre>\n"
        );
        assert_eq!(own("a[^1]\r\n\r\n[^1]: b"), "<p>a[1]</p>\n<p>[1]</p>\n<p>b</p>\n");
        assert_eq!(
            own("|a|b|\n|-|-:|\n|1|2|"),
            "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"right\">b</th></tr></thead>\n\
             <tbody><tr><td>1</td><td class=\"right\">2</td></tr>\n</tbody></table></div>\n"
        );
    }

    #[test]
    fn raw_html_is_shown_as_text_and_nothing_is_loaded() {
        assert_eq!(own("a <img src=x onerror=alert(1)> b"), "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n");
        assert_eq!(own("<script>\nalert(1)\n</script>"), "<pre>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</pre>\n");
        assert_eq!(
            own("![a cat](http://evil.example/c.png)"),
            "<p><em>picture: a cat (<code>http://evil.example/c.png</code>)</em></p>\n"
        );
        let nested = own("[![x](http://a.example/\"'<)](javascript:alert(1))");
        assert!(!nested.contains("href") && !nested.contains("<img"), "{nested}");
    }

    #[test]
    fn only_safe_links_in_own_text_become_links() {
        assert_eq!(
            own("[a](https://a.example/?q=\"'&)"),
            "<p><a rel=\"noreferrer\" href=\"https://a.example/?q=&quot;&#39;&amp;\">a</a></p>\n"
        );
        assert_eq!(
            own("<mailto:a@b.example>"),
            "<p><a rel=\"noreferrer\" href=\"mailto:a@b.example\">mailto:a@b.example</a></p>\n"
        );
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "/health",
            "file:///etc/passwd",
            "//evil.example",
        ] {
            let html = own(&format!("[a]({address})"));
            assert_eq!(html, format!("<p>a (<code>{address}</code>)</p>\n"));
        }
        let theirs =
            render_markdown("[your bank](https://evil.example/?secret) <https://evil.example>", WrittenBy::Others)
                .into_string();
        assert!(!theirs.contains("href"), "{theirs}");
        assert!(theirs.contains("your bank (<code>https://evil.example/?secret</code>)"), "{theirs}");
    }

    proptest::proptest! {
        /// Any text produces only our own tags, with only the attributes that we write.
        #[test]
        fn no_text_can_add_a_tag(text in "(```(html|sh)\n)?[a-z<>\"'&\\[\\]()!`*#|\\-\n :/=]{0,80}") {
            for by in [WrittenBy::Own, WrittenBy::Others] {
                let html = render_markdown(&text, by).into_string();
                for tag in html.split('<').skip(1) {
                    let name = tag.split('>').next().unwrap().trim_start_matches('/');
                    let known = ["p", "pre", "code", "h3", "h4", "h5", "h6", "blockquote", "ol", "ul", "li", "table", "thead", "tbody", "tr", "td", "th", "div",
                        "em", "strong", "del", "br", "hr", "div class=\"scroll\"", "th scope=\"col\"", "td class=\"right\"", "th scope=\"col\" class=\"right\"", "a", "span", "span class=\"code-k\"", "span class=\"code-s\"", "span class=\"code-c\""];
                    let is_link = by == WrittenBy::Own && name.starts_with("a rel=\"noreferrer\" href=\"") && name.ends_with('"');
                    proptest::prop_assert!(known.contains(&name) || is_link || name.starts_with("ol start=\""), "{:?} of {:?}", name, text);
                }
            }
        }
    }
}
