//! A speech model and recordings with known words, where a machine has them; and how wrong a transcript is.

use std::path::{Path, PathBuf};

/// What is said in `jfk.ogg` and `jfk.wav`, 11 s of a speech of 1961 in the public domain.
pub(crate) const JFK: &str =
    "And so my fellow Americans ask not what your country can do for you ask what you can do for your country";

/// The model and that recording; without them, says what isn't run.
pub(crate) fn found(recording: &str) -> Option<(PathBuf, PathBuf)> {
    let not_run = |why: &str| eprintln!("NOT RUN: writing down {recording}: {why}");
    if !reveille::voice::IS_BUILT {
        not_run("this build has no speech");
        return None;
    }
    let model = PathBuf::from(std::env::var_os("REVEILLE_TEST_MODEL").unwrap_or_default());
    if !model.is_file() {
        not_run("REVEILLE_TEST_MODEL names no model (scripts/fetch-model tiny.en)");
        return None;
    }
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/samples").into_os_string();
    let sample = PathBuf::from(std::env::var_os("REVEILLE_TEST_SPEECH").unwrap_or(near)).join(recording);
    if !sample.is_file() {
        not_run("REVEILLE_TEST_SPEECH names no directory that has it");
        return None;
    }
    Some((model, sample))
}

/// Lower case, without punctuation.
pub(crate) fn words(text: &str) -> Vec<String> {
    let letters = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    text.split_whitespace().map(letters).filter(|word| !word.is_empty()).collect()
}

/// Words that are wrong, missing or too many, for each word that was said.
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
