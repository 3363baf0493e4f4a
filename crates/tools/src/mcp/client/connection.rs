//! A connection to an MCP server, over either transport: handshake, tool list and calls.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::error::Elapsed;

use reveille_base::process::Spec;
use reveille_sandbox::{Confined, Confinement, ENVIRONMENT, Network, Sandbox};

use super::{
    ClientError, MAX_MESSAGE_BYTES,
    child::Child,
    http::Http,
    pin::MAX_TOOLS,
    settings::{Server, ServerPlace},
    talk::{ServerMethod, ServerTalk},
};
use crate::mcp::{
    LATEST,
    message::{KNOWN, render_notification},
};

/// Timeout of the handshake with a server, and of its tool list.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of pages read of a tool list.
const MAX_PAGES: usize = 128;
/// Maximum number of tools read before selecting the allowed ones.
const MAX_LISTED: usize = 16 * MAX_TOOLS;
/// The protocol revision tried with a server that refuses ours without naming its own.
const OLDEST: &str = "2024-11-05";

/// A connection to a server. Dropping it ends a child process.
#[derive(Debug)]
pub struct Connection {
    transport: Transport,
    talk: ServerTalk,
}

#[derive(Debug)]
enum Transport {
    Child(Child),
    Http(Http),
}

/// The environment in which a server's command is started.
#[derive(Debug, Clone, Copy)]
pub enum CommandEnvironment<'a> {
    /// Confined in the sandbox.
    Sandbox(&'a Sandbox, &'a Confinement),
    /// Unconfined, in this directory, with a person's approval.
    Unconfined(&'a std::path::Path),
}

/// The tools offered by a server.
#[derive(Debug, Default, PartialEq)]
pub struct OfferedTools {
    /// The tools as described by the server.
    pub tools: Vec<Value>,
    /// Sentences about the part of the list that wasn't read.
    pub problems: Vec<String>,
}

impl Connection {
    /// Starts a command or connects to a URL, and performs the handshake.
    ///
    /// # Errors
    /// The server can't be reached, or doesn't speak the protocol.
    pub async fn open(server: &Server, within: CommandEnvironment<'_>) -> Result<Self, ClientError> {
        let transport = match &server.place {
            ServerPlace::Command { .. } => Transport::Child(start_child(server, within)?),
            ServerPlace::Url { url, headers } => Transport::Http(Http::new(url, headers.iter())?),
        };
        let talk = ServerTalk::new(matches!(transport, Transport::Http(_)));
        let mut connection = Self { transport, talk };
        let greeted = tokio::time::timeout(HANDSHAKE_TIMEOUT, connection.perform_handshake()).await;
        connection.flatten_timeout(HANDSHAKE_TIMEOUT, greeted)?;
        Ok(connection)
    }

    async fn perform_handshake(&mut self) -> Result<(), ClientError> {
        let answer = match self.initialize_as(LATEST).await {
            Err(ClientError::Refused(error)) => match choose_older_revision(&error.message) {
                Some(revision) => self.initialize_as(revision).await?,
                None => return Err(ClientError::Refused(error)),
            },
            other => other?,
        };
        // The parts of the protocol used here are the same in every revision, so an unknown revision is accepted.
        let revision = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if let Transport::Http(http) = &mut self.transport {
            http.set_revision(revision);
        }
        let done = render_notification("notifications/initialized");
        match &mut self.transport {
            Transport::Child(child) => child.send(done),
            Transport::Http(http) => http.notify(done).await?,
        }
        Ok(())
    }

    async fn initialize_as(&mut self, revision: &str) -> Result<Value, ClientError> {
        let us = json!({"name": "reveille", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": us});
        self.send_request(ServerMethod::Initialize, &params).await
    }

    /// Lists the offered tools.
    ///
    /// # Errors
    /// As for [`Connection::call`].
    pub async fn list_tools(&mut self) -> Result<OfferedTools, ClientError> {
        self.talk.take_tools_changed();
        let listed = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.read_list()).await;
        self.flatten_timeout(HANDSHAKE_TIMEOUT, listed)
    }

    /// Reads pages until the list ends: no next page, a repeated page name, or a page without new tools.
    async fn read_list(&mut self) -> Result<OfferedTools, ClientError> {
        let mut offered = OfferedTools::default();
        let (mut cursors, mut is_whole) = (Vec::<Value>::new(), false);
        while cursors.len() < MAX_PAGES && offered.tools.len() <= MAX_LISTED {
            let params = cursors.last().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let page = match self.send_request(ServerMethod::ListTools, &params).await {
                // An empty cursor can name a page, but more often marks the end.
                Err(ClientError::Refused(_)) if cursors.last() == Some(&json!("")) => return Ok(offered),
                page => page?,
            };
            let tools = parse_tools(page.get("tools"))?;
            let is_empty = tools.is_empty();
            let before = offered.tools.len();
            for tool in tools {
                // A repeated page doesn't add duplicates; two equal tools on one page are kept.
                if !offered.tools.get(..before).unwrap_or_default().contains(&tool) {
                    offered.tools.push(tool);
                }
            }
            let is_old = !is_empty && offered.tools.len() == before;
            let cursor = page.get("nextCursor").filter(|cursor| cursor.is_string() || cursor.is_number());
            match cursor.filter(|cursor| !is_old && !cursors.contains(cursor)) {
                Some(cursor) => cursors.push(cursor.clone()),
                None => {
                    is_whole = offered.tools.len() <= MAX_LISTED;
                    break;
                }
            }
        }
        if !is_whole {
            offered.tools.truncate(MAX_LISTED);
            offered.problems.push(format!(
                "Its list of tools is longer than {MAX_PAGES} pages or {MAX_LISTED} tools; the rest is left out."
            ));
        }
        Ok(offered)
    }

    /// Returns true if the server has announced changed tools since [`Connection::list_tools`].
    pub fn has_changed_tools(&self) -> bool {
        self.talk.has_changed_tools()
    }

    /// Calls a tool and returns the result unchanged.
    ///
    /// # Errors
    /// No answer arrives in time, or the answer is invalid.
    pub async fn call(&mut self, tool: &str, arguments: &Value, within: Duration) -> Result<Value, ClientError> {
        let params = json!({"name": tool, "arguments": arguments});
        let called = tokio::time::timeout(within, self.send_request(ServerMethod::CallTool, &params)).await;
        self.flatten_timeout(within, called)
    }

    async fn send_request(&mut self, method: ServerMethod, params: &Value) -> Result<Value, ClientError> {
        let text = self.talk.open_request(method, params);
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(ClientError::Protocol("the request is too long for it".to_owned()));
        }
        match &mut self.transport {
            Transport::Child(child) => {
                child.send(text);
                child.receive_answer(&mut self.talk).await
            }
            Transport::Http(http) => http.send_request(text, &mut self.talk).await,
        }
    }

    fn flatten_timeout<T>(
        &self,
        within: Duration,
        work: Result<Result<T, ClientError>, Elapsed>,
    ) -> Result<T, ClientError> {
        let hint = || self.talk.hint().to_owned();
        work.unwrap_or_else(|_| Err(ClientError::Silent { seconds: within.as_secs(), hint: hint() }))
    }
}

/// Returns the tools of a page: a list, or an object keyed by name.
fn parse_tools(tools: Option<&Value>) -> Result<Vec<Value>, ClientError> {
    match tools {
        Some(Value::Array(tools)) => Ok(tools.clone()),
        Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(tools)) => Ok(tools.iter().map(|(name, tool)| add_name(name, tool)).collect()),
        _ => Err(ClientError::Protocol("its list of tools can't be read".to_owned())),
    }
}

fn add_name(name: &str, tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(object) = tool.as_object_mut() {
        object.entry("name").or_insert_with(|| name.into());
    }
    tool
}

/// Returns the newest revision shared with a server that refuses ours; `None` if the refusal has another reason.
fn choose_older_revision(refusal: &str) -> Option<&'static str> {
    let named = KNOWN.into_iter().find(|revision| *revision != LATEST && refusal.contains(revision));
    let is_about_it = || {
        let refusal = refusal.to_ascii_lowercase();
        refusal.contains("protocol") && refusal.contains("version")
    };
    named.or_else(|| is_about_it().then_some(OLDEST))
}

fn start_child(server: &Server, within: CommandEnvironment<'_>) -> Result<Child, ClientError> {
    let ServerPlace::Command { command, env, hosts, writable } = &server.place else {
        return Err(ClientError::Unreachable("it isn't a command".to_owned()));
    };
    let (program, args) =
        command.split_first().ok_or_else(|| ClientError::Unreachable("its command is empty".to_owned()))?;
    let Confined { spec, proxy } = match within {
        CommandEnvironment::Sandbox(sandbox, confinement) => {
            let mut confinement = confinement.clone();
            confinement.writable.extend(writable.iter().cloned());
            confinement.network = Network::Hosts(hosts.clone());
            sandbox
                .confine(&confinement, program.as_ref(), args)
                .map_err(|error| ClientError::Unreachable(error.to_string()))?
        }
        CommandEnvironment::Unconfined(dir) => {
            let spec = Spec::new(program).args(args).only_inheriting(ENVIRONMENT).current_dir(dir).env("HOME", dir);
            Confined { spec, proxy: None }
        }
    };
    let spec = env.iter().fold(spec, |spec, (name, value)| spec.env(name, value.expose()));
    Child::start(&spec, proxy)
}

#[cfg(test)]
mod tests;
