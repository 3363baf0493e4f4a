//! `reveille-transcriber`: recognises speech, for `bot`. A separate small program keeps the speech engine out of the
//! long-running ones, and its memory is freed at its end.

use std::{
    io::{self, BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use serde::Serialize;

use reveille_speech::{Transcriber, Unheard};

/// Transcribes speech, for `bot`; people use `bot transcribe`. Its first line says whether the model could be read,
/// `{"Ok":null}` or `{"Err":{"set_up":"…"}}`. Then each line of its input is the path of a recording, as a JSON string; the
/// answer is a line, `{"Ok":{…}}` with the transcript or `{"Err":…}`. It ends with its input.
#[derive(Debug, Parser)]
#[command(name = "reveille-transcriber", version = env!("REVEILLE_VERSION"))]
struct Arguments {
    /// The file of the speech model: `scripts/fetch-model base` downloads one.
    model: PathBuf,
}

#[expect(clippy::print_stderr, reason = "it doesn't link the library, which has the printing functions")]
fn main() -> ExitCode {
    match serve_requests(&Arguments::parse().model) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve_requests(model: &Path) -> io::Result<()> {
    let transcriber = match Transcriber::open(model) {
        Ok(transcriber) => transcriber,
        Err(error) => return write_answer::<()>(&Err(error.into())),
    };
    write_answer(&Ok(()))?;
    for line in io::stdin().lock().lines() {
        let recording: PathBuf = serde_json::from_str(&line?)?;
        write_answer(&transcriber.transcribe(&recording).map_err(Unheard::from))?;
    }
    Ok(())
}

fn write_answer<T: Serialize>(answer: &Result<T, Unheard>) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(answer)?)?;
    output.flush()
}
