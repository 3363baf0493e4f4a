//! The text of PDFs, page by page.
//!
//! Whoever sent one chose its bytes: `reveille-pdf`, a program of its own, reads it within bounds. What reads is the Cargo feature
//! `pdf`; without it, all is [`PdfFault::NotBuilt`].

#[cfg(feature = "pdf")]
mod form;
#[cfg(test)]
#[cfg(feature = "pdf")]
mod tests;
#[cfg(feature = "pdf")]
mod text;

use serde::{Deserialize, Serialize};

#[cfg(feature = "pdf")]
pub use self::text::text_of;

/// The most memory that it may have, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// Pages that are read at most.
pub const MAX_PAGES_READ: usize = 500;
/// How much text is read at most, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 20;

/// What stands in a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfText {
    /// How many pages it has.
    pub pages: usize,
    /// The text of the first of them, a page each, with its form fields and notes; those behind it are beyond a bound.
    pub texts: Vec<String>,
    /// Form fields that stand on no page, and what keeps fields from being read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rest: String,
}

/// Why a PDF's text can't be had, by what its person can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PdfFault {
    /// It wants a password, or is encrypted in a way that isn't known here.
    #[error("a PDF that is locked with a password. Sent without one it can be read")]
    Locked,
    /// It isn't as a PDF has to be, or its reader failed on it.
    #[error("a damaged PDF. Perhaps it can be sent once more, or as pictures")]
    Damaged,
    /// It takes more time or memory than a file may.
    #[error("a PDF that takes too long to be read. Sent in parts it can be read")]
    TooMuch,
    /// This build has no reader.
    #[error("a PDF, which this build of Reveille can't read")]
    NotBuilt,
}

/// What the reader answers.
pub type PdfAnswer = Result<PdfText, PdfFault>;

impl PdfText {
    /// All of it, each page under a line with its number.
    pub fn joined(&self) -> String {
        let pages = self.texts.iter().enumerate().map(|(at, text)| {
            let text = text.trim_end();
            let text = if text.is_empty() { NO_TEXT } else { text };
            let unknown = if has_unknown_letters(text) { UNKNOWN_LETTERS } else { "" };
            format!("--- page {} of {} ---\n{unknown}{text}\n", at + 1, self.pages)
        });
        let mut all: String = pages.collect();
        all.push_str(&self.rest);
        if self.texts.len() < self.pages {
            all.push_str(&format!("--- the pages from {} on are too many to be read ---\n", self.texts.len() + 1));
        }
        all
    }
}

/// The note on a page without letters.
const NO_TEXT: &str = "(no text: perhaps a picture of a page)";
/// The note on a page that can't be read well.
const UNKNOWN_LETTERS: &str =
    "(Many letters of this page can't be told: its fonts don't say which they are. As a picture it can be read.)\n";
/// One unknown letter in so many is many.
const MANY: usize = 10;

/// Whether many letters stand for others that their font doesn't name.
fn has_unknown_letters(text: &str) -> bool {
    let is_private =
        |c: char| matches!(c, '\u{fffd}' | '\u{e000}'..='\u{f8ff}') || c.is_control() && !c.is_whitespace();
    let (mut all, mut unknown) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        all += 1;
        unknown += usize::from(is_private(c));
    }
    unknown * MANY > all
}

/// Says that this build has no reader.
#[cfg(not(feature = "pdf"))]
pub fn text_of(_: Vec<u8>) -> PdfAnswer {
    Err(PdfFault::NotBuilt)
}
