//! Claude on Amazon Bedrock and on Google Cloud: the whole cycle once through each door, and what the doors refuse.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use ring::{
    rsa::{KeyPair, PublicKeyComponents},
    signature::KeyPair as _,
};
use serde_json::json;

use reveille_base::clock::{Clock, parse_time};
use reveille_model::{
    Conversation, Model as _, ModelError, Progress, Turn,
    anthropic::{Anthropic, AnthropicOptions, ClaudeRoute},
    content::join_text,
};

use super::support::{
    claude::{
        FakeClaude, Reply,
        cloud::{Aws, Google},
    },
    env::{NOW, ProgramOutput, TestEnv},
};

/// A key that was made for these tests and opens nothing.
const PRIVATE_KEY: &str = include_str!("fixtures/google-key.pem");
const EMAIL: &str = "reveille@my-project.iam.gserviceaccount.com";
const REFRESH_TOKEN: &str = "1//refresh-token-0123456789";
const BEARER: &str = "bedrock-api-key-0123456789abcdef";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const SESSION: &str = "IQoJb3JpZ2luX2VjEXAMPLE0123456789//////////token==";
const GOOGLES: &str = "/projects/my-project/locations/global/publishers/anthropic/models/";

fn aws() -> Aws {
    Aws {
        bearer: BEARER.to_owned(),
        key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
        secret: SECRET.to_owned(),
        session: None,
        minute: "20261121T1400".to_owned(),
    }
}

fn google(path: &str) -> Google {
    let der = PRIVATE_KEY.lines().filter(|line| !line.starts_with('-')).collect::<String>();
    let pair = KeyPair::from_pkcs8(&STANDARD.decode(der).unwrap()).unwrap();
    let public: PublicKeyComponents<Vec<u8>> = pair.public_key().into();
    Google {
        public_key: (public.n, public.e),
        email: EMAIL.to_owned(),
        refresh_token: REFRESH_TOKEN.to_owned(),
        now: now().timestamp(),
        path: path.to_owned(),
        token: None,
        given: 0,
        asked: 0,
        is_closed: false,
    }
}

fn now() -> DateTime<Utc> {
    parse_time(NOW).unwrap()
}

/// Keeps a login as Google's tools do.
fn keep(path: PathBuf, login: &serde_json::Value) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, login.to_string()).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    path
}

fn service_account(fake: &FakeClaude) -> serde_json::Value {
    json!({
        "type": "service_account", "project_id": "my-project", "private_key_id": "key-1", "private_key": PRIVATE_KEY,
        "client_email": EMAIL, "token_uri": format!("{}/token", fake.url()),
    })
}

fn person(fake: &FakeClaude, refresh_token: &str) -> serde_json::Value {
    json!({
        "type": "authorized_user", "client_id": "client.apps.example", "client_secret": "client-secret-0123456789",
        "refresh_token": refresh_token, "token_uri": format!("{}/token", fake.url()),
    })
}

/// A world whose model is on Bedrock.
fn on_bedrock(fake: &FakeClaude) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("MODEL", "bedrock:anthropic.claude-sonnet-5-5").set("AWS_REGION", "eu-west-1");
    env.set("BEDROCK_BASE_URL", &format!("{}/anthropic", fake.url()));
    env
}

fn signing(env: &mut TestEnv) -> &mut TestEnv {
    env.set("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE").set("AWS_SECRET_ACCESS_KEY", SECRET)
}

/// A world whose model is on Google Cloud.
fn on_google(fake: &FakeClaude, login: &Path) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("MODEL", "vertex:claude-sonnet-5-5").set("GOOGLE_CLOUD_PROJECT", "my-project");
    env.set("GOOGLE_APPLICATION_CREDENTIALS", login.to_str().unwrap()).set("VERTEX_BASE_URL", &fake.url());
    env
}

/// One wake that answers in two rounds, a tool's among them.
#[track_caller]
fn answers(env: &TestEnv, fake: &FakeClaude) -> serde_json::Value {
    fake.expect(Reply::thinking_then_tool("Hm.", "t1", "remember", json!({"fact": "Cats purr"})))
        .expect(Reply::text("Noted."));
    let ran = env.wake(&["--once", "--say", "remember that cats purr", "--json"]).ok();
    assert_eq!(ran.json()["replies"][0]["text"], "Noted.", "{ran:#?}");
    let commit = env.run("git", &["-C", env.brain().to_str().unwrap(), "log", "-1", "--format=%B"]).ok();
    assert!(commit.stdout.contains(&format!("Model: {}", env.get("MODEL"))), "{commit:#?}");
    env.check_sound();
    ran.json()
}

/// One wake that fails, and what it says; no secret is in it.
#[track_caller]
fn fails(env: &TestEnv) -> String {
    let ran: ProgramOutput = env.wake(&["--once", "--say", "hello", "--json"]);
    assert_eq!((ran.code, env.queued().len()), (1, 1), "{ran:#?}");
    let shown = ran.shown();
    for secret in [BEARER, SECRET, SESSION, REFRESH_TOKEN, "ya29", "PRIVATE KEY", "client-secret"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    ran.json()["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_message_is_answered_on_bedrock_by_a_signature() {
    let fake = FakeClaude::start_in(aws());
    let mut env = on_bedrock(&fake);
    let report = answers(signing(&mut env), &fake);
    // A cloud's price is counted with what a region costs more.
    let once = 10.0 * 2.0 + 20.0 * 2.5 + 30.0 * 0.1 + 40.0 * 10.0;
    assert!((report["cost_usd"].as_f64().unwrap() - 2.0 * once * 1.1e-6).abs() < 1e-9, "{report}");
    assert!(fake.requests()[0].raw.starts_with(r#"{"model":"anthropic.claude-sonnet-5-5","#));
}

#[test]
fn a_message_is_answered_on_bedrock_with_temporary_keys_from_files() {
    let fake = FakeClaude::start_in(Aws { session: Some(SESSION.to_owned()), ..aws() });
    let mut env = on_bedrock(&fake);
    env.set("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE");
    for (name, secret) in [("AWS_SECRET_ACCESS_KEY_FILE", SECRET), ("AWS_SESSION_TOKEN_FILE", SESSION)] {
        let path = env.path(name);
        std::fs::write(&path, secret).unwrap();
        env.set(name, path.to_str().unwrap());
    }
    answers(&env, &fake);
}

#[test]
fn a_message_is_answered_on_bedrock_by_its_own_key_which_goes_first() {
    let fake = FakeClaude::start_in(aws());
    let mut env = on_bedrock(&fake);
    signing(&mut env).set("AWS_BEARER_TOKEN_BEDROCK", BEARER).set("AWS_SECRET_ACCESS_KEY", "wrong-key-0123456789");
    answers(&env, &fake);
}

#[test]
fn a_message_is_answered_on_google_by_a_service_account() {
    let fake = FakeClaude::start_in(google(GOOGLES));
    let dir = tempfile::tempdir().unwrap();
    let login = keep(dir.path().join("key.json"), &service_account(&fake));
    answers(&on_google(&fake, &login), &fake);
    fake.cloud(|cloud| assert_eq!(cloud.google().given, 1, "a token serves all requests of a wake"));
}

#[test]
fn a_message_is_answered_on_google_by_the_login_that_gcloud_keeps() {
    let fake = FakeClaude::start_in(google(GOOGLES));
    let mut env = on_google(&fake, Path::new("/nowhere"));
    let place = env.path("home").join(".config/gcloud/application_default_credentials.json");
    keep(place, &person(&fake, REFRESH_TOKEN));
    answers(env.unset("GOOGLE_APPLICATION_CREDENTIALS"), &fake);
}

#[test]
fn a_message_is_answered_on_google_where_anthropic_runs_the_models() {
    let fake = FakeClaude::start_in(google("/projects/my-project/locations/global/workspaces/wrkspc_1/invoke/"));
    let dir = tempfile::tempdir().unwrap();
    let login = keep(dir.path().join("key.json"), &service_account(&fake));
    answers(on_google(&fake, &login).set("VERTEX_WORKSPACE", "wrkspc_1"), &fake);
}

#[test]
fn a_wrong_key_of_aws_is_told_with_what_to_do_and_the_message_waits() {
    let told = |change: fn(&mut TestEnv)| {
        let fake = FakeClaude::start_in(aws());
        let mut env = on_bedrock(&fake);
        change(signing(&mut env));
        fails(&env)
    };
    let why = told(|env| {
        env.set("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/another/key");
    });
    assert!(why.contains("check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY") && why.contains("does not match"), "{why}");
    assert!(
        told(|env| {
            env.set("AWS_SESSION_TOKEN", SESSION);
        })
        .contains("AWS_SESSION_TOKEN")
    );
    assert!(
        told(|env| {
            env.set("AWS_REGION", "us-east-1");
        })
        .contains("AWS_REGION")
    );
    let why = told(|env| {
        env.at("2026-11-21T15:00:00Z");
    });
    assert!(why.contains("this machine's clock") && why.contains("Signature expired"), "{why}");
    let why = told(|env| {
        env.set("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-of-somebody");
    });
    assert!(why.contains("check AWS_BEARER_TOKEN_BEDROCK"), "{why}");
}

#[test]
fn a_wrong_login_of_googles_is_told_with_what_to_do_and_the_message_waits() {
    let told = |login: &dyn Fn(&FakeClaude) -> serde_json::Value| {
        let fake = FakeClaude::start_in(google(GOOGLES));
        let dir = tempfile::tempdir().unwrap();
        let login = keep(dir.path().join("login.json"), &login(&fake));
        fails(&on_google(&fake, &login))
    };
    let why = told(&|fake| person(fake, "1//taken-back-0123456789"));
    assert!(why.contains("gcloud auth application-default login") && why.contains("invalid_grant"), "{why}");
    let why = told(&|fake| {
        let mut login = service_account(fake);
        login["client_email"] = "somebody@else".into();
        login
    });
    assert!(why.contains("Make a new key for the service account"), "{why}");
    let why = told(&|_| json!({"type": "external_account"}));
    assert!(why.contains("neither a service account's key nor"), "{why}");

    let fake = FakeClaude::start_in(google(GOOGLES));
    let why = fails(&on_google(&fake, Path::new("/nowhere/login.json")));
    assert!(why.contains("/nowhere/login.json") && why.contains("GOOGLE_APPLICATION_CREDENTIALS"), "{why}");
}

#[test]
fn a_model_that_google_does_not_have_condemns_no_message() {
    let fake = FakeClaude::start_in(google("/projects/another/"));
    let dir = tempfile::tempdir().unwrap();
    let login = keep(dir.path().join("key.json"), &service_account(&fake));
    let why = fails(&on_google(&fake, &login));
    assert!(why.contains("Google Cloud refused the request (HTTP 404)") && why.contains("NOT_FOUND"), "{why}");
}

#[test]
fn without_what_a_cloud_needs_it_answers_offline_and_says_why() {
    let mut env = TestEnv::new();
    for (model, settings, why) in [
        ("bedrock:anthropic.claude-sonnet-5-5", vec![], "there is no AWS_REGION"),
        (
            "bedrock:anthropic.claude-sonnet-5-5",
            vec![("AWS_REGION", "eu-west-1")],
            "neither AWS_BEARER_TOKEN_BEDROCK nor",
        ),
        ("vertex:claude-sonnet-5-5", vec![], "there is no GOOGLE_CLOUD_PROJECT"),
        (
            "vertex:claude-sonnet-5-5",
            vec![("GOOGLE_CLOUD_PROJECT", "p")],
            "run `gcloud auth application-default login`",
        ),
    ] {
        env.set("MODEL", model).set("ANTHROPIC_API_KEY", "sk-ant-api03-not-for-clouds-0123456789");
        for (name, value) in settings {
            env.set(name, value);
        }
        let ran = env.wake(&["--once", "--say", "what do you know about cats", "--json"]).ok();
        ran.assert_tells(why).assert_tells("I answer without an AI model");
        let check = env.health(&["check", "--json"]);
        let checks = check.json()["checks"].as_array().unwrap().clone();
        let key = checks.into_iter().find(|check| check["id"] == "key").unwrap();
        assert!(key["detail"].as_str().unwrap().contains(why), "{key}");
    }
}

/// A clock that a test moves.
struct Moved(Mutex<DateTime<Utc>>);

impl Clock for Moved {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

fn asked(model: &Anthropic) -> Result<Turn, ModelError> {
    let conversation = Conversation {
        messages: vec![r#"{"role":"user","content":[{"type":"text","text":"Hello"}]}"#.to_owned()],
        ..Conversation::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(model.request_turn(&conversation, &Progress::default()))
}

#[test]
fn a_token_is_renewed_before_its_end_and_once_when_it_is_refused() {
    let fake = FakeClaude::start_in(google(GOOGLES));
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(Mutex::new(now())));
    let model = Anthropic::new(AnthropicOptions {
        route: ClaudeRoute::Vertex {
            project: "my-project".to_owned(),
            location: "global".to_owned(),
            workspace: None,
            base_url: Some(fake.url()),
            login: keep(dir.path().join("key.json"), &service_account(&fake)),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        },
        model: "vertex:claude-sonnet-5-5".to_owned(),
        max_tokens: 1000,
        idle_timeout: Duration::from_secs(60),
        total_timeout: Duration::from_secs(60),
        effort: None,
    })
    .unwrap();
    let counts = || {
        let mut counts = (0, 0);
        fake.cloud(|cloud| counts = (cloud.google().given, cloud.google().asked));
        counts
    };
    let answered = || {
        fake.expect(Reply::text("Hi."));
        assert_eq!(join_text(&asked(&model).unwrap().content), "Hi.");
        counts()
    };
    let pass = |minutes: i64| {
        *clock.0.lock().unwrap() += TimeDelta::minutes(minutes);
        fake.cloud(|cloud| cloud.google().now += minutes * 60);
    };
    assert_eq!(answered(), (1, 1));
    pass(57);
    assert_eq!(answered(), (1, 2));
    pass(1);
    assert_eq!(answered(), (2, 3), "two minutes before its end there is another one");

    fake.cloud(|cloud| cloud.google().token = None);
    assert_eq!(answered(), (3, 5), "one was taken back: another token, and one more try");

    fake.cloud(|cloud| cloud.google().is_closed = true);
    let error = asked(&model).unwrap_err();
    assert!(
        matches!(&error, ModelError::Account { why } if why.contains("GOOGLE_APPLICATION_CREDENTIALS")),
        "{error:?}"
    );
    assert_eq!(counts(), (4, 7), "one more try, and no third");
}
