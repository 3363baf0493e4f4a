//! Helpers for tests with a bot and a model: starting and ending wakes, and looking at requests, sent messages and commits.

use serde_json::{Value, json};

use super::{
    claude::{Block, ClaudeRequest, FakeClaude, Reply},
    env::{ProgramOutput, Running, TestEnv, eventually},
    telegram::FakeTelegram,
};

/// Starts a fake Telegram and a fake Claude, with an environment that uses both.
pub(crate) fn with_claude() -> (FakeTelegram, FakeClaude, TestEnv) {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    (telegram, claude, env)
}

/// Starts a wake without waiting for its end.
pub(crate) fn start_wake(env: &TestEnv) -> Running {
    env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--json"])
}

/// Waits for the wake's end, which must be a success, and returns its report.
#[track_caller]
pub(crate) fn end_well(wake: Running) -> Value {
    ProgramOutput::ok(wake.end()).json()
}

/// Waits for the model's nth request.
#[track_caller]
pub(crate) fn wait_for_request(claude: &FakeClaude, n: usize) {
    eventually(&format!("request {n}"), || claude.requests().len() >= n);
}

/// The texts of the sent messages, as people see them.
pub(crate) fn sent(telegram: &FakeTelegram) -> Vec<String> {
    telegram.sent().into_iter().map(|message| message.visible).collect()
}

/// The blocks of a request's first message that begin with this text, joined: the memory consists of two.
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

/// The tool results in a request's last message: the text, and whether it is an error.
pub(crate) fn results(request: &ClaudeRequest) -> Vec<(String, bool)> {
    let last = request.json["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_result");
    blocks.map(|block| (block["content"].as_str().unwrap().to_owned(), block["is_error"] == true)).collect()
}

/// The last request, which contains the conversation so far.
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
