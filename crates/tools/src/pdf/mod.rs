//! The text of PDFs, page by page.
//!
//! Whoever sent one chose its bytes. So it is read by a process of its own, `reveille-pdf`, within bounds of time, memory and output:
//! what crashes or hangs there is an answer here. The Cargo feature `pdf` is what is in that program.

#[cfg(feature = "pdf")]
mod form;
#[cfg(feature = "pdf")]
mod text;

use std::{os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use reveille_base::process::{self, ProcessError, Spec};

#[cfg(feature = "pdf")]
pub use self::text::text_of;

/// The program that reads.
pub const PDF_READER: &str = "reveille-pdf";
/// How long it may take.
const TIME_OUT: Duration = Duration::from_secs(20);
/// How much it may answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;
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

/// Has a file's text read.
///
/// # Errors
/// Why it can't be had.
pub fn read(path: &Path) -> PdfAnswer {
    // A file of others' meets no secret of the person's: the reader inherits next to nothing.
    let spec = Spec::new(process::beside(PDF_READER)).args([path]).only_inheriting(&["PATH", "LANG"]);
    let spec = spec.timeout(TIME_OUT).max_output_bytes(MAX_ANSWER_BYTES);
    let output = match process::run(&spec) {
        Ok(output) => output,
        Err(ProcessError::TimedOut { .. } | ProcessError::BrokenOff { .. }) => return Err(PdfFault::TooMuch),
        Err(ProcessError::NotFound { .. } | ProcessError::Start { .. }) => return Err(PdfFault::NotBuilt),
    };
    if output.truncated {
        return Err(PdfFault::TooMuch);
    }
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Err(fault_of(&output)))
}

/// What a reader has met that gave no answer: without memory it is killed, or says so as it ends; else it has crashed on this file.
fn fault_of(output: &process::Output) -> PdfFault {
    let is_killed = output.status.signal() == Some(rustix::process::Signal::KILL.as_raw());
    let is_out_of_memory = String::from_utf8_lossy(&output.stderr).contains("memory allocation of");
    if is_killed || is_out_of_memory { PdfFault::TooMuch } else { PdfFault::Damaged }
}

#[cfg(test)]
mod tests;
