//! A server as a child: a message a line on its input and output. It ends when this value goes, and with us.

use serde_json::Value;

use reveille_base::process::{Lines, Spec};
use reveille_sandbox::proxy::Proxy;

use super::{ClientError, MAX_MESSAGE_BYTES, talk::ServerTalk};

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

    /// Waits for the answer to the open request, and answers what the server asks meanwhile.
    pub(super) async fn answer(&mut self, talk: &mut ServerTalk) -> Result<Value, ClientError> {
        loop {
            let Some(line) = self.lines.next().await else { return Err(self.ended(talk).await) };
            let line = line.map_err(|error| ClientError::Protocol(format!("it sent {error}")))?;
            let heard = talk.hear(&line);
            heard.replies.into_iter().for_each(|reply| self.say(reply));
            if let Some(answer) = heard.answer {
                return answer;
            }
        }
    }

    /// Why it ended, in its own words: its complaint, else what it printed where it should have answered.
    async fn ended(&mut self, talk: &ServerTalk) -> ClientError {
        let complaint = self.lines.complaint().await;
        let last = [complaint.as_str(), talk.hint(), "it said nothing"].into_iter().find(|words| !words.is_empty());
        ClientError::Unreachable(format!("it ended ({})", super::pin::clean(last.unwrap_or_default(), 300)))
    }
}
