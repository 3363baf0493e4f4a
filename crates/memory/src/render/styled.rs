//! Text and formatting kept apart: a plain string, and spans over it.
//!
//! Markdown is converted to this form once. Parts are cut from the string, and each part's tags are written from the spans that reach into
//! it. A cut therefore never breaks a tag or an entity, and a span across several parts is closed and reopened automatically.

use std::{fmt::Write as _, ops::Range};

/// Text with formatting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Styled {
    /// The visible text.
    pub(super) text: String,
    /// The spans in the order they open, properly nested and non-empty.
    pub(super) spans: Vec<Span>,
}

/// A stretch of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    /// The byte range in [`Styled::text`], on character boundaries.
    pub(super) range: Range<usize>,
    pub(super) style: Style,
}

/// The formatting supported by both Telegram's HTML and Markdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Style {
    Heading,
    Bold,
    Italic,
    Strike,
    Code,
    Quote,
    Pre { language: Option<String> },
    Link { url: String },
}

/// The amount of formatting in a message, as Telegram counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entities {
    pub(super) count: usize,
    pub(super) address_bytes: usize,
}

impl Style {
    /// Returns whether the styles can't be nested; the inner style is then dropped.
    pub(super) fn is_incompatible_with(&self, inner: &Self) -> bool {
        matches!((self, inner), (Self::Code | Self::Pre { .. }, _) | (Self::Heading, Self::Bold))
            || std::mem::discriminant(self) == std::mem::discriminant(inner)
    }

    fn write_opening_tag(&self, html: &mut String) {
        match self {
            Self::Heading | Self::Bold => html.push_str("<b>"),
            Self::Italic => html.push_str("<i>"),
            Self::Strike => html.push_str("<s>"),
            Self::Code => html.push_str("<code>"),
            Self::Quote => html.push_str("<blockquote>"),
            Self::Pre { language: None } => html.push_str("<pre>"),
            Self::Pre { language: Some(language) } => {
                html.push_str("<pre><code class=\"language-");
                escape_attribute(language, html);
                html.push_str("\">");
            }
            Self::Link { url } => {
                html.push_str("<a href=\"");
                escape_attribute(url, html);
                html.push_str("\">");
            }
        }
    }

    fn closing_tag(&self) -> &'static str {
        match self {
            Self::Heading | Self::Bold => "</b>",
            Self::Italic => "</i>",
            Self::Strike => "</s>",
            Self::Code => "</code>",
            Self::Quote => "</blockquote>",
            Self::Pre { language: None } => "</pre>",
            Self::Pre { language: Some(_) } => "</code></pre>",
            Self::Link { .. } => "</a>",
        }
    }
}

impl Styled {
    /// Returns the spans that reach into `cut`, clipped to it.
    fn clip_spans(&self, cut: &Range<usize>) -> impl Iterator<Item = (Range<usize>, &Style)> {
        self.spans.iter().take_while(|span| span.range.start < cut.end).filter_map(move |span| {
            let clipped = span.range.start.max(cut.start)..span.range.end.min(cut.end);
            (!clipped.is_empty()).then_some((clipped, &span.style))
        })
    }

    /// Counts the formatting in `cut` as Telegram does: the ranges, and the bytes of their addresses.
    pub(super) fn count_entities(&self, cut: &Range<usize>) -> Entities {
        let mut entities = Entities::default();
        for (_, style) in self.clip_spans(cut) {
            entities.count += 1;
            entities.address_bytes += match style {
                Style::Link { url: text } | Style::Pre { language: Some(text) } => text.len(),
                _ => 0,
            };
        }
        entities
    }

    /// Returns the visible text of `cut`.
    pub(super) fn visible_text(&self, cut: &Range<usize>) -> &str {
        self.text.get(cut.clone()).unwrap_or_default()
    }

    /// Renders `cut` as Telegram HTML.
    pub(super) fn render_html(&self, cut: &Range<usize>) -> String {
        let mut html = String::new();
        let mut open: Vec<(usize, &Style)> = Vec::new();
        let mut at = cut.start;
        for (range, style) in self.clip_spans(cut) {
            self.close_until(range.start, &mut open, &mut at, &mut html);
            escape_text(self.visible_text(&(at..range.start)), &mut html);
            at = range.start;
            style.write_opening_tag(&mut html);
            open.push((range.end, style));
        }
        self.close_until(usize::MAX, &mut open, &mut at, &mut html);
        escape_text(self.visible_text(&(at..cut.end)), &mut html);
        html
    }

    /// Appends the text from `at` on, and closes the spans that end at or before `until`.
    fn close_until(&self, until: usize, open: &mut Vec<(usize, &Style)>, at: &mut usize, html: &mut String) {
        while let Some((end, style)) = open.pop_if(|(end, _)| *end <= until) {
            escape_text(self.visible_text(&(*at..end)), html);
            *at = end;
            html.push_str(style.closing_tag());
        }
    }

    /// Returns `cut` without formatting, with each link's address after its label.
    pub(super) fn plain_with_addresses(&self, cut: &Range<usize>) -> String {
        let mut plain = String::new();
        let mut at = cut.start;
        for (range, style) in self.clip_spans(cut) {
            let Style::Link { url } = style else { continue };
            plain.push_str(self.visible_text(&(at..range.end)));
            at = range.end;
            if self.visible_text(&range) != url {
                let _infallible = write!(plain, " ({url})");
            }
        }
        plain.push_str(self.visible_text(&(at..cut.end)));
        plain
    }
}

/// Appends `text` as HTML text.
pub(super) fn escape_text(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            _ => html.push(c),
        }
    }
}

/// Appends `text` as the value of a double-quoted attribute.
pub(super) fn escape_attribute(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '"' => html.push_str("&quot;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            _ => html.push(c),
        }
    }
}
