//! `reveille-embedder`: embeds texts on this machine, for the memory's search. A separate program keeps its code out of
//! the frequently started ones, and its memory is freed at its end.

use std::{
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;

use reveille_encoder::{EmbedderAnswer, EmbedderRequest, Encoder, EncoderError, to_text};

/// Makes vectors of texts, for `wake`. A line of its input is a batch, `{"texts":["…"]}`; the answer is a line, `{"vectors":["<base64 of
/// little-endian f32>"]}`. It ends with its input.
#[derive(Debug, Parser)]
#[command(name = "reveille-embedder", version = env!("REVEILLE_VERSION"))]
struct Arguments {
    /// The folder with the sentence encoder: `scripts/fetch-model embed` gets one.
    folder: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match work(&arguments.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn work(folder: &Path) -> std::io::Result<()> {
    // A broken folder is reported as an answer, so the caller can tell it from a killed child.
    let encoder = Encoder::open(folder);
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = match (&encoder, serde_json::from_str::<EmbedderRequest>(&line?)) {
            (Err(error), _) => refusal(error),
            (_, Err(error)) => {
                complain(&format!("a line isn't a batch of texts: {error}"));
                return Ok(());
            }
            (Ok(encoder), Ok(request)) => answer(encoder, &request.texts),
        };
        writeln!(output, "{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

fn answer(encoder: &Encoder, texts: &[String]) -> EmbedderAnswer {
    match encoder.embed(texts) {
        Ok(vectors) => EmbedderAnswer { vectors: vectors.iter().map(|vector| to_text(vector)).collect(), error: None },
        Err(error) => refusal(&error),
    }
}

fn refusal(error: &EncoderError) -> EmbedderAnswer {
    EmbedderAnswer { error: Some(error.to_string()), ..EmbedderAnswer::default() }
}

#[expect(clippy::print_stderr, reason = "it has nothing of the library")]
fn complain(text: &str) {
    eprintln!("{text}");
}
