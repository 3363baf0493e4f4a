//! Splits a document into searchable chunks: list items, tasks, paragraphs and lines of dialogue, each with its line, heading and day.
//!
//! The text is read line by line: people write any Markdown, and every line must be findable in any context. The Markdown parser only
//! classifies lines as headings, items and code (`blocks`). Linear in the document's length. Comments aren't searched, but a wake's comment
//! at a line's end gives the origin. An unclosed comment hides nothing, and conversations contain no comments.

use std::{borrow::Cow, collections::HashMap};

use chrono::NaiveDate;

use reveille_base::words::{first_bytes, one_line};
use reveille_memory::{
    DocKind,
    markdown::{hash_heading, strip_bullet},
    templates::list_files,
};

use super::{
    blocks::{LineKind, MarkedLine, read_lines},
    days::find_day,
};

/// The maximum size of a chunk, in bytes; longer passages are cut at a line's or a sentence's end.
const MAX_CHUNK_BYTES: usize = 1_200;
/// The size up to which paragraphs of a long message are joined, in bytes.
const JOINED_UP_TO_BYTES: usize = 400;
/// The maximum length of a heading, in bytes.
const MAX_HEADING_BYTES: usize = 300;
/// The separator between the headings above.
pub(super) const BETWEEN_HEADINGS: &str = " · ";
/// The maximum length of a speaker's name, in bytes and in words.
const MAX_SPEAKER_BYTES: usize = 40;
const MAX_SPEAKER_WORDS: usize = 4;
/// The number of lines a label must begin to count as a speaker.
const SPEAKS_AT_LEAST: usize = 2;
pub(super) const COMMENT: &str = "<!--";
pub(super) const COMMENT_END: &str = "-->";
/// The minimum length of a line that may be wrapped, in characters. A shorter line doesn't continue in the next.
const WRAPPED_AT_LEAST: usize = 50;

/// The kind of a chunk, which influences its rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChunkKind {
    /// An item of the semantic memory.
    Fact,
    /// A task, or text below one.
    Task,
    /// An entry of the log.
    Log,
    /// Any other text of the memory.
    #[default]
    Note,
    /// A message to the assistant.
    Message,
    /// An answer of the assistant.
    Answer,
    /// A skill's text.
    Skill,
}

impl ChunkKind {
    /// Returns the kind's number in the index.
    pub(super) fn number(self) -> i64 {
        self as i64
    }

    /// Returns the kind with that number.
    pub(super) fn from_number(number: i64) -> Self {
        const ALL: [ChunkKind; 7] = [
            ChunkKind::Fact,
            ChunkKind::Task,
            ChunkKind::Log,
            ChunkKind::Note,
            ChunkKind::Message,
            ChunkKind::Answer,
            ChunkKind::Skill,
        ];
        usize::try_from(number).ok().and_then(|at| ALL.get(at)).copied().unwrap_or(Self::Note)
    }
}

/// A part of a text that is found as a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The first line, counted from 1.
    pub(super) line: usize,
    /// The last line.
    pub(super) last_line: usize,
    pub(super) kind: ChunkKind,
    /// The text on one line, without list marks and comments.
    pub(super) text: String,
    /// The nearest heading above.
    pub(super) heading: String,
    /// The outer headings, outermost first; they are searched too.
    pub(super) above: String,
    /// The speaker in a dialogue.
    pub(super) speaker: String,
    pub(super) date: Option<NaiveDate>,
    /// A wake's comment at the end of the chunk.
    pub(super) origin: String,
}

/// A parsed line.
#[derive(Clone)]
struct Line<'a> {
    number: usize,
    /// The text without list mark, comments and surrounding blanks.
    text: Cow<'a, str>,
    comment: Option<&'a str>,
    /// Whether the line begins an item, a table row or a quotation.
    begins: bool,
    /// The indentation, in bytes.
    indent: usize,
    /// Whether the line may contain comments: neither code nor conversation.
    has_comments: bool,
    is_code: bool,
}

/// Splits a document into chunks.
pub(super) fn split_document(path: &str, text: &str) -> Vec<Chunk> {
    // An unchanged skill from the templates tells nothing about the person.
    if path.starts_with("skills/") && list_files().contains(&(path, text)) {
        return Vec::new();
    }
    let kind = match DocKind::from_path(path) {
        _ if path.starts_with("skills/") => ChunkKind::Skill,
        DocKind::Facts => ChunkKind::Fact,
        DocKind::Tasks => ChunkKind::Task,
        DocKind::Log => ChunkKind::Log,
        DocKind::Text => ChunkKind::Note,
    };
    let mut reader = Reader { kind, day_of_file: find_day(path), ..Reader::default() };
    reader.read(text);
    reader.found
}

/// Splits a message into chunks; a short message is a single chunk.
pub(super) fn split_message(text: &str, kind: ChunkKind) -> Vec<Chunk> {
    let whole = one_line(text);
    if whole.len() <= MAX_CHUNK_BYTES {
        let last_line = text.lines().count().max(1);
        let chunk = Chunk { line: 1, last_line, kind, text: whole, ..Chunk::empty() };
        return if chunk.text.is_empty() { Vec::new() } else { vec![chunk] };
    }
    let mut reader = Reader { kind, joins_all: true, ..Reader::default() };
    reader.read(text);
    reader.found
}

/// Returns the labels before colons that occur often enough to be speakers.
fn find_speakers<'a>(lines: &[MarkedLine<'a>]) -> HashMap<&'a str, usize> {
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        if let Some((label, _)) = split_label(strip_mark(line.text.trim(), line.kind == LineKind::Item).0) {
            *labels.entry(label).or_default() += 1;
        }
    }
    labels.retain(|_, count| *count >= SPEAKS_AT_LEAST);
    labels
}

/// Splits a line such as `Caroline: …`, `**Bob** (14:03): …` or `[D1:3] Ann: …` into its label and the rest.
fn split_label(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    // Skip a number or a time in brackets.
    while let Some(inside) = rest.strip_prefix(['[', '(']) {
        let end = inside.find([']', ')']).filter(|end| *end <= MAX_SPEAKER_BYTES)?;
        rest = inside.get(end + 1..)?.trim_start_matches([' ', '-', ':']);
    }
    rest = rest.trim_start_matches(['*', '_']);
    let is_time = |c: char| c.is_ascii_digit() || c == ':';
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest = rest.trim_start_matches(is_time).trim_start_matches([' ', '-', '–', '|']);
    }
    let colon = rest.find(": ").or_else(|| rest.find(":*")).or_else(|| rest.find(":_"))?;
    let (label, said) = (rest.get(..colon)?, rest.get(colon + 1..)?);
    let label = match label.find(" (") {
        Some(at) => label.get(..at)?,
        None => label,
    };
    let label = label.trim_matches(['*', '_', ' ']);
    let is_name = label.len() <= MAX_SPEAKER_BYTES
        && label.starts_with(char::is_alphabetic)
        && label.split(' ').count() <= MAX_SPEAKER_WORDS
        && label.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_' | '\'' | '’'));
    let said = said.trim_start_matches(['*', '_', ' ']);
    (is_name && !said.is_empty()).then_some((label, said))
}

/// Returns a line without its marks, and whether it had any. The parser recognises items. Marks of quotations and tables are taken
/// literally, because people write tables without a head, unknown to the parser.
fn strip_mark(line: &str, is_item: bool) -> (&str, bool) {
    let mut rest = line.trim_start_matches(['>', ' ']);
    let mut is_marked = rest.len() < line.len() || is_item;
    // A longer number isn't just the item's position.
    let has_place = rest.bytes().take_while(u8::is_ascii_digit).count() <= 4;
    if let Some(item) = strip_bullet(rest).filter(|_| is_item && has_place) {
        // Skip a checkbox.
        rest = ["[ ] ", "[x] ", "[X] "].iter().find_map(|tick| item.strip_prefix(tick)).unwrap_or(item);
    }
    if rest.starts_with('|') {
        is_marked = true;
        rest = rest.trim_matches(['|', ' ']);
    }
    (rest, is_marked)
}

#[derive(Default)]
struct Reader<'a> {
    kind: ChunkKind,
    /// Whether to join short paragraphs, for messages.
    joins_all: bool,
    day_of_file: Option<NaiveDate>,
    /// The open headings: level, text, day.
    headings: Vec<(usize, String, Option<NaiveDate>)>,
    /// The line of the last heading, while no text has been found below.
    bare_heading: Option<usize>,
    speakers: HashMap<&'a str, usize>,
    /// The lines of the open passage, and their total size.
    open: Vec<Line<'a>>,
    open_bytes: usize,
    found: Vec<Chunk>,
}

impl Chunk {
    fn empty() -> Self {
        Self {
            line: 1,
            last_line: 1,
            kind: ChunkKind::Note,
            text: String::new(),
            heading: String::new(),
            above: String::new(),
            speaker: String::new(),
            date: None,
            origin: String::new(),
        }
    }
}

impl<'a> Reader<'a> {
    fn read(&mut self, text: &'a str) {
        let lines = read_lines(text, !self.joins_all);
        if !self.joins_all && self.kind != ChunkKind::Task {
            self.speakers = find_speakers(&lines);
        }
        let is_end = |line: &MarkedLine<'_>| !self.joins_all && line.text.contains(COMMENT_END);
        let last_end = lines.iter().rposition(is_end).unwrap_or(0);
        let mut is_comment = false;
        for (at, MarkedLine { number, text: raw, kind }) in lines.into_iter().enumerate() {
            let line = raw.trim_start_matches('\u{feff}').trim_end();
            let mut bare = line.trim_start();
            let indent = line.len() - bare.len();
            let goes_on = is_comment;
            if goes_on {
                let Some((_, after)) = bare.split_once(COMMENT_END) else { continue };
                (bare, is_comment) = (after.trim_start(), false);
            }
            let is_code = kind == LineKind::Code;
            match kind {
                LineKind::Mark => {
                    self.close();
                    continue;
                }
                LineKind::Heading if !goes_on => {
                    if let Some((level, title)) = hash_heading(bare) {
                        self.take_heading(number, level.into(), title);
                        self.keep_rest_of_heading(number, title);
                        continue;
                    }
                }
                LineKind::Underlined(level) if !goes_on && self.has_underlined_headings() => {
                    self.take_heading(number, level, bare);
                    continue;
                }
                _ => {}
            }
            let is_text = !is_code && kind != LineKind::Key;
            if is_text && bare.starts_with(COMMENT) && !bare.contains(COMMENT_END) && at < last_end {
                is_comment = true;
                self.close();
                continue;
            }
            let has_comments = is_text && !self.joins_all;
            let (text, comment) = if has_comments { without_comments(bare) } else { (Cow::Borrowed(bare), None) };
            // Lists in front matter have the usual list marks.
            let is_item = matches!(kind, LineKind::Item | LineKind::Key);
            let (text, is_marked) = match text {
                text if is_code => (text, false),
                Cow::Borrowed(text) => {
                    let (text, is_marked) = strip_mark(text, is_item);
                    (Cow::Borrowed(text), is_marked)
                }
                Cow::Owned(text) => {
                    let (text, is_marked) = strip_mark(text.trim(), is_item);
                    (Cow::Owned(text.to_owned()), is_marked)
                }
            };
            if !text.chars().any(char::is_alphanumeric) {
                if !self.joins_all || self.open_bytes >= JOINED_UP_TO_BYTES {
                    self.close();
                }
                continue;
            }
            self.take_line(Line { number, text, comment, begins: is_marked, indent, has_comments, is_code });
        }
        self.close();
        self.end_section();
    }

    /// Returns whether underlined headings count. The memory's own documents have none: a `---` under a line is a rule there.
    fn has_underlined_headings(&self) -> bool {
        !matches!(self.kind, ChunkKind::Fact | ChunkKind::Task | ChunkKind::Log)
    }

    /// Keeps the full text of an overlong heading as a chunk.
    fn keep_rest_of_heading(&mut self, number: usize, title: &'a str) {
        if title.len() > MAX_HEADING_BYTES {
            let (text, comment) = without_comments(title);
            self.take_line(Line { number, text, comment, begins: true, indent: 0, has_comments: true, is_code: false });
            self.close();
        }
    }

    fn take_heading(&mut self, number: usize, level: usize, title: &str) {
        self.close();
        // A heading with headings below isn't bare. A heading without words is never found, so it keeps the one above bare.
        let has_words = title.chars().any(char::is_alphanumeric);
        if has_words && self.headings.last().is_some_and(|(last, ..)| *last < level) {
            self.bare_heading = None;
        }
        self.end_section();
        let title =
            if self.joins_all { first_bytes(&one_line(title), MAX_HEADING_BYTES).to_owned() } else { as_title(title) };
        self.headings.retain(|(above, ..)| *above < level);
        let day = find_day(&title);
        self.headings.push((level, title, day));
        self.bare_heading = Some(number);
    }

    /// Adds a chunk for a heading without text below.
    fn end_section(&mut self) {
        if let (Some(line), Some((_, title, _))) = (self.bare_heading.take(), self.headings.last())
            && !self.joins_all
            && self.kind != ChunkKind::Fact
            && title.chars().any(char::is_alphanumeric)
        {
            let text = title.clone();
            let chunk = Chunk { line, last_line: line, text, ..self.new_chunk() };
            self.found.push(chunk);
        }
    }

    /// Returns an empty chunk with the reader's present headings and day.
    fn new_chunk(&self) -> Chunk {
        let heading = self.headings.last().map(|(_, title, _)| title.clone()).unwrap_or_default();
        let outer = self.headings.len().saturating_sub(1);
        let above: Vec<&str> = self.headings.iter().take(outer).map(|(_, title, _)| title.as_str()).collect();
        let date = self.headings.iter().rev().find_map(|(.., day)| *day).or(self.day_of_file);
        Chunk { kind: self.kind, heading, above: above.join(BETWEEN_HEADINGS), date, ..Chunk::empty() }
    }

    fn take_line(&mut self, line: Line<'a>) {
        let goes_on = self.open.last().is_some_and(|last| {
            if line.is_code {
                return true;
            }
            if line.begins {
                // The keys of a task form a single passage.
                return self.kind == ChunkKind::Task
                    && self.open.iter().all(|line| is_key(&line.text))
                    && is_key(&line.text);
            }
            if self.joins_all {
                return true;
            }
            if self.open.first().is_some_and(|first| first.begins && line.indent > first.indent) {
                return true;
            }
            let is_wrapped = last.text.chars().count() >= WRAPPED_AT_LEAST
                && !last.text.ends_with(['.', '!', '?', '…', ':', ';', '"', '”', ')', '。', '！', '？']);
            is_wrapped
                && last.comment.is_none()
                && split_label(&line.text).is_none_or(|(label, _)| !self.is_speaker(label))
        });
        if !goes_on || self.open_bytes + line.text.len() > MAX_CHUNK_BYTES {
            self.close();
        }
        self.open_bytes += line.text.len();
        self.open.push(line);
    }

    fn is_speaker(&self, label: &str) -> bool {
        self.speakers.contains_key(label)
    }

    /// Ends the open passage.
    fn close(&mut self) {
        let lines = std::mem::take(&mut self.open);
        self.open_bytes = 0;
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        let mut chunk = Chunk { line: first.number, last_line: last.number, ..self.new_chunk() };
        let origin = lines.iter().find_map(|line| line.comment);
        chunk.origin = origin.unwrap_or_default().to_owned();
        if self.headings.iter().all(|(.., day)| day.is_none()) {
            chunk.date = origin.and_then(day_of_wake).or_else(|| find_day(first_bytes(&first.text, 40))).or(chunk.date);
        }
        let text = lines.iter().map(|line| line.text.as_ref()).collect::<Vec<_>>().join(" ");
        // A comment may span several lines.
        chunk.text = if first.has_comments { one_line(&without_comments(&text).0) } else { one_line(&text) };
        if self.kind == ChunkKind::Task && self.bare_heading.is_some() {
            // A task is found by its title, at its heading's line.
            chunk.line = self.bare_heading.unwrap_or(chunk.line);
            chunk.date = find_day(&chunk.text).or(chunk.date);
            chunk.text = format!("{}: {}", chunk.heading, chunk.text);
        }
        if let Some((label, _)) = split_label(&first.text).filter(|(label, _)| self.is_speaker(label)) {
            chunk.speaker = label.to_owned();
        }
        self.bare_heading = None;
        for part in split_long_text(&chunk.text) {
            let text = part.to_owned();
            self.found.push(Chunk { text, ..chunk.clone() });
        }
    }
}

/// Splits a long text at the ends of sentences or words.
fn split_long_text(text: &str) -> Vec<&str> {
    let (mut all, mut rest) = (Vec::new(), text);
    while rest.len() > MAX_CHUNK_BYTES {
        let most = first_bytes(rest, MAX_CHUNK_BYTES);
        let second_half = most.len() / 2;
        let end = most.rfind(". ").filter(|at| *at >= second_half).map(|at| at + 1);
        let end = end.or_else(|| most.rfind(' ').filter(|at| *at >= second_half)).unwrap_or(most.len()).max(1);
        let (part, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        all.push(part.trim());
        rest = after.trim_start();
    }
    all.push(rest);
    all.retain(|part| !part.is_empty());
    all
}

/// Returns whether a line is `key: value` with a single-word key.
fn is_key(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| !key.is_empty() && !key.contains(char::is_whitespace))
}

/// Cleans a heading's text for storage in a chunk.
fn as_title(title: &str) -> String {
    first_bytes(&one_line(&without_comments(title).0), MAX_HEADING_BYTES).to_owned()
}

/// Returns the text of a heading line. `None` for other lines.
pub(super) fn parse_title(line: &str) -> Option<String> {
    hash_heading(line).map(|(_, title)| as_title(title))
}

/// Removes comments from a text. Returns the rest and the inside of the last comment. An unclosed comment stays.
fn without_comments(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let Some(AroundComment { before, inside, after: mut rest }) = split_at_comment(text) else {
        return (Cow::Borrowed(text), None);
    };
    if rest.trim_end().is_empty() {
        return (Cow::Borrowed(before.trim_end()), Some(inside));
    }
    let (mut kept, mut last) = (before.to_owned(), inside);
    while let Some(AroundComment { before, inside, after }) = split_at_comment(rest) {
        kept.push_str(before);
        (last, rest) = (inside, after);
    }
    kept.push_str(rest);
    (Cow::Owned(kept), Some(last))
}

/// The parts of a text with a comment.
struct AroundComment<'a> {
    before: &'a str,
    inside: &'a str,
    after: &'a str,
}

/// Splits a text at its first comment.
fn split_at_comment(text: &str) -> Option<AroundComment<'_>> {
    let (before, rest) = text.split_once(COMMENT)?;
    let (inside, after) = rest.split_once(COMMENT_END)?;
    let inside = inside.rsplit_once(COMMENT).map_or(inside, |(_, last)| last);
    Some(AroundComment { before, inside: inside.trim(), after })
}

/// Parses the day of a wake's id (`wake 20261121T140302Z-812 …`).
fn day_of_wake(origin: &str) -> Option<NaiveDate> {
    let stamps = origin.split_whitespace().filter_map(|word| word.split_once('T'));
    stamps.filter(|(day, _)| day.len() == 8).find_map(|(day, _)| NaiveDate::parse_from_str(day, "%Y%m%d").ok())
}

#[cfg(test)]
mod tests;
