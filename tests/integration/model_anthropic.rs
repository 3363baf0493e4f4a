//! The Claude model against a server that checks every byte it gets.

use std::time::Duration;

use reveille_base::{
    redact::Secret,
    types::{Stop, Usage},
};
use reveille_model::{
    Conversation, Known, Model as _, ModelError, Progress, Turn,
    anthropic::{Anthropic, AnthropicOptions, ClaudeRoute, Effort, price},
    content::{assistant_message, join_text, tool_calls},
};

use crate::support::{
    claude::{API_KEY, Block, FakeClaude, Reply},
    http::{Gate, HttpServer, Response, Step},
};

const LONG: Duration = Duration::from_secs(60);

fn options(url: &str) -> AnthropicOptions {
    AnthropicOptions {
        route: ClaudeRoute::Api { base_url: url.to_owned(), api_key: Secret::new(API_KEY) },
        model: "claude-sonnet-5-5".to_owned(),
        max_tokens: 1000,
        idle_timeout: LONG,
        total_timeout: LONG,
        effort: None,
    }
}

fn hello() -> Conversation {
    Conversation {
        system: r#"[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}]"#.to_owned(),
        tools: r#"[{"name":"note","description":"Notes","input_schema":{"type":"object"}}]"#.to_owned(),
        messages: vec![r#"{"role":"user","content":[{"type":"text","text":"Hello"}]}"#.to_owned()],
        ..Conversation::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn ask_with(options: AnthropicOptions, conversation: &Conversation) -> Result<Turn, ModelError> {
    let model = Anthropic::new(options).expect("options that work");
    let answer = runtime().block_on(model.request_turn(conversation, &Progress::default()));
    if let Err(error) = &answer {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("sk-ant") && !shown.contains("127.0.0.1") && !shown.contains("Hello"), "{shown}");
    }
    answer
}

fn ask(fake: &FakeClaude, conversation: &Conversation) -> Result<Turn, ModelError> {
    ask_with(options(&fake.url()), conversation)
}

fn ask_once(reply: Reply) -> Result<Turn, ModelError> {
    let fake = FakeClaude::start();
    fake.expect(reply);
    let answer = ask(&fake, &hello());
    assert_eq!(fake.requests().len(), 1, "one turn is one request");
    answer
}

#[track_caller]
fn transient(answer: Result<Turn, ModelError>) -> (String, Option<Duration>, Usage) {
    match answer {
        Err(ModelError::Transient { why, retry_after, spent }) => (why, retry_after, spent),
        other => panic!("not transient: {other:?}"),
    }
}

/// Adds the turn and the result of each of its calls.
fn go_on(conversation: &mut Conversation, turn: &Turn) {
    conversation.messages.extend(assistant_message(&turn.content));
    let results: Vec<String> = tool_calls(&turn.content, &turn.stop)
        .iter()
        .map(|call| {
            let is_complete = call.fault.is_none();
            let content = if is_complete { format!("did {}", call.input.get()) } else { "cut off, not run".to_owned() };
            serde_json::json!({"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": !is_complete}).to_string()
        })
        .collect();
    conversation.messages.push(format!(r#"{{"role":"user","content":[{}]}}"#, results.join(",")));
}

#[test]
fn a_text_answer_comes_with_its_usage_and_request_id() {
    let turn = ask_once(Reply::text("Grüße 🌍\n\"hi\"")).unwrap();
    assert_eq!(join_text(&turn.content), "Grüße 🌍\n\"hi\"");
    assert_eq!(turn.stop, Stop::EndTurn);
    assert_eq!(turn.usage, Usage { input: 10, output: 40, cache_read: 30, cache_write: 20 });
    assert_eq!(turn.request_id.as_deref(), Some("req_fake"));
}

#[test]
fn turns_share_one_connection() {
    let fake = FakeClaude::start();
    let model = Anthropic::new(options(&fake.url())).unwrap();
    let runtime = runtime();
    for _ in 0..3 {
        fake.expect(Reply::text("ok"));
        runtime.block_on(model.request_turn(&hello(), &Progress::default())).unwrap();
    }
    assert_eq!(fake.connections(), 1);
}

#[test]
fn effort_is_sent_when_it_is_chosen() {
    let fake = FakeClaude::start();
    fake.expect(Reply::text("ok"));
    ask_with(AnthropicOptions { effort: Some(Effort::High), ..options(&fake.url()) }, &hello()).unwrap();
    assert_eq!(fake.requests()[0].json["output_config"]["effort"], "high");
}

#[test]
fn two_rounds_of_tools_keep_thinking_and_arguments_byte_for_byte() {
    let fake = FakeClaude::start();
    fake.expect(Reply::tools(vec![
        Block::thinking("Let me see: \"é\" 🌍"),
        Block::text("First, "),
        Block::tool("t1", "note", r#"{ "z":1.50, "a" : "\u00e9\\n",  "b":[ ] }"#),
        Block::tool("t2", "note", "{}"),
    ]))
    .expect(Reply::thinking_then_tool("", "t3", "note", r#"{"n":12345678901234567890123}"#))
    .expect(Reply::text("Done."));
    let mut conversation = hello();
    for _ in 0..2 {
        let turn = ask(&fake, &conversation).unwrap();
        assert_eq!(turn.stop, Stop::ToolUse);
        go_on(&mut conversation, &turn);
    }
    assert_eq!(join_text(&ask(&fake, &conversation).unwrap().content), "Done.");
    assert_eq!(fake.requests()[2].last_text(), r#"did {"n":12345678901234567890123}"#);
}

#[test]
fn a_block_of_an_unknown_kind_is_kept_and_goes_back() {
    let fake = FakeClaude::start();
    fake.expect(Reply::tools(vec![
        Block::raw(r#"{ "type":"hologram", "depth" : 1.0, "inner":{"b":2,"a":1} }"#),
        Block::tool("t1", "note", "{}"),
    ]))
    .expect(Reply::text("ok"));
    let mut conversation = hello();
    let turn = ask(&fake, &conversation).unwrap();
    go_on(&mut conversation, &turn);
    ask(&fake, &conversation).unwrap();
}

#[test]
fn a_call_cut_off_by_the_limit_is_not_complete_and_the_conversation_goes_on() {
    let fake = FakeClaude::start();
    fake.expect(Reply::max_tokens(vec![
        Block::thinking("long"),
        Block::tool("t1", "note", r#"{"a":1}"#),
        Block::cut_tool("t2", "note", r#"{"a":"unfin"#),
    ]))
    .expect(Reply::text("ok"));
    let mut conversation = hello();
    let turn = ask(&fake, &conversation).unwrap();
    assert_eq!(turn.stop, Stop::MaxTokens);
    let calls = tool_calls(&turn.content, &turn.stop);
    assert_eq!(calls.iter().map(|call| call.fault.is_none()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(calls[1].input.get(), r#"{"INVALID_JSON":"{\"a\":\"unfin"}"#);
    go_on(&mut conversation, &turn);
    ask(&fake, &conversation).unwrap();
}

#[test]
fn other_ways_to_stop_are_told_apart() {
    let refused = ask_once(Reply::refusal("cyber", "Not this.")).unwrap();
    assert_eq!((refused.stop, refused.content.as_str()), (Stop::Refusal("cyber: Not this.".into()), "[]"));
    assert_eq!(ask_once(Reply::context_exceeded("so")).unwrap().stop, Stop::ContextExceeded);
    assert_eq!(ask_once(Reply::turn(vec![Block::text("x")], "novel")).unwrap().stop, Stop::Unknown("novel".into()));
}

#[test]
fn a_paused_turn_goes_on() {
    let fake = FakeClaude::start();
    fake.expect(Reply::pause_turn("so far")).expect(Reply::tool("t1", "note", "{}")).expect(Reply::text("done"));
    let mut conversation = hello();
    let turn = ask(&fake, &conversation).unwrap();
    assert_eq!(turn.stop, Stop::PauseTurn);
    conversation.messages.extend(assistant_message(&turn.content));
    let turn = ask(&fake, &conversation).unwrap();
    go_on(&mut conversation, &turn);
    assert_eq!(join_text(&ask(&fake, &conversation).unwrap().content), "done");
}

#[test]
fn each_status_says_what_to_do_and_is_asked_only_once() {
    for status in [408, 409, 429, 500, 502, 504, 529] {
        let (why, wait, _) = transient(ask_once(Reply::error(status, "some_error", "Try later")));
        assert!(why.contains("Try later") && why.contains(&status.to_string()) && why.contains("req_fake"), "{why}");
        assert_eq!(wait, None);
    }
    for status in [401, 402, 403] {
        assert!(matches!(ask_once(Reply::error(status, "x", "y")), Err(ModelError::Account { .. })), "{status}");
    }
    for status in [400, 404, 413] {
        let answer = ask_once(Reply::error(status, "x", "y"));
        assert!(matches!(answer, Err(ModelError::Rejected { status: s, .. }) if s == status), "{status}");
    }
    assert!(matches!(ask_once(Reply::spending_limit()), Err(ModelError::Account { .. })));
}

#[test]
fn retry_after_is_passed_on() {
    let limited = || Reply::error(429, "rate_limit_error", "Slow down");
    assert_eq!(transient(ask_once(limited().header("retry-after", "7"))).1, Some(Duration::from_secs(7)));
    let dated = limited()
        .header("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")
        .header("date", "Wed, 21 Oct 2026 07:28:00 GMT");
    assert_eq!(transient(ask_once(dated)).1, Some(Duration::from_secs(30)));
}

#[test]
fn a_stream_that_breaks_off_is_transient_and_counts_its_tokens() {
    let told = |usage: Usage| Usage { output: 0, ..usage };
    let spent = Usage { input: 10, output: 0, cache_read: 30, cache_write: 20 };
    let mut last = 0;
    // Once the server has said why it stopped, nothing is missing.
    for events in 1..5 {
        let (why, _, counted) = transient(ask_once(Reply::text("Hello there").cut_after(events)));
        assert_eq!(told(counted), spent, "{why}");
        // The output, too, by what has come of it.
        assert!((1..20).contains(&counted.output) && counted.output >= last, "{counted:?}");
        last = counted.output;
    }
    assert!(last > 1);
    assert_eq!(transient(ask_once(Reply::text("x").cut_after(0))).2, Usage::default());
    let (why, _, counted) = transient(ask_once(Reply::text("x").error_event_after(3, "overloaded_error")));
    assert!(why.contains("overloaded_error") && told(counted) == spent, "{why}");
}

#[test]
fn how_far_a_request_got_is_known_when_it_is_given_up() {
    let gate = Gate::default();
    for (reply, is_told) in
        [(Reply::text("x").stalled_after(0, &gate), false), (Reply::text("x").stalled_after(3, &gate), true)]
    {
        let fake = FakeClaude::start();
        fake.expect(reply);
        let (model, progress) = (Anthropic::new(options(&fake.url())).unwrap(), Progress::default());
        let conversation = hello();
        assert_eq!(progress.state(), Known::Unsent);
        let is_far_enough = async {
            while fake.requests().is_empty() || (is_told && progress.state() == Known::Sent) {
                tokio::task::yield_now().await;
            }
        };
        runtime().block_on(async {
            tokio::select! {
                turn = model.request_turn(&conversation, &progress) => panic!("{turn:?}"),
                () = is_far_enough => {}
            }
        });
        match progress.state() {
            Known::Told(usage) => assert!(is_told && usage.input == 10 && usage.output > 0, "{usage:?}"),
            known => assert_eq!((known, is_told), (Known::Sent, false)),
        }
    }
}

#[test]
fn silence_is_given_up_after_the_idle_time() {
    let estimated = price::estimated_prompt(price::prompt_bytes(&hello())).input;
    assert!(estimated > 0);
    for (reply, counted) in [
        (Reply::text("x").stalled_after(3, &Gate::default()), 10),
        // It has left and nothing came: its bytes are counted, three for a token.
        (Reply::http(Response::new(200, "").stalled_at(&Gate::default())), estimated),
    ] {
        let fake = FakeClaude::start();
        fake.expect(reply);
        let hasty = AnthropicOptions { idle_timeout: Duration::from_millis(50), ..options(&fake.url()) };
        let (why, _, spent) = transient(ask_with(hasty, &hello()));
        assert!(why.contains("sent nothing for 50ms"), "{why}");
        assert_eq!(spent.input, counted);
    }
}

#[test]
fn a_turn_that_never_ends_is_given_up_after_the_total_time() {
    let fake = FakeClaude::start();
    fake.expect(Reply::text("x").stalled_after(3, &Gate::default()));
    let hasty = AnthropicOptions { total_timeout: Duration::from_millis(50), ..options(&fake.url()) };
    let (why, _, spent) = transient(ask_with(hasty, &hello()));
    assert!(why.contains("longer than a turn may take"), "{why}");
    assert_eq!(spent.input, 10);
}

#[test]
fn a_broken_connection_is_transient() {
    transient(ask_once(Reply::http(Response::hang_up())));
    let whole = Response::new(200, "data: {}\n\n").header("content-type", "text/event-stream");
    transient(ask_once(Reply::http(whole.cut_after(4))));
    let closed = HttpServer::start(|_| Response::hang_up()).url();
    let (why, _, spent) = transient(ask_with(options(&closed), &hello()));
    assert!(why.contains("No connection to the Claude API"), "{why}");
    assert_eq!(spent, Usage::default());
}

#[test]
fn whatever_its_header_says_an_answer_is_what_its_bytes_are() {
    let whole = r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}"#;
    let turn = ask_once(Reply::http(Response::new(200, whole).header("content-type", "application/json"))).unwrap();
    assert_eq!((join_text(&turn.content).as_str(), turn.usage.input), ("Hi", 5));
    for busy in [r#"{"code":429,"message":"busy"}"#, "data: {\"object\":\"error\",\"message\":\"busy\"}\n\n"] {
        let answer = Response::new(200, busy).header("content-type", "application/json");
        assert!(transient(ask_once(Reply::http(answer))).0.contains("busy"), "{busy}");
    }
}

#[test]
fn a_server_that_allows_shorter_answers_alone_is_asked_for_one() {
    let fake = FakeClaude::start();
    let why = "max_tokens: 1000 > 500, which is the maximum allowed number of output tokens for claude-sonnet-5-5";
    fake.expect(Reply::error(400, "invalid_request_error", why)).expect(Reply::text("ok"));
    ask(&fake, &hello()).unwrap();
    let asked: Vec<_> = fake.requests().iter().map(|request| request.json["max_tokens"].as_u64()).collect();
    assert_eq!(asked, [Some(1000), Some(500)]);
}

#[test]
fn an_answer_from_something_else_is_transient() {
    let portal = Response::new(200, "<html>Sign in").header("content-type", "text/html");
    let (why, ..) = transient(ask_once(Reply::http(portal)));
    assert!(why.contains("Something other"), "{why}");
}

#[test]
fn a_redirect_is_not_followed() {
    let thief = FakeClaude::start(); // expects nothing: a request would fail this test
    let away = Response::new(307, "").header("location", &format!("{}/v1/messages", thief.url()));
    match ask_once(Reply::http(away)) {
        Err(ModelError::Account { why }) => assert!(why.contains("redirect"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(thief.requests().len(), 0);
}

#[test]
fn a_key_that_the_server_quotes_is_masked() {
    let quoted = format!("invalid key {API_KEY}");
    match ask_once(Reply::error(401, "authentication_error", &quoted)) {
        Err(ModelError::Account { why }) => assert!(why.contains("invalid key ***"), "{why}"),
        other => panic!("{other:?}"),
    }
    let event = format!(r#"data: {{"type":"error","error":{{"type":"api_error","message":"{quoted}"}}}}"#);
    let stream = Response::stream(200, vec![Step::Send(format!("{event}\n\n").into_bytes())]);
    let (why, ..) = transient(ask_once(Reply::http(stream.header("content-type", "text/event-stream"))));
    assert!(why.contains("invalid key ***"), "{why}");
}

#[test]
fn an_endless_error_body_is_read_only_in_part() {
    let (why, ..) = transient(ask_once(Reply::http(Response::new(503, "x".repeat(4 * 1024 * 1024)))));
    assert!(why.contains("503"), "{why}");
}
