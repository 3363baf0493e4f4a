//! Waiting for a state of the page, never for a time.

use serde_json::json;
use tokio::time::Instant;

use super::point::CheckMode;
use crate::{
    browser::Browser,
    cdp::CallError,
    error::{BrowserError, Fault, blocked},
    scripts,
    verb::{AwaitedState, BrowserOutcome},
};

/// Milliseconds after which a state is checked although the main document hasn't changed: a frame may have.
const CHECK_MS: u32 = 1_000;

impl Browser {
    /// The verb `wait`.
    pub(crate) async fn wait(&mut self, state: &AwaitedState) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let deadline = Instant::now() + self.options.patience.state;
        loop {
            match self.has_reached(state).await {
                Ok(true) => return self.report(&before, "It is so now.").await,
                Ok(false) | Err(Fault::Call(CallError::Detached)) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                let seconds = self.options.patience.state.as_secs_f64();
                return Err(blocked(format!("It did not become so within {seconds} seconds.")));
            }
            let tab = self.ensure_tab().await?;
            match self.call_in_frame(&tab.frame, scripts::NEXT_CHANGE, &[json!(CHECK_MS)]).await {
                Ok(_) => {}
                // The page goes elsewhere: what is there next is checked once it has begun.
                Err(Fault::Call(CallError::Detached)) => self.settle().await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn has_reached(&mut self, state: &AwaitedState) -> Result<bool, Fault> {
        match state {
            AwaitedState::Text { text } => Ok(contains_words(&self.page_text().await?, text)),
            AwaitedState::TextGone { text } => Ok(!contains_words(&self.page_text().await?, text)),
            AwaitedState::Address { text } => Ok(self.address().contains(text.as_str())),
            AwaitedState::Idle => Ok(self.shared.with(|state| {
                state.tab(self.current).is_some_and(|tab| !tab.is_loading && tab.reached.contains("networkAlmostIdle"))
            })),
            AwaitedState::Element { reference } => match self.find_box(reference, CheckMode::Act).await {
                Ok(_) => Ok(true),
                Err(Fault::Told(BrowserError::ChangePageFirst(_))) => Ok(false),
                Err(error) => Err(error),
            },
        }
    }
}

fn contains_words(page: &str, text: &str) -> bool {
    page.to_lowercase().contains(&text.to_lowercase())
}
