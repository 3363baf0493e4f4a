//! The text of PDFs, page by page.
//!
//! Whoever sent one chose its bytes. So it is read by a process of its own, `reveille-pdf`, within bounds of time, memory and output:
//! what crashes or hangs there is an answer here. The Cargo feature `pdf` is what is in that program.

#[cfg(feature = "pdf")]
mod text;

use std::{os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

#[cfg(feature = "pdf")]
pub use self::text::text_of;
use crate::process::{self, ProcessError, Spec};

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
    /// The text of the first of them, a page each; those behind it are beyond a bound.
    pub texts: Vec<String>,
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
            let text = if text.trim().is_empty() { "(no text: perhaps a picture of a page)" } else { text.trim_end() };
            format!("--- page {} of {} ---\n{text}\n", at + 1, self.pages)
        });
        let mut all: String = pages.collect();
        if self.texts.len() < self.pages {
            all.push_str(&format!("--- the pages from {} on are too many to be read ---\n", self.texts.len() + 1));
        }
        all
    }
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
mod tests {
    use super::*;

    #[test]
    fn what_was_killed_was_too_much_and_what_crashed_is_damaged() {
        let output = |status: i32, stderr: &str| process::Output {
            status: std::process::ExitStatus::from_raw(status),
            stdout: Vec::new(),
            stderr: stderr.into(),
            truncated: false,
        };
        assert_eq!(fault_of(&output(9, "")), PdfFault::TooMuch);
        assert_eq!(fault_of(&output(6, "memory allocation of 1073741824 bytes failed")), PdfFault::TooMuch);
        assert_eq!(fault_of(&output(6, "thread 'main' has overflowed its stack")), PdfFault::Damaged);
        assert_eq!(fault_of(&output(101 << 8, "panicked")), PdfFault::Damaged);
    }

    #[test]
    fn pages_are_numbered_and_what_is_not_there_is_told() {
        let text = PdfText { pages: 3, texts: vec!["One\n".to_owned(), " ".to_owned()] };
        assert_eq!(
            text.joined(),
            "--- page 1 of 3 ---\nOne\n--- page 2 of 3 ---\n(no text: perhaps a picture of a page)\n\
             --- the pages from 3 on are too many to be read ---\n"
        );
    }
}
