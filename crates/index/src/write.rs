//! Writes chunks with their words, and counts in how many chunks each word occurs.

use std::collections::HashMap;

use chrono::{Datelike as _, NaiveDate};
use rusqlite::{Connection, OptionalExtension as _};

use reveille_base::types::ChatRef;

use super::{
    IndexError,
    access::ChunkReaders,
    chunk::Chunk,
    hash::hash,
    terms::{self, WordPlace},
};

/// The length of words stored for comparison by spelling, in letters. Shorter words resemble too many others.
const SPELT_CHARS: std::ops::RangeInclusive<usize> = 4..=32;

/// A chunk with its position and access rights.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) chunk: Chunk,
    pub(super) ord: i64,
    pub(super) message: Option<i64>,
    pub(super) chat: Option<ChatRef>,
    pub(super) is_for_all: bool,
    pub(super) taint: Option<String>,
    pub(super) is_untrusted_to_guest: bool,
}

impl Placed {
    /// Creates a document's chunk.
    pub(super) fn for_document(chunk: Chunk, ord: usize, whose: ChunkReaders, taint: &str) -> Self {
        Self {
            chunk,
            ord: i64::try_from(ord).unwrap_or(i64::MAX),
            message: None,
            chat: whose.chat,
            is_for_all: whose.is_for_all,
            taint: whose.is_untrusted.then(|| taint.to_owned()),
            is_untrusted_to_guest: whose.is_untrusted_to_guest,
        }
    }

    /// Hashes everything stored about the chunk except its position.
    pub(super) fn identity(&self) -> i64 {
        let Chunk { kind, text, heading, above, speaker, date, origin, .. } = &self.chunk;
        let numbers = [
            kind.number(),
            self.message.unwrap_or(-1),
            self.chat.map_or(-1, ChatRef::number),
            i64::from(self.chat.is_some()) + 2 * i64::from(self.is_for_all) + 4 * i64::from(self.is_untrusted_to_guest),
            date.map_or(0, |day| i64::from(day.num_days_from_ce())),
        ];
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let taint = self.taint.as_deref().unwrap_or_default();
        let texts = [text, heading, above, speaker, origin, taint].map(str::as_bytes);
        let mut parts: Vec<&[u8]> = texts.to_vec();
        parts.push(&numbers);
        hash(&parts)
    }
}

/// Returns the text to embed for a chunk: the content, with its speaker or heading.
pub(super) fn render_embedding_text(kind: super::ChunkKind, heading: &str, speaker: &str, text: &str) -> String {
    use super::ChunkKind::{Answer, Fact, Log, Message, Note, Skill, Task};
    match kind {
        Fact | Skill if !heading.is_empty() => format!("{heading}: {text}"),
        Message if !speaker.is_empty() => format!("{speaker}: {text}"),
        Fact | Skill | Message | Task | Log | Note | Answer => text.to_owned(),
    }
}

/// The changed counts of one transaction.
#[derive(Default)]
pub(super) struct Changes {
    /// By how much each word's chunk count changes.
    words: HashMap<String, i64>,
    chunks: i64,
    length: i64,
}

impl Changes {
    /// Adds a chunk to a document.
    pub(super) fn add(&mut self, conn: &Connection, document: i64, placed: &Placed) -> Result<(), IndexError> {
        let Chunk { line, last_line, kind, text, heading, above, speaker, date, origin } = &placed.chunk;
        let key = hash(&[render_embedding_text(*kind, heading, speaker, text).as_bytes()]);
        let line_number = |line: usize| i64::try_from(line).unwrap_or(i64::MAX);
        conn.prepare_cached(
            "INSERT INTO chunks (document, ord, line, last_line, kind, message, identity, key, date, chat, for_all, taint,
                 guest_taint, speaker, heading, above, origin, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?
        .execute(rusqlite::params![
            document,
            placed.ord,
            line_number(*line),
            line_number(*last_line),
            kind.number(),
            placed.message,
            placed.identity(),
            key,
            date.map(|day| day.num_days_from_ce()),
            placed.chat,
            placed.is_for_all,
            placed.taint,
            placed.is_untrusted_to_guest,
            speaker,
            heading,
            above,
            origin,
            text,
        ])?;
        let id = conn.last_insert_rowid();
        let mut tokens = self.count_words(text, speaker, 1);
        let headings = terms::split_stems(&format!("{above} {heading}"));
        let pairs = tokens.iter().zip(tokens.iter().skip(1)).filter_map(|(one, other)| terms::pair_token(one, other));
        let pairs: Vec<String> = pairs.collect();
        tokens.extend(pairs);
        tokens.extend(headings.iter().map(|stem| WordPlace::Heading.token(stem)));
        tokens.extend(terms::split_stems(speaker).iter().map(|stem| WordPlace::Speaker.token(stem)));
        conn.prepare_cached("INSERT INTO postings (rowid, words) VALUES (?1, ?2)")?.execute((id, tokens.join(" ")))?;
        Ok(())
    }

    /// Removes a chunk.
    pub(super) fn remove(&mut self, conn: &Connection, id: i64) -> Result<(), IndexError> {
        let found: Option<(String, String)> = conn
            .prepare_cached("SELECT text, speaker FROM chunks WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((text, speaker)) = found else { return Ok(()) };
        self.count_words(&text, &speaker, -1);
        conn.prepare_cached("DELETE FROM postings WHERE rowid = ?1")?.execute([id])?;
        conn.prepare_cached("DELETE FROM chunks WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Adds `by` to the counts of a text's words, and returns the stems.
    fn count_words(&mut self, text: &str, speaker: &str, by: i64) -> Vec<String> {
        let stems = text_stems(text, speaker);
        self.chunks += by;
        self.length += by * i64::try_from(stems.len()).unwrap_or(0);
        let mut distinct: Vec<&String> = stems.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        for word in distinct {
            match self.words.get_mut(word) {
                Some(count) => *count += by,
                None => drop(self.words.insert(word.clone(), by)),
            }
        }
        // Speakers' names are listed, so that they are also found by spelling.
        for word in terms::split_stems(speaker) {
            self.words.entry(word).or_default();
        }
        stems
    }

    /// Writes the changed counts.
    pub(super) fn finish(self, conn: &Connection) -> Result<(), IndexError> {
        let mut update = conn.prepare_cached("UPDATE words SET chunks = chunks + ?2 WHERE word = ?1")?;
        let mut insert = conn.prepare_cached("INSERT INTO words (word, chunks) VALUES (?1, ?2)")?;
        let mut spell = conn.prepare_cached("INSERT INTO spellings (rowid, word) VALUES (?1, ?2)")?;
        for (word, by) in &self.words {
            if update.execute((word, by))? > 0 {
                continue;
            }
            insert.execute((word, by))?;
            let is_spelt = SPELT_CHARS.contains(&word.chars().count()) && word.chars().all(char::is_alphabetic);
            if is_spelt {
                spell.execute((conn.last_insert_rowid(), word))?;
            }
        }
        let mut add = conn.prepare_cached(
            "INSERT INTO state VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
        )?;
        add.execute(("chunks", self.chunks))?;
        add.execute(("length", self.length))?;
        Ok(())
    }
}

/// Returns the stems of the spoken text, without the speaker's label.
pub(super) fn text_stems(text: &str, speaker: &str) -> Vec<String> {
    terms::split_stems(strip_speaker(text, speaker))
}

/// Returns the spoken text, without the speaker's label.
pub(super) fn strip_speaker<'a>(text: &'a str, speaker: &str) -> &'a str {
    if speaker.is_empty() {
        return text;
    }
    let at = if text.starts_with(speaker) { Some(0) } else { text.find(speaker) };
    let Some(at) = at else { return text };
    let after = text.get(at + speaker.len()..).unwrap_or_default();
    match after.find(':') {
        // A label is short, with or without a time after the name.
        Some(colon) if at + colon <= 60 => after.get(colon + 1..).unwrap_or(text),
        _ => text,
    }
}

/// Converts a stored day number to a date.
pub(super) fn date_from_number(number: Option<i32>) -> Option<NaiveDate> {
    number.and_then(NaiveDate::from_num_days_from_ce_opt)
}
