//! Finds addresses that a client would turn into links by itself, regardless of formatting.
//!
//! Clients look for addresses in the whole visible text: a partly italic address is found too, and so is a bare `example.org/x`. This
//! module therefore scans the rendered text, one run without white space at a time. In doubt it takes a file name for an address rather
//! than missing one.

use std::ops::Range;

use super::styled::{Span, Style, Styled};

/// Characters around an address that don't belong to it.
const OPENING: [char; 9] = ['(', '[', '{', '"', '\'', '<', '«', '“', '‘'];
const CLOSING: [char; 15] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>', '»', '”', '’'];
/// The dots of a host name in every form accepted by browsers.
const POINTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Marks every address as code, which clients don't turn into links. Formatting that ends inside an address now ends before it.
pub(super) fn as_code(styled: Styled) -> Styled {
    let Styled { text, mut spans } = styled;
    let is_in = |range: &Range<usize>, spans: &[Span]| {
        let is_code = |span: &&Span| matches!(span.style, Style::Code | Style::Pre { .. });
        spans.iter().filter(is_code).any(|span| span.range.start <= range.start && range.end <= span.range.end)
    };
    let mut found = find_addresses(&text);
    found.retain(|range| !is_in(range, &spans));
    for span in &mut spans {
        found.iter().for_each(|address| clip_span(&mut span.range, address));
    }
    spans.retain(|span| !span.range.is_empty());
    spans.extend(found.into_iter().map(|range| Span { range, style: Style::Code }));
    // Outer spans first; among equal ranges, the older span.
    spans.sort_by(|a, b| a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)));
    Styled { text, spans }
}

/// Returns the number of addresses in a part that Telegram would turn into links, because no formatting prevents it.
pub(super) fn count_bare(styled: &Styled, part: &Range<usize>) -> usize {
    let found = find_addresses(styled.visible_text(part));
    let excludes = |span: &&Span| matches!(span.style, Style::Code | Style::Pre { .. } | Style::Link { .. });
    let is_bare = |address: &Range<usize>| {
        let (start, end) = (part.start + address.start, part.start + address.end);
        !styled.spans.iter().filter(excludes).any(|span| span.range.start < end && start < span.range.end)
    };
    found.iter().filter(|address| is_bare(address)).count()
}

/// Raises the dots of addresses in a text, to keep clients from finding them. The number of characters stays the same.
pub(super) fn defang_addresses(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for address in find_addresses(text) {
        plain.push_str(text.get(at..address.start).unwrap_or_default());
        let shown = text.get(address.clone()).unwrap_or_default();
        plain.push_str(&shown.replace("://", ":··").replace(POINTS, "·").replace("tg:", "tg·"));
        at = address.end;
    }
    plain.push_str(text.get(at..).unwrap_or_default());
    plain
}

/// Cuts `span` to end before `address` or begin after it, unless the span surrounds the address or lies outside.
fn clip_span(span: &mut Range<usize>, address: &Range<usize>) {
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

/// Returns the ranges of addresses, in order.
fn find_addresses(text: &str) -> Vec<Range<usize>> {
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

/// Returns whether a run has two names joined by a dot, the second like a top-level domain, or an IPv4 address.
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
