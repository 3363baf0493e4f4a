//! The faults of a single request that the real API refuses, as far as this program could make them.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{super::http::Request, API_KEY, ClaudeRequest, OAUTH_TOKEN};

/// The fields that this program has a reason to send. Sampling parameters are refused by the current models.
const FIELDS: &[&str] = &[
    "model",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "messages",
    "cache_control",
    "output_config",
    "tool_choice",
    "thinking",
];

const MAX_CACHE_BREAKPOINTS: usize = 4;
const MAX_OUTPUT_TOKENS: u64 = 128_000;
const MAX_NAME_CHARS: usize = 128;

/// Finds every fault of a request, each with its place first.
pub(super) fn request(http: &Request, request: &ClaudeRequest) -> Vec<String> {
    let mut faults = head(http);
    faults.extend(body(request));
    faults
}

/// Finds the faults of a request's body alone.
pub(super) fn body(request: &ClaudeRequest) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(fields(&request.json));
    faults.extend(tools(&request.json["tools"]));
    faults.extend(messages(&request.json["messages"]));
    let breakpoints = request.raw.matches("\"cache_control\"").count();
    if breakpoints > MAX_CACHE_BREAKPOINTS {
        faults.push(format!("cache_control: {breakpoints} breakpoints, {MAX_CACHE_BREAKPOINTS} at most"));
    }
    faults
}

/// Finds the faults of a request from Claude Code: a wrong key, a tool that isn't Reveille's, a call without its result.
pub(super) fn relayed(http: &Request, request: &ClaudeRequest) -> Vec<String> {
    let mut faults = Vec::new();
    let is_known = http.header("x-api-key") == Some(API_KEY)
        || http.header("authorization").is_some_and(|said| said == format!("Bearer {OAUTH_TOKEN}"));
    if !is_known {
        faults.push("x-api-key: missing or wrong".to_owned());
    }
    let tools = request.json["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default());
    faults.extend(names.filter(|name| !name.starts_with("mcp__reveille__")).map(|name| format!("tools: {name}")));
    if tools.is_empty() {
        faults.push("tools: none".to_owned());
    }
    let messages: Vec<&Value> = blocks(&request.json["messages"]).iter().filter(|it| it["role"] != "system").collect();
    for (at, message) in messages.iter().enumerate() {
        let calls = if message["role"] == "assistant" { ids(message, "tool_use", "id") } else { Vec::new() };
        faults.extend(pairing(at + 1, &calls, messages.get(at + 1).copied().unwrap_or(&Value::Null)));
    }
    faults
}

fn head(http: &Request) -> Vec<String> {
    let wanted = [
        ("method", Some(http.method.as_str()), "POST"),
        ("path", Some(http.target.as_str()), "/v1/messages"),
        ("x-api-key", http.header("x-api-key"), API_KEY),
        ("anthropic-version", http.header("anthropic-version"), "2023-06-01"),
        ("content-type", http.header("content-type"), "application/json"),
    ];
    let wrong = wanted.into_iter().filter(|(_, got, want)| *got != Some(want));
    wrong.map(|(what, got, _)| format!("{what}: {}", got.map_or("missing", |_| "wrong"))).collect()
}

fn fields(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for name in body.as_object().into_iter().flat_map(|body| body.keys()) {
        if !FIELDS.contains(&name.as_str()) {
            faults.push(format!("{name}: not allowed"));
        }
    }
    let mut require = |is_right: bool, fault: &str| {
        if !is_right {
            faults.push(fault.to_owned());
        }
    };
    require(body["model"].as_str().is_some_and(|model| !model.is_empty()), "model: not a name");
    require(
        body["max_tokens"].as_u64().is_some_and(|tokens| (1..=MAX_OUTPUT_TOKENS).contains(&tokens)),
        "max_tokens: out of range",
    );
    require(body["stream"] == true, "stream: not true");
    require(
        matches!(body["tool_choice"]["type"].as_str(), None | Some("auto" | "none")),
        "tool_choice: forced tool use",
    );
    require(matches!(body["thinking"]["type"].as_str(), None | Some("adaptive")), "thinking: not adaptive");
    let system = &body["system"];
    require(system.is_null() || system.is_string() || system.is_array(), "system: neither text nor blocks");
    for (at, block) in system.as_array().into_iter().flatten().enumerate() {
        require(block["type"] == "text", &format!("system.{at}: not a text block"));
        require(!is_blank(&block["text"]), &format!("system.{at}: blank text"));
    }
    faults
}

fn tools(tools: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names = HashSet::new();
    for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_name(name) {
            faults.push(format!("tools.{at}.name: must match ^[a-zA-Z0-9_-]{{1,128}}$"));
        }
        if !names.insert(name.to_owned()) {
            faults.push(format!("tools.{at}.name: twice"));
        }
        let is_client_tool = matches!(tool["type"].as_str(), None | Some("custom"));
        if is_client_tool && tool["input_schema"]["type"] != "object" {
            faults.push(format!("tools.{at}.input_schema: not the schema of an object"));
        }
    }
    faults
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn messages(messages: &Value) -> Vec<String> {
    let Some(messages) = messages.as_array().filter(|messages| !messages.is_empty()) else {
        return vec!["messages: empty".to_owned()];
    };
    let mut faults = Vec::new();
    if messages[0]["role"] != "user" {
        faults.push("messages.0: not a user message".to_owned());
    }
    let mut seen_calls = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let is_user = message["role"] == "user";
        if !is_user && message["role"] != "assistant" {
            faults.push(format!("messages.{at}.role: unknown"));
        }
        faults.extend(content(&format!("messages.{at}"), &message["content"], is_user));
        let calls = if is_user { Vec::new() } else { ids(message, "tool_use", "id") };
        for call in &calls {
            if !seen_calls.insert(call.clone()) {
                faults.push(format!("messages.{at}: the tool_use id {call} was used before"));
            }
        }
        let next = messages.get(at + 1).unwrap_or(&Value::Null);
        faults.extend(pairing(at + 1, &calls, next));
        if at == 0 {
            faults.extend(pairing(0, &[], message));
        }
    }
    faults
}

/// Compares the tool results in the message at `at` with the calls in the message before it.
fn pairing(at: usize, calls: &[String], message: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let results = ids(message, "tool_result", "tool_use_id");
    for call in calls.iter().filter(|call| !results.contains(call)) {
        faults.push(format!("messages.{at}: no tool_result for the tool_use {call}"));
    }
    let mut answered = HashSet::new();
    for result in &results {
        if !calls.contains(result) {
            faults.push(format!("messages.{at}: a tool_result for the unknown tool_use {result}"));
        }
        if !answered.insert(result) {
            faults.push(format!("messages.{at}: two tool_results for the tool_use {result}"));
        }
    }
    let kinds: Vec<bool> = blocks(&message["content"]).iter().map(|block| block["type"] == "tool_result").collect();
    if kinds.iter().skip_while(|is_result| **is_result).any(|is_result| *is_result) {
        faults.push(format!("messages.{at}: a tool_result after other content"));
    }
    faults
}

fn ids(message: &Value, kind: &str, field: &str) -> Vec<String> {
    let blocks = blocks(&message["content"]).iter().filter(|block| block["type"] == kind);
    blocks.map(|block| block[field].as_str().unwrap_or("(none)").to_owned()).collect()
}

fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

fn content(place: &str, content: &Value, is_user: bool) -> Vec<String> {
    let mut faults = Vec::new();
    match content {
        Value::String(text) => faults.extend(text_fault(place, text, is_user)),
        Value::Array(blocks) if blocks.is_empty() => faults.push(format!("{place}.content: empty")),
        Value::Array(blocks) => {
            for (at, block) in blocks.iter().enumerate() {
                faults.extend(block_faults(&format!("{place}.content.{at}"), block, is_user));
            }
        }
        _ => faults.push(format!("{place}.content: neither text nor blocks")),
    }
    faults
}

fn block_faults(place: &str, block: &Value, is_user: bool) -> Vec<String> {
    match (block["type"].as_str(), is_user) {
        (None, _) => vec![format!("{place}.type: missing")],
        (Some("text"), _) => match block["text"].as_str() {
            Some(text) => text_fault(place, text, is_user).into_iter().collect(),
            None => vec![format!("{place}.text: missing")],
        },
        (Some("tool_result"), true) => result_faults(place, block),
        (Some("image"), true) => image_faults(place, &block["source"]),
        (Some("document"), true) => document_faults(place, &block["source"]),
        (Some("search_result"), true) => Vec::new(),
        (Some(other), true) => vec![format!("{place}: a user message can't hold {other}")],
        // `history` compares the assistant's turns with those that were sent.
        (Some(_), false) => Vec::new(),
    }
}

/// Checks that a document is a PDF, sent as bytes, that the API can read.
fn document_faults(place: &str, source: &Value) -> Vec<String> {
    let bytes = STANDARD.decode(source["data"].as_str().unwrap_or_default()).unwrap_or_default();
    let is_whole =
        source["type"] == "base64" && source["media_type"] == "application/pdf" && bytes.starts_with(b"%PDF-");
    let is_open = !bytes.windows(8).any(|bytes| bytes == b"/Encrypt");
    (!(is_whole && is_open)).then(|| format!("{place}.source: could not process PDF")).into_iter().collect()
}

/// Checks an image. This program always sends its bytes, which must match the declared type.
fn image_faults(place: &str, source: &Value) -> Vec<String> {
    const MAX_ENCODED_BYTES: usize = 5 * 1024 * 1024;
    if source["type"] != "base64" {
        return vec![format!("{place}.source: not base64")];
    }
    let data = source["data"].as_str().unwrap_or_default();
    if data.len() > MAX_ENCODED_BYTES {
        return vec![format!("{place}.source: image exceeds 5 MB maximum")];
    }
    let Ok(bytes) = STANDARD.decode(data) else {
        return vec![format!("{place}.source.data: invalid base64")];
    };
    let begins: &[u8] = match source["media_type"].as_str() {
        Some("image/jpeg") => b"\xff\xd8\xff",
        Some("image/png") => b"\x89PNG\r\n\x1a\n",
        Some("image/gif") => b"GIF8",
        Some("image/webp") => b"RIFF",
        _ => return vec![format!("{place}.source.media_type: not one that is taken")],
    };
    let fits = bytes.starts_with(begins);
    (!fits).then(|| format!("{place}.source: could not process image")).into_iter().collect()
}

fn result_faults(place: &str, block: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if !matches!(block["is_error"], Value::Null | Value::Bool(_)) {
        faults.push(format!("{place}.is_error: not a bool"));
    }
    match &block["content"] {
        Value::Null | Value::String(_) => {}
        Value::Array(inner) => {
            let blank = inner.iter().any(|block| block["type"] == "text" && is_blank(&block["text"]));
            faults.extend(blank.then(|| format!("{place}.content: blank text")));
        }
        _ => faults.push(format!("{place}.content: neither text nor blocks")),
    }
    faults
}

/// Checks a text. The API refuses blank text; white space at the end of our own text costs tokens for nothing.
fn text_fault(place: &str, text: &str, is_user: bool) -> Option<String> {
    if text.trim().is_empty() {
        return Some(format!("{place}: blank text"));
    }
    (is_user && text.trim_end() != text).then(|| format!("{place}: white space at the end"))
}

fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}
