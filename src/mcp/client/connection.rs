//! A server that is spoken with, whichever way: introduced, asked for its tools, called.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ClientError, MAX_MESSAGE_BYTES,
    child::Child,
    http::Http,
    pin::MAX_TOOLS,
    settings::{Server, ServerPlace},
};
use crate::{
    mcp::{
        LATEST,
        message::{is_known, notification, request},
    },
    process::Spec,
    sandbox::{Confined, Confinement, ENVIRONMENT, Network, Sandbox},
};

/// How long a server may take to begin, and to list its tools.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Pages of a list of tools that are read.
const MAX_PAGES: usize = 10;
/// Tools that are read before the allowed ones are picked.
const MAX_LISTED: usize = 16 * MAX_TOOLS;

/// A server that is spoken with. Dropped, a child ends.
#[derive(Debug)]
pub struct Connection {
    way: Way,
    last_id: u64,
    /// It has said that its tools are others now.
    has_news: bool,
}

#[derive(Debug)]
enum Way {
    Child(Child),
    Http(Http),
}

/// Where a server that is a command runs.
#[derive(Debug, Clone, Copy)]
pub enum Within<'a> {
    /// In the sandbox, so confined.
    Sandbox(&'a Sandbox, &'a Confinement),
    /// In nothing, in this directory: a person was told so and has agreed.
    Nothing(&'a std::path::Path),
}

impl Connection {
    /// Starts or dials a server and introduces us.
    ///
    /// # Errors
    /// It can't be reached, or doesn't speak the protocol.
    pub async fn open(server: &Server, within: Within<'_>) -> Result<Self, ClientError> {
        let way = match &server.place {
            ServerPlace::Command { .. } => Way::Child(start(server, within)?),
            ServerPlace::Url { url, headers } => Way::Http(Http::new(url, headers.iter())?),
        };
        let mut connection = Self { way, last_id: 0, has_news: false };
        in_time(BEGIN_TIMEOUT, connection.introduce()).await?;
        Ok(connection)
    }

    async fn introduce(&mut self) -> Result<(), ClientError> {
        let us = json!({"name": "reveille", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": LATEST, "capabilities": {}, "clientInfo": us});
        let answer = self.ask("initialize", &params).await?;
        let revision = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if !is_known(revision) {
            let revision = super::pin::clean(revision, 40);
            return Err(ClientError::Protocol(format!(
                "it speaks a revision of the protocol ({revision:?}) that isn't known here"
            )));
        }
        if let Way::Http(http) = &mut self.way {
            http.agree_on(revision);
        }
        let done = notification("notifications/initialized");
        match &self.way {
            Way::Child(child) => child.say(done),
            Way::Http(http) => http.say(done).await?,
        }
        Ok(())
    }

    /// All that it offers, as it says it.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn list(&mut self) -> Result<Vec<Value>, ClientError> {
        self.has_news = false;
        in_time(BEGIN_TIMEOUT, self.read_list()).await
    }

    async fn read_list(&mut self) -> Result<Vec<Value>, ClientError> {
        let (mut tools, mut cursor) = (Vec::new(), None::<Value>);
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let mut page = self.ask("tools/list", &params).await?;
            match page.get_mut("tools").map(Value::take) {
                Some(Value::Array(more)) => tools.extend(more),
                _ => return Err(ClientError::Protocol("its list of tools is none".to_owned())),
            }
            cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
            if cursor.is_none() && tools.len() <= MAX_LISTED {
                return Ok(tools);
            }
        }
        Err(ClientError::Protocol(format!(
            "its list of tools has no end within {MAX_PAGES} pages and {MAX_LISTED} tools"
        )))
    }

    /// Whether it has said since [`Connection::list`] that its tools are others.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Calls a tool; gives the result as it came.
    ///
    /// # Errors
    /// There is no answer in time, or none that can be understood.
    pub async fn call(&mut self, tool: &str, arguments: &Value, within: Duration) -> Result<Value, ClientError> {
        let params = json!({"name": tool, "arguments": arguments});
        in_time(within, self.ask("tools/call", &params)).await
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        let text = request(id, method, params);
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(ClientError::Protocol("what it would be sent is too long".to_owned()));
        }
        match &mut self.way {
            Way::Child(child) => {
                child.say(text);
                child.answer_to(id, &mut self.has_news).await
            }
            Way::Http(http) => http.ask(id, text, &mut self.has_news).await,
        }
    }
}

async fn in_time<T>(within: Duration, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(ClientError::Silent(within.as_secs())))
}

fn start(server: &Server, within: Within<'_>) -> Result<Child, ClientError> {
    let ServerPlace::Command { command, env, hosts, writable } = &server.place else {
        return Err(ClientError::Unreachable("it is no command".to_owned()));
    };
    let (program, args) =
        command.split_first().ok_or_else(|| ClientError::Unreachable("its command is empty".to_owned()))?;
    let Confined { spec, proxy } = match within {
        Within::Sandbox(sandbox, confinement) => {
            let mut confinement = confinement.clone();
            confinement.writable.extend(writable.iter().cloned());
            confinement.network = Network::Hosts(hosts.clone());
            sandbox
                .confine(&confinement, program.as_ref(), args)
                .map_err(|error| ClientError::Unreachable(error.to_string()))?
        }
        Within::Nothing(dir) => {
            let spec = Spec::new(program).args(args).only_inheriting(ENVIRONMENT).dir(dir).env("HOME", dir);
            Confined { spec, proxy: None }
        }
    };
    let spec = env.iter().fold(spec, |spec, (name, value)| spec.env(name, value.expose()));
    Child::start(&spec, proxy)
}
