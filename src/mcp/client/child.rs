//! A server as a child: a message a line on its input and output. It ends when this value goes, and with us.

use serde_json::Value;

use super::{ClientError, MAX_MESSAGE_BYTES, Reaction, react};
use crate::{
    process::{Lines, Spec},
    sandbox::proxy::Proxy,
};

/// A server at work.
#[derive(Debug)]
pub(super) struct Child {
    lines: Lines,
    _proxy: Option<Proxy>,
}

impl Child {
    /// Starts it.
    pub(super) fn start(spec: &Spec, proxy: Option<Proxy>) -> Result<Self, ClientError> {
        let lines =
            Lines::start(spec, MAX_MESSAGE_BYTES).map_err(|error| ClientError::Unreachable(error.to_string()))?;
        Ok(Self { lines, _proxy: proxy })
    }

    /// Says something. What a dead one can't take is noticed by whoever waits for its answer.
    pub(super) fn say(&self, text: String) {
        self.lines.say(text);
    }

    /// Waits for the answer to a request, and answers what the server asks meanwhile.
    pub(super) async fn answer_to(&mut self, id: u64, has_news: &mut bool) -> Result<Value, ClientError> {
        loop {
            let Some(line) = self.lines.next().await else { return Err(self.ended().await) };
            let line = line.map_err(|error| ClientError::Protocol(format!("it sent {error}")))?;
            match react(&line, id, has_news) {
                Reaction::Answered(answer) => return answer,
                Reaction::Reply(reply) => self.say(reply),
                Reaction::Nothing => {}
            }
        }
    }

    async fn ended(&mut self) -> ClientError {
        let complaint = self.lines.complaint().await;
        let last = if complaint.is_empty() { "it said nothing" } else { &complaint };
        ClientError::Unreachable(format!("it ended ({})", super::pin::clean(last, 300)))
    }
}
