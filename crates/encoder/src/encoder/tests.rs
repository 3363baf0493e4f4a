use std::{fs, path::PathBuf};

use serde::Deserialize;

use super::*;

/// Reference values that `make.py` computed independently.
#[derive(Deserialize)]
struct Known {
    text: String,
    tokens: Vec<u32>,
    vector: Vec<f32>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/integration/fixtures/encoder")
}

fn known() -> Vec<Known> {
    serde_json::from_str(&fs::read_to_string(folder().join("vectors.json")).unwrap()).unwrap()
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// A copy of the folder with one file changed.
fn changed(file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> (tempfile::TempDir, Result<Encoder, EncoderError>) {
    let copy = tempfile::tempdir().unwrap();
    for name in ["config.json", "vocab.txt", "model.safetensors"] {
        fs::copy(folder().join(name), copy.path().join(name)).unwrap();
    }
    let path = copy.path().join(file);
    let bytes = change(fs::read(&path).unwrap_or_default());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    let encoder = Encoder::open(copy.path());
    (copy, encoder)
}

fn with(file: &str, from: &str, to: &str) -> Result<Encoder, EncoderError> {
    changed(file, |bytes| String::from_utf8(bytes).unwrap().replace(from, to).into_bytes()).1
}

#[test]
fn tokens_are_those_of_the_reference() {
    let encoder = Encoder::open(&folder()).unwrap();
    for Known { text, tokens, .. } in known() {
        assert_eq!(encoder.tokenize(&text), tokens, "{text}");
    }
}

#[test]
fn vectors_match_the_reference_alone_and_in_a_batch() {
    let known = known();
    let texts: Vec<String> = known.iter().map(|known| known.text.clone()).collect();
    for threads in [1, 3] {
        let encoder = Encoder::open(&folder()).unwrap().with_threads(threads);
        let together = encoder.embed(&texts).unwrap();
        for (known, vector) in known.iter().zip(&together) {
            let alone = encoder.embed(std::slice::from_ref(&known.text)).unwrap();
            for vector in [vector, &alone[0]] {
                let largest =
                    vector.iter().zip(&known.vector).map(|(ours, right)| (ours - right).abs()).fold(0.0, f32::max);
                assert!(vector.len() == 16 && largest < 2e-6, "{}: {largest}", known.text);
            }
        }
    }
}

#[test]
fn each_text_keeps_its_vector_in_a_large_batch() {
    let encoder = Encoder::open(&folder()).unwrap().with_threads(2);
    let texts: Vec<String> = (0..200).map(|n| format!("{} the door {n}", "my red cat ".repeat(n % 7))).collect();
    let together = encoder.embed(&texts).unwrap();
    for (text, vector) in texts.iter().zip(&together).step_by(23) {
        let alone = encoder.embed(std::slice::from_ref(text)).unwrap();
        assert!(cosine(vector, &alone[0]) > 0.999_99, "{text}");
    }
    assert!(encoder.embed(&[]).unwrap().is_empty());
}

#[test]
fn text_is_read_as_the_tokenizers_library_reads_it() {
    let encoder = Encoder::open(&folder()).unwrap();
    let same =
        |left: &str, right: &str| assert_eq!(encoder.tokenize(left), encoder.tokenize(right), "{left:?} {right:?}");
    same("CAFÉ", "cafe");
    same("cafe\u{301}", "cafe");
    same("東京cat", "東 京 cat");
    same("old\tred\r\n blue\u{a0}door", "old red blue door");
    same("o\u{200b}l\u{0}d\u{ad}", "old");
    same("my-cat,red", "my - cat , red");
    // A word of up to 100 characters is split into known pieces; a longer one is unknown.
    let long = |count| encoder.tokenize(&"z".repeat(count)).len();
    assert_eq!((long(20), long(100), long(101)), (22, 32, 3));
    assert_eq!(encoder.tokenize("☃"), [2, 1, 3]);
}

#[test]
fn a_folders_settings_determine_its_vectors() {
    let unchanged = Encoder::open(&folder()).unwrap();
    let (_kept, cased) = changed("tokenizer_config.json", |_| br#"{"do_lower_case": false}"#.to_vec());
    assert_ne!(unchanged.tokenize("My"), cased.unwrap().tokenize("My"));
    let (_kept, short) = changed("sentence_bert_config.json", |_| br#"{"max_seq_length": 5}"#.to_vec());
    assert_eq!(short.unwrap().tokenize("the red cat sleeps today").len(), 5);
    let (_kept, first) = changed("1_Pooling/config.json", |_| {
        br#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#.to_vec()
    });
    let text = ["the cat sleeps".to_owned()];
    assert!(cosine(&first.unwrap().embed(&text).unwrap()[0], &unchanged.embed(&text).unwrap()[0]) < 0.999);
}

#[test]
fn a_folder_that_cannot_be_used_says_which_file_and_why() {
    let said = |encoder: Result<Encoder, EncoderError>| encoder.unwrap_err().to_string();
    let missing = said(Encoder::open(Path::new("/nowhere")));
    assert!(missing.contains("/nowhere/config.json can't be read"), "{missing}");
    assert!(said(with("config.json", "\"bert\"", "\"xlm-roberta\"")).contains("of the kind xlm-roberta"));
    assert!(said(with("config.json", "\"gelu\"", "\"relu\"")).contains("activation is relu"));
    assert!(
        said(with("config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 3")).contains("dimensions")
    );
    assert!(said(with("config.json", "\"hidden_size\": 16", "\"hidden_size\": 32")).contains("has the shape"));
    assert!(said(with("config.json", "{", "")).contains("config.json is damaged"));
    assert!(said(with("vocab.txt", "[SEP]", "x")).contains("has no [SEP]"));
    let weights = |change: fn(Vec<u8>) -> Vec<u8>| said(changed("model.safetensors", change).1);
    assert!(weights(|_| Vec::new()).contains("model.safetensors can't be read"));
    assert!(weights(|_| vec![255; 100]).contains("doesn't begin as a safetensors file"));
    assert!(weights(|bytes| bytes[..bytes.len() - 4].to_vec()).contains("ends early"));
    let half = |bytes: Vec<u8>| {
        let at = bytes.windows(5).position(|part| part == br#""F32""#).unwrap();
        [&bytes[..at], br#""F16""#, &bytes[at + 5..]].concat()
    };
    assert!(weights(half).contains("is of F16"));
}
