//! The text of PDFs, page by page.
//!
//! The sender of a PDF chooses its bytes, so `reveille-pdf`, a separate program, reads it within limits. The reader is the Cargo feature
//! `pdf`; without it every answer is [`PdfFault::NotBuilt`].

#[cfg(feature = "pdf")]
mod form;
#[cfg(test)]
#[cfg(feature = "pdf")]
mod tests;
#[cfg(feature = "pdf")]
mod text;

use serde::{Deserialize, Serialize};

#[cfg(feature = "pdf")]
pub use self::text::extract_text;

/// The memory limit of the reader, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// The most pages read.
pub const MAX_PAGES_READ: usize = 500;
/// The most text read, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 20;

/// The content of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfText {
    /// The number of pages.
    pub pages: usize,
    /// The text of the first pages, one entry each, with form fields and notes; later pages are beyond a limit.
    pub texts: Vec<String>,
    /// Form fields outside all pages, and a note if fields can't be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rest: String,
}

/// The reason a PDF can't be read, by the person's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PdfFault {
    /// The PDF needs a password, or uses an unknown encryption.
    #[error("a PDF that is locked with a password. It can be read if it is sent without one")]
    Locked,
    /// The PDF is malformed, or its reader failed.
    #[error("a damaged PDF. Please send it again, or as pictures")]
    Damaged,
    /// The PDF takes more time or memory than allowed.
    #[error("a PDF that takes too long to read. It can be read if it is sent in parts")]
    TooMuch,
    /// This build has no reader.
    #[error("a PDF, which this build of Reveille can't read")]
    NotBuilt,
}

/// The reader's answer.
pub type PdfAnswer = Result<PdfText, PdfFault>;

impl PdfText {
    /// Joins all pages, each under a line with its number.
    pub fn join_pages(&self) -> String {
        let pages = self.texts.iter().enumerate().map(|(at, text)| {
            let text = text.trim_end();
            let text = if text.is_empty() { NO_TEXT } else { text };
            let unknown = if has_unknown_letters(text) { UNKNOWN_LETTERS } else { "" };
            format!("--- page {} of {} ---\n{unknown}{text}\n", at + 1, self.pages)
        });
        let mut all: String = pages.collect();
        all.push_str(&self.rest);
        if self.texts.len() < self.pages {
            all.push_str(&format!(
                "--- the pages from {} on were not read: there are too many ---\n",
                self.texts.len() + 1
            ));
        }
        all
    }
}

/// The note on a page without letters.
const NO_TEXT: &str = "(no text: perhaps a picture of a page)";
/// The note on a page with many unknown letters.
const UNKNOWN_LETTERS: &str = "(Many letters of this page are unknown: its fonts don't say which they are. Sent as a picture, the page can be read.)\n";
/// The minimum number of letters for each unknown one on a readable page.
const MIN_LETTERS_PER_UNKNOWN: usize = 10;

/// Returns `true` if many letters are unknown, since the page's fonts don't name them.
fn has_unknown_letters(text: &str) -> bool {
    let is_unknown =
        |c: char| matches!(c, '\u{fffd}' | '\u{e000}'..='\u{f8ff}') || c.is_control() && !c.is_whitespace();
    let (mut all, mut unknown) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        all += 1;
        unknown += usize::from(is_unknown(c));
    }
    unknown * MIN_LETTERS_PER_UNKNOWN > all
}

/// Returns the error of a build without a reader.
#[cfg(not(feature = "pdf"))]
pub fn extract_text(_: Vec<u8>) -> PdfAnswer {
    Err(PdfFault::NotBuilt)
}
