//! The integration tests: stories told through real sockets, files and processes. One binary, one file a story.

#[cfg(test)]
mod channel_telegram;
#[cfg(test)]
mod support;
