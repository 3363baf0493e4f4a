//! The only reader of Markdown: the headings, list items, code and HTML of a text by byte range, and the events shared by all renderings.
//!
//! The Markdown parser decides where a block begins and ends, never a pattern: a heading in a code fence, a quotation or a comment doesn't
//! count. [`hash_heading`] and [`strip_bullet`] then read the first line of a block.

use std::{borrow::Cow, ops::Range};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use super::text::{line_end, slice, split_lines};

/// A block of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownBlock {
    /// The kind of block.
    pub kind: BlockKind,
    /// The bytes from the block's mark on, without the indentation before.
    pub range: Range<usize>,
    /// The number of enclosing blocks; a list and its item count separately.
    pub depth: usize,
    /// Whether the block is inside a quotation.
    pub is_quoted: bool,
}

/// The kinds of blocks used to read documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading with this many hash marks.
    Heading(u8),
    /// An underlined heading of this level.
    Underlined(u8),
    /// A list item with a bullet or a number.
    Item,
    /// Code between fences.
    Fence {
        /// The bytes between the fences; empty if there is no code.
        code: Range<usize>,
    },
    /// Indented code, or code within a line.
    Code,
    /// HTML, such as a comment.
    Html,
}

/// Returns the blocks of a text after the first `from` bytes, in order. Linear in the text's length.
pub fn read_blocks(text: &str, from: usize) -> Vec<MarkdownBlock> {
    let parsed = without_lone_returns(slice(text, from..text.len()));
    let mut blocks: Vec<MarkdownBlock> = Vec::new();
    let (mut depth, mut quotes, mut is_fenced) = (0_usize, 0_usize, false);
    for (event, range) in Parser::new(&parsed).into_offset_iter() {
        let range = range.start + from..range.end + from;
        let kind = match &event {
            Event::Start(Tag::Heading { level, .. }) => {
                let has_marks = hash_heading(slice(text, range.start..line_end(text, range.start))).is_some();
                Some(if has_marks { BlockKind::Heading(*level as u8) } else { BlockKind::Underlined(*level as u8) })
            }
            Event::Start(Tag::Item) => Some(BlockKind::Item),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                Some(BlockKind::Fence { code: range.start..range.start })
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) | Event::Code(_) => Some(BlockKind::Code),
            Event::Start(Tag::HtmlBlock) => Some(BlockKind::Html),
            Event::Text(_) if is_fenced => {
                if let Some(MarkdownBlock { kind: BlockKind::Fence { code }, .. }) = blocks.last_mut() {
                    *code = if code.start == code.end { range.clone() } else { code.start..range.end };
                }
                None
            }
            _ => None,
        };
        blocks.extend(kind.map(|kind| MarkdownBlock { kind, range, depth, is_quoted: quotes > 0 }));
        match event {
            Event::Start(tag) => {
                is_fenced |= matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)));
                quotes += usize::from(matches!(tag, Tag::BlockQuote(_)));
                depth += 1;
            }
            Event::End(tag) => {
                is_fenced &= tag != TagEnd::CodeBlock;
                quotes = quotes.saturating_sub(usize::from(matches!(tag, TagEnd::BlockQuote(_))));
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    blocks
}

/// Parses a heading line into its number of hash marks and its title. The last mark of `C#` belongs to the title.
pub fn hash_heading(line: &str) -> Option<(u8, &str)> {
    let line = line.trim();
    let rest = line.trim_start_matches('#');
    let level = u8::try_from(line.len() - rest.len()).ok().filter(|level| (1..=6).contains(level))?;
    let title = rest.trim();
    let open = title.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with([' ', '\t']);
    (rest.is_empty() || rest.starts_with([' ', '\t']))
        .then_some((level, if is_closed { open.trim_end() } else { title }))
}

/// Returns the rest of a list item's first line after its bullet or number.
pub fn strip_bullet(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[char] = if rest.len() < line.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let item = rest.strip_prefix(marks)?;
    (item.is_empty() || item.starts_with(char::is_whitespace)).then(|| item.trim_start())
}

/// Returns the range that contains a position. The ranges must be in order and disjoint.
pub fn find_range(ranges: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    ranges.get(ranges.partition_point(|range| range.end <= at)).filter(|range| range.start <= at)
}

/// The Markdown that renderings read.
const RENDERED: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES);

/// Passes the events of a text to a rendering, with adjacent text merged. All renderings read the same Markdown.
pub fn render_events(text: &str, mut take: impl FnMut(Event<'_>)) {
    let text = with_line_feeds(text);
    TextMergeStream::new(Parser::new_ext(&text, RENDERED)).for_each(&mut take);
}

/// As [`render_events`], with formulas between dollar signs.
pub(super) fn render_math_events(text: &str, mut take: impl FnMut(Event<'_>)) {
    let text = with_line_feeds(text);
    TextMergeStream::new(Parser::new_ext(&text, RENDERED | Options::ENABLE_MATH)).for_each(&mut take);
}

/// Returns the text with only line feeds as line ends.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text.into() }
}

/// Replaces carriage returns that end a line alone, keeping the text's length: the parser is unsure of them.
fn without_lone_returns(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return text.into();
    }
    let fed = split_lines(text)
        .map(|line| line.strip_suffix('\r').map_or(line.into(), |words| Cow::from(format!("{words}\n"))));
    fed.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strategies::document;

    fn shown(text: &str) -> Vec<String> {
        let block = |block: MarkdownBlock| {
            let kind = match &block.kind {
                BlockKind::Fence { code } => format!("Fence({})", slice(text, code.clone()).trim_end()),
                kind => format!("{kind:?}"),
            };
            let first = slice(text, block.range.clone()).lines().next().unwrap_or_default();
            format!("{kind} {}{} {first}", block.depth, if block.is_quoted { "q" } else { "" })
        };
        read_blocks(text, 0).into_iter().map(block).collect()
    }

    #[test]
    fn blocks_are_those_of_markdown() {
        for (name, text, expected) in [
            (
                "headings",
                "# A\n  ## B ##\nC\n===\n#tag\n---\n",
                &["Heading(1) 0 # A", "Heading(2) 0 ## B ##", "Underlined(1) 0 C", "Underlined(2) 0 #tag"][..],
            ),
            ("items", "- a\n  1. b\n\n> * c\n", &["Item 1 - a", "Item 3 1. b", "Item 2q * c"]),
            ("a number that goes on a sentence", "in the year\n1984. It was\n", &[]),
            (
                "fences",
                "```\n# a\n\n- b\n```\n- ~~~\n  c\n",
                &["Fence(# a\n\n- b) 0 ```", "Item 1 - ~~~", "Fence(c) 2 ~~~"],
            ),
            ("an empty fence", "```\n```\n", &["Fence() 0 ```"]),
            ("other code and HTML", "a `b` c\n\n    d\n\n<!-- e\n-->\n", &["Code 1 `b`", "Code 0 d", "Html 0 <!-- e"]),
            ("Windows' line ends", "A\r\n===\r\n```\r\n# b\r\n```\r\n", &["Underlined(1) 0 A", "Fence(# b) 0 ```"]),
        ] {
            assert_eq!(shown(text), expected, "{name}");
        }
        let returns: Vec<BlockKind> = read_blocks("# A\ra\r- b\r", 0).into_iter().map(|block| block.kind).collect();
        assert_eq!(returns, [BlockKind::Heading(1), BlockKind::Item]);
        assert_eq!(read_blocks("# no\n# A\n", 5).first().map(|block| block.range.clone()), Some(5..9));
    }

    #[test]
    fn first_lines_are_read_without_their_marks() {
        for (line, expected) in [
            ("# A", Some((1, "A"))),
            ("  ## A ##\r\n", Some((2, "A"))),
            ("###\tC#", Some((3, "C#"))),
            ("##", Some((2, ""))),
            ("# #", Some((1, ""))),
            ("#tag", None),
            ("####### seven", None),
            ("a # b", None),
        ] {
            assert_eq!(hash_heading(line), expected, "{line}");
        }
        for (line, expected) in
            [("- a", Some("a")), ("12)  a", Some("a")), ("*", Some("")), ("a", None), ("12 a", None), ("1.5 a", None)]
        {
            assert_eq!(strip_bullet(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn blocks_of_any_text_are_in_order_and_stand_in_it(text in document(), other in any::<String>()) {
            for text in [text, other] {
                let mut at = 0;
                for block in read_blocks(&text, 0) {
                    prop_assert!(at <= block.range.start && text.get(block.range.clone()).is_some(), "{text:?} {block:?}");
                    at = block.range.start;
                }
                prop_assert_eq!(without_lone_returns(&text).len(), text.len());
            }
        }
    }
}
