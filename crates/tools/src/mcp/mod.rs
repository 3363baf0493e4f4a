//! The Model Context Protocol, in both directions: other programs' tools for our model ([`client`]), and our memory,
//! tasks and reminders for other programs ([`server`]).
//!
//! The protocol is implemented by hand, over lines of JSON and over streamable HTTP. Only a small part is needed, all
//! outside input must be bounded, and a call stays on its wake's only thread. Every wait has a timeout, and the other
//! side's words are untrusted data.

pub mod client;
mod message;
pub mod server;

pub use message::{LATEST, RpcError};
pub use server::http::serve as serve_http;
