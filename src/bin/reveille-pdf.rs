//! `reveille-pdf`: extracts the text of a PDF, for `wake`. A separate small program, so a malicious file can crash
//! nothing else.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use reveille_media::MAX_FILE_BYTES;
use reveille_pdf::{MAX_MEMORY_BYTES, PdfFault, extract_text};

/// Extracts the text of a PDF, for `wake`. It answers with one line, `{"Ok":{"pages":2,"texts":["…","…"]}}` or `{"Err":"locked"}`.
#[derive(Debug, Parser)]
#[command(name = "reveille-pdf", version = env!("REVEILLE_VERSION"))]
struct Arguments {
    /// The file.
    file: PathBuf,
}

#[expect(clippy::print_stderr, reason = "it doesn't link the library, which has the printing functions")]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Some systems lack this limit; the caller's time limit applies in any case.
    let bound = Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: getrlimit(Resource::As).maximum };
    setrlimit(Resource::As, bound).ok();
    match answer_request(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer_request(arguments: &Arguments) -> std::io::Result<()> {
    let answer = match std::fs::metadata(&arguments.file) {
        Ok(found) if found.len() > MAX_FILE_BYTES => Err(PdfFault::TooMuch),
        _ => extract_text(std::fs::read(&arguments.file)?),
    };
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(&answer)?)
}
