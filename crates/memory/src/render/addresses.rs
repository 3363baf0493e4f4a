//! Addresses that a client would make links of by itself, found in what a reader sees, whatever formatting lies over it.
//!
//! Clients look for addresses in the whole text: one whose middle is in italics is found, too, and so is a bare `example.org/x`. So this
//! looks at the rendered text, a run without white space at a time, and rather takes a file's name for an address than the other
//! way round.

use std::ops::Range;

use super::styled::{Span, Style, Styled};

/// What may stand around an address and isn't part of it.
const OPENING: [char; 9] = ['(', '[', '{', '"', '\'', '<', '«', '“', '‘'];
const CLOSING: [char; 15] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>', '»', '”', '’'];
/// Points between the names of a host, in every form that a browser takes.
const POINTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// The same with every address as code, of which no client makes a link. Formatting that ends within one ends before it.
pub(super) fn as_code(styled: Styled) -> Styled {
    let Styled { text, mut spans } = styled;
    let is_in = |range: &Range<usize>, spans: &[Span]| {
        let is_code = |span: &&Span| matches!(span.style, Style::Code | Style::Pre { .. });
        spans.iter().filter(is_code).any(|span| span.range.start <= range.start && range.end <= span.range.end)
    };
    let mut found = find(&text);
    found.retain(|range| !is_in(range, &spans));
    for span in &mut spans {
        found.iter().for_each(|address| clip(&mut span.range, address));
    }
    spans.retain(|span| !span.range.is_empty());
    spans.extend(found.into_iter().map(|range| Span { range, style: Style::Code }));
    // Outer ones first; of two that are the same, the one that was there.
    spans.sort_by(|a, b| a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)));
    Styled { text, spans }
}

/// How many addresses of a part Telegram makes links of by itself, since no formatting stands there that excludes it.
pub(super) fn count_bare(styled: &Styled, part: &Range<usize>) -> usize {
    let found = find(styled.visible(part));
    let excludes = |span: &&Span| matches!(span.style, Style::Code | Style::Pre { .. } | Style::Link { .. });
    let is_bare = |address: &Range<usize>| {
        let (start, end) = (part.start + address.start, part.start + address.end);
        !styled.spans.iter().filter(excludes).any(|span| span.range.start < end && start < span.range.end)
    };
    found.iter().filter(|address| is_bare(address)).count()
}

/// Text in which no address is left that a client would find: points in them are raised. Of the same length.
pub(super) fn defanged(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for address in find(text) {
        plain.push_str(text.get(at..address.start).unwrap_or_default());
        let shown = text.get(address.clone()).unwrap_or_default();
        plain.push_str(&shown.replace("://", ":··").replace(POINTS, "·").replace("tg:", "tg·"));
        at = address.end;
    }
    plain.push_str(text.get(at..).unwrap_or_default());
    plain
}

/// Leaves `span` as it is around `address` and beside it, and takes away what of it begins or ends within.
fn clip(span: &mut Range<usize>, address: &Range<usize>) {
    let is_around = span.start <= address.start && address.end <= span.end;
    let is_beside = span.end <= address.start || address.end <= span.start;
    if is_around || is_beside {
        return;
    }
    if span.start < address.start {
        span.end = address.start;
    } else {
        span.start = address.end.min(span.end);
    }
}

/// Where addresses are, in order.
fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for run in text.split_inclusive(char::is_whitespace) {
        let start = at;
        at += run.len();
        let opened = run.trim_start_matches(OPENING);
        let address = opened.trim_end_matches(char::is_whitespace).trim_end_matches(CLOSING);
        if is_address(address) {
            let start = start + run.len() - opened.len();
            found.push(start..start + address.len());
        }
    }
    found
}

fn is_address(run: &str) -> bool {
    let lower = run.to_lowercase();
    lower.contains("://") || lower.starts_with("tg:") || lower.contains("www.") || has_host(&lower)
}

/// Whether two names have a point between them, the second one as top-level domains are; or it is an IPv4 address.
fn has_host(run: &str) -> bool {
    let mut numbers = 0;
    let mut names = run.split(POINTS);
    let mut before = names.next().unwrap_or_default();
    for name in names {
        let label: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
        let follows = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_'));
        if follows && label.chars().count() >= 2 && label.starts_with(char::is_alphabetic) {
            return true;
        }
        let is_number = |text: Option<char>| text.is_some_and(|c| c.is_ascii_digit());
        numbers = if is_number(before.chars().last()) && is_number(name.chars().next()) { numbers + 1 } else { 0 };
        if numbers >= 3 {
            return true;
        }
        before = name;
    }
    false
}
