//! A speech model and recordings with known words, if the machine has them, and the error rate of transcripts.

use std::path::{Path, PathBuf};

/// The words of `jfk.ogg` and `jfk.wav`, 11 s of a speech from 1961 in the public domain.
pub(crate) const JFK: &str =
    "And so my fellow Americans ask not what your country can do for you ask what you can do for your country";

/// The words of `fixtures/note.mp4`, spoken by espeak-ng.
pub(crate) const NOTE: &str =
    "Good morning. Please remind me tomorrow to call the dentist, and buy milk and bread on the way home.";

#[expect(clippy::disallowed_methods, reason = "what the machine has is no setting of the product")]
fn path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Finds the model and this recording. If one is missing, prints that the test isn't run.
pub(crate) fn found(recording: &str) -> Option<(PathBuf, PathBuf)> {
    let not_run = |why: &str| eprintln!("NOT RUN: writing down {recording}: {why}");
    if !reveille_media::speech::IS_BUILT {
        not_run("this build has no speech");
        return None;
    }
    let model = path_in("REVEILLE_TEST_MODEL").unwrap_or_default();
    if !model.is_file() {
        not_run("REVEILLE_TEST_MODEL names no model (scripts/fetch-model tiny.en)");
        return None;
    }
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/samples");
    let sample = path_in("REVEILLE_TEST_SPEECH").unwrap_or(near).join(recording);
    if !sample.is_file() {
        not_run("REVEILLE_TEST_SPEECH names no directory that has it");
        return None;
    }
    Some((model, sample))
}

/// Finds the model. Without one, prints that the test isn't run.
pub(crate) fn model() -> Option<PathBuf> {
    let model = path_in("REVEILLE_TEST_MODEL").filter(|model| model.is_file());
    if model.is_none() || !reveille_media::speech::IS_BUILT {
        eprintln!(
            "NOT RUN: listening: REVEILLE_TEST_MODEL names no model (scripts/fetch-model tiny.en), or this build has no speech"
        );
        return None;
    }
    model
}

/// Finds a model for several languages. Without one, prints that the test isn't run.
pub(crate) fn multilingual() -> Option<PathBuf> {
    let model = path_in("REVEILLE_TEST_MULTILINGUAL_MODEL").filter(|model| model.is_file());
    if model.is_none() || !reveille_media::speech::IS_BUILT {
        eprintln!(
            "NOT RUN: detecting a language: REVEILLE_TEST_MULTILINGUAL_MODEL names no model (scripts/fetch-model base), or this build has no speech"
        );
        return None;
    }
    model
}

/// The path of a recording in the repository.
pub(crate) fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/fixtures").join(name)
}

/// Splits a text into words in lower case, without punctuation.
pub(crate) fn words(text: &str) -> Vec<String> {
    let letters = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    text.split_whitespace().map(letters).filter(|word| !word.is_empty()).collect()
}

/// The number of wrong, missing and superfluous words, divided by the number of words said.
pub(crate) fn word_error_rate(said: &str, heard: &str) -> f64 {
    let (said, heard) = (words(said), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (i, word) in said.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in heard.iter().enumerate() {
            next.push((row[j] + usize::from(word != other)).min(row[j + 1] + 1).min(next[j] + 1));
        }
        row = next;
    }
    row[heard.len()] as f64 / said.len() as f64
}
