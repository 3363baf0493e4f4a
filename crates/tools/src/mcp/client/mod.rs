//! The client's side: servers of `mcp.toml`, started or dialled when one of their tools is called, and gone with the cycle.
//!
//! [`settings`] is what a person allows, [`pin`] what they have accepted of a server's list, [`tools`] makes of both tools like the
//! built-in ones, and [`Servers`] carry a call out. Nothing a server says is believed beyond that: results are
//! tainted, bounded and waited for in bounded time, and no request of its own is granted but a ping.

mod child;
mod connection;
mod http;
pub mod pin;
mod refusal;
mod result;
mod schema;
pub mod settings;
mod talk;
mod tools;

use reveille_base::process;
use reveille_config::Config;
use reveille_policy::Rules;
use reveille_sandbox::exec::{KeyFiles, Shelter};

pub use connection::Connection;
pub use tools::{Servers, described, look, tools, try_out};

use self::settings::Settings;
use super::RpcError;

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
    #[error("it gave no answer within {seconds} s{}", hinted(hint))]
    Silent {
        /// How long was waited.
        seconds: u64,
        /// What it said last that is no answer, or empty.
        hint: String,
    },
    /// What it says can't be understood.
    #[error("{0}")]
    Protocol(String),
    /// It refused, in its own words.
    #[error("{0}")]
    Refused(RpcError),
    /// It has forgotten the session, and with it the request: nothing was done.
    #[error("it has forgotten this session")]
    SessionOver,
}

fn hinted(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(" (the last that it said: {hint})") }
}
