//! The text of PDFs, page by page.
//!
//! A PDF's bytes are untrusted. A separate process, `reveille-pdf`, reads the file with limits on time, memory and output, so that a crash
//! or a hang only becomes an error.

use std::{os::unix::process::ExitStatusExt as _, path::Path, time::Duration};

use reveille_base::process::{self, ProcessError, Spec};
pub use reveille_pdf::{PdfAnswer, PdfFault, PdfText};

/// The name of the reader program.
const PDF_READER: &str = "reveille-pdf";
/// Timeout of the reader.
const TIME_OUT: Duration = Duration::from_secs(20);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Extracts a file's text.
///
/// # Errors
/// The reason why there is no text.
pub fn read(path: &Path) -> PdfAnswer {
    // A hostile file must not reach secrets, so the reader inherits almost no variables.
    let spec = Spec::new(process::resolve_sibling_program(PDF_READER)).args([path]).only_inheriting(&["PATH", "LANG"]);
    let spec = spec.timeout(TIME_OUT).max_output_bytes(MAX_ANSWER_BYTES);
    let output = match process::run(&spec) {
        Ok(output) => output,
        Err(ProcessError::TimedOut { .. } | ProcessError::BrokenOff { .. }) => return Err(PdfFault::TooMuch),
        Err(ProcessError::NotFound { .. } | ProcessError::Start { .. }) => return Err(PdfFault::NotBuilt),
    };
    if output.truncated {
        return Err(PdfFault::TooMuch);
    }
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Err(classify_fault(&output)))
}

/// Classifies the failure of a reader that gave no answer: out of memory (killed, or said so), or crashed on this file.
fn classify_fault(output: &process::Output) -> PdfFault {
    let is_killed = output.status.signal() == Some(rustix::process::Signal::KILL.as_raw());
    let is_out_of_memory = String::from_utf8_lossy(&output.stderr).contains("memory allocation of");
    if is_killed || is_out_of_memory { PdfFault::TooMuch } else { PdfFault::Damaged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_reader_means_too_much_and_a_crashed_one_means_damaged() {
        let output = |status: i32, stderr: &str| process::Output {
            status: std::process::ExitStatus::from_raw(status),
            stdout: Vec::new(),
            stderr: stderr.into(),
            truncated: false,
        };
        assert_eq!(classify_fault(&output(9, "")), PdfFault::TooMuch);
        assert_eq!(classify_fault(&output(6, "memory allocation of 1073741824 bytes failed")), PdfFault::TooMuch);
        assert_eq!(classify_fault(&output(6, "thread 'main' has overflowed its stack")), PdfFault::Damaged);
        assert_eq!(classify_fault(&output(101 << 8, "panicked")), PdfFault::Damaged);
    }
}
