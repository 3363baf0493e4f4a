//! The text of PDFs, page by page.
//!
//! Whoever sent one chose its bytes. So it is read by a process of its own, `reveille-pdf`, within bounds of time, memory and output:
//! what crashes or hangs there is an answer here.

use std::{os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use reveille_base::process::{self, ProcessError, Spec};
pub use reveille_pdf::{PdfAnswer, PdfFault, PdfText};

/// The program that reads.
const PDF_READER: &str = "reveille-pdf";
/// How long it may take.
const TIME_OUT: Duration = Duration::from_secs(20);
/// How much it may answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;

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
}
