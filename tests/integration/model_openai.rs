//! An OpenAI-compatible server as the AI model: through the whole cycle, over real sockets, against a server that checks every byte.

use serde_json::{Value, json};

use reveille_base::{
    redact::Secret,
    types::{Stop, Usage},
};
use reveille_model::{
    Conversation, Known, Model as _, ModelError, Progress, Turn,
    content::{assistant_message, join_text, tool_calls},
    openai::{OpenAi, OpenAiOptions},
};

use crate::support::{
    env::{ProgramOutput, TestEnv},
    http::{Gate, HttpServer, Response, Step},
    openai::{FakeOpenAi, OPENAI_KEY, call, delta, end, error, stream, text, whole_call},
};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const KEEP: &str = "Keep that the boiler is serviced in May.";
const FACT: &str = "The boiler is serviced in May";

fn options(url: &str, model: &str) -> OpenAiOptions {
    OpenAiOptions {
        base_url: url.to_owned(),
        api_key: Some(Secret::new(OPENAI_KEY)),
        model: model.to_owned(),
        usd_per_million: None,
        idle_timeout: LONG,
        total_timeout: LONG,
    }
}

fn hello() -> Conversation {
    Conversation {
        system: r#"[{"type":"text","text":"Be kind."}]"#.to_owned(),
        tools: r#"[{"name":"note","description":"Notes","input_schema":{"type":"object"}}]"#.to_owned(),
        messages: vec![r#"{"role":"user","content":[{"type":"text","text":"Hello"}]}"#.to_owned()],
        ..Conversation::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn ask_at(url: &str, conversation: &Conversation) -> Result<Turn, ModelError> {
    let model = OpenAi::new(options(url, "openai:test-70b")).unwrap();
    let answer = runtime().block_on(model.request_turn(conversation, &Progress::default()));
    if let Err(error) = &answer {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("sk-proj") && !shown.contains("Hello"), "{shown}");
    }
    answer
}

/// A world whose model is one of this server's.
fn thinking_with(fake: &FakeOpenAi, model: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("OPENAI_BASE_URL", &fake.url()).set("OPENAI_API_KEY", OPENAI_KEY).set("MODEL", model);
    env
}

/// A wake that is told this at the terminal.
fn told(env: &TestEnv, text: &str) -> ProgramOutput {
    env.wake(&["--once", "--json", "--say", text])
}

fn said(request: &Value) -> String {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    last["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_cycle_runs_with_tools_and_streaming_and_costs_nothing_here() {
    let fake = FakeOpenAi::start_open();
    let mut env = thinking_with(&fake, "openai:test-70b");
    env.unset("OPENAI_API_KEY");
    fake.expect(call("remember", &json!({"fact": FACT, "topic": "House"})));
    fake.expect(whole_call("task_list", &json!({"list": "active"})));
    fake.expect(text("It is kept."));
    let report = told(&env, KEEP).ok().json();
    assert_eq!((&report["outcome"], &report["replies"][0]["text"]), (&json!("worked"), &json!("It is kept.")));
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains(FACT));
    assert_eq!((env.trailer("Model").as_str(), report["cost_usd"].as_f64()), ("openai:test-70b", Some(0.0)));

    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    let tools = requests[0]["tools"].as_array().unwrap();
    assert!(tools.len() > 5 && requests[0]["response_format"].is_null(), "{}", requests[0]);
    assert_eq!(said(&requests[1]), format!("Remembered: {FACT}"));
    let ids: Vec<&Value> =
        requests[2]["messages"].as_array().unwrap().iter().filter_map(|it| it.get("tool_call_id")).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    env.check_sound();
}

#[test]
fn a_small_model_gets_few_tools_a_short_prompt_and_its_answers_are_bound() {
    let fake = FakeOpenAi::start_open();
    let mut env = thinking_with(&fake, "openai:tiny:1b");
    env.unset("OPENAI_API_KEY");
    let arguments = json!({"fact": FACT, "topic": "House"});
    fake.expect(text(&json!({"tool": "remember", "arguments": arguments}).to_string()));
    fake.expect(text(&json!({"say": "It is kept."}).to_string()));
    let report = told(&env, KEEP).ok().json();
    assert_eq!(report["replies"][0]["text"], "It is kept.", "{report:#}");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains(FACT));

    let requests = fake.requests();
    let first = &requests[0];
    assert_eq!((&first["temperature"], &first["tools"], &first["max_tokens"]), (&json!(0), &Value::Null, &json!(1024)));
    let forms = first["response_format"]["json_schema"]["schema"]["anyOf"].as_array().unwrap();
    assert_eq!(forms.len(), 8, "words, and seven tools");
    let prompt: usize =
        first["messages"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap().len()).sum();
    assert!(prompt < 4_000, "{prompt} bytes: {first:#}");
    assert!(said(&requests[1]).starts_with("What came of it: "), "{}", said(&requests[1]));
    env.check_sound();
}

#[test]
fn a_model_that_costs_nothing_is_asked_when_nothing_may_be_spent() {
    let fake = FakeOpenAi::start_open();
    let mut env = thinking_with(&fake, "openai:test-70b");
    env.unset("OPENAI_API_KEY").set("DAILY_BUDGET_USD", "0");
    fake.expect(text("Hello to you."));
    assert_eq!(told(&env, "Hello").ok().json()["replies"][0]["text"], "Hello to you.");
}

#[test]
fn a_call_that_stands_in_a_text_is_run_for_its_person_and_never_for_a_page() {
    let fake = FakeOpenAi::start();
    let env = thinking_with(&fake, "openai:test-70b");
    let written = format!(r#"<tool_call>{{"name":"remember","arguments":{{"fact":"{FACT}"}}}}</tool_call>"#);
    fake.expect(text(&written)).expect(text("It is kept."));
    assert_eq!(told(&env, KEEP).ok().json()["replies"][0]["text"], "It is kept.");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains(FACT));

    // The same words after a result that others had a hand in.
    let mut conversation = hello();
    conversation.tools = r#"[{"name":"remember","description":"d","input_schema":{"type":"object"}}]"#.to_owned();
    let calls = |is_tainted: bool| {
        fake.expect(text(&written));
        let turn = ask_at(&fake.url(), &Conversation { is_tainted, ..conversation.clone() }).unwrap();
        (turn.stop.clone(), tool_calls(&turn.content, &turn.stop).len())
    };
    assert_eq!(calls(false), (Stop::ToolUse, 1));
    assert_eq!(calls(true), (Stop::EndTurn, 0));
}

#[test]
fn a_server_is_asked_in_other_words_when_it_does_not_know_ours() {
    let fake = FakeOpenAi::start();
    fake.expect(error(400, &json!({"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."})));
    fake.expect(Response::json(
        422,
        &json!({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}),
    ));
    fake.expect(error(500, &json!({"message": "Cannot use tools with stream", "type": "server_error"})));
    fake.expect(whole_call("note", &json!({})));
    let turn = ask_at(&fake.url(), &hello()).unwrap();
    assert_eq!(turn.stop, Stop::ToolUse);
    let requests = fake.requests();
    let last = requests.last().unwrap();
    assert_eq!(
        (&last["stream"], &last["stream_options"], &last["max_tokens"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    assert!(last["max_completion_tokens"].is_u64());
    assert!(turn.usage.input > 0 && turn.usage.output > 0, "nobody counted: {:?} is an estimate", turn.usage);
}

#[test]
fn a_server_that_takes_no_long_answers_is_asked_for_shorter_ones() {
    let fake = FakeOpenAi::start();
    let too_large = || {
        error(400, &json!({"message": "max_tokens is too large: this model supports at most 3000 completion tokens"}))
    };
    fake.expect(too_large()).expect(too_large()).expect(text("Hi."));
    let turn = ask_at(&fake.url(), &hello()).unwrap();
    assert_eq!(join_text(&turn.content), "Hi.");
    let asked: Vec<u64> = fake.requests().iter().filter_map(|request| request["max_tokens"].as_u64()).collect();
    assert_eq!(asked, [8_192, 4_096, 2_048]);
    fake.expect(too_large()).expect(too_large()).expect(too_large());
    assert!(matches!(ask_at(&fake.url(), &hello()), Err(ModelError::Rejected { status: 400, .. })));
}

#[test]
fn a_refusal_of_the_same_words_again_ends_the_turn() {
    let fake = FakeOpenAi::start();
    for _ in 0..2 {
        fake.expect(error(400, &json!({"message": "no stream here", "type": "invalid_request_error"})));
    }
    assert!(matches!(ask_at(&fake.url(), &hello()), Err(ModelError::Rejected { status: 400, .. })));
}

/// An event of a stream with status 200, and its end.
fn event(data: &str) -> Response {
    let events = format!("data: {data}\n\ndata: [DONE]\n\n").into_bytes();
    Response::stream(200, vec![Step::Send(events)]).header("content-type", "text/event-stream")
}

#[test]
fn a_complaint_with_status_200_closes_no_message_and_is_waited_out() {
    let fake = FakeOpenAi::start();
    let env = thinking_with(&fake, "openai:test-70b");
    fake.expect(Response::json(200, &json!({"code": 429, "message": "busy"})));
    fake.expect(event(r#"{"object":"error","message":"down"}"#));
    fake.expect(text("Hello to you."));
    let report = told(&env, "Hello").ok().json();
    assert_eq!(report["replies"][0]["text"], "Hello to you.", "{report:#}");

    for _ in 0..5 {
        fake.expect(event(r#"{"code":429,"message":"busy"}"#));
    }
    let report = told(&env, "Hello again").json();
    assert!(report.to_string().contains("busy"), "{report:#}");
    assert_eq!(env.queued().len(), 1, "the message is kept");
    env.check_sound();
}

#[test]
fn a_server_that_restarts_in_the_middle_of_a_turn_is_asked_again() {
    let fake = FakeOpenAi::start();
    let env = thinking_with(&fake, "openai:test-70b");
    let begun = format!("data: {}\n\n", delta(&json!({"content": "Hel"}))).into_bytes();
    fake.expect(
        Response::stream(200, vec![Step::Send(begun), Step::Close]).header("content-type", "text/event-stream"),
    );
    fake.expect(error(503, &json!({"message": "Loading model", "type": "unavailable_error", "code": 503})));
    fake.expect(text("Hello to you."));
    let report = told(&env, "Hello").ok().json();
    assert_eq!(report["replies"][0]["text"], "Hello to you.", "{report:#}");
    env.check_sound();
}

#[test]
fn nothing_that_goes_wrong_behind_the_reason_of_its_end_takes_anything_from_a_turn() {
    let said = format!("data: {}\n\ndata: {}\n\n", delta(&json!({"content": "Hi"})), end("stop")[0]).into_bytes();
    for then in [Step::Close, Step::Wait(Gate::default())] {
        let fake = FakeOpenAi::start();
        let steps = vec![Step::Send(said.clone()), then];
        // The header is a proxy's: the bytes count.
        fake.expect(Response::stream(200, steps).header("content-type", "application/json"));
        assert_eq!(join_text(&ask_at(&fake.url(), &hello()).unwrap().content), "Hi");
    }
}

#[test]
fn a_refused_key_and_a_server_that_is_not_there_are_told_apart() {
    let fake = FakeOpenAi::start();
    let mut env = thinking_with(&fake, "openai:test-70b");
    let refused = json!([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}]);
    fake.expect(Response::json(400, &refused));
    let why = told(&env, "Hello").json().to_string();
    assert!(why.contains("OPENAI_API_KEY") && why.contains("API key not valid") && !why.contains("BASE_URL"), "{why}");
    env.set("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").bring_breakers_forward();
    let why = env.wake(&["--once", "--json"]).json().to_string();
    assert!(why.contains("nothing answers at 127.0.0.1:1") && !why.contains("OPENAI_API_KEY"), "{why}");
    assert_eq!(env.queued().len(), 1);
}

#[test]
fn a_server_without_tools_is_asked_in_the_form_of_a_small_model() {
    let fake = FakeOpenAi::start();
    let env = thinking_with(&fake, "openai:test-70b");
    fake.expect(error(
        400,
        &json!({"message": "registry.ollama.ai/library/test-70b does not support tools", "type": "api_error"}),
    ));
    let arguments = json!({"fact": FACT, "topic": "House"});
    fake.expect(text(&json!({"tool": "remember", "arguments": arguments}).to_string()));
    fake.expect(text(&json!({"say": "It is kept."}).to_string()));
    let report = told(&env, KEEP).ok().json();
    assert_eq!(report["replies"][0]["text"], "It is kept.", "{report:#}");
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains(FACT));
    let requests = fake.requests();
    assert!(requests[0]["tools"].is_array() && requests[1]["tools"].is_null(), "{:#}", requests[1]);
    let told = requests[1]["messages"][0]["content"].as_str().unwrap();
    let names = requests[0]["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap());
    assert!(names.clone().count() > 5 && names.clone().all(|name| told.contains(&format!("- {name}: "))), "{told}");
}

#[test]
fn a_conversation_that_is_too_long_is_shortened_and_asked_again() {
    let fake = FakeOpenAi::start();
    let env = thinking_with(&fake, "openai:test-70b");
    fake.expect(call("task_list", &json!({"list": "active"})));
    fake.expect(error(400, &json!({"message": "request (7530 tokens) exceeds the available context size (4096 tokens)", "type": "exceed_context_size_error"})));
    fake.expect(event(r#"{"error":{"message":"Context size has been exceeded."}}"#));
    fake.expect(text("There is nothing."));
    let report = told(&env, &format!("What is on my list? {}", "word ".repeat(2_000))).ok().json();
    assert_eq!(report["replies"][0]["text"], "There is nothing.", "{report:#}");
    let sizes: Vec<usize> = fake.requests().iter().map(|request| request.to_string().len()).collect();
    assert!(sizes[3] < sizes[2], "{sizes:?}");
    assert!(said(&fake.requests()[3]).contains("<folded"), "{}", fake.requests()[3]);
    env.check_sound();
}

#[test]
fn an_answer_that_breaks_off_is_no_turn_and_what_came_of_it_counts() {
    let begun = || format!("data: {}\n\n", delta(&json!({"content": "123456"}))).into_bytes();
    for steps in [vec![Step::Send(begun()), Step::Close], vec![Step::Send(begun())]] {
        let fake = FakeOpenAi::start();
        fake.expect(Response::stream(200, steps).header("content-type", "text/event-stream"));
        let model = OpenAi::new(options(&fake.url(), "test-70b")).unwrap();
        let progress = Progress::default();
        let broken = runtime().block_on(model.request_turn(&hello(), &progress)).unwrap_err();
        assert!(matches!(&broken, ModelError::Transient { spent, .. } if spent.output == 2), "{broken:?}");
        assert!(matches!(progress.state(), Known::Told(Usage { output: 2, .. })));
    }
    let fake = FakeOpenAi::start();
    fake.expect(Response::hang_up());
    let silent = ask_at(&fake.url(), &hello());
    // It has left, and whoever got it may have worked on it.
    assert!(matches!(&silent, Err(ModelError::Transient { spent, .. }) if spent.input > 0), "{silent:?}");
    let nobody = ask_at("http://127.0.0.1:1/v1", &hello());
    assert!(matches!(&nobody, Err(ModelError::Transient { spent, .. }) if *spent == Usage::default()), "{nobody:?}");
    fake.expect(Response::new(200, "<html>sign in</html>").header("content-type", "text/html"));
    assert!(matches!(ask_at(&fake.url(), &hello()), Err(ModelError::Transient { .. })));
}

#[test]
fn the_key_is_for_one_address_and_no_redirect_takes_it_elsewhere() {
    let other = FakeOpenAi::start();
    let target = other.url();
    let server = HttpServer::start(move |request| {
        let path = request.target.strip_prefix("/v1").unwrap_or_default();
        Response::new(307, "").header("location", &format!("{target}{path}"))
    });
    let model = OpenAi::new(options(&format!("{}/v1", server.url()), "test-70b")).unwrap();
    assert!(matches!(runtime().block_on(model.list_models()), Err(ModelError::Account { .. })));
    let ModelError::Account { why } = ask_at(&format!("{}/v1", server.url()), &hello()).unwrap_err() else { panic!() };
    assert!(why.contains("redirect") && why.contains("OPENAI_BASE_URL"), "{why}");
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn too_long_a_conversation_is_given_up_and_an_unknown_model_waits_for_its_name() {
    let fake = FakeOpenAi::start();
    fake.expect(error(400, &json!({"message": "request (7530 tokens) exceeds the available context size (4096 tokens)", "type": "exceed_context_size_error"})));
    assert!(matches!(
        ask_at(&fake.url(), &hello()),
        Err(ModelError::Rejected { status: reveille_model::TOO_LONG, .. })
    ));

    let env = thinking_with(&fake, "openai:test-70b");
    fake.expect(error(
        404,
        &json!({"message": "model \"test-70b\" not found, try pulling it first", "type": "api_error"}),
    ));
    let report = told(&env, "Hello").json();
    let why = report.to_string();
    assert!(why.contains("openai:test-70b") && why.contains("not found"), "{report:#}");
    assert_eq!(env.queued().len(), 1, "the message is kept");
    fake.expect(text("Hello to you."));
    env.bring_breakers_forward();
    assert!(env.once()["replies"].to_string().contains("Hello to you."));
}

#[test]
fn the_window_that_a_server_tells_is_the_models() {
    let fake = FakeOpenAi::start();
    let model = OpenAi::new(options(&fake.url(), "openai:test-70b")).unwrap();
    fake.expect(text("Hi."));
    let assumed = model.context_window();
    let turn = runtime().block_on(model.request_turn(&hello(), &Progress::default())).unwrap();
    assert_eq!(
        (join_text(&turn.content).as_str(), assumed, model.context_window()),
        ("Hi.", Some(128_000), Some(60_000))
    );
    assert_eq!(turn.usage, Usage { input: 40, output: 20, cache_read: 60, cache_write: 0 });
}

#[test]
fn the_fake_refuses_what_a_real_server_refuses() {
    let fake = FakeOpenAi::start();
    let mut conversation = hello();
    conversation.messages.extend(assistant_message(r#"[{"type":"tool_use","id":"a","name":"note","input":{}}]"#));
    ask_at(&fake.url(), &conversation).unwrap_err();
    assert!(fake.take_violations().concat().contains("calls without a result"));
    ask_at(&fake.url(), &hello()).unwrap_err();
    assert!(fake.take_violations().concat().contains("the script doesn't expect"));
    let wrong_key = OpenAiOptions { api_key: Some(Secret::new("sk-proj-another")), ..options(&fake.url(), "test-70b") };
    let model = OpenAi::new(wrong_key).unwrap();
    let refused = runtime().block_on(model.request_turn(&hello(), &Progress::default())).unwrap_err();
    assert!(matches!(&refused, ModelError::Account { why } if why.contains("OPENAI_API_KEY")), "{refused:?}");
    assert_eq!(fake.take_violations().len(), 1);
    fake.expect(stream(&[delta(&json!({"content": "Hi"})), end("stop")[0].clone()]));
    ask_at(&fake.url(), &hello()).unwrap();
    let mut other = hello();
    other
        .messages
        .push(r#"{"role":"assistant","content":[{"type":"text","text":"Something that was never said"}]}"#.to_owned());
    other.messages.push(r#"{"role":"user","content":[{"type":"text","text":"Again"}]}"#.to_owned());
    fake.expect(text("Fine."));
    ask_at(&fake.url(), &other).unwrap();
}
