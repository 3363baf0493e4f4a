//! A fake OpenAI-compatible server: scripted answers over a real socket, and strict checks of every request.
//!
//! A request is a violation if a real server would refuse it, if it doesn't begin with the same bytes as the previous request of its
//! conversation, or if the script doesn't expect it. It is answered with 400 and remembered. When the server is dropped, remembered
//! violations and unused answers fail the test.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::http::{HttpServer, Request, Response, Step, lock};

/// The key that the server accepts.
pub(crate) const OPENAI_KEY: &str = "sk-proj-fake-key-for-the-tests-0123456789";

/// The fields that this program has a reason to send.
const FIELDS: [&str; 8] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "response_format",
    "tools",
];

/// The running server.
pub(crate) struct FakeOpenAi {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

struct State {
    script: VecDeque<Response>,
    /// The bodies of the requests, oldest first.
    bodies: Vec<String>,
    violations: Vec<String>,
    /// The list of models that the server offers.
    models: Value,
    needs_key: bool,
}

impl FakeOpenAi {
    /// Starts with an empty script: any request is a violation until an answer is expected.
    pub(crate) fn start() -> Self {
        let models =
            json!({"object": "list", "data": [{"id": "test-70b", "object": "model", "max_model_len": 60_000}]});
        let state =
            State { script: VecDeque::new(), bodies: Vec::new(), violations: Vec::new(), models, needs_key: true };
        let state = Arc::new(Mutex::new(state));
        let answering = Arc::clone(&state);
        let server = HttpServer::start(move |request| lock(&answering).answer(request));
        Self { server, state }
    }

    /// Starts a server for clients without a key.
    pub(crate) fn start_open() -> Self {
        let fake = Self::start();
        lock(&fake.state).needs_key = false;
        fake
    }

    /// `OPENAI_BASE_URL` for the client.
    pub(crate) fn url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    /// Adds an answer to the end of the script.
    pub(crate) fn expect(&self, answer: Response) -> &Self {
        lock(&self.state).script.push_back(answer);
        self
    }

    /// Every request for a turn, oldest first, including refused ones.
    pub(crate) fn requests(&self) -> Vec<Value> {
        lock(&self.state).bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// Takes the violations seen so far, so that they don't fail the test: for tests of the fake itself.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).violations)
    }
}

impl Drop for FakeOpenAi {
    fn drop(&mut self) {
        let state = lock(&self.state);
        if std::thread::panicking() {
            return;
        }
        let (violations, leftover) = (state.violations.clone(), state.script.len());
        drop(state);
        assert!(violations.is_empty(), "the fake server saw what a real one refuses: {violations:#?}");
        assert!(leftover == 0, "{leftover} scripted answers were never asked for");
    }
}

impl State {
    fn answer(&mut self, http: &Request) -> Response {
        let key = http.header("authorization");
        let is_right = if self.needs_key { key == Some(&format!("Bearer {OPENAI_KEY}")) } else { key.is_none() };
        if !is_right {
            self.violations.push(format!("authorization: {key:?}"));
            return error(401, &json!({"message": "Incorrect API key provided", "code": "invalid_api_key"}));
        }
        match (http.method.as_str(), http.target.as_str()) {
            ("GET", "/v1/models") => return Response::json(200, &self.models),
            ("GET", "/api/ps") => return Response::new(404, "404 page not found"),
            ("POST", "/v1/chat/completions") => {}
            other => {
                self.violations.push(format!("{other:?}: no such path"));
                return Response::new(404, "404 page not found");
            }
        }
        let body = http.text();
        let mut faults = match serde_json::from_str::<Value>(&body) {
            Ok(json) => faults(&json),
            Err(error) => vec![format!("body: {error}")],
        };
        faults.extend(self.rewritten(&body));
        self.bodies.push(body);
        if http.header("content-type") != Some("application/json") {
            faults.push("content-type: wrong".to_owned());
        }
        if faults.is_empty() {
            if let Some(answer) = self.script.pop_front() {
                return answer;
            }
            faults.push("a request that the script doesn't expect".to_owned());
        }
        self.violations.extend(faults.iter().cloned());
        error(400, &json!({"message": faults.join("; "), "type": "invalid_request_error"}))
    }

    /// Finds a change of the conversation's earlier messages; `None` if there is none.
    fn rewritten(&self, body: &str) -> Option<String> {
        let messages = |body: &str| body.split_once(r#""messages":["#).map(|(_, messages)| messages.to_owned());
        let (before, now) = (messages(self.bodies.last()?)?, messages(body)?);
        let first = |messages: &str| messages.split(r#"},{"role""#).take(2).map(str::to_owned).collect::<Vec<_>>();
        let is_same_conversation = first(&before).get(1) == first(&now).get(1);
        // For a server without tools, the system text describes them, so the requests aren't comparable.
        let has_tools = |body: &str| body.contains(r#""tools":["#);
        if has_tools(self.bodies.last()?) != has_tools(body) {
            return None;
        }
        let open = before.trim_end_matches("]}");
        (is_same_conversation && !now.starts_with(open)).then(|| format!("messages: {open} became {now}"))
    }
}

/// Finds the faults in a request that a real server refuses, as far as this program could make them.
fn faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let fields = body.as_object().into_iter().flat_map(|body| body.keys());
    faults.extend(
        fields
            .filter(|name| !FIELDS.contains(&name.as_str()) && *name != "messages")
            .map(|name| format!("{name}: unknown")),
    );
    if body["model"].as_str().is_none_or(|model| model.is_empty() || model.starts_with("openai:")) {
        faults.push(format!("model: {}", body["model"]));
    }
    if body["stream"] != true && !body["stream_options"].is_null() {
        faults.push("stream_options: only of a stream".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        if tool["type"] != "function"
            || function["name"].as_str().is_none_or(str::is_empty)
            || function["parameters"]["type"] != "object"
        {
            faults.push(format!("tools: {tool}"));
        }
    }
    faults.extend(messages(body["messages"].as_array().map_or(&[][..], Vec::as_slice)));
    faults
}

/// Checks the messages. Each call needs exactly one result, before any other message.
fn messages(messages: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Vec<String> = Vec::new();
    if !messages.iter().any(|message| message["role"] == "user") {
        faults.push("messages: nobody asks".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        let content = &message["content"];
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            faults.push(format!("messages.{at}: calls without a result: {open:?}"));
            open.clear();
        }
        match role {
            "system" if at == 0 && content.is_string() => {}
            "user" if content.as_str().is_some_and(|text| !text.trim().is_empty()) => {}
            "user" if content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part)) => {}
            "tool" if content.as_str().is_some_and(|text| !text.is_empty()) => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|known| known == id) {
                    Some(known) => drop(open.remove(known)),
                    None => faults.push(format!("messages.{at}: a result of the unknown call {id:?}")),
                }
            }
            "assistant" => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                if !content.is_string() && calls.is_empty() {
                    faults.push(format!("messages.{at}: neither text nor calls"));
                }
                for call in calls {
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    let is_object = serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok();
                    let id = call["id"].as_str().unwrap_or_default().to_owned();
                    if call["type"] != "function" || !is_object || id.is_empty() || open.contains(&id) {
                        faults.push(format!("messages.{at}.tool_calls: {call}"));
                    }
                    open.push(id);
                }
            }
            _ => faults.push(format!("messages.{at}: {message}")),
        }
    }
    faults.extend((!open.is_empty()).then(|| format!("messages: calls without a result: {open:?}")));
    faults
}

fn is_part(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("text") => part["text"].as_str().is_some_and(|text| !text.is_empty()),
        Some("image_url") => part["image_url"]["url"].as_str().is_some_and(|url| url.starts_with("data:image/")),
        _ => false,
    }
}

/// An error in OpenAI's format.
pub(crate) fn error(status: u16, error: &Value) -> Response {
    Response::json(status, &json!({ "error": error }))
}

/// A stream of these chunks, with its end.
pub(crate) fn stream(chunks: &[Value]) -> Response {
    let chunks = chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    let steps = chunks.map(|chunk| Step::Send(format!("data: {chunk}\n\n").into_bytes())).collect();
    Response::stream(200, steps).header("content-type", "text/event-stream; charset=utf-8")
}

/// A chunk with this delta.
pub(crate) fn delta(delta: &Value) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// The chunk that ends an answer, and the chunk with the numbers of tokens.
pub(crate) fn end(reason: &str) -> [Value; 2] {
    [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}}),
    ]
}

/// A streamed text.
pub(crate) fn text(text: &str) -> Response {
    let (first, second) = text.split_at(text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at));
    let [end, usage] = end("stop");
    stream(&[delta(&json!({"role": "assistant", "content": first})), delta(&json!({"content": second})), end, usage])
}

/// A call, streamed in pieces.
pub(crate) fn call(name: &str, arguments: &Value) -> Response {
    let arguments = arguments.to_string();
    let (first, second) = arguments.split_at(arguments.len() / 2);
    let [end, usage] = end("tool_calls");
    let begin = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": first}}]});
    let go_on = json!({"tool_calls": [{"index": 0, "function": {"arguments": second}}]});
    stream(&[delta(&begin), delta(&go_on), end, usage])
}

/// A call in one piece, even if a stream was requested, and without the numbers of tokens.
pub(crate) fn whole_call(name: &str, arguments: &Value) -> Response {
    let call = json!({"function": {"name": name, "arguments": arguments}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    Response::json(
        200,
        &json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
    )
}
