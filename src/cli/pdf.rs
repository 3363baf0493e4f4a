//! `reveille-pdf`: the text of a PDF, for `wake`. It is a program of its own so that nothing of it is in those that are started every few
//! minutes, and so that a file that kills it kills nothing else.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use reveille_media::MAX_FILE_BYTES;
use reveille_tools::pdf::{MAX_MEMORY_BYTES, PDF_READER, PdfAnswer, PdfFault};

use super::failed;

/// Reads the text of a PDF, for `wake`. The answer is a line, `{"Ok":{"pages":2,"texts":["…","…"]}}` or `{"Err":"locked"}`.
#[derive(Debug, Parser)]
#[command(name = PDF_READER, version = super::VERSION)]
struct Arguments {
    /// The file.
    file: PathBuf,
}

/// Runs the binary.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Some systems know no such bound; the time is bounded all the same.
    let bound = Rlimit { current: Some(MAX_MEMORY_BYTES), maximum: getrlimit(Resource::As).maximum };
    setrlimit(Resource::As, bound).ok();
    let answer = match std::fs::metadata(&arguments.file) {
        Ok(found) if found.len() > MAX_FILE_BYTES => Err(PdfFault::TooMuch),
        _ => match std::fs::read(&arguments.file) {
            Ok(bytes) => read(bytes),
            Err(error) => return failed(&error),
        },
    };
    let told = serde_json::to_string(&answer).map_err(std::io::Error::from);
    match told.and_then(|told| writeln!(std::io::stdout().lock(), "{told}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

#[cfg(feature = "pdf")]
fn read(bytes: Vec<u8>) -> PdfAnswer {
    reveille_tools::pdf::text_of(bytes)
}

#[cfg(not(feature = "pdf"))]
fn read(_: Vec<u8>) -> PdfAnswer {
    Err(PdfFault::NotBuilt)
}
