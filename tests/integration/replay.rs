//! A recorded cycle runs again: the same calls come to the same, another one is said not to be recorded, and nothing happens but that a
//! paid model's money is booked.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use super::{
    support::story::{end_well, plan, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, ProgramOutput, TestEnv},
        http::Gate,
    },
};

/// A chat that isn't the owner's.
const BOB: i64 = 5555;

/// All files below a folder, by path, with their bytes.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The database's rows, but for the ledger's.
fn rows(env: &TestEnv) -> String {
    let tables = env.tables().into_iter().filter(|table| table != "ledger");
    tables.flat_map(|table| env.rows_as_text(&table).into_iter().map(move |row| format!("{table}: {row}\n"))).collect()
}

/// What a replay must leave as it is: the workspace with its repository, but for the logs, and all rows.
pub(super) fn world(env: &TestEnv) -> (BTreeMap<String, Vec<u8>>, String) {
    let mut files = tree(&env.workspace());
    files.retain(|path, _| !path.starts_with("messages.db") && !path.starts_with("logs/"));
    (files, rows(env))
}

pub(super) fn last_wake(env: &TestEnv) -> String {
    env.last_cycle().id
}

#[track_caller]
fn replayed(ran: &ProgramOutput) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

#[test]
fn an_offline_wake_replays_as_the_same_and_nothing_changes() {
    let env = TestEnv::new();
    let mut first = None;
    for said in [
        "remember that the wifi code is 1234",
        "add task renew passport, and remind me tomorrow at 9 to call Anna",
        "renew passport is done",
        "what do you know about wifi?",
        "hello",
    ] {
        env.wake(&["say", said]).ok();
        let (wake, before) = (last_wake(&env), world(&env));
        first.get_or_insert_with(|| wake.clone());
        let ran = env.wake(&["replay", &wake, "--json"]);
        let report = replayed(&ran);
        assert_eq!((ran.code, &report["same"]), (0, &json!(true)), "{said}: {report:#}");
        assert_eq!(report["notes"], json!([]), "{said}");
        assert_eq!(report["said_then"], report["said_now"], "{said}");
        assert_eq!(report["recorded"]["rounds"], report["replayed"]["rounds"]);
        assert!(world(&env) == before, "{said}: something has changed");
        assert_eq!(env.ledger().len(), 0);
    }
    let text = env.wake(&["replay", &first.unwrap()]).ok().stdout;
    assert!(text.contains("same          remember {") && text.contains("files: 1 the same"), "{text}");
    assert!(text.trim_end().ends_with("The same."), "{text}");
}

/// A cycle with the fake Claude: it remembers and answers.
fn thinking() -> (FakeClaude, TestEnv, String) {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The wifi code is 1234"})));
    claude.expect(Reply::text("Noted."));
    env.wake(&["say", "the wifi code is 1234"]).ok();
    let wake = last_wake(&env);
    (claude, env, wake)
}

#[test]
fn a_model_in_other_words_is_the_same_and_its_money_is_booked() {
    let (claude, env, wake) = thinking();
    let before = world(&env);
    // Other ids, other blanks, other words.
    claude.expect(Reply::tool("u7", "remember", json!({"fact": "The wifi code is 1234"})));
    claude.expect(Reply::text("I have written it down."));
    let ran = env.wake(&["replay", &wake, "--json"]);
    let report = replayed(&ran);
    assert_eq!((ran.code, &report["same"]), (0, &json!(true)), "{report:#}");
    assert_eq!((&report["said_then"], &report["said_now"]), (&json!(["Noted."]), &json!(["I have written it down."])));
    ran.assert_tells("each request may cost $").assert_tells("2 rounds");
    assert!(world(&env) == before, "something has changed");
    let booked = env.cost_of("replay:claude-sonnet-5-5");
    assert!(booked > 0.0 && (report["replayed"]["cost_usd"].as_f64().unwrap() - booked).abs() < 1e-9);
    assert_eq!(env.ledger().iter().filter(|charge| charge.model.starts_with("replay:")).count(), 2);
}

#[test]
fn what_a_local_chat_said_is_replayed_by_no_model_elsewhere_and_makes_no_case() {
    let (_claude, env, wake) = thinking();
    env.wake(&["say", "/local"]).ok();
    let cases = env.path("cases").display().to_string();
    for args in [&["replay", wake.as_str()][..], &["eval", "add", wake.as_str(), cases.as_str()]] {
        let refused = env.wake(args);
        refused.assert_fails(1, "/local off");
    }
    assert!(!env.path("cases").exists());
    let here = env.wake(&["replay", &wake, "--model", "offline"]);
    here.assert_never_tells("/local");
}

#[test]
fn a_call_that_is_not_recorded_ends_it_and_is_shown() {
    let (claude, env, wake) = thinking();
    let before = world(&env);
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The code of the wifi is 1234"})));
    let ran = env.wake(&["replay", &wake]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains(r#"not recorded  remember {"fact":"The code of the wifi is 1234"}"#), "{}", ran.stdout);
    assert!(ran.stdout.contains("missing       remember {"), "{}", ran.stdout);
    assert!(ran.stdout.contains("- Remembered"), "{}", ran.stdout);
    assert!(ran.stdout.contains("    - - The wifi code is 1234"), "{}", ran.stdout);
    assert!(world(&env) == before, "something has changed");

    // One that does less: it came to its end, and lacks something.
    claude.expect(Reply::text("Noted."));
    let ran = env.wake(&["replay", &wake, "--json"]);
    let report = replayed(&ran);
    assert_eq!((ran.code, &report["ended"]["is"]), (1, &json!("finished")), "{report:#}");
    assert_eq!(report["calls"][0]["fate"], "missing");

    // The offline model understands nothing of it, and costs nothing.
    let ran = env.wake(&["replay", &wake, "--model", "offline", "--json"]);
    assert_eq!((ran.code, replayed(&ran)["ended"]["is"].as_str()), (1, Some("not_recorded")));
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let (_claude, mut env, wake) = thinking();
    let says = |env: &TestEnv, arguments: &[&str], code: i32, words: &str| {
        let ran = env.wake(arguments);
        ran.assert_fails(code, words);
    };
    says(&env, &["replay", "20200101"], 1, "and no wake or commit of that name");
    env.unset("ANTHROPIC_API_KEY");
    says(&env, &["replay", &wake], 78, "needs a key that isn't set");
    env.set("ANTHROPIC_API_KEY", super::support::claude::API_KEY).set("DAILY_BUDGET_USD", "0.000001");
    let ran = env.wake(&["replay", &wake]);
    assert!(ran.code == 1 && ran.stdout.contains("today's budget is too small"), "{ran:#?}");
    env.unset("DAILY_BUDGET_USD");
    env.forget_journals();
    says(&env, &["replay", &wake], 1, "older than KEEP_DAYS");
}

#[test]
fn a_wake_that_heard_more_meanwhile_replays_with_what_it_heard() {
    let (_telegram, claude, env) = with_claude();
    let first = || {
        let kept = Block::tool("t1", "remember", json!({"fact": "Cats purr"}));
        Reply::tools(vec![plan("t0", &[("keep it", "remember")]), kept])
    };
    let then = || Reply::tools(vec![Block::tool("t2", "task_add", json!({"title": "Buy food"}))]);
    let gate = Gate::default();
    env.receive(CHAT, "remember that cats purr");
    claude.expect(first().stalled_after(4, &gate));
    claude.expect(then());
    claude.expect(Reply::text("Both are done."));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    env.receive(CHAT, "and add a task to buy food");
    gate.open();
    end_well(wake);
    let (wake, before) = (last_wake(&env), world(&env));

    for reply in [first(), then(), Reply::text("Done, both.")] {
        claude.expect(reply);
    }
    let sent = claude.requests().len();
    let ran = env.wake(&["replay", &wake, "--json"]);
    let report = replayed(&ran);
    assert_eq!((ran.code, &report["same"], &report["notes"]), (0, &json!(true), &json!([])), "{report:#}");
    assert_eq!((report["files"].as_array().unwrap().len(), &report["receipts_same"]), (2, &json!(3)), "{report:#}");
    let again = claude.requests().split_off(sent);
    assert!(again[1].last_text().contains("buy food"), "what came meanwhile comes with the same results");
    assert_eq!(again[0].raw, claude.requests()[0].raw, "the first request is the same to the byte");
    assert!(world(&env) == before, "something has changed");
}

#[test]
fn a_wake_that_waited_for_a_yes_and_a_guests_replay_as_they_were() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}")).set("OWNER_CHAT_ID", &CHAT.to_string());
    let call = || Reply::tools(vec![Block::tool("t1", "task_add", json!({"title": "Bring back the ladder"}))]);
    let replays = |env: &TestEnv| {
        let (wake, before) = (last_wake(env), world(env));
        claude.expect(call());
        claude.expect(Reply::text("It is on the list."));
        let ran = env.wake(&["replay", &wake, "--json"]);
        let report = replayed(&ran);
        assert_eq!((ran.code, &report["same"], &report["notes"]), (0, &json!(true), &json!([])), "{report:#}");
        assert!(world(env) == before, "something has changed");
    };
    env.receive(BOB, "remind me of the ladder");
    claude.expect(call());
    claude.expect(Reply::text("I have put it on the list."));
    env.once();
    assert!(env.memory("memory/project-memory/active.md").contains("- chat: 5555"));
    replays(&env);

    env.set("AUTONOMY", "0").receive(CHAT, "put the ladder on the list");
    let call = || Reply::tools(vec![Block::tool("t1", "task_add", json!({"title": "Paint the ladder"}))]);
    claude.expect(call());
    let parked = env.once();
    assert_eq!(parked["outcome"], "parked");
    claude.expect(Reply::text("I have put it on the list."));
    env.wake(&["approvals", "approve", "1"]).ok();
    // Both wakes are of the same second: the numbers in their names say nothing of which came last.
    let (wake, before) = (parked["cycle_id"].as_str().unwrap().to_owned(), world(&env));
    claude.expect(call());
    claude.expect(Reply::text("It is on the list."));
    let ran = env.wake(&["replay", &wake, "--json"]);
    let report = replayed(&ran);
    assert_eq!((ran.code, &report["same"], &report["notes"]), (0, &json!(true), &json!([])), "{report:#}");
    assert!(world(&env) == before, "nobody is asked anew");
}
