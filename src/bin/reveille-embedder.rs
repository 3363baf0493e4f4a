//! `reveille-embedder`: embeds texts on this machine, for the memory's search. A separate program keeps its code out of
//! the frequently started ones, and its memory is freed at its end.

use std::{
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;

use reveille_encoder::{EmbedderAnswer, EmbedderRequest, Encoder, EncoderError, to_text};

/// Turns texts into vectors, for `wake`. Each line of its input is a batch, `{"texts":["…"]}`; the answer is a line,
/// `{"vectors":["<base64 of little-endian f32>"]}`. It ends with its input.
#[derive(Debug, Parser)]
#[command(name = "reveille-embedder", version = env!("REVEILLE_VERSION"))]
struct Arguments {
    /// The folder with the sentence encoder: `scripts/fetch-model embed` downloads one.
    folder: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match serve_requests(&arguments.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve_requests(folder: &Path) -> std::io::Result<()> {
    // A broken folder is reported as an answer, so the caller can tell it from a killed child.
    let encoder = Encoder::open(folder);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = match (&encoder, serde_json::from_str::<EmbedderRequest>(&line?)) {
            (Err(error), _) => build_error_answer(error),
            (_, Err(error)) => {
                print_error(&format!("an input line isn't a batch of texts: {error}"));
                return Ok(());
            }
            (Ok(encoder), Ok(request)) => answer_request(encoder, &request.texts),
        };
        writeln!(output, "{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

fn answer_request(encoder: &Encoder, texts: &[String]) -> EmbedderAnswer {
    match encoder.embed(texts) {
        Ok(vectors) => EmbedderAnswer { vectors: vectors.iter().map(|vector| to_text(vector)).collect(), error: None },
        Err(error) => build_error_answer(&error),
    }
}

fn build_error_answer(error: &EncoderError) -> EmbedderAnswer {
    EmbedderAnswer { error: Some(error.to_string()), ..EmbedderAnswer::default() }
}

#[expect(clippy::print_stderr, reason = "it doesn't link the library, which has the printing functions")]
fn print_error(text: &str) {
    eprintln!("{text}");
}
