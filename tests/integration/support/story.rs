//! The words that stories are told in: a world with a bot and a model, wakes that begin and end, and what was asked, sent and committed.

use serde_json::{Value, json};

use super::{
    claude::{Block, ClaudeRequest, FakeClaude, Reply},
    env::{Ran, Running, TestEnv, eventually},
    telegram::FakeTelegram,
};

/// A bot, a model, and a world that knows both.
pub(crate) fn with_claude() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    (telegram, claude, env)
}

/// A wake that goes on while the test looks.
pub(crate) fn start_wake(env: &TestEnv) -> Running {
    env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--json"])
}

/// The wake's end, which must be a good one.
#[track_caller]
pub(crate) fn end_well(wake: Running) -> Value {
    Ran::ok(wake.end()).json()
}

/// Waits for the model's nth request.
#[track_caller]
pub(crate) fn asked(claude: &FakeClaude, n: usize) {
    eventually(&format!("request {n}"), || claude.requests().len() >= n);
}

/// What people read.
pub(crate) fn sent(telegram: &FakeTelegram) -> Vec<String> {
    telegram.sent().into_iter().map(|message| message.visible).collect()
}

/// The blocks of a request's first message that begin so: the memory is two.
#[track_caller]
pub(crate) fn opening(request: &ClaudeRequest, element: &str) -> String {
    block_of(&request.json["messages"][0], element)
}

#[track_caller]
pub(crate) fn block_of(message: &Value, element: &str) -> String {
    let blocks = message["content"].as_array().unwrap();
    let found = blocks.iter().filter_map(|block| block["text"].as_str()).filter(|text| text.starts_with(element));
    let found: Vec<&str> = found.collect();
    assert!(!found.is_empty(), "no {element} in {message:#}");
    found.join("\n")
}

/// The results in a request's last message: what was told, and whether it was an error.
pub(crate) fn results(request: &ClaudeRequest) -> Vec<(String, bool)> {
    let last = request.json["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_result");
    blocks.map(|block| (block["content"].as_str().unwrap().to_owned(), block["is_error"] == true)).collect()
}

/// The conversation is shown as it was up to the last request.
pub(crate) fn last(claude: &FakeClaude) -> ClaudeRequest {
    claude.requests().pop().unwrap()
}

pub(crate) fn plan(id: &str, steps: &[(&str, &str)]) -> Block {
    let steps: Vec<_> = steps.iter().map(|(what, tool)| json!({"what": what, "tool": tool})).collect();
    Block::tool(id, "plan", json!({"understood": "What was asked for.", "steps": steps}))
}

pub(crate) fn reply(id: &str, text: &str) -> Reply {
    Reply::tool(id, "reply", json!({"text": text}))
}

pub(crate) fn commits(env: &TestEnv) -> usize {
    env.git(&["rev-list", "--count", "HEAD"]).parse().unwrap()
}
