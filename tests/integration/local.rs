//! `/local`: a chat that is kept on this machine. The fake Claude is strict: whatever asks it unasked fails its test.

use serde_json::json;

use super::{
    support::story::{end_well, results, wait_for_request, with_claude},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, TestEnv},
        http::Gate,
        openai::{FakeOpenAi, text},
        telegram::FakeTelegram,
    },
};

const CLOUD: &str = "claude-sonnet-5-5";
const HERE: &str = "openai:test-70b";
const SECRET: &str = "My locker opens with periwinkle";

fn world(models: &str) -> (FakeTelegram, FakeClaude, FakeOpenAi, TestEnv) {
    let (telegram, claude, mut env) = with_claude();
    let here = FakeOpenAi::start_open();
    env.set("MODEL", models).set("OPENAI_BASE_URL", &here.url()).wake(&["--once"]).ok();
    (telegram, claude, here, env)
}

fn say(env: &TestEnv, words: &str) -> String {
    env.wake(&["say", words]).ok().stdout
}

#[test]
fn a_local_chat_is_answered_by_the_model_on_this_machine_until_that_is_lifted() {
    let (_telegram, claude, here, env) = world(&format!("{CLOUD},{HERE}"));
    let told = say(&env, "/local");
    assert!(told.contains("kept off the cloud") && told.contains(HERE), "{told}");
    here.expect(text("It is kept."));
    let report = env.wake(&["--once", "--json", "--say", SECRET]).ok().json();
    assert_eq!(report["replies"][0]["text"], json!("It is kept."));
    assert!(claude.requests().is_empty() && here.requests().len() == 1);

    // Another chat's model asks for it, and doesn't get it.
    env.receive(CHAT, "What opens my locker?");
    claude.expect(Reply::tools(vec![
        Block::tool("t1", "memory_search", json!({"query": "my locker opens with"})),
        Block::tool("t2", "read_exchange", json!({"search": "my locker opens with"})),
        Block::tool("t3", "read_exchange", json!({"entries": ["messages/1"]})),
    ]));
    claude.expect(Reply::text("I don't know."));
    env.once();
    for request in claude.requests() {
        assert!(!request.raw.contains("periwinkle"), "{}", request.raw);
    }
    assert_eq!(results(claude.requests().last().unwrap()).len(), 3);

    assert!(say(&env, "/local off").contains("again"));
    claude.expect(Reply::text("Hello."));
    env.wake(&["--once", "--json", "--say", "hello"]).ok();
    assert_eq!((claude.requests().len(), here.requests().len()), (3, 1));
}

#[test]
fn without_a_model_here_plain_sentences_are_understood_and_the_rest_is_kept() {
    let (_telegram, claude, _here, env) = world(CLOUD);
    assert!(say(&env, "/local").contains("no AI model is set up on this machine"));
    env.wake(&["--once", "--json", "--say", "remember that Anna likes tea"]).ok();
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("Anna likes tea"));
    let report = env.wake(&["--once", "--json", "--say", "What would she like for supper?"]).ok().json();
    let told = report.to_string();
    assert!(told.contains("kept off the cloud"), "{report}");
    assert_eq!(env.count_queued(), 1);
    assert!(claude.requests().is_empty());
    claude.expect(Reply::text("Soup."));
    say(&env, "/local off");
    env.wake(&["--once"]).ok();
    assert_eq!(env.count_queued(), 0);
}

#[test]
fn a_cycle_under_way_ends_and_its_conversation_goes_to_no_cloud_model_again() {
    let (_telegram, claude, here, env) = world(&format!("{CLOUD},{HERE}"));
    claude.expect(Reply::text("Too late, I think.").stalled_after(4, &Gate::default()));
    let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--json", "--say", SECRET]);
    wait_for_request(&claude, 1);
    here.expect(text("Here I am."));
    say(&env, "/local");
    end_well(wake);
    env.wake(&["--once"]).ok();
    assert_eq!((claude.requests().len(), here.requests().len()), (1, 1));
    assert_eq!(env.trailer("Model"), HERE);
}

#[test]
fn a_second_cloud_model_does_not_hide_that_a_local_chat_waits() {
    let (_telegram, claude, _here, env) = world(&format!("{CLOUD},claude-haiku-4-5"));
    claude.expect(Reply::tools(vec![Block::tool("t1", "memory_search", json!({"query": "locker"}))]));
    claude.expect(Reply::text("Too late, I think.").stalled_after(4, &Gate::default()));
    let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--json", "--say", SECRET]);
    wait_for_request(&claude, 2);
    say(&env, "/local");
    let ended = wake.end();
    assert!(ended.stdout.contains("kept off the cloud"), "{ended:#?}");
    assert_eq!((claude.requests().len(), env.count_queued()), (2, 1));
}

#[test]
fn a_database_that_cannot_be_read_is_what_a_wake_ends_for_and_not_local() {
    let (telegram, claude, _here, env) = world(&format!("{CLOUD},{HERE}"));
    claude.expect(Reply::text("Too late, I think.").stalled_after(4, &Gate::default()));
    let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--json", "--say", "hello"]);
    wait_for_request(&claude, 1);
    env.hide_table("local_chats");
    let ended = wake.end();
    ended.assert_fails(1, "local_chats").assert_never_tells("/local");
    assert!(!ended.stdout.contains("off the cloud"), "{ended:#?}");
    assert_eq!(telegram.sent().iter().filter(|sent| sent.visible.contains("cloud")).count(), 0);
}
