//! Embedding, against servers that refuse what the real ones refuse, and with the real program on this machine.

use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use reveille_base::redact::{Redactor, Secret};
use reveille_config::Config;
use reveille_index::embed::{self, EmbedContext, EmbedError, TextRole};
use reveille_store::Store;

use crate::support::{
    env::{TestEnv, eventually},
    http::{HttpServer, Request, Response, lock},
};

const KEY: &str = "sk-embed-key-for-tests";

/// What the tests' encoder is, in which words of one meaning lie together.
pub(crate) fn encoder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/fixtures/encoder")
}

/// What a server does with the next request, if not what it should.
type Mischief = Option<Response>;

struct World {
    dir: tempfile::TempDir,
    server: HttpServer,
    asked: Arc<Mutex<Vec<Request>>>,
    next: Arc<Mutex<Mischief>>,
}

impl World {
    fn new(judge: fn(&Request) -> Response) -> Self {
        let (asked, next) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::<Mutex<Mischief>>::default());
        let (notes, does) = (Arc::clone(&asked), Arc::clone(&next));
        let server = HttpServer::start(move |request| {
            lock(&notes).push(request.clone());
            lock(&does).take().unwrap_or_else(|| judge(request))
        });
        Self { dir: tempfile::tempdir().unwrap(), server, asked, next }
    }

    fn config(&self, settings: &[(&str, &str)]) -> Config {
        let home = self.dir.path().display().to_string();
        let of = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let env: BTreeMap<String, String> = [("HOME", home.as_str())].iter().chain(settings).map(of).collect();
        Config::from_sources(&env, None, Some("Europe/Berlin")).unwrap()
    }

    fn openai(&self) -> Config {
        let url = format!("{}/v1", self.server.url());
        self.config(&[
            ("EMBED_MODEL", "openai:text-embedding-3-small"),
            ("OPENAI_API_KEY", KEY),
            ("OPENAI_BASE_URL", &url),
        ])
    }

    fn gemini(&self) -> Config {
        let url = self.server.url();
        self.config(&[
            ("EMBED_MODEL", "gemini:gemini-embedding-001"),
            ("GEMINI_API_KEY", KEY),
            ("GEMINI_BASE_URL", &url),
        ])
    }

    fn embed(&self, config: &Config, texts: &[&str], role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        let embedder = embed::create_embedder(config)?.unwrap();
        let mut store = Store::open(&self.dir.path().join("messages.db")).unwrap();
        let redactor = Redactor::new([&Secret::new("hunter2-secret"), &Secret::new(KEY)]);
        let now = "2026-11-24T10:00:00Z".parse().unwrap();
        let mut desk = EmbedContext { store: Some(&mut store), redactor: &redactor, caps: &[], now };
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let embedding = embed::embed_texts(embedder.as_ref(), &mut desk, &texts, (role, None));
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(embedding)
    }

    fn mischief(&self, response: Response) {
        *lock(&self.next) = Some(response);
    }

    fn last(&self) -> Request {
        lock(&self.asked).last().unwrap().clone()
    }
}

/// A vector that tells a text from others.
fn vector(text: &str) -> Vec<f64> {
    vec![text.len() as f64, 3.0, -0.5]
}

fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Refuses what OpenAI refuses.
fn openai(request: &Request) -> Response {
    let error = |status, message: &str| Response::json(status, &json!({"error": {"message": message, "code": null}}));
    if (request.method.as_str(), request.target.as_str()) != ("POST", "/v1/embeddings") {
        return error(404, "Unknown request URL");
    }
    if request.header("authorization") != Some(&format!("Bearer {KEY}")) {
        return Response::json(
            401,
            &json!({"error": {"message": format!("Incorrect API key: {KEY}"), "code": "invalid_api_key"}}),
        );
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let texts: Vec<&str> = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    if fields(&body) != ["model", "input", "encoding_format"] || body["encoding_format"] != "float" {
        return error(400, "Unrecognized request argument");
    }
    if texts.is_empty() || texts.len() > 2_048 || texts.iter().any(|text| text.is_empty() || text.len() > 8_192) {
        return error(400, "'$.input' is invalid");
    }
    if body["model"] != "text-embedding-3-small" {
        return Response::json(404, &json!({"error": {"message": "no such model", "code": "model_not_found"}}));
    }
    // The numbers count, not the order.
    let data = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}));
    let data: Vec<Value> = data.collect();
    Response::json(
        200,
        &json!({"object": "list", "data": data, "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 7, "total_tokens": 7}}),
    )
}

/// Refuses what Gemini refuses.
fn gemini(request: &Request) -> Response {
    let error = |status, message: &str| {
        Response::json(status, &json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}))
    };
    if request.target != "/v1beta/models/gemini-embedding-001:batchEmbedContents" || request.method != "POST" {
        return error(404, "not found");
    }
    if request.header("x-goog-api-key") != Some(KEY) {
        let details = json!([{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]);
        return Response::json(
            400,
            &json!({"error": {"code": 400, "message": "API key not valid.", "details": details}}),
        );
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let requests = body["requests"].as_array().unwrap();
    if fields(&body) != ["requests"] || requests.is_empty() || requests.len() > 100 {
        return error(400, "at most 100 requests can be in one batch");
    }
    let mut vectors = Vec::new();
    for one in requests {
        let is_known = ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"].iter().any(|kind| one["taskType"] == *kind);
        if fields(one) != ["model", "content", "taskType"] || !is_known || one["model"] != "models/gemini-embedding-001"
        {
            return error(400, "Invalid JSON payload received");
        }
        let text = one["content"]["parts"][0]["text"].as_str().unwrap();
        vectors.push(json!({"values": vector(text)}));
    }
    Response::json(200, &json!({"embeddings": vectors}))
}

fn unit(text: &str) -> Vec<f32> {
    let vector = vector(text);
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    vector.iter().map(|x| (x / length) as f32).collect()
}

#[test]
fn an_openai_compatible_server_embeds_what_is_redacted_in_its_order() {
    let world = World::new(openai);
    let config = world.openai();
    let vectors = world.embed(&config, &["one", "the word is hunter2-secret", ""], TextRole::Kept).unwrap();
    assert_eq!(vectors, ["one", "the word is ***", "-"].map(unit));
    let longest = "x".repeat(20_000);
    world.embed(&config, &vec![longest.as_str(); embed::MAX_BATCH], TextRole::Query).unwrap();
    assert!(!world.last().text().contains("hunter2"));
}

#[test]
fn gemini_is_told_what_a_text_is_to_be() {
    let world = World::new(gemini);
    let config = world.gemini();
    assert_eq!(world.embed(&config, &["one", "three"], TextRole::Kept).unwrap(), ["one", "three"].map(unit));
    assert!(world.last().text().contains("RETRIEVAL_DOCUMENT"));
    world.embed(&config, &["one"], TextRole::Query).unwrap();
    assert!(world.last().text().contains("RETRIEVAL_QUERY"));
}

#[test]
fn each_refusal_says_what_to_do() {
    let world = World::new(openai);
    let config = world.openai();
    let embedded = |response: Response| {
        world.mischief(response);
        world.embed(&config, &["one"], TextRole::Kept).unwrap_err()
    };
    let said = |status, code: &str| {
        embedded(Response::json(status, &json!({"error": {"message": format!("no, {KEY}"), "code": code}})))
    };
    for status in [429, 500, 503, 529] {
        let error = said(status, "");
        assert!(matches!(error, EmbedError::Later { may_have_cost: false, .. }), "{status}: {error:?}");
    }
    let slow = embedded(Response::json(429, &json!({})).header("retry-after", "17"));
    assert!(matches!(slow, EmbedError::Later { retry_after: Some(wait), .. } if wait.as_secs() == 17), "{slow:?}");
    for (status, code) in [(401, ""), (403, ""), (404, ""), (429, "insufficient_quota"), (400, "model_not_found")] {
        let error = said(status, code);
        assert!(matches!(error, EmbedError::SetUp(_)), "{status} {code}: {error:?}");
        assert!(!error.to_string().contains(KEY), "{error}");
    }
    for status in [400, 413, 422] {
        assert!(matches!(said(status, ""), EmbedError::Refused(_)), "{status}");
    }
    for cut in [Response::hang_up(), Response::new(200, "{\"data\":[]}").cut_after(4), Response::new(200, "<html>")] {
        let error = embedded(cut);
        assert!(matches!(error, EmbedError::Later { may_have_cost: true, .. }), "{error:?}");
    }

    let wrong = World::new(gemini);
    let url = wrong.server.url();
    let config = wrong.config(&[
        ("EMBED_MODEL", "gemini:gemini-embedding-001"),
        ("GEMINI_API_KEY", "wrong"),
        ("GEMINI_BASE_URL", &url),
    ]);
    assert!(matches!(wrong.embed(&config, &["one"], TextRole::Kept).unwrap_err(), EmbedError::SetUp(_)));
    let keyless = wrong.config(&[("EMBED_MODEL", "gemini:gemini-embedding-001")]);
    assert!(keyless.notes[0].contains("no GEMINI_API_KEY"), "{:?}", keyless.notes);
    assert!(
        wrong.embed(&keyless, &["one"], TextRole::Kept).unwrap_err().to_string().contains("GEMINI_API_KEY isn't set")
    );
}

#[test]
fn vectors_that_cannot_be_right_are_refused_whole() {
    let world = World::new(openai);
    let config = world.openai();
    let one = |index: usize, vector: Value| json!({"index": index, "embedding": vector});
    for (data, why) in [
        (json!([one(0, json!([1.0]))]), "1 of them for 2 texts"),
        (json!([one(0, json!([1.0])), one(0, json!([1.0]))]), "their numbers don't match those of the texts"),
        (json!([one(0, json!([1.0])), one(1, json!([1.0, 2.0]))]), "has 2 numbers instead of 1"),
        (json!([one(0, json!([1.0])), one(1, json!([0.0]))]), "number 2 of 2 is zero"),
        (json!([one(0, json!([])), one(1, json!([]))]), "0 numbers"),
    ] {
        world.mischief(Response::json(200, &json!({"data": data})));
        let error = world.embed(&config, &["one", "two"], TextRole::Kept).unwrap_err();
        assert!(matches!(error, EmbedError::Unusable { .. }) && error.to_string().contains(why), "{error}");
    }
    // A number that is none in JSON is none of ours.
    world.mischief(Response::new(200, r#"{"data":[{"index":0,"embedding":[NaN]}]}"#));
    assert!(world.embed(&config, &["one"], TextRole::Kept).is_err());
}

#[test]
fn no_redirect_is_followed_with_the_key_or_the_words() {
    let (world, elsewhere) = (World::new(openai), World::new(openai));
    let config = world.openai();
    for status in [301, 302, 307, 308] {
        world.mischief(
            Response::new(status, "").header("location", &format!("{}/v1/embeddings", elsewhere.server.url())),
        );
        let error = world.embed(&config, &["my diary"], TextRole::Kept).unwrap_err();
        assert!(matches!(error, EmbedError::SetUp(_)), "{status}: {error:?}");
    }
    assert!(lock(&elsewhere.asked).is_empty());
}

#[test]
fn a_server_that_is_not_there_is_tried_again_later() {
    let world = World::new(openai);
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = world.config(&[("EMBED_MODEL", "openai:m"), ("OPENAI_BASE_URL", &format!("http://{nowhere}"))]);
    let error = world.embed(&config, &["one"], TextRole::Kept).unwrap_err();
    assert!(matches!(error, EmbedError::Later { may_have_cost: false, .. }), "{error:?}");
    assert!(error.to_string().contains("can't be reached"), "{error}");
}

/// Gives a batch to the program, and reads its answer.
fn program(folder: &Path, lines: &[&str]) -> Vec<Value> {
    #[expect(clippy::disallowed_methods, reason = "the program itself, without the client that starts it")]
    let mut child = Command::new(env!("CARGO_BIN_EXE_reveille-embedder"))
        .arg(folder)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let answers = lines.iter().map(|line| {
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    });
    let answers = answers.collect();
    drop(input);
    assert!(child.wait().unwrap().success(), "it ends with its input");
    answers
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn the_program_on_this_machine_embeds_batch_after_batch() {
    let answers =
        program(&encoder(), &[r#"{"texts":["the cat sleeps","the feline sleeps"]}"#, r#"{"texts":["a doctor"]}"#]);
    let vectors = |answer: &Value| -> Vec<Vec<f32>> {
        let texts = answer["vectors"].as_array().unwrap();
        texts.iter().map(|text| reveille_encoder::from_text(text.as_str().unwrap()).unwrap()).collect()
    };
    let (first, second) = (vectors(&answers[0]), vectors(&answers[1]));
    let cosine = |left: &[f32], right: &[f32]| left.iter().zip(right).map(|(left, right)| left * right).sum::<f32>();
    assert_eq!((first.len(), second.len(), first[0].len()), (2, 1, 16));
    assert!(cosine(&first[0], &first[1]) > 0.99 && cosine(&first[0], &second[0]) < 0.95);
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn the_program_says_why_it_cannot() {
    let answers = program(Path::new("/nowhere"), &[r#"{"texts":["a"]}"#]);
    let why = answers[0]["error"].as_str().unwrap();
    assert!(why.contains("/nowhere/config.json can't be read"), "{why}");
    let world = World::new(openai);
    let config = world.config(&[("EMBED_MODEL", "/nowhere")]);
    let error = world.embed(&config, &["one"], TextRole::Kept).unwrap_err();
    assert!(matches!(&error, EmbedError::SetUp(why) if why.contains("scripts/fetch-model embed")), "{error}");
}

/// The real encoder: related texts lie close, others don't.
#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn the_real_encoder_knows_what_is_meant() {
    #[expect(clippy::disallowed_methods, reason = "what the machine has is no setting of the product")]
    let Some(folder) = std::env::var_os("REVEILLE_TEST_ENCODER").map(PathBuf::from).filter(|folder| folder.is_dir())
    else {
        return eprintln!("NOT RUN: REVEILLE_TEST_ENCODER names no folder (scripts/fetch-model embed)");
    };
    let texts =
        ["A man is eating food.", "Somebody is having a meal.", "The tax office opens on Monday.", "東京 🍜 café"];
    let answers = program(&folder, &[&json!({"texts": texts}).to_string()]);
    let texts = answers[0]["vectors"].as_array().unwrap();
    let vectors: Vec<Vec<f32>> =
        texts.iter().map(|text| reveille_encoder::from_text(text.as_str().unwrap()).unwrap()).collect();
    let cosine =
        |left: usize, right: usize| -> f32 { vectors[left].iter().zip(&vectors[right]).map(|(l, r)| l * r).sum() };
    assert!(cosine(0, 1) > 0.6 && cosine(0, 2) < 0.2 && cosine(1, 2) < 0.2, "{} {}", cosine(0, 1), cosine(0, 2));
}

/// A world whose memory is embedded by the tests' encoder, in which something was said.
fn told(encoder: &Path) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("EMBED_MODEL", &encoder.display().to_string());
    env.wake(&["say", "remember that my feline sleeps in the garden"]).ok();
    env.wake(&["say", "remember that the doctor drives an old car"]).ok();
    env
}

fn models(env: &TestEnv) -> Value {
    env.wake(&["memory", "stats", "--json"]).ok().json()["models"].clone()
}

fn found(env: &TestEnv, query: &str) -> (Vec<String>, String) {
    let ran = env.wake(&["memory", "search", query, "--json", "--limit", "200"]).ok();
    let line = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    (ran.stdout.lines().map(line).collect(), ran.notices().to_owned())
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn a_wake_embeds_what_was_said_and_a_search_finds_it_by_what_it_means() {
    let mut env = told(&encoder());
    let known = models(&env);
    assert!(known[0]["model"].as_str().unwrap().starts_with("local:"), "{known}");
    assert!(known[0]["embedded"].as_u64().unwrap() > 3 && known[0]["dims"] == 16, "{known}");
    env.wake(&["memory", "reindex", "--embed"]).ok();
    assert_eq!(models(&env)[0]["missing"], 0);
    let (hits, said) = found(&env, "cat home");
    assert!(hits.iter().any(|text| text.contains("feline")) && !said.contains("keywords"), "{hits:?} {said}");
    // Without it the words alone count.
    env.unset("EMBED_MODEL");
    let (hits, said) = found(&env, "cat home");
    assert!(!hits.iter().any(|text| text.contains("feline")) && !said.contains("keywords"), "{hits:?} {said}");
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn an_embedder_that_fails_leaves_the_keywords_and_says_so() {
    let encoder = encoder_copy();
    let mut env = told(encoder.path());
    let before = models(&env);
    std::fs::write(encoder.path().join("vocab.txt"), "damaged").unwrap();
    let (hits, said) = found(&env, "feline");
    assert!(hits[0].contains("feline"), "{hits:?}");
    assert!(said.contains("Searched by keywords") && said.contains("vocab.txt is damaged"), "{said}");
    // A wake works on, tells its owner once, and no vector of anybody else's gets in.
    for _ in 0..2 {
        env.wake(&["say", "remember that the car is blue"]).ok();
    }
    assert_eq!(models(&env)[0]["embedded"], before[0]["embedded"]);
    assert_eq!(env.outbox_under("alarm/embed/").len(), 1);
    let health = env.health(&["check", "--json"]).json();
    let search = health["checks"].as_array().unwrap().iter().find(|check| check["id"] == "search").unwrap().clone();
    assert!(
        search["status"] == "warn" && search["detail"].as_str().unwrap().contains("vocab.txt is damaged"),
        "{search}"
    );
    env.unset("EMBED_MODEL");
    assert!(!found(&env, "feline").1.contains("keywords"));
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn another_model_is_embedded_beside_the_old_one_which_goes_when_it_is_whole() {
    let env = told(&encoder());
    env.wake(&["memory", "reindex", "--embed"]).ok();
    let other = encoder_copy();
    // Another model: its first token counts in place of the mean.
    std::fs::create_dir(other.path().join("1_Pooling")).unwrap();
    let pooling = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
    std::fs::write(other.path().join("1_Pooling/config.json"), pooling).unwrap();
    let mut env = env;
    env.set("EMBED_MODEL", &other.path().display().to_string());
    let (hits, said) = found(&env, "cat home");
    assert!(
        said.contains("nothing is embedded yet") && !hits.iter().any(|hit| hit.contains("feline")),
        "{hits:?} {said}"
    );
    let old = models(&env);
    env.wake(&["memory", "reindex", "--embed"]).ok();
    let new = models(&env);
    assert_eq!((new.as_array().unwrap().len(), &new[0]["missing"]), (1, &json!(0)), "{new}");
    assert_ne!(new[0]["model"], old[0]["model"]);
}

#[test]
fn without_an_embedder_keywords_serve_and_that_is_said_once() {
    let env = TestEnv::new();
    env.wake(&["say", "remember that my feline sleeps in the garden"]).ok();
    for is_said in [true, false] {
        let ran = env.wake(&["memory", "search", "feline"]).ok();
        assert!(ran.stdout.contains("sleeps in the garden"), "{}", ran.stdout);
        ran.assert_tells_only_if(is_said, "Searched by keywords only");
    }
}

#[test]
fn a_cloud_embedder_is_asked_about_once_and_gets_nothing_before() {
    let world = World::new(openai);
    let mut env = TestEnv::new();
    // Not a server of this machine by its name; nobody answers there.
    env.set("EMBED_MODEL", "openai:text-embedding-3-small").set("OPENAI_API_KEY", KEY);
    env.set("OPENAI_BASE_URL", "https://embeddings.invalid/v1");
    for _ in 0..3 {
        env.wake(&["say", "remember that my diary is secret"]).ok();
    }
    let text = env.outbox_under("alarm/embed/ask/").join(",");
    assert_eq!(text.matches("all of it** to embeddings.invalid").count(), 1, "{text}");
    assert!(models(&env).as_array().unwrap().is_empty());
    assert_eq!(env.ledger().len(), 0);
    let status = |env: &TestEnv| env.wake(&["memory", "embed"]).ok().stdout;
    assert!(status(&env).contains("not allowed: wake memory embed allow"), "{}", status(&env));
    env.wake(&["memory", "embed", "allow"]).ok();
    // Now it is tried, and nobody is there: keywords serve.
    env.wake(&["say", "remember that the door is red"]).ok();
    let trouble = env.upkeep("embed").error.unwrap();
    assert!(trouble.contains("embeddings.invalid can't be reached"), "{trouble}");
    assert_eq!(env.ledger().len(), 0, "what didn't leave costs nothing");
    assert!(found(&env, "diary").0[0].contains("diary"));
    env.wake(&["memory", "embed", "deny"]).ok();
    assert!(status(&env).contains("not allowed"));
    // A server on this machine asks nobody and costs nothing.
    env.set("OPENAI_BASE_URL", &format!("{}/v1", world.server.url()));
    env.wake(&["memory", "reindex", "--embed"]).ok();
    assert_eq!(models(&env)[0]["dims"], 3);
    assert!(status(&env).contains("nothing to allow") && env.ledger().is_empty());
}

#[cfg_attr(not(feature = "embed"), ignore = "this build has no encoder")]
#[test]
fn what_is_left_is_gone_on_with_after_a_kill() {
    let env = told(&encoder());
    let lines: String = (0..400).map(|n| format!("- The car number {n} is red and needs a new door.\n")).collect();
    env.write_memory("memory/agent-memory/semantic-memory.md", &format!("# Facts\n\n## Cars\n{lines}"));
    let running = env.start(env!("CARGO_BIN_EXE_wake"), &["memory", "reindex", "--embed"]);
    let embedded = || models(&env)[0]["embedded"].as_u64().unwrap_or(0);
    eventually("some of it is embedded", || embedded() > 40);
    running.signal(rustix::process::Signal::KILL);
    running.end();
    let kept = embedded();
    let ran = env.wake(&["memory", "reindex", "--embed"]).ok();
    let model = models(&env);
    assert_eq!(model[0]["missing"], 0);
    let rest = model[0]["embedded"].as_u64().unwrap() - kept;
    ran.assert_tells(&format!("{rest} parts were embedded"));
    assert!(kept > 40, "{kept} {rest} {}", ran.notices());
}

/// The tests' encoder where it can be changed.
fn encoder_copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["config.json", "vocab.txt", "model.safetensors"] {
        std::fs::copy(encoder().join(name), copy.path().join(name)).unwrap();
    }
    copy
}
