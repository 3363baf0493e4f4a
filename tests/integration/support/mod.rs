//! The basis of the integration tests: real servers on loopback that check every request, and fail a test if a request was unexpected or an
//! expected one never came.

pub(crate) mod bot;
pub(crate) mod chromium;
pub(crate) mod claude;
pub(crate) mod database;
pub(crate) mod dialog;
pub(crate) mod disk;
pub(crate) mod env;
pub(crate) mod git_http;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod openai;
pub(crate) mod peers;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod speech;
pub(crate) mod spelled;
pub(crate) mod story;
pub(crate) mod telegram;
mod telegram_files;
mod telegram_rich;
mod telegram_server;
mod telegram_spec;
pub(crate) mod tls;
pub(crate) mod updates;
