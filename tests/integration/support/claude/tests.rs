//! Tests each rule of the fake: a request that follows it passes, and one that only breaks this rule is refused.

#![expect(clippy::needless_pass_by_value, reason = "`json!` gives values, and the requests read better so")]

use serde_json::{Value, json};

use super::{super::http::exchange, *};

fn post_with(fake: &FakeClaude, head: &str, body: &str) -> String {
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    exchange(&fake.url(), request.as_bytes())
}

fn head() -> String {
    format!(
        "POST /v1/messages HTTP/1.1\r\nx-api-key: {API_KEY}\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json"
    )
}

fn post(fake: &FakeClaude, body: &Value) -> String {
    post_with(fake, &head(), &body.to_string())
}

fn body(messages: Value) -> Value {
    json!({
        "model": "claude-sonnet-5-5", "max_tokens": 100, "stream": true,
        "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "note", "description": "d", "input_schema": {"type": "object"}}],
        "messages": messages, "cache_control": {"type": "ephemeral"},
    })
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "note", "input": {"a": 1}})
}

/// The violations of one request to a fresh server.
fn violations(body: &Value) -> Vec<String> {
    let fake = FakeClaude::start();
    fake.expect(Reply::text("ok"));
    let answer = post(&fake, body);
    let violations = fake.take_violations();
    assert_eq!(answer.starts_with("HTTP/1.1 200"), violations.is_empty(), "{answer}");
    fake.take_leftovers();
    violations
}

#[track_caller]
fn refused(body: &Value, because: &str) {
    let violations = violations(body);
    assert!(violations.iter().any(|violation| violation.contains(because)), "{because:?} is not in {violations:#?}");
}

#[test]
fn a_good_request_passes_and_is_remembered() {
    let fake = FakeClaude::start();
    fake.expect(Reply::text("ok"));
    assert!(post(&fake, &body(json!([user(text("hello"))]))).contains("message_stop"));
    let request = fake.requests().remove(0);
    assert_eq!((request.last_text().as_str(), request.json["stream"].as_bool()), ("hello", Some(true)));
}

#[test]
fn the_headers_must_be_right() {
    for (right, wrong, because) in [
        ("POST", "PUT", "method"),
        ("/v1/messages", "/v1/complete", "path"),
        (API_KEY, "sk-ant-wrong", "x-api-key: wrong"),
        ("x-api-key", "x-other", "x-api-key: missing"),
        ("2023-06-01", "2020-01-01", "anthropic-version"),
        ("application/json", "text/plain", "content-type"),
    ] {
        let fake = FakeClaude::start();
        let answer = post_with(&fake, &head().replacen(right, wrong, 1), &body(json!([user(text("hi"))])).to_string());
        let status = if because.starts_with("x-api-key") { "HTTP/1.1 401" } else { "HTTP/1.1 400" };
        assert!(answer.starts_with(status), "{answer}");
        assert!(fake.take_violations()[0].contains(because), "{because}");
    }
}

#[test]
fn unknown_and_unsupported_fields_are_refused() {
    let with = |field: &str, value: Value| {
        let mut body = body(json!([user(text("hi"))]));
        body[field] = value;
        body
    };
    refused(&with("temperature", json!(1)), "temperature: not allowed");
    refused(&with("top_p", json!(0.5)), "top_p: not allowed");
    refused(&with("top_k", json!(5)), "top_k: not allowed");
    refused(&with("tool_choice", json!({"type": "any"})), "tool_choice: forced");
    refused(&with("tool_choice", json!({"type": "tool", "name": "note"})), "tool_choice: forced");
    refused(&with("thinking", json!({"type": "disabled"})), "thinking: not adaptive");
    refused(&with("thinking", json!({"type": "enabled", "budget_tokens": 9})), "thinking: not adaptive");
    refused(&with("stream", json!(false)), "stream: not true");
    refused(&with("max_tokens", json!(0)), "max_tokens: out of range");
    refused(&with("model", json!("")), "model: not a name");
    refused(&with("system", json!([{"type": "text", "text": " "}])), "system.0: blank text");
    refused(&with("system", json!([{"type": "image"}])), "system.0: not a text block");
    refused(&with("system", json!(7)), "system: neither");
    let mark = json!({"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}});
    refused(&with("system", json!([mark, mark, mark, mark])), "cache_control: 5 breakpoints");
    assert_eq!(violations(&with("system", json!([mark, mark, mark]))), [""; 0]);
    assert_eq!(violations(&with("tool_choice", json!({"type": "auto"}))), [""; 0]);
    assert_eq!(violations(&with("thinking", json!({"type": "adaptive"}))), [""; 0]);
}

#[test]
fn tools_must_have_names_and_object_schemas() {
    let with = |tools: Value| {
        let mut body = body(json!([user(text("hi"))]));
        body["tools"] = tools;
        body
    };
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    refused(&with(json!([tool("a b")])), "tools.0.name: must match");
    refused(&with(json!([tool(&"a".repeat(129))])), "tools.0.name: must match");
    refused(&with(json!([tool("a"), tool("a")])), "tools.1.name: twice");
    refused(&with(json!([{"name": "a"}])), "tools.0.input_schema");
    refused(&with(json!([{"name": "a", "input_schema": {"type": "string"}}])), "tools.0.input_schema");
    assert_eq!(violations(&with(json!([{"type": "bash_20250124", "name": "bash"}]))), [""; 0]);
}

#[test]
fn messages_must_be_well_formed() {
    refused(&body(json!([])), "messages: empty");
    refused(&body(json!([assistant(text("hi"))])), "messages.0: not a user message");
    refused(&body(json!([user(text("a")), user(text("b"))])), "messages.1: the same role twice");
    refused(&body(json!([{"role": "system", "content": "x"}])), "messages.0.role: unknown");
    refused(&body(json!([user(json!([]))])), "messages.0.content: empty");
    refused(&body(json!([user(json!(7))])), "messages.0.content: neither");
    refused(&body(json!([user(text(""))])), "blank text");
    refused(&body(json!([user(text("\n"))])), "blank text");
    refused(&body(json!([user(json!(" "))])), "blank text");
    refused(&body(json!([user(text("hi \n"))])), "white space at the end");
    refused(&body(json!([user(json!([{"text": "x"}]))])), "messages.0.content.0.type: missing");
    refused(&body(json!([user(json!([{"type": "text"}]))])), "messages.0.content.0.text: missing");
    refused(&body(json!([user(json!([{"type": "tool_use"}]))])), "a user message can't hold tool_use");
    let fake = FakeClaude::start();
    assert!(post_with(&fake, &head(), "{\"messages\":[").starts_with("HTTP/1.1 400"));
    assert!(fake.take_violations()[0].starts_with("body:"));
}

/// The violations of a request that follows a turn with thinking and the calls `a` and `b`. `next` makes its messages from that turn.
fn after_two_calls(next: impl FnOnce(&Value) -> Value) -> Vec<String> {
    let fake = FakeClaude::start();
    fake.expect(Reply::tools(vec![
        Block::thinking("hm"),
        Block::tool("a", "note", r#"{"a":1}"#),
        Block::tool("b", "note", r#"{"a":1}"#),
    ]));
    post(&fake, &body(json!([user(text("hi"))])));
    fake.expect(Reply::text("done"));
    let turn = json!([{"type": "thinking", "thinking": "hm", "signature": "Eq+2/w=="}, call("a"), call("b")]);
    let answer = post(&fake, &body(next(&turn)));
    let violations = fake.take_violations();
    assert_eq!(answer.starts_with("HTTP/1.1 200"), violations.is_empty(), "{answer}");
    assert_eq!(fake.take_leftovers(), usize::from(!violations.is_empty()));
    if violations.iter().any(|violation| violation.contains("changed")) {
        assert!(answer.contains("Invalid `signature` in `thinking` block"), "{answer}");
    }
    violations
}

#[track_caller]
fn refused_after_two_calls(because: &str, next: impl FnOnce(&Value) -> Value) {
    let violations = after_two_calls(next);
    assert!(violations.iter().any(|violation| violation.contains(because)), "{because:?} is not in {violations:#?}");
}

#[test]
fn each_call_must_be_paired_with_its_result() {
    let with = |results: Value| move |turn: &Value| json!([user(text("hi")), assistant(turn.clone()), user(results)]);
    assert_eq!(after_two_calls(with(json!([result("b"), result("a"), {"type": "text", "text": "also"}]))), [""; 0]);
    refused_after_two_calls("no tool_result for the tool_use b", with(json!([result("a")])));
    refused_after_two_calls("unknown tool_use c", with(json!([result("a"), result("b"), result("c")])));
    refused_after_two_calls("two tool_results", with(json!([result("a"), result("b"), result("b")])));
    refused_after_two_calls(
        "after other content",
        with(json!([{"type": "text", "text": "x"}, result("a"), result("b")])),
    );
    let error =
        json!({"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": ""}], "is_error": 1});
    refused_after_two_calls("is_error: not a bool", with(json!([result("a"), error])));
    refused_after_two_calls("blank text", with(json!([result("a"), error])));
    let odd = json!({"type": "tool_result", "tool_use_id": "b", "content": 5});
    refused_after_two_calls("neither text nor blocks", with(json!([result("a"), odd])));
    refused(&body(json!([user(json!([result("a")]))])), "unknown tool_use a");
}

#[test]
fn an_assistant_turn_must_come_back_as_it_was_sent() {
    let results = || user(json!([result("a"), result("b")]));
    let with = |change: fn(&mut Value)| {
        move |turn: &Value| {
            let mut turn = turn.clone();
            change(&mut turn);
            json!([user(text("hi")), assistant(turn), results()])
        }
    };
    refused_after_two_calls("messages.1.content.0: changed", with(|turn| turn[0]["thinking"] = json!("")));
    refused_after_two_calls("messages.1.content.1: changed", with(|turn| turn[1]["input"] = json!({"a": 1.0})));
    refused_after_two_calls("messages.1.content.2: missing", with(|turn| drop(turn.as_array_mut().unwrap().pop())));
    refused_after_two_calls(
        "messages.1.content.3: never sent",
        with(|turn| turn.as_array_mut().unwrap().push(call("z"))),
    );
    refused_after_two_calls("used before", with(|turn| turn.as_array_mut().unwrap().push(call("a"))));
    refused_after_two_calls("messages.2: no tool_result for the tool_use a", |_| {
        json!([user(text("hi")), assistant(json!([call("a")])), user(text("x"))]).clone()
    });
    refused_after_two_calls("is missing", |_| json!([user(text("hi")), user(text("x"))]));
    refused_after_two_calls("prefill", |turn| json!([user(text("hi")), assistant(turn.clone())]));
    refused(&body(json!([user(text("hi")), assistant(text("I said")), user(text("no"))])), "never sent");
}

#[test]
fn earlier_messages_must_not_change() {
    let fake = FakeClaude::start();
    fake.expect(Reply::text("one")).expect(Reply::text("two"));
    let first = json!([user(text("hi"))]);
    let second = json!([user(text("hi")), assistant(text("one")), user(text("and?"))]);
    post(&fake, &body(first));
    assert!(post(&fake, &body(second.clone())).contains("200"));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut body = body(second.clone());
        change(&mut body);
        let answer = post(&fake, &body);
        assert!(answer.contains("Invalid `signature`"), "{answer}");
        fake.take_violations().join("\n")
    };
    assert!(changed(&|body| body["system"][0]["text"] = json!("T")).contains("system: changed"));
    assert!(changed(&|body| body["tools"] = json!([])).contains("tools: changed"));
    assert!(changed(&|body| body["messages"][2] = user(text("or?"))).contains("messages.2: changed"));
    let shorter = changed(&|body| body["messages"] = json!([user(text("hi")), assistant(text("one"))]));
    assert!(shorter.contains("messages.2: missing"), "{shorter}");
    // The same bytes again are a retry; the first message alone starts a new conversation.
    fake.expect(Reply::text("two")).expect(Reply::text("new"));
    assert!(post(&fake, &body(second)).contains("200"));
    let mut new = body(json!([user(text("hi"))]));
    new["system"][0]["text"] = json!("another");
    assert!(post(&fake, &new).contains("200"));
}

#[test]
fn a_paused_turn_may_be_sent_back_to_continue() {
    let fake = FakeClaude::start();
    fake.expect(Reply::pause_turn("so far")).expect(Reply::text("done"));
    post(&fake, &body(json!([user(text("hi"))])));
    let answer = post(&fake, &body(json!([user(text("hi")), assistant(text("so far"))])));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_cut_call_may_come_back_with_any_arguments_or_not_at_all() {
    for (turn, accepted) in [
        (json!([{"type": "text", "text": "x"}]), true),
        (json!([{"type": "text", "text": "x"}, {"type": "tool_use", "id": "a", "name": "note", "input": {}}]), true),
        (json!([{"type": "text", "text": "x"}, {"type": "tool_use", "id": "a", "name": "note", "input": "{"}]), false),
        (json!([{"type": "text", "text": "x"}, {"type": "tool_use", "id": "b", "name": "note", "input": {}}]), false),
    ] {
        let fake = FakeClaude::start();
        fake.expect(Reply::max_tokens(vec![Block::text("x"), Block::cut_tool("a", "note", "{\"a")]));
        post(&fake, &body(json!([user(text("hi"))])));
        fake.expect(Reply::text("done"));
        let id = turn[1]["id"].as_str().map(|id| json!([result(id)]));
        post(&fake, &body(json!([user(text("hi")), assistant(turn), user(id.unwrap_or(text("go on")))])));
        assert_eq!(fake.take_violations().is_empty(), accepted);
        fake.take_leftovers();
    }
}

#[test]
fn an_image_must_match_its_declared_type() {
    let image = |mime: &str, data: &str| {
        let source = json!({"type": "base64", "media_type": mime, "data": data});
        violations(&body(json!([user(json!([{"type": "text", "text": "see"}, {"type": "image", "source": source}]))])))
    };
    assert_eq!(image("image/gif", "R0lGODlh"), Vec::<String>::new());
    for (mime, data) in
        [("image/png", "R0lGODlh"), ("image/bmp", "R0lGODlh"), ("image/gif", "R0lGODl"), ("image/gif", "")]
    {
        assert_eq!(image(mime, data).len(), 1, "{mime} {data}");
    }
    assert_eq!(image("image/gif", &"R0lGODlh".repeat(700_000)).len(), 1);
    let by_url = json!([{"type": "image", "source": {"type": "url", "url": "https://example.org/a.gif"}}]);
    assert_eq!(violations(&body(json!([user(by_url)]))).len(), 1);
}

#[test]
fn unexpected_requests_and_unused_replies_fail_the_test() {
    let fake = FakeClaude::start();
    assert!(post(&fake, &body(json!([user(text("hi"))]))).starts_with("HTTP/1.1 500"));
    let failed = |fake: FakeClaude| {
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(fake)));
        *dropped.unwrap_err().downcast::<String>().unwrap()
    };
    assert!(failed(fake).contains("the script doesn't expect: hi"));
    let fake = FakeClaude::start();
    fake.expect(Reply::text("never"));
    assert!(failed(fake).contains("1 scripted replies"));
}

#[test]
fn a_reply_can_be_made_from_its_request() {
    let fake = FakeClaude::start();
    fake.expect(Reply::with(|request| Reply::text(&request.last_text().to_uppercase())));
    assert!(post(&fake, &body(json!([user(text("hi"))]))).contains(r#""text":"H""#));
}
