//! What the stories stand on.

pub(crate) mod telegram;
mod telegram_server;
mod telegram_spec;
