//! The client: servers of `mcp.toml`, started or dialled on the first call of one of their tools, and ended with the cycle.
//!
//! [`settings`] are a person's permissions, [`pin`] the accepted part of a server's tool list. `tools` turns both
//! into tools like the built-in ones, and [`Servers`] runs the calls. Servers are otherwise untrusted: results are
//! tainted, bounded and limited in time, and of a server's own requests only a ping is answered.

pub mod amend;
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
pub use tools::{ServerConfinement, Servers, build_tools, describe_tools, list_current_tools, try_out};

use self::settings::Settings;
use super::RpcError;

/// Returns the shelter of this workspace under these rules; the key files named by `mcp.toml` are hidden too.
pub fn build_shelter(config: &Config, rules: &Rules, servers: &Settings) -> Shelter {
    let keys = KeyFiles { files: servers.key_files.clone(), is_unknown: servers.is_refused };
    Shelter::new(config, rules, keys, process::resolve_sibling_program("wake"))
}

/// Maximum size of a server's message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Why a server gave no answer, for the model and for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The server can't be started or reached, or has ended. The request wasn't sent, or its answer is lost.
    #[error("{0}")]
    Unreachable(String),
    /// The timeout passed.
    #[error("it gave no answer within {seconds} s{}", format_hint(hint))]
    Silent {
        /// The timeout.
        seconds: u64,
        /// The server's last text that wasn't an answer; may be empty.
        hint: String,
    },
    /// The server's text isn't understood.
    #[error("{0}")]
    Protocol(String),
    /// A refusal in the server's own words.
    #[error("{0}")]
    Refused(RpcError),
    /// The server has forgotten the session, and with it the request: nothing was done.
    #[error("it has forgotten this session")]
    SessionOver,
}

fn format_hint(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(" (the last that it said: {hint})") }
}
