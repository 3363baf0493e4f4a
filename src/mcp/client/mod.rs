//! The client's side: servers of `mcp.toml`, started or dialled when one of their tools is called, and gone with the cycle.
//!
//! [`settings`] is what a person allows, [`pin`] what they have accepted of a server's list, [`tools`] makes of both tools like the
//! built-in ones, and [`Servers`] carry a call out. Nothing a server says is believed beyond that: results are
//! tainted, bounded and waited for in bounded time, and no request of its own is granted but a ping.

mod child;
mod connection;
mod http;
pub mod pin;
mod result;
pub mod settings;
mod tools;

pub use connection::Connection;
use serde_json::{Value, json};
pub use tools::{Servers, described, look, tools, try_out};

use self::settings::Settings;
use super::{
    RpcError,
    message::{self, Message, response},
};
use crate::{
    config::Config,
    exec::{KeyFiles, Shelter},
    policy::Rules,
    process,
};

/// Where programs run in this workspace under these rules: out of their reach are the keys that `mcp.toml` names, too.
pub fn shelter(config: &Config, rules: &Rules, servers: &Settings) -> Shelter {
    let keys = KeyFiles { files: servers.key_files.clone(), is_unknown: servers.is_refused };
    Shelter::new(config, rules, keys, process::beside("wake"))
}

/// The largest message that is taken of a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Why a server gave no answer, for the model and for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It can't be started or reached, or is gone: nothing was asked of it, or its answer is lost.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("it gave no answer within {0} s")]
    Silent(u64),
    /// What it says can't be understood.
    #[error("{0}")]
    Protocol(String),
    /// It refused, in its own words.
    #[error("{0}")]
    Refused(RpcError),
}

/// What follows from a message of a server.
enum Reaction {
    /// It is the answer that is waited for.
    Answered(Result<Value, ClientError>),
    /// It wants this answer.
    Reply(String),
    /// Nothing.
    Nothing,
}

/// Decides it, while the answer to the request `id` is waited for. What isn't a message is passed over: some print to where
/// they should speak.
fn react(text: &str, id: u64, has_news: &mut bool) -> Reaction {
    match message::parse(text) {
        Ok(Message::Response { id: answered, result }) if answered.as_u64() == Some(id) => {
            Reaction::Answered(result.map_err(ClientError::Refused))
        }
        Ok(Message::Request { id, method, .. }) => {
            let answer = match method.as_str() {
                "ping" => Ok(json!({})),
                other => Err(RpcError::new(RpcError::NO_METHOD, format!("{other} is not granted"))),
            };
            Reaction::Reply(response(Some(&id), &answer))
        }
        Ok(Message::Notification { method }) => {
            *has_news |= method == "notifications/tools/list_changed";
            Reaction::Nothing
        }
        Ok(Message::Response { .. } | Message::Refused { .. }) | Err(_) => Reaction::Nothing,
    }
}
