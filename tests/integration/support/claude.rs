//! A fake Claude Messages API: scripted replies over a real socket, and strict checks of every request.
//!
//! A request is a violation if the real API would refuse it (see [`check`]), or if it changes a part of the conversation that must stay the
//! same (see [`history`]). It is answered with 400 and remembered. A request that the script doesn't expect is a violation too. When the
//! server is dropped, remembered violations and unused replies fail the test.

mod check;
pub(crate) mod cloud;
mod history;
mod reply;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use serde_json::value::RawValue;

use self::{cloud::Cloud, reply::Answer};
pub(crate) use self::{
    history::Histories,
    reply::{Block, Reply},
};
use super::http::{HttpServer, Request, Response, lock};

/// The key that the server accepts.
pub(crate) const API_KEY: &str = "sk-ant-api03-fake-key-for-the-tests-0123456789";

/// The subscription's token that the server accepts.
pub(crate) const OAUTH_TOKEN: &str = "sk-ant-oat01-fake-token-for-the-tests-0123456789";

/// The running server.
pub(crate) struct FakeClaude {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// The answer once the script is empty.
    mind: Option<AnswerFn>,
    requests: Vec<ClaudeRequest>,
    violations: Vec<String>,
    histories: Histories,
    is_relayed: bool,
    cloud: Option<Cloud>,
}

/// Makes an answer to any request.
type AnswerFn = Box<dyn Fn(&ClaudeRequest) -> Reply + Send>;

/// A request that the server has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClaudeRequest {
    /// The body as received.
    pub(crate) raw: String,
    /// The body, parsed.
    pub(crate) json: serde_json::Value,
    /// Raw JSON, empty if it wasn't sent.
    pub(crate) system: String,
    /// Raw JSON, empty if it wasn't sent.
    pub(crate) tools: String,
    /// Raw JSON, one object per message.
    pub(crate) messages: Vec<String>,
}

impl ClaudeRequest {
    fn parse(raw: String) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(default, borrow)]
            system: Option<&'a RawValue>,
            #[serde(default, borrow)]
            tools: Option<&'a RawValue>,
            #[serde(borrow)]
            messages: Vec<&'a RawValue>,
        }
        let owned = |value: &RawValue| value.get().to_owned();
        let body: Body<'_> = serde_json::from_str(&raw).map_err(|error| format!("body: {error}"))?;
        let json = serde_json::from_str(&raw).map_err(|error| format!("body: {error}"))?;
        let system = body.system.map(owned).unwrap_or_default();
        let tools = body.tools.map(owned).unwrap_or_default();
        let messages = body.messages.into_iter().map(owned).collect();
        Ok(Self { json, system, tools, messages, raw })
    }

    /// The text of the last message: its text blocks and tool results, one per line.
    pub(crate) fn last_text(&self) -> String {
        fn texts(value: &serde_json::Value, found: &mut Vec<String>) {
            match value {
                serde_json::Value::String(text) => found.push(text.clone()),
                serde_json::Value::Array(blocks) => blocks.iter().for_each(|block| texts(block, found)),
                serde_json::Value::Object(block) => {
                    ["text", "content"].iter().filter_map(|key| block.get(*key)).for_each(|inner| texts(inner, found));
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        if let Some(last) = self.json["messages"].as_array().and_then(|messages| messages.last()) {
            texts(last, &mut found);
        }
        found.join("\n")
    }
}

impl FakeClaude {
    /// Starts with an empty script: any request is a violation until a reply is expected.
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let answering = Arc::clone(&state);
        let server = HttpServer::start(move |request| lock(&answering).answer(request));
        Self { server, state }
    }

    /// Starts a server with Claude Code as the client. Only the parts of its requests that come from Reveille are checked, see
    /// [`check::relayed`].
    pub(crate) fn start_for_claude_code() -> Self {
        let fake = Self::start();
        lock(&fake.state).is_relayed = true;
        fake
    }

    /// Starts a server behind a cloud provider, which checks the client's identity as the real one does.
    pub(crate) fn start_in(cloud: impl Into<Cloud>) -> Self {
        let fake = Self::start();
        lock(&fake.state).cloud = Some(cloud.into());
        fake
    }

    /// Changes the behaviour of the cloud provider in front of the server.
    pub(crate) fn cloud(&self, change: impl FnOnce(&mut Cloud)) {
        change(lock(&self.state).cloud.as_mut().expect("a cloud"));
    }

    /// The base URL for the client.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Counts the connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Adds a reply to the end of the script.
    pub(crate) fn expect(&self, reply: Reply) -> &Self {
        lock(&self.state).script.push_back(reply);
        self
    }

    /// Once the script is empty, answers every request by its content, so that a repeated request gets the same turn again.
    pub(crate) fn answer_with(&self, mind: impl Fn(&ClaudeRequest) -> Reply + Send + 'static) -> &Self {
        lock(&self.state).mind = Some(Box::new(mind));
        self
    }

    /// Every request that could be parsed, oldest first, including refused ones.
    pub(crate) fn requests(&self) -> Vec<ClaudeRequest> {
        lock(&self.state).requests.clone()
    }

    /// The conversations so far.
    pub(crate) fn histories(&self) -> Histories {
        lock(&self.state).histories.clone()
    }

    /// Continues the conversations of another server.
    pub(crate) fn recall(&self, histories: &Histories) -> &Self {
        lock(&self.state).histories = histories.clone();
        self
    }

    /// Takes the violations seen so far, so that they don't fail the test: for tests of the fake itself.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).violations)
    }

    /// Removes the unused replies and returns their number: for tests that end early on purpose.
    pub(crate) fn take_leftovers(&self) -> usize {
        std::mem::take(&mut lock(&self.state).script).len()
    }
}

impl Drop for FakeClaude {
    fn drop(&mut self) {
        let state = lock(&self.state);
        if std::thread::panicking() {
            return;
        }
        let (violations, leftover) = (state.violations.clone(), state.script.len());
        drop(state);
        assert!(violations.is_empty(), "the fake Claude saw what the real one refuses: {violations:#?}");
        assert!(leftover == 0, "{leftover} scripted replies of the fake Claude were never asked for");
    }
}

impl State {
    fn answer(&mut self, http: &Request) -> Response {
        if self.is_relayed && http.method == "HEAD" {
            return Response::new(200, "");
        }
        if http.method == "GET" && !self.is_relayed && self.cloud.is_none() {
            return look_up(http);
        }
        let raw = match &mut self.cloud {
            None => Ok(http.text()),
            Some(cloud) => match cloud.admit(http) {
                Ok(inner) => inner,
                Err(answer) => return answer,
            },
        };
        let request = match raw.and_then(ClaudeRequest::parse) {
            Ok(request) => request,
            Err(fault) => return self.refuse(&[fault]),
        };
        self.requests.push(request.clone());
        let mut faults = match (self.is_relayed, &self.cloud) {
            (true, _) => check::relayed(http, &request),
            (false, Some(_)) => check::body(&request),
            (false, None) => check::request(http, &request),
        };
        let broken_prefix = if self.is_relayed { Vec::new() } else { self.histories.check(&request) };
        let is_prefix_broken = !broken_prefix.is_empty();
        faults.extend(broken_prefix);
        if is_prefix_broken {
            faults.insert(0, SIGNATURE_FAULT.to_owned());
        }
        if !faults.is_empty() {
            return self.refuse(&faults);
        }
        let by_mind = || self.mind.as_ref().map(|mind| mind(&request));
        let Some(reply) = self.script.pop_front().or_else(by_mind) else {
            self.violations.push(format!("a request that the script doesn't expect: {}", request.last_text()));
            return reply::error_response(500, "api_error", "the script is empty");
        };
        let Answer { response, delivered } = reply.answer(&request);
        self.histories.record(request, delivered);
        response
    }

    fn refuse(&mut self, faults: &[String]) -> Response {
        self.violations.extend_from_slice(faults);
        let is_auth = faults.iter().any(|fault| fault.starts_with("x-api-key"));
        let (status, kind) = if is_auth { (401, "authentication_error") } else { (400, "invalid_request_error") };
        reply::error_response(status, kind, &faults.join("; "))
    }
}

/// The id of the only model that [`FakeClaude`] offers.
const MODEL: &str = "claude-sonnet-5-5";

/// Answers a question about a model. A wrong key or name gets the real API's answer, and is no violation, since people mistype them.
fn look_up(http: &Request) -> Response {
    let is_ours = http.header("x-api-key") == Some(API_KEY) && http.header("anthropic-version") == Some("2023-06-01");
    match http.target.strip_prefix("/v1/models/") {
        _ if !is_ours => reply::error_response(401, "authentication_error", "invalid x-api-key"),
        Some(MODEL) => Response::json(200, &serde_json::json!({"type": "model", "id": MODEL})),
        _ => reply::error_response(404, "not_found_error", "model not found"),
    }
}

/// The real API's answer if anything before a signed thinking block was changed.
const SIGNATURE_FAULT: &str =
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
