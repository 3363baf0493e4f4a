//! A server as a child process, with one message per line on its input and output. It ends on drop, and with our process.

use serde_json::Value;

use reveille_base::process::{Lines, Spec};
use reveille_sandbox::proxy::Proxy;

use super::{ClientError, MAX_MESSAGE_BYTES, talk::ServerTalk};

/// A running server.
#[derive(Debug)]
pub(super) struct Child {
    lines: Lines,
    _proxy: Option<Proxy>,
}

impl Child {
    /// Starts the server.
    pub(super) fn start(spec: &Spec, proxy: Option<Proxy>) -> Result<Self, ClientError> {
        let lines =
            Lines::start(spec, MAX_MESSAGE_BYTES).map_err(|error| ClientError::Unreachable(error.to_string()))?;
        Ok(Self { lines, _proxy: proxy })
    }

    /// Sends a message. A dead server is noticed while waiting for its answer.
    pub(super) fn send(&self, text: String) {
        self.lines.send_line(text);
    }

    /// Waits for the answer to the open request, and answers the server's own requests meanwhile.
    pub(super) async fn receive_answer(&mut self, talk: &mut ServerTalk) -> Result<Value, ClientError> {
        loop {
            let Some(line) = self.lines.next().await else { return Err(self.describe_end(talk).await) };
            let line = line.map_err(|error| ClientError::Protocol(format!("it sent {error}")))?;
            let heard = talk.process_text(&line);
            heard.replies.into_iter().for_each(|reply| self.send(reply));
            if let Some(answer) = heard.answer {
                return answer;
            }
        }
    }

    /// Returns the reason for the end in the server's words: its error output, or its last line that wasn't an answer.
    async fn describe_end(&mut self, talk: &ServerTalk) -> ClientError {
        let complaint = self.lines.find_error_line().await;
        let last = [complaint.as_str(), talk.hint(), "it said nothing"].into_iter().find(|words| !words.is_empty());
        ClientError::Unreachable(format!("it ended ({})", super::pin::clean_text(last.unwrap_or_default(), 300)))
    }
}
