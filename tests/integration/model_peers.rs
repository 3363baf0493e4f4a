//! OpenAI-compatible servers of others, which `scripts/peers` fetches: llama.cpp's server with a real, very small model, and a mock of
//! a third party's. They test that we are understood, not that an answer makes sense. Where they weren't fetched each test says
//! NOT RUN (`support/peers`); `model_openai` speaks the same protocol without them.

use std::time::Duration;

use serde_json::{Value, json};

use reveille_base::types::Stop;
use reveille_model::{
    Conversation, Model as _, Progress,
    content::tool_calls,
    openai::{OpenAi, OpenAiOptions},
};

use super::support::{
    env::{Running, TestEnv, eventually},
    http::free_port,
    peers,
};

const MODEL: &str = "smollm2.gguf";
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/fixtures/llama_server.py");
const KEY: &str = "sk-test-0123456789abcdef";

/// A program that listens there by now.
fn serving(env: &TestEnv, port: u16, program: &str, args: &[&str]) -> Running {
    let running = env.start(program, args);
    eventually("a server that listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    running
}

/// llama.cpp's server with its model loaded, and a world that thinks with it; none, and said so, where it wasn't fetched.
fn llama(test: &str) -> Option<(Running, TestEnv, String)> {
    let dir = peers::find(test, MODEL)?;
    let (port, mut env) = (free_port(), TestEnv::new());
    let [python, model] = ["python/bin/python", MODEL].map(|path| dir.join(path).display().to_string());
    let server = serving(&env, port, &python, &[SERVER, &port.to_string(), &model]);
    let url = format!("http://127.0.0.1:{port}/v1");
    env.set("OPENAI_BASE_URL", &url).set("MODEL", "openai:smollm2");
    let health = || {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = runtime().block_on(client.get(format!("http://127.0.0.1:{port}/health")).send());
        answer.is_ok_and(|answer| answer.status() == 200)
    };
    eventually("a model that is loaded", health);
    Some((server, env, url))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_whole_cycle_runs_with_llama_cpp_and_a_real_model() {
    let Some((_server, env, _)) = llama("a_whole_cycle_runs_with_llama_cpp_and_a_real_model") else { return };
    let report = env.wake(&["--once", "--json", "--say", "Hello! Say hello to me."]).ok().json();
    assert_eq!((&report["outcome"], &report["answered"]), (&"worked".into(), &1.into()), "{report:#}");
    let said = report["replies"][0]["text"].as_str().unwrap();
    assert!(!said.is_empty() && !said.contains("\"say\""), "{said}");
    assert!(report["tokens"]["input"].as_u64().unwrap() > 100, "its own count: {report:#}");
    assert_eq!((report["cost_usd"].as_f64(), env.trailer("Model").as_str()), (Some(0.0), "openai:smollm2"));
    env.check_sound();
}

/// A call, what came of it, and what was said of that: a very small model goes on as it sees it done.
fn counted(n: u32) -> [String; 4] {
    let user = |block: Value| json!({"role": "user", "content": [block]}).to_string();
    let model = |block: Value| json!({"role": "assistant", "content": [block]}).to_string();
    let id = format!("count-{n}");
    [
        user(json!({"type": "text", "text": format!("Count {n}.")})),
        model(json!({"type": "tool_use", "id": id, "name": "count", "input": {"n": n}})),
        user(json!({"type": "tool_result", "tool_use_id": id, "content": n.to_string()})),
        model(json!({"type": "text", "text": n.to_string()})),
    ]
}

#[test]
fn a_real_model_calls_a_tool_with_arguments_that_are_bound_to_its_schema() {
    let test = "a_real_model_calls_a_tool_with_arguments_that_are_bound_to_its_schema";
    let Some((_server, _, url)) = llama(test) else { return };
    let options = OpenAiOptions {
        base_url: url,
        api_key: None,
        model: "openai:smollm2".to_owned(),
        usd_per_million: None,
        idle_timeout: Duration::from_secs(300),
        total_timeout: Duration::from_secs(300),
    };
    let model = OpenAi::new(options).unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 3}}, "required": ["n"]});
    let [asked, ..] = counted(3);
    let conversation = Conversation {
        tools: json!([{"name": "count", "description": "Counts.", "input_schema": schema}]).to_string(),
        messages: [counted(1), counted(2), counted(1)].concat().into_iter().chain([asked]).collect(),
        ..Conversation::default()
    };
    let turn = runtime().block_on(model.request_turn(&conversation, &Progress::default())).unwrap();
    let calls = tool_calls(&turn.content, &turn.stop);
    let [call] = calls.as_slice() else { panic!("{turn:?}") };
    let arguments: Value = serde_json::from_str(call.input.get()).unwrap();
    assert!(call.name == "count" && (1..=3).contains(&arguments["n"].as_u64().unwrap()), "{turn:?}");
    assert!(turn.stop == Stop::ToolUse && call.fault.is_none() && turn.usage.input > 100, "{turn:?}");
    assert_eq!(model.context_window(), Some(4_096), "as the server tells it");
}

#[test]
fn a_mock_of_others_is_spoken_with_through_a_whole_cycle() {
    let program = "node_modules/@copilotkit/aimock/dist/cli.js";
    let Some(dir) = peers::find("a_mock_of_others_is_spoken_with_through_a_whole_cycle", program) else { return };
    let (port, mut env) = (free_port(), TestEnv::new());
    let fixtures = env.path("fixtures.json");
    std::fs::write(
        &fixtures,
        r#"{"fixtures":[{"match":{"hasToolResult":true},"response":{"content":"It is kept."}},
            {"match":{"userMessage":"boiler"},"response":{"toolCalls":[{"name":"remember","arguments":{"fact":"The boiler is serviced in May"}}]}}]}"#,
    )
    .unwrap();
    env.set("AIMOCK_API_KEYS", KEY);
    let (at, script, fixtures) =
        (port.to_string(), dir.join(program).display().to_string(), fixtures.display().to_string());
    let args = [&*script, "-p", &at, "-f", &fixtures, "--strict", "--validate-on-load", "-c", "7"];
    let _server = serving(&env, port, "node", &args);
    env.unset("AIMOCK_API_KEYS").set("OPENAI_BASE_URL", &format!("http://127.0.0.1:{port}/v1"));
    env.set("OPENAI_API_KEY", KEY).set("MODEL", "openai:mock-70b");
    let report = env.wake(&["--once", "--json", "--say", "Keep that the boiler is serviced in May."]).ok().json();
    assert_eq!(report["replies"][0]["text"], "It is kept.", "{report:#}");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("The boiler is serviced in May"));

    // A key that it doesn't know: a person has to see to it, and nothing is lost.
    env.set("OPENAI_API_KEY", "sk-test-another-key-0123");
    let refused = env.wake(&["--once", "--json", "--say", "And the boiler again."]).stdout;
    assert!(refused.contains("OPENAI_API_KEY"), "{refused}");
    assert_eq!(env.queued().len(), 1);
}
