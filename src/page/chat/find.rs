//! Searches the conversation from its end: a statement is found if it has all the words. Each leads to its place in the conversation.

use std::collections::VecDeque;

use maud::{Markup, html};

use reveille_base::words::one_line;
use reveille_store::{Exchange, Store, StoreError, TalkMark, TalkPart};

use super::{
    super::{
        error::PageError,
        frame::{PagePlace, render_frame},
        parts::{build_address, render_time, render_untrusted_badge},
        site::PageContext,
    },
    PATH,
    talk::{SHOWN, format_mark},
    view::render_head,
};

/// Maximum statements found.
const MAX_FOUND: usize = 40;
/// Statements read at a time.
const READ: usize = 500;
/// Maximum statements read.
const MAX_READ: usize = 50_000;
/// Statements shown after a found one.
const AFTER: usize = 10;
/// Characters shown before the first word, and in all.
const BEFORE_CHARS: usize = 60;
const SHOWN_CHARS: usize = 240;

/// A found statement.
struct Found {
    said: Exchange,
    /// The end of the part of the conversation in which it is shown. `None` if the newest part has it.
    place: Option<TalkMark>,
}

/// Renders the statements that have these words.
pub(super) fn render_found(desk: &PageContext<'_>, words: &str) -> Result<Markup, PageError> {
    let wanted: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let found = match desk.open_store()? {
        Some(store) => store.with_snapshot(|| find(&store, &wanted))?,
        None => Vec::new(),
    };
    let content = html! {
        (render_head(words))
        @if found.is_empty() {
            p { "Nothing in this chat has " @if wanted.len() == 1 { "this word." } @else { "all these words." } }
        }
        ol .list.found {
            @for hit in &found { li { (render_hit(desk, hit, &wanted)) } }
        }
        @if found.len() == MAX_FOUND { p .meta { "These are the newest " (MAX_FOUND) "." } }
        p .ways { a href=(PATH) { "Newest messages" } }
    };
    Ok(render_frame(PagePlace::Chat, "Search", &content))
}

fn render_hit(desk: &PageContext<'_>, hit: &Found, wanted: &[String]) -> Markup {
    let number = hit.said.format_number();
    let address = match hit.place {
        Some(place) => format!("{}#{number}", build_address(PATH, &[("before", &format_mark(place))])),
        None => format!("{PATH}#{number}"),
    };
    // Without the marks of Markdown, which say nothing in one line.
    let plain = desk.clean_text(&hit.said.text).replace("**", "").replace("```", " ");
    let text = cut_around(&one_line(&plain), wanted);
    html! {
        a href=(address) { @if hit.said.from.is_some() { "You" } @else { "Reveille" } }
        span .meta {
            @if let Some(at) = hit.said.at { " " (render_time(desk, at)) }
            @if hit.said.from.is_none() && hit.said.taint.is_some() { " " (render_untrusted_badge()) }
        }
        p { (mark_words(&text, wanted)) }
    }
}

/// Reads the conversation from its end and keeps what has all the words.
fn find(store: &Store, wanted: &[String]) -> Result<Vec<Found>, StoreError> {
    let (mut found, mut read) = (Vec::new(), 0);
    let mut place = TalkMark::END;
    // The places after the last few statements, oldest first.
    let mut after: VecDeque<TalkMark> = VecDeque::new();
    while read < MAX_READ {
        let part = store.terminals().list_terminal_exchanges(TalkPart::Before(place), READ)?;
        if part.is_empty() {
            break;
        }
        for said in part.into_iter().rev() {
            read += 1;
            after.push_back(place);
            if after.len() > AFTER {
                after.pop_front();
            }
            place = place.before(&said);
            let text = said.text.to_lowercase();
            if wanted.iter().all(|word| text.contains(word)) {
                let place = after.front().copied().filter(|_| read > SHOWN);
                found.push(Found { said, place });
                if found.len() == MAX_FOUND {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

/// Cuts a text to the surroundings of the first word.
fn cut_around(text: &str, wanted: &[String]) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = find_words(&chars, wanted).first().map_or(0, |range| range.start);
    let begin = at.saturating_sub(BEFORE_CHARS);
    // A word is cut nowhere but in an endless one.
    let space = chars.get(begin..at).unwrap_or_default().iter().position(|c| c.is_whitespace());
    let begin = if begin > 0 { begin + space.map_or(0, |space| space + 1) } else { begin };
    let cut: String = chars.iter().skip(begin).take(SHOWN_CHARS).collect();
    let (before, behind) = (if begin > 0 { "…" } else { "" }, if begin + SHOWN_CHARS < chars.len() { "…" } else { "" });
    format!("{before}{cut}{behind}")
}

/// Marks the words in a text.
fn mark_words(text: &str, wanted: &[String]) -> Markup {
    let chars: Vec<char> = text.chars().collect();
    let part = |range: std::ops::Range<usize>| chars.get(range).unwrap_or_default().iter().collect::<String>();
    let mut written = 0;
    let marked: Vec<MarkedWord> = find_words(&chars, wanted)
        .into_iter()
        .map(|range| {
            let before = part(written..range.start);
            written = range.end;
            MarkedWord { before, word: part(range) }
        })
        .collect();
    html! {
        @for MarkedWord { before, word } in &marked { (before) mark { (word) } }
        (part(written..chars.len()))
    }
}

/// A found word, with the text between the last one and it.
struct MarkedWord {
    before: String,
    word: String,
}

/// Finds the words, from left to right, without overlaps.
fn find_words(chars: &[char], wanted: &[String]) -> Vec<std::ops::Range<usize>> {
    // One lower-case character for each, so that the places are those of the text.
    let lower: Vec<char> = chars.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    let words: Vec<Vec<char>> = wanted.iter().map(|word| word.chars().collect()).collect();
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < lower.len() {
        let rest = lower.get(at..).unwrap_or_default();
        let longest = words.iter().filter(|word| rest.starts_with(word)).map(Vec::len).max().filter(|len| *len > 0);
        if let Some(length) = longest {
            ranges.push(at..at + length);
        }
        at += longest.unwrap_or(1);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_where_they_stand() {
        let wanted = ["tea".to_owned(), "grün".to_owned()];
        assert_eq!(
            mark_words("TEA & Grüner <tea>", &wanted).into_string(),
            "<mark>TEA</mark> &amp; <mark>Grün</mark>er &lt;<mark>tea</mark>&gt;"
        );
        assert_eq!(mark_words("soup", &wanted).into_string(), "soup");
        let long = format!("{} soup a tea {}", "a".repeat(500), "b".repeat(500));
        let cut = cut_around(&long, &wanted);
        assert!(cut.starts_with("…soup a tea bbb") && cut.ends_with("b…"), "{cut}");
        assert_eq!(cut_around("short", &[]), "short");
    }
}
