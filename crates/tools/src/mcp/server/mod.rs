//! The server's side: what is offered, how a request is answered, and the two ways in which requests come ([`stdio`], [`http`]).
//!
//! What needs nobody (introductions, pings, the list of tools) is answered at once by [`Offer`]; calls and resources go to one
//! [`Handler`], one after the other, on the thread that serves. So a handler may be a running cycle or begin one of its own.

pub mod http;
pub mod stdio;
pub mod token;

use std::{future::Future, pin::Pin};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use reveille_base::{
    json::has_key_twice,
    types::{VERB, VerbGroup},
};

use super::{
    LATEST, RpcError,
    message::{Message, is_known},
};

/// The largest request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Requests that wait for the handler; more are refused.
const MAX_WAITING: usize = 16;

/// What a server shows of itself.
#[derive(Debug, Clone)]
pub struct Offer {
    /// For the client's model: what this is; empty if nothing is to be said.
    pub instructions: String,
    /// Definitions of tools as the protocol has them (`name`, `description`, `inputSchema`, `annotations`).
    pub tools: Vec<Value>,
    /// Whether there are resources.
    pub has_resources: bool,
}

/// What a call came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// For the client's model.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
    /// A picture beside the text: a raw JSON image block as the Messages API has it.
    pub image: Option<String>,
}

/// A call of one of the offered tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments, a raw JSON object.
    pub input: String,
    /// What the client says of the call beside it (`_meta`); null if nothing.
    pub meta: Value,
}

/// Something that can be read by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// Its media type.
    pub mime: &'static str,
}

/// An answer that is being worked on, on one thread.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// Who carries calls out.
pub trait Handler {
    /// Carries a call out.
    fn call<'a>(&'a mut self, call: &'a Call) -> Answering<'a>;

    /// What can be read.
    ///
    /// # Errors
    /// Why that isn't told.
    fn resources(&mut self) -> Result<Vec<Resource>, Unread> {
        Ok(Vec::new())
    }

    /// The text at an address.
    ///
    /// # Errors
    /// There is none, or why it isn't shown.
    fn read(&mut self, uri: &str) -> Result<String, Unread> {
        let _ = uri;
        Err(Unread::Missing)
    }
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// There is nothing there.
    #[error("there is nothing there")]
    Missing,
    /// It may not be, or can't be, for this reason: a sentence.
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

/// What follows from a message.
enum Next {
    /// This answer, at once.
    Answer(Result<Value, RpcError>),
    /// The handler's answer.
    Work(Work),
}

/// What a handler is asked.
#[derive(Debug)]
enum Work {
    Call(Call),
    Resources,
    Read { uri: String },
}

/// A request on its way to the handler.
struct Job {
    work: Work,
    done: Box<dyn FnOnce(Result<Value, RpcError>) + Send>,
}

impl Offer {
    /// What follows from a request. Total.
    fn next(&self, method: &str, params: &Value) -> Next {
        Next::Answer(match method {
            "initialize" => Ok(self.introduction(params)),
            // There is nothing to set: what a client should know is in its answers.
            "ping" | "logging/setLevel" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.tools})),
            "tools/call" => match self.call(params) {
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

    fn introduction(&self, params: &Value) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = if is_known(asked) { asked } else { LATEST };
        let mut capabilities = json!({"tools": {}, "logging": {}});
        if let (true, Some(capabilities)) = (self.has_resources, capabilities.as_object_mut()) {
            capabilities.insert("resources".to_owned(), json!({}));
        }
        let mut introduction = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": {"name": "reveille", "version": env!("CARGO_PKG_VERSION")},
        });
        if let (false, Some(introduction)) = (self.instructions.is_empty(), introduction.as_object_mut()) {
            introduction.insert("instructions".to_owned(), self.instructions.as_str().into());
        }
        introduction
    }

    /// Whether a tool of this name is offered, or a verb of one that has this name of its own: older clients know it by that.
    fn has(&self, name: &str) -> bool {
        let offered =
            |name: &str| self.tools.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
        let verbs = |tool: &Value| tool.pointer(&format!("/inputSchema/properties/{VERB}/enum"))?.as_array().cloned();
        let is_verb = |group: &VerbGroup| {
            let verbs = offered(group.name).and_then(verbs).unwrap_or_default();
            verbs.iter().filter_map(Value::as_str).any(|verb| group.tool(verb) == Some(name))
        };
        offered(name).is_some() || VerbGroup::with(name).is_some_and(is_verb)
    }

    fn call(&self, params: &Value) -> Result<Work, RpcError> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        if !self.has(name) {
            return Err(RpcError::new(RpcError::PARAMETERS, format!("there is no tool {name:?}")));
        }
        let input = match params.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            // Some clients pass on what their model wrote.
            Some(Value::String(text))
                if serde_json::from_str::<Value>(text).is_ok_and(|read| read.is_object()) && !has_key_twice(text) =>
            {
                text.clone()
            }
            Some(_) => return Err(RpcError::new(RpcError::PARAMETERS, "arguments is no object")),
        };
        let meta = params.get("_meta").cloned().unwrap_or_default();
        Ok(Work::Call(Call { name: name.to_owned(), input, meta }))
    }
}

/// Deals with a message: `done` gets the answer, now or when the handler is through. False: it wants none.
fn deal_with(
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
    match offer.next(&method, &params) {
        Next::Answer(answer) => done(answer),
        Next::Work(work) => {
            let job = Job { work, done: Box::new(done) };
            if let Err(error) = jobs.try_send(job) {
                let busy = RpcError::new(RpcError::INTERNAL, "too many calls wait already; try again");
                (error.into_inner().done)(Err(busy));
            }
        }
    }
    true
}

/// Carries out what comes, one after the other, until nobody can send any more.
async fn work(handler: &mut dyn Handler, mut jobs: mpsc::Receiver<Job>) {
    while let Some(Job { work, done }) = jobs.recv().await {
        done(match work {
            Work::Call(call) => Ok(called(handler.call(&call).await)),
            Work::Resources => handler.resources().map(listed).map_err(RpcError::from),
            Work::Read { uri } => match handler.read(&uri) {
                Ok(text) => Ok(json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]})),
                Err(why) => Err(why.into()),
            },
        });
    }
}

fn called(Answer { text, is_error, image }: Answer) -> Value {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(image.and_then(|block| image_content(&block)));
    json!({"content": content, "isError": is_error})
}

/// The protocol's spelling of an image block.
fn image_content(block: &str) -> Option<Value> {
    let block: Value = serde_json::from_str(block).ok()?;
    let source = block.get("source")?;
    Some(json!({"type": "image", "data": source.get("data")?, "mimeType": source.get("media_type")?}))
}

fn listed(resources: Vec<Resource>) -> Value {
    let resources: Vec<Value> = resources
        .into_iter()
        .map(|Resource { uri, name, mime }| json!({"uri": uri, "name": name, "mimeType": mime}))
        .collect();
    json!({"resources": resources})
}

#[cfg(test)]
mod tests;
