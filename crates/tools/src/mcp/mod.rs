//! The Model Context Protocol, both ways: tools of other programs for our model ([`client`]), and our memory, tasks and reminders for
//! other programs ([`server`]).
//!
//! The protocol is spoken by hand, over lines of JSON and over streamable HTTP: what we need of it is small, every byte of it
//! comes from outside and has to be bounded, and a call stays on the one thread of its wake. Every answer is waited for in bounded
//! time, and what the other side says is data with an origin.

pub mod client;
mod message;
pub mod server;

pub use message::{LATEST, RpcError};
pub use server::http::serve as serve_http;
