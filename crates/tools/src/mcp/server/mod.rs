//! The server: its offer, the answers, and the two transports ([`stdio`], [`http`]).
//!
//! [`Offer`] answers handshakes, pings and tool lists at once. Calls and resources go to one [`Handler`], one after
//! the other, on the serving thread, so a handler may be a running cycle or start one.

pub mod http;
pub mod stdio;
pub mod token;

use std::{future::Future, pin::Pin};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use reveille_base::{
    json::has_repeated_key,
    types::{VERB, VerbGroup},
};

use super::{
    LATEST, RpcError,
    message::{Message, is_known},
};

/// Maximum size of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Maximum number of requests waiting for the handler; more are refused.
const MAX_WAITING: usize = 16;

/// The public description of a server.
#[derive(Debug, Clone)]
pub struct Offer {
    /// A description for the client's model; may be empty.
    pub instructions: String,
    /// Tool definitions in the protocol's form (`name`, `description`, `inputSchema`, `annotations`).
    pub tools: Vec<Value>,
    /// True if there are resources.
    pub has_resources: bool,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for the client's model.
    pub text: String,
    /// True for a failure.
    pub is_error: bool,
    /// A picture beside the text: a raw JSON image block of the Messages API.
    pub image: Option<String>,
}

/// A call of an offered tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments, a raw JSON object.
    pub input: String,
    /// The client's metadata of the call (`_meta`); null if absent.
    pub meta: Value,
}

/// A readable resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The address.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The media type.
    pub mime: &'static str,
}

/// A future answer, bound to one thread.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// The executor of calls.
pub trait Handler {
    /// Runs a call.
    fn call<'a>(&'a mut self, call: &'a Call) -> Answering<'a>;

    /// Lists the resources.
    ///
    /// # Errors
    /// The reason why no list is available.
    fn list_resources(&mut self) -> Result<Vec<Resource>, Unread> {
        Ok(Vec::new())
    }

    /// Reads the text of a resource.
    ///
    /// # Errors
    /// The resource is missing, or the reason for a refusal.
    fn read_resource(&mut self, uri: &str) -> Result<String, Unread> {
        let _ = uri;
        Err(Unread::Missing)
    }
}

/// Why a resource wasn't read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The resource doesn't exist.
    #[error("there is no such resource")]
    Missing,
    /// The resource can't or must not be read; the reason is a sentence.
    #[error("{0}")]
    Refused(String),
}

impl From<Unread> for RpcError {
    fn from(unread: Unread) -> Self {
        let code = match &unread {
            Unread::Missing => Self::NO_RESOURCE,
            Unread::Refused(_) => Self::INTERNAL,
        };
        Self::new(code, unread.to_string())
    }
}

/// The reaction to a request.
enum Next {
    /// An immediate answer.
    Answer(Result<Value, RpcError>),
    /// Work for the handler.
    Work(Work),
}

/// Work for the handler.
#[derive(Debug)]
enum Work {
    Call(Call),
    Resources,
    Read { uri: String },
}

/// A request queued for the handler.
struct Job {
    work: Work,
    done: Box<dyn FnOnce(Result<Value, RpcError>) + Send>,
}

impl Offer {
    /// Answers a request, or returns the work that it needs. Accepts any input.
    fn route_request(&self, method: &str, params: &Value) -> Next {
        Next::Answer(match method {
            "initialize" => Ok(self.build_initialize_result(params)),
            // Log levels are accepted and ignored: the server sends no log messages.
            "ping" | "logging/setLevel" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.tools})),
            "tools/call" => match self.parse_call(params) {
                Ok(work) => return Next::Work(work),
                Err(error) => Err(error),
            },
            "resources/list" if self.has_resources => return Next::Work(Work::Resources),
            "resources/templates/list" if self.has_resources => Ok(json!({"resourceTemplates": []})),
            "resources/read" if self.has_resources => match params.get("uri").and_then(Value::as_str) {
                Some(uri) => return Next::Work(Work::Read { uri: uri.to_owned() }),
                None => Err(RpcError::new(RpcError::PARAMETERS, "uri is missing")),
            },
            other => Err(RpcError::new(RpcError::NO_METHOD, format!("there is no method {other:?} here"))),
        })
    }

    fn build_initialize_result(&self, params: &Value) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = if is_known(asked) { asked } else { LATEST };
        let mut capabilities = json!({"tools": {}, "logging": {}});
        if let (true, Some(capabilities)) = (self.has_resources, capabilities.as_object_mut()) {
            capabilities.insert("resources".to_owned(), json!({}));
        }
        let mut result = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": {"name": "reveille", "version": env!("CARGO_PKG_VERSION")},
        });
        if let (false, Some(result)) = (self.instructions.is_empty(), result.as_object_mut()) {
            result.insert("instructions".to_owned(), self.instructions.as_str().into());
        }
        result
    }

    /// Returns true if this tool is offered. Older clients call a verb of a tool group by a tool name of its own.
    fn has_tool(&self, name: &str) -> bool {
        let offered =
            |name: &str| self.tools.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
        let verbs = |tool: &Value| tool.pointer(&format!("/inputSchema/properties/{VERB}/enum"))?.as_array().cloned();
        let is_verb = |group: &VerbGroup| {
            let verbs = offered(group.name).and_then(verbs).unwrap_or_default();
            verbs.iter().filter_map(Value::as_str).any(|verb| group.find_tool(verb) == Some(name))
        };
        offered(name).is_some() || VerbGroup::find_by_tool(name).is_some_and(is_verb)
    }

    fn parse_call(&self, params: &Value) -> Result<Work, RpcError> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        if !self.has_tool(name) {
            return Err(RpcError::new(RpcError::PARAMETERS, format!("there is no tool {name:?}")));
        }
        let input = match params.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            // Some clients pass on the model's text as a string.
            Some(Value::String(text))
                if serde_json::from_str::<Value>(text).is_ok_and(|read| read.is_object())
                    && !has_repeated_key(text) =>
            {
                text.clone()
            }
            Some(_) => return Err(RpcError::new(RpcError::PARAMETERS, "arguments isn't an object")),
        };
        let meta = params.get("_meta").cloned().unwrap_or_default();
        Ok(Work::Call(Call { name: name.to_owned(), input, meta }))
    }
}

/// Handles a message. `done` gets the answer, now or after the handler. Returns false if the message expects no answer.
fn handle_message(
    offer: &Offer,
    message: Message,
    jobs: &mpsc::Sender<Job>,
    done: impl FnOnce(Result<Value, RpcError>) + Send + 'static,
) -> bool {
    let (method, params) = match message {
        Message::Request { method, params, .. } => (method, params),
        Message::Refused { why, .. } => {
            done(Err(why));
            return true;
        }
        Message::Notification { .. } | Message::Response { .. } => return false,
    };
    match offer.route_request(&method, &params) {
        Next::Answer(answer) => done(answer),
        Next::Work(work) => {
            let job = Job { work, done: Box::new(done) };
            if let Err(error) = jobs.try_send(job) {
                let busy = RpcError::new(RpcError::INTERNAL, "too many calls are waiting already; try again");
                (error.into_inner().done)(Err(busy));
            }
        }
    }
    true
}

/// Runs the queued jobs one after the other until all senders are dropped.
async fn run_jobs(handler: &mut dyn Handler, mut jobs: mpsc::Receiver<Job>) {
    while let Some(Job { work, done }) = jobs.recv().await {
        done(match work {
            Work::Call(call) => Ok(render_answer(handler.call(&call).await)),
            Work::Resources => handler.list_resources().map(render_resources).map_err(RpcError::from),
            Work::Read { uri } => match handler.read_resource(&uri) {
                Ok(text) => Ok(json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]})),
                Err(why) => Err(why.into()),
            },
        });
    }
}

fn render_answer(Answer { text, is_error, image }: Answer) -> Value {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(image.and_then(|block| image_content(&block)));
    json!({"content": content, "isError": is_error})
}

/// Converts an image block to the protocol's form.
fn image_content(block: &str) -> Option<Value> {
    let block: Value = serde_json::from_str(block).ok()?;
    let source = block.get("source")?;
    Some(json!({"type": "image", "data": source.get("data")?, "mimeType": source.get("media_type")?}))
}

fn render_resources(resources: Vec<Resource>) -> Value {
    let resources: Vec<Value> = resources
        .into_iter()
        .map(|Resource { uri, name, mime }| json!({"uri": uri, "name": name, "mimeType": mime}))
        .collect();
    json!({"resources": resources})
}

#[cfg(test)]
mod tests;
