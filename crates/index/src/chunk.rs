//! A document as what is found of it: items of lists, tasks, paragraphs, lines of dialogue, each with its line, heading and day.
//!
//! Read line by line: people write any Markdown, and every line should be found whatever it stands in. The Markdown parser says which
//! lines are headings, items and code (`blocks`). Linear in the document's length. Comments are no knowledge, but for what a wake notes of origins at the end of a line. A comment that
//! is never closed hides nothing, and what was said holds none.

use std::{borrow::Cow, collections::HashMap};

use chrono::NaiveDate;

use reveille_base::words::{first_bytes, one_line};
use reveille_memory::{
    DocKind,
    markdown::{behind_bullet, hash_heading},
    templates::templates,
};

use super::{
    blocks::{LineKind, MarkedLine, read_lines},
    days::day_in,
};

/// Longer passages are cut where a line or a sentence ends, in bytes.
const MAX_CHUNK_BYTES: usize = 1_200;
/// Paragraphs of a long message are joined up to here, in bytes.
const JOINED_UP_TO_BYTES: usize = 400;
/// A heading's or a speaker's name is cut off here, in bytes.
const MAX_HEADING_BYTES: usize = 300;
/// What stands between the headings above one.
pub(super) const BETWEEN_HEADINGS: &str = " · ";
/// What a speaker is called, in bytes at most, and in words.
const MAX_SPEAKER_BYTES: usize = 40;
const MAX_SPEAKER_WORDS: usize = 4;
/// A label that stands before so many lines of a document is a speaker.
const SPEAKS_AT_LEAST: usize = 2;
/// How a comment begins and ends.
pub(super) const COMMENT: &str = "<!--";
pub(super) const COMMENT_END: &str = "-->";
/// A line that is shorter doesn't go on in the next one, in characters: it isn't wrapped.
const WRAPPED_AT_LEAST: usize = 50;

/// What kind of thing a chunk is: some are worth more than others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChunkKind {
    /// An item of the semantic memory.
    Fact,
    /// A task, or what stands below one.
    Task,
    /// An entry of the log.
    Log,
    /// Any other text of the memory.
    #[default]
    Note,
    /// What was said to the assistant.
    Message,
    /// What the assistant said.
    Answer,
    /// A skill's text.
    Skill,
}

impl ChunkKind {
    /// The number that stands for it in the index.
    pub(super) fn number(self) -> i64 {
        self as i64
    }

    /// The kind of that number.
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

/// A part of a text that is found as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its first line, counted from 1.
    pub(super) line: usize,
    /// Its last line.
    pub(super) last_line: usize,
    pub(super) kind: ChunkKind,
    /// The words, without list marks and comments, on one line.
    pub(super) text: String,
    /// The nearest heading above.
    pub(super) heading: String,
    /// The headings above that one, outermost first: they are searched, too.
    pub(super) above: String,
    /// Who says it, in a dialogue.
    pub(super) speaker: String,
    pub(super) date: Option<NaiveDate>,
    /// The comment that a wake has left at the end of it.
    pub(super) origin: String,
}

/// A line as it was read.
#[derive(Clone)]
struct Line<'a> {
    number: usize,
    /// Without list mark, comments and blanks around it.
    text: Cow<'a, str>,
    comment: Option<&'a str>,
    /// Whether it begins an item, a row of a table or a quotation.
    begins: bool,
    /// How far it is indented, in bytes.
    indent: usize,
    /// Whether it may hold comments: neither code nor something that was said.
    has_comments: bool,
}

/// The chunks of a document.
pub(super) fn chunks(path: &str, text: &str) -> Vec<Chunk> {
    // A skill as it came says nothing of its person.
    if path.starts_with("skills/") && templates().contains(&(path, text)) {
        return Vec::new();
    }
    let kind = match DocKind::of(path) {
        _ if path.starts_with("skills/") => ChunkKind::Skill,
        DocKind::Facts => ChunkKind::Fact,
        DocKind::Tasks => ChunkKind::Task,
        DocKind::Log => ChunkKind::Log,
        DocKind::Text => ChunkKind::Note,
    };
    let mut reader = Reader { kind, day_of_file: day_in(path), ..Reader::default() };
    reader.read(text);
    reader.found
}

/// The chunks of a message: it is one, if it isn't long.
pub(super) fn of_message(text: &str, kind: ChunkKind) -> Vec<Chunk> {
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

/// Which labels before a colon are speakers: those that stand there again.
fn speakers<'a>(lines: &[MarkedLine<'a>]) -> HashMap<&'a str, usize> {
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        if let Some((label, _)) = labelled(strip_mark(line.text.trim(), line.kind == LineKind::Item).0) {
            *labels.entry(label).or_default() += 1;
        }
    }
    labels.retain(|_, count| *count >= SPEAKS_AT_LEAST);
    labels
}

/// The label of a line, `Caroline: …`, `**Bob** (14:03): …`, `[D1:3] Ann: …`, and what follows it.
fn labelled(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    // A number or a time in brackets before it.
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

/// A line without its marks, and whether it had any. The parser says whether it begins an item; marks of quotations and tables are taken
/// as they stand: people write rows of tables without a head, which the parser knows none of.
fn strip_mark(line: &str, is_item: bool) -> (&str, bool) {
    let mut rest = line.trim_start_matches(['>', ' ']);
    let mut is_marked = rest.len() < line.len() || is_item;
    // A longer number is more than the item's place.
    let has_place = rest.bytes().take_while(u8::is_ascii_digit).count() <= 4;
    if let Some(item) = behind_bullet(rest).filter(|_| is_item && has_place) {
        // A box to tick.
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
    /// A message's paragraphs: short ones are joined.
    joins_all: bool,
    day_of_file: Option<NaiveDate>,
    /// The headings that are open: level, words, day.
    headings: Vec<(usize, String, Option<NaiveDate>)>,
    /// The line of the last heading, while nothing of it has been found.
    bare_heading: Option<usize>,
    speakers: HashMap<&'a str, usize>,
    /// The lines of the passage that isn't ended, and how long they are together.
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
            self.speakers = speakers(&lines);
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
                        self.heading(number, level.into(), title);
                        self.keep_rest_of_heading(number, title);
                        continue;
                    }
                }
                LineKind::Underlined(level) if !goes_on && self.takes_underlined() => {
                    self.heading(number, level, bare);
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
            // Lists of front matter are marked like others.
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
            self.line(Line { number, text, comment, begins: is_marked, indent, has_comments }, is_code);
        }
        self.close();
        self.end_section();
    }

    /// Whether underlined headings count. The memory's own documents know none: a `---` under a line is a rule in them.
    fn takes_underlined(&self) -> bool {
        !matches!(self.kind, ChunkKind::Fact | ChunkKind::Task | ChunkKind::Log)
    }

    /// Keeps the words of a heading that is longer than headings are kept.
    fn keep_rest_of_heading(&mut self, number: usize, title: &'a str) {
        if title.len() > MAX_HEADING_BYTES {
            let (text, comment) = without_comments(title);
            self.line(Line { number, text, comment, begins: true, indent: 0, has_comments: true }, false);
            self.close();
        }
    }

    fn heading(&mut self, number: usize, level: usize, title: &str) {
        self.close();
        // What has headings below it isn't bare. One without words is found nowhere, and so has nothing above it found.
        let has_words = title.chars().any(char::is_alphanumeric);
        if has_words && self.headings.last().is_some_and(|(last, ..)| *last < level) {
            self.bare_heading = None;
        }
        self.end_section();
        let title =
            if self.joins_all { first_bytes(&one_line(title), MAX_HEADING_BYTES).to_owned() } else { as_title(title) };
        self.headings.retain(|(above, ..)| *above < level);
        let day = day_in(&title);
        self.headings.push((level, title, day));
        self.bare_heading = Some(number);
    }

    /// A heading without text below it is found by itself.
    fn end_section(&mut self) {
        if let (Some(line), Some((_, title, _))) = (self.bare_heading.take(), self.headings.last())
            && !self.joins_all
            && self.kind != ChunkKind::Fact
            && title.chars().any(char::is_alphanumeric)
        {
            let text = title.clone();
            let chunk = Chunk { line, last_line: line, text, ..self.placed() };
            self.found.push(chunk);
        }
    }

    /// An empty chunk where the reading is.
    fn placed(&self) -> Chunk {
        let heading = self.headings.last().map(|(_, title, _)| title.clone()).unwrap_or_default();
        let outer = self.headings.len().saturating_sub(1);
        let above: Vec<&str> = self.headings.iter().take(outer).map(|(_, title, _)| title.as_str()).collect();
        let date = self.headings.iter().rev().find_map(|(.., day)| *day).or(self.day_of_file);
        Chunk { kind: self.kind, heading, above: above.join(BETWEEN_HEADINGS), date, ..Chunk::empty() }
    }

    fn line(&mut self, line: Line<'a>, is_code: bool) {
        let goes_on = self.open.last().is_some_and(|last| {
            if is_code {
                return true;
            }
            if line.begins {
                // The keys of a task stand together.
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
                && labelled(&line.text).is_none_or(|(label, _)| !self.is_speaker(label))
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

    /// Ends the passage that is open.
    fn close(&mut self) {
        let lines = std::mem::take(&mut self.open);
        self.open_bytes = 0;
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        let mut chunk = Chunk { line: first.number, last_line: last.number, ..self.placed() };
        let origin = lines.iter().find_map(|line| line.comment);
        chunk.origin = origin.unwrap_or_default().to_owned();
        if self.headings.iter().all(|(.., day)| day.is_none()) {
            chunk.date = origin.and_then(day_of_wake).or_else(|| day_in(first_bytes(&first.text, 40))).or(chunk.date);
        }
        let text = lines.iter().map(|line| line.text.as_ref()).collect::<Vec<_>>().join(" ");
        // A comment may go over several lines.
        chunk.text = if first.has_comments { one_line(&without_comments(&text).0) } else { one_line(&text) };
        if self.kind == ChunkKind::Task && self.bare_heading.is_some() {
            // The title is what a task is found by; its line is the task's.
            chunk.line = self.bare_heading.unwrap_or(chunk.line);
            chunk.date = day_in(&chunk.text).or(chunk.date);
            chunk.text = format!("{}: {}", chunk.heading, chunk.text);
        }
        if let Some((label, _)) = labelled(&first.text).filter(|(label, _)| self.is_speaker(label)) {
            chunk.speaker = label.to_owned();
        }
        self.bare_heading = None;
        for part in parts(&chunk.text) {
            let text = part.to_owned();
            self.found.push(Chunk { text, ..chunk.clone() });
        }
    }
}

/// A long text in parts that end where a sentence or a word does.
fn parts(text: &str) -> Vec<&str> {
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

/// Whether a line is `key: value`, the key one word.
fn is_key(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, _)| !key.is_empty() && !key.contains(char::is_whitespace))
}

/// What a heading says, as chunks have it.
fn as_title(title: &str) -> String {
    first_bytes(&one_line(&without_comments(title).0), MAX_HEADING_BYTES).to_owned()
}

/// What a line says as a heading, if it is one.
pub(super) fn title(line: &str) -> Option<String> {
    hash_heading(line).map(|(_, title)| as_title(title))
}

/// A text without its comments, and the inside of the last. One that isn't closed stays.
fn without_comments(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let Some((before, inside, mut rest)) = at_comment(text) else { return (Cow::Borrowed(text), None) };
    if rest.trim_end().is_empty() {
        return (Cow::Borrowed(before.trim_end()), Some(inside));
    }
    let (mut kept, mut last) = (before.to_owned(), inside);
    while let Some((before, inside, after)) = at_comment(rest) {
        kept.push_str(before);
        (last, rest) = (inside, after);
    }
    kept.push_str(rest);
    (Cow::Owned(kept), Some(last))
}

/// What stands before the first comment, in it, and behind it.
fn at_comment(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(COMMENT)?;
    let (inside, after) = rest.split_once(COMMENT_END)?;
    let inside = inside.rsplit_once(COMMENT).map_or(inside, |(_, last)| last);
    Some((before, inside.trim(), after))
}

/// The day in a wake's id (`wake 20261121T140302Z-812 …`).
fn day_of_wake(origin: &str) -> Option<NaiveDate> {
    let stamps = origin.split_whitespace().filter_map(|word| word.split_once('T'));
    stamps.filter(|(day, _)| day.len() == 8).find_map(|(day, _)| NaiveDate::parse_from_str(day, "%Y%m%d").ok())
}

#[cfg(test)]
mod tests;
