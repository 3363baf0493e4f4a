//! Cases run as written: those that ship pass, one that must fail fails and says why, a recorded wake becomes a case, and the real
//! workspace stays as it is.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    replay::{last_wake, world},
    support::{
        claude::{FakeClaude, Reply},
        env::{ProgramOutput, TestEnv, eventually},
    },
};

/// The cases that ship.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("evals")
}

/// What lies in a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A world whose temporary files are its own.
fn env() -> TestEnv {
    let mut env = TestEnv::new();
    let temporary = env.path("tmp");
    fs::create_dir(&temporary).unwrap();
    env.set("TMPDIR", &temporary.display().to_string());
    env
}

/// What runs have left below the folder for temporary files.
fn left(env: &TestEnv) -> Vec<PathBuf> {
    files(&env.path("tmp")).iter().flat_map(|base| files(base)).collect()
}

/// A folder with one of the cases that ship, changed.
fn one(env: &TestEnv, name: &str, change: impl Fn(String) -> String) -> String {
    let dir = env.path(&format!("cases-{}", fs::read_dir(env.root()).unwrap().count()));
    fs::create_dir(&dir).unwrap();
    let text = change(fs::read_to_string(shipped().join(name)).unwrap());
    fs::write(dir.join(Path::new(name).file_name().unwrap()), text).unwrap();
    dir.display().to_string()
}

/// The scores, a line each, and the total.
#[track_caller]
fn scores(ran: &ProgramOutput) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let total = lines.pop().unwrap_or_else(|| panic!("{ran:#?}"));
    (lines, total)
}

#[test]
fn the_cases_that_ship_pass_without_a_workspace_and_leave_nothing() {
    let env = env();
    let ran = env.wake(&["eval", &shipped().display().to_string(), "--json"]);
    let (cases, total) = scores(&ran);
    assert_eq!((ran.code, &total["cases"], &total["passed"]), (0, &json!(10), &json!(10)), "{cases:#?}");
    assert!(!env.workspace().exists(), "a workspace was made");
    assert_eq!(left(&env), [""; 0].map(PathBuf::from));
    for path in files(&shipped()).into_iter().filter(|path| path.is_file()) {
        let case: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let expect = case["expect"].as_table().unwrap();
        let has_receipts = ["did", "did_not"].iter().any(|key| expect.contains_key(*key));
        assert!(has_receipts && expect.contains_key("files"), "{case:#?}");
    }
}

#[test]
fn the_forty_everyday_tasks_can_be_done() {
    let env = env();
    let ran = env.wake(&["eval", &shipped().join("live").display().to_string(), "--json"]);
    let (cases, total) = scores(&ran);
    let failed: Vec<&Value> = cases.iter().filter(|case| case["passed"] == false).collect();
    assert_eq!((ran.code, &total["cases"], failed), (0, &json!(40), Vec::new()));
}

#[test]
fn a_live_run_is_kept_held_against_the_last_one_and_ends_at_its_cap() {
    let mut env = env();
    let claude = FakeClaude::start();
    env.think_with(&claude);
    let dir = one(&env, "live/10-answer-from-memory.toml", |text| text);
    let live = |env: &TestEnv, more: &[&str]| env.wake(&[&["eval", &dir, "--live", "--json"], more].concat());
    claude.expect(Reply::text("It's 1234.").using(3_000, 40));
    let first = live(&env, &[]);
    let (cases, total) = scores(&first);
    assert_eq!((first.code, &total["passed"], &total["compared"]), (0, &json!(1), &Value::Null), "{cases:#?}");
    // A call without an answer fails as a call does; what was said and done decides.
    claude.expect(Reply::tool("t1", "bash", json!({"command": "cat wifi"})).using(3_000, 40));
    claude.expect(Reply::text("No idea.").using(3_100, 40));
    let second = live(env.at("2026-11-21T15:00:00Z"), &[]);
    let (cases, total) = scores(&second);
    assert_eq!((second.code, &total["compared"]["worse"]), (1, &json!(["10-answer-from-memory"])));
    assert_eq!(cases[0]["why"].as_array().unwrap().len(), 1, "{cases:#?}");
    let kept = files(&env.workspace().join("evals"));
    assert!(kept.len() == 2 && fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o077 == 0, "{kept:?}");

    let asked = claude.requests().len();
    let capped = live(&env, &["--cap", "0.001"]);
    let (_, total) = scores(&capped);
    assert_eq!((capped.code, &total["cases"], &total["left_out"]), (1, &json!(0), &json!(1)), "{capped:#?}");
    capped.assert_tells("--cap");
    assert!(claude.requests().len() == asked, "{capped:#?}");
    // The grammar would have set this reminder by itself: that says nothing of the model.
    let reminder = one(&env, "live/06-remind-in-minutes.toml", |text| text);
    env.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let (cases, _) = scores(&env.wake(&["eval", &reminder, "--live", "--json"]));
    let why = cases[0]["why"].as_array().unwrap();
    assert!(why.iter().any(|why| why.as_str().unwrap().contains("never answered")), "{cases:#?}");
    env.unset("ANTHROPIC_API_KEY");
    assert_eq!(live(&env, &[]).code, 78);
    assert_eq!(env.wake(&["eval", &dir, "--cap", "1"]).code, 2, "a cap is a live run's");
}

#[test]
fn a_case_that_must_fail_fails_and_says_why() {
    let env = env();
    let fails = |name: &str, (from, to): (&str, &str), why: &str| {
        let dir = one(&env, name, |text| {
            assert!(text.contains(from), "{name} has no {from:?}");
            text.replacen(from, to, 1)
        });
        let ran = env.wake(&["eval", &dir]);
        assert!(ran.code == 1 && ran.stdout.starts_with("FAIL ") && ran.stdout.contains(why), "{why}: {ran:#?}");
        assert!(ran.stdout.contains("0 of 1 case passed"), "{ran:#?}");
    };
    let (fact, page, planned) =
        ("01-remember-a-fact.toml", "07-a-page-is-quarantined.toml", "09-planned-is-not-done.toml");
    fails(fact, ("wifi code is 1234\"]", "wifi code is 5678\"]"), "semantic-memory.md lacks \"the wifi code is 5678\"");
    fails(fact, ("what = \"wifi\"", "what = \"router\""), "no receipt of remember with \"router\"; it did: Remembered");
    fails(fact, ("\"task_add\"", "\"remember\""), "there is a receipt of remember");
    fails(
        fact,
        ("semantic-memory.md\"]\ncontains", "semantic-memory.md\"]\nunchanged = true\ncontains"),
        "was changed",
    );
    fails(fact, ("about", "abuot"), "The case can't be read");
    fails(page, ("tool = \"web_search\"", "tool = \"web_fetch\""), "The case has no answer for web_search");
    fails(page, ("[[turns]]\ntext = \"It opens at 10.\"", ""), "the script has no further turn");
    fails(planned, ("[expect]", "[[turns]]\ntext = \"More.\"\n[expect]"), "1 of the script's turns were never used");
    fails("08-what-destroys-asks.toml", ("asks = [\"bash\"]\n", ""), "there is a receipt of bash");
    assert_eq!(env.wake(&["eval", &env.path("home").display().to_string()]).code, 1, "no case is no success");
    assert_eq!(env.wake(&["eval"]).code, 2);
}

#[test]
fn a_paid_model_is_tried_within_the_budget_and_its_money_alone_is_real() {
    let claude = FakeClaude::start();
    let mut env = env();
    env.wake(&["say", "hello"]).ok();
    env.think_with(&claude);
    let before = world(&env);
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "the wifi code is 1234"})));
    claude.expect(Reply::text("Noted."));
    let dir = one(&env, "01-remember-a-fact.toml", |text| text);
    let ran = env.wake(&["eval", &dir, "--model", "claude-sonnet-5-5", "--json"]);
    let (cases, total) = scores(&ran);
    assert_eq!((ran.code, &total["passed"], &total["rounds"]), (0, &json!(1), &json!(2)), "{cases:#?}");
    ran.assert_tells("which may cost $");
    let booked = env.cost_of("eval:claude-sonnet-5-5");
    assert!(booked > 0.0 && (total["cost_usd"].as_f64().unwrap() - booked).abs() < 1e-9);
    env.set("DAILY_BUDGET_USD", "0.000001");
    let ran = env.wake(&["eval", &dir, "--model", "claude-sonnet-5-5"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(world(&env) == before, "something has changed");
    assert_eq!(env.wake(&["eval", &dir, "--model", "claude-unset"]).code, 1);
    env.unset("ANTHROPIC_API_KEY");
    assert_eq!(env.wake(&["eval", &dir, "--model", "claude-sonnet-5-5"]).code, 78);
}

#[test]
fn what_a_killed_run_has_left_is_cleared_by_the_next() {
    let mut env = env();
    // It takes a connection, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    env.wake(&["say", "hello"]).ok();
    env.set("ANTHROPIC_API_KEY", super::support::claude::API_KEY);
    env.set("ANTHROPIC_BASE_URL", &format!("http://{}", silent.local_addr().unwrap()));
    let dir = one(&env, "01-remember-a-fact.toml", |text| text);
    let before = world(&env);
    let running = env.start(env!("CARGO_BIN_EXE_wake"), &["eval", &dir, "--model", "claude-sonnet-5-5"]);
    let reserved = || env.reserved().len() == 1;
    eventually("the request is sent", reserved);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(left(&env).len(), 1);
    assert!(reserved(), "what it may have cost stays counted");
    env.wake(&["eval", &dir]).ok();
    assert_eq!(left(&env), [""; 0].map(PathBuf::from));
    assert!(world(&env) == before, "something has changed");
}

#[test]
fn a_recorded_wake_becomes_a_case_without_secrets_that_outlives_its_journal() {
    let claude = FakeClaude::start();
    let mut env = env();
    env.set("BRAVE_API_KEY", "BSA-brave-secret-0123456789");
    env.wake(&["say", "add task renew passport"]).ok();
    let offline = last_wake(&env);
    env.write_memory("memory/notes.md", "# Notes\n\nThe key is BSA-brave-secret-0123456789\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "A note"]);
    env.think_with(&claude);
    claude.expect(Reply::tool("t1", "system_info", json!({})));
    claude.expect(Reply::tool("t2", "remember", json!({"fact": "This machine \"hums\""})));
    claude.expect(Reply::text("Noted."));
    env.wake(&["say", "how is this machine?\nremember \"it\""]).ok();
    let thought = last_wake(&env);
    let before = world(&env);
    let dir = env.path("mine").display().to_string();
    env.wake(&["eval", "add", &offline, &dir]).ok();
    let added = env.wake(&["eval", "add", &thought, &dir, "--json"]).ok().json();
    assert!(world(&env) == before, "something has changed");
    let path = PathBuf::from(added["path"].as_str().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("The key is ***") && !text.contains("BSA-brave"), "{text}");
    assert_eq!((added["masked"].as_i64(), &added["left_out"]), (Some(1), &json!([])));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(text.contains("[[answers]]\ntool = \"system_info\"") && text.contains("[[turns]]"), "{text}");
    let again = env.wake(&["eval", "add", &thought, &dir]);
    again.assert_fails(1, "can't be written");

    env.forget_journals();
    let ran = env.wake(&["eval", &dir, "--json"]);
    let (cases, total) = scores(&ran);
    assert_eq!((ran.code, &total["passed"]), (0, &json!(2)), "{cases:#?}");
    // It is held to what was done then.
    fs::write(&path, text.replace("hums", "purrs").replacen("purrs", "hums", 1)).unwrap();
    assert_eq!(env.wake(&["eval", &dir]).code, 1);
    let gone = env.wake(&["eval", "add", &offline, &dir]);
    gone.assert_fails(1, "older than KEEP_DAYS");
}
