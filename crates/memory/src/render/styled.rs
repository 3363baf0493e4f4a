//! Text and its formatting apart: a plain string, and spans that lie over it.
//!
//! Markdown becomes this once; parts are cut from the string, and each part's tags are written from the spans that
//! reach into it. So no cut can ever break a tag or an entity, and a span that is longer than a part is closed and opened
//! again by itself.

use std::{fmt::Write as _, ops::Range};

/// Text with formatting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Styled {
    /// What a reader sees.
    pub(super) text: String,
    /// In the order in which they open, properly nested, none empty.
    pub(super) spans: Vec<Span>,
}

/// A stretch of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes of [`Styled::text`], on character boundaries.
    pub(super) range: Range<usize>,
    /// How it looks.
    pub(super) style: Style,
}

/// The formatting that Telegram's HTML knows and Markdown asks for.
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

/// How much formatting a message has, as Telegram counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entities {
    pub(super) count: usize,
    pub(super) address_bytes: usize,
}

impl Style {
    /// Whether the two can't stand within each other: the inner one is then left out.
    pub(super) fn excludes(&self, inner: &Self) -> bool {
        matches!((self, inner), (Self::Code | Self::Pre { .. }, _) | (Self::Heading, Self::Bold))
            || std::mem::discriminant(self) == std::mem::discriminant(inner)
    }

    fn open(&self, html: &mut String) {
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

    fn close(&self) -> &'static str {
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
    /// The spans that reach into `cut`, shortened to it.
    fn spans_within(&self, cut: &Range<usize>) -> impl Iterator<Item = (Range<usize>, &Style)> {
        self.spans.iter().take_while(|span| span.range.start < cut.end).filter_map(move |span| {
            let clipped = span.range.start.max(cut.start)..span.range.end.min(cut.end);
            (!clipped.is_empty()).then_some((clipped, &span.style))
        })
    }

    /// What Telegram counts of the formatting in `cut`: its stretches, and the bytes of their addresses.
    pub(super) fn entities(&self, cut: &Range<usize>) -> Entities {
        let mut entities = Entities::default();
        for (_, style) in self.spans_within(cut) {
            entities.count += 1;
            entities.address_bytes += match style {
                Style::Link { url: text } | Style::Pre { language: Some(text) } => text.len(),
                _ => 0,
            };
        }
        entities
    }

    /// What a reader sees of `cut`.
    pub(super) fn visible(&self, cut: &Range<usize>) -> &str {
        self.text.get(cut.clone()).unwrap_or_default()
    }

    /// `cut` as Telegram HTML.
    pub(super) fn html(&self, cut: &Range<usize>) -> String {
        let mut html = String::new();
        let mut open: Vec<(usize, &Style)> = Vec::new();
        let mut at = cut.start;
        for (range, style) in self.spans_within(cut) {
            self.close_until(range.start, &mut open, &mut at, &mut html);
            escape(self.visible(&(at..range.start)), &mut html);
            at = range.start;
            style.open(&mut html);
            open.push((range.end, style));
        }
        self.close_until(usize::MAX, &mut open, &mut at, &mut html);
        escape(self.visible(&(at..cut.end)), &mut html);
        html
    }

    /// Writes on from `at` and closes what ends at or before `until`.
    fn close_until(&self, until: usize, open: &mut Vec<(usize, &Style)>, at: &mut usize, html: &mut String) {
        while let Some((end, style)) = open.pop_if(|(end, _)| *end <= until) {
            escape(self.visible(&(*at..end)), html);
            *at = end;
            html.push_str(style.close());
        }
    }

    /// `cut` without formatting, each link's address after its label.
    pub(super) fn plain_with_addresses(&self, cut: &Range<usize>) -> String {
        let mut plain = String::new();
        let mut at = cut.start;
        for (range, style) in self.spans_within(cut) {
            let Style::Link { url } = style else { continue };
            plain.push_str(self.visible(&(at..range.end)));
            at = range.end;
            if self.visible(&range) != url {
                let _infallible = write!(plain, " ({url})");
            }
        }
        plain.push_str(self.visible(&(at..cut.end)));
        plain
    }
}

/// Appends `text` as HTML text.
fn escape(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            _ => html.push(c),
        }
    }
}

/// Appends `text` as the value of an attribute in double quotes.
fn escape_attribute(text: &str, html: &mut String) {
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
