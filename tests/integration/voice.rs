//! Tests of transcription with real recordings and the real program. They need a model (`REVEILLE_TEST_MODEL`, which `scripts/test`
//! fetches) and recordings whose words are known (`REVEILLE_TEST_SPEECH`, a directory). Without these, they print that they weren't run.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::support::{env::TestEnv, speech};

fn note(env: &TestEnv, name: &str, bytes: &[u8]) -> String {
    let path = env.path(name);
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

fn recording(name: &str) -> Option<(TestEnv, PathBuf)> {
    let (model, sample) = speech::found(name)?;
    let mut env = TestEnv::new();
    env.set("WHISPER_MODEL", &model.display().to_string());
    Some((env, sample))
}

#[test]
fn without_a_model_it_explains_what_to_do() {
    let mut env = TestEnv::new();
    let file = note(&env, "note.ogg", b"OggS");
    let ran = env.bot(&["transcribe", &file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (78, ""), "{ran:#?}");
    if !reveille_media::speech::IS_BUILT {
        ran.assert_tells("this build has no speech");
        return;
    }
    ran.assert_tells("scripts/fetch-model");
    env.set("WHISPER_MODEL", "/nonexistent/ggml-base.bin");
    let ran = env.bot(&["transcribe", &file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (78, ""), "{ran:#?}");
    ran.assert_tells("/nonexistent/ggml-base.bin");
    env.set("WHISPER_MODEL", &file);
    let ran = env.bot(&["transcribe", &file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (78, ""), "{ran:#?}");
    ran.assert_tells("isn't a whole speech model");
}

#[test]
fn only_the_helper_loads_the_speech_engines_libraries() {
    let loads = |program: &str| {
        let program = fs::read(program).unwrap();
        [&b"libstdc++"[..], b"libc++"].iter().any(|name| program.windows(name.len()).any(|bytes| bytes == *name))
    };
    assert_eq!(loads(env!("CARGO_BIN_EXE_reveille-transcriber")), reveille_media::speech::IS_BUILT);
    assert!(!loads(env!("CARGO_BIN_EXE_wake")));
}

#[test]
fn a_voice_note_of_human_speech_is_transcribed() {
    for name in ["jfk.ogg", "jfk.wav"] {
        let Some((env, sample)) = recording(name) else { return };
        let ran = env.bot(&["transcribe", "--json", &sample.display().to_string()]).ok();
        ran.assert_never_tells("whisper").assert_never_tells("ggml");
        let transcript = ran.json()[0]["transcript"].clone();
        let text = transcript["text"].as_str().unwrap();
        let rate = speech::word_error_rate(speech::JFK, text);
        eprintln!("{name}: word error rate {:.1} %: {text}", rate * 100.0);
        assert!(rate <= 0.05, "{rate}: {text}");
        assert!(transcript["confidence"].as_f64().unwrap() > 0.6, "{transcript}");
        assert!((transcript["seconds"].as_f64().unwrap() - 11.0).abs() < 0.1, "{transcript}");
        assert_eq!((&transcript["is_damaged"], &transcript["dropped"]), (&Value::Bool(false), &Value::Array(vec![])));
    }
}

/// This needs a multilingual model, since an English-only model always reports English. `note.mp4` and `es.ogg` are synthetic speech
/// (espeak-ng); the words of `es.ogg` are: "Buenos días. Por favor, recuérdame mañana a las nueve la cita con el dentista, y compra leche
/// y pan."
#[test]
fn a_language_is_detected() {
    let Some(model) = speech::multilingual() else { return };
    let mut env = TestEnv::new();
    env.set("WHISPER_MODEL", &model.display().to_string());
    for (recording, language, words) in
        [("note.mp4", "en", &["dentist", "bread"][..]), ("es.ogg", "es", &["buenos", "favor"])]
    {
        let ran = env.bot(&["transcribe", "--json", &speech::kept(recording).display().to_string()]).ok();
        let transcript = ran.json()[0]["transcript"].clone();
        eprintln!("{recording}: {} {}", transcript["language"], transcript["text"]);
        assert_eq!(transcript["language"], language, "{transcript}");
        let heard = speech::words(transcript["text"].as_str().unwrap());
        assert!(words.iter().all(|word| heard.iter().any(|heard| heard == word)), "{transcript}");
    }
}

/// The model processes windows of thirty seconds. Speech that spans two windows, or lies in the last one, must not be lost.
#[test]
fn a_recording_longer_than_the_models_window_is_transcribed_completely() {
    const TIMES: usize = 6;
    let Some((env, sample)) = recording("jfk.wav") else { return };
    let speech = samples_of(&fs::read(sample).unwrap());
    let pause = vec![0; 16_000 * 8 / 10 * 2];
    let long = note(&env, "long.wav", &wav(&[speech, pause].concat().repeat(TIMES)));
    let ran = env.bot(&["transcribe", "--json", &long]).ok();
    let transcript = ran.json()[0]["transcript"].clone();
    let text = transcript["text"].as_str().unwrap();
    let rate = speech::word_error_rate(&[speech::JFK; TIMES].join(" "), text);
    eprintln!("{} s: word error rate {:.1} %: {text}", transcript["seconds"], rate * 100.0);
    assert!((transcript["seconds"].as_f64().unwrap() - 70.8).abs() < 0.1, "{transcript}");
    assert_eq!(text.matches("my fellow Americans").count(), TIMES, "{text}");
    assert!(rate <= 0.05, "{rate}: {text}");
}

#[test]
fn a_truncated_model_is_reported() {
    let Some((mut env, sample)) = recording("jfk.ogg") else { return };
    let (model, _) = speech::found("jfk.ogg").unwrap();
    let bytes = fs::read(model).unwrap();
    for end in [bytes.len() / 2, bytes.len() * 9 / 10] {
        let cut = note(&env, "model.bin", &bytes[..end]);
        env.set("WHISPER_MODEL", &cut);
        let ran = env.bot(&["transcribe", &sample.display().to_string()]);
        assert_eq!((ran.code, ran.stdout.as_str()), (78, ""), "{end}: {ran:#?}");
        ran.assert_tells("isn't a whole speech model");
    }
}

#[test]
fn a_truncated_note_yields_its_readable_part() {
    let Some((env, sample)) = recording("jfk.ogg") else { return };
    let bytes = fs::read(sample).unwrap();
    let file = note(&env, "cut.ogg", &bytes[..bytes.len() / 2]);
    let ran = env.bot(&["transcribe", &file]).ok();
    let said: Vec<_> = speech::words(&ran.stdout);
    assert!(said.len() > 4 && said.iter().all(|word| speech::words(speech::JFK).contains(word)), "{ran:#?}");
    ran.assert_tells("damaged or cut off");
}

#[test]
fn silence_noise_and_files_without_sound_are_distinguished() {
    let Some((env, _)) = recording("jfk.ogg") else { return };
    let mut random = white_noise();
    let noise: Vec<u8> = (0..32_000).flat_map(|_| random().to_le_bytes()).collect();
    let (silence, hiss) = (note(&env, "silence.wav", &wav(&vec![0; 64_000])), note(&env, "hiss.wav", &wav(&noise)));
    let broken = note(&env, "broken.ogg", b"this is no recording");
    let ran = env.bot(&["transcribe", "--json", &silence, &hiss, &broken]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let outcomes = ran.json();
    for n in 0..2 {
        assert_eq!(outcomes[n]["transcript"]["text"], "", "{outcomes:#}");
        assert_eq!(outcomes[n]["transcript"]["language"], Value::Null);
    }
    assert!(outcomes[2]["error"].as_str().unwrap().contains("no sound in it"), "{outcomes:#}");
    assert_eq!(outcomes[2]["is_worth_a_retry"], Value::Null, "{outcomes:#}");
}

/// 16-bit noise, the same each time.
fn white_noise() -> impl FnMut() -> i16 {
    let mut state = 0x2545_f491_u32;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 16) as i16 / 8
    }
}

/// The samples of a WAV file, as bytes.
fn samples_of(wav: &[u8]) -> Vec<u8> {
    let at = wav.windows(4).position(|name| name == b"data").unwrap();
    wav[at + 8..].to_vec()
}

/// A WAV file with 16 kHz mono.
fn wav(data: &[u8]) -> Vec<u8> {
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}
