//! Shows the answer to the sample of a rich message in place of the sample and its buttons.

use std::cell::RefCell;

use reveille_base::types::SampleAnswer;
use reveille_channels::{Buttons, SendError};
use reveille_store::{Store, StoreError};

use super::questions::Left;

/// Returns what follows from an answer.
pub(super) fn describe_answer(answer: SampleAnswer) -> &'static str {
    match answer {
        SampleAnswer::ShowsWell => "✅ Good: I'll use tables and headings where an answer needs them.",
        SampleAnswer::ShowsBadly => "All right: I'll send plain messages only.",
    }
}

/// Shows an answer that isn't shown yet, and returns what is left to do.
pub(super) async fn show_answer(channel: &dyn Buttons, store: &RefCell<Store>) -> Result<Left, StoreError> {
    let Some(sample) = store.borrow().outbox().find_unshown_sample()? else { return Ok(Left::Nothing) };
    let text = format!("{}\n\nThe setting TELEGRAM_RICH changes this.", describe_answer(sample.answer));
    match channel.edit_message(sample.chat, sample.message_id, &text).await {
        Ok(()) | Err(SendError::Never { .. }) => {
            store.borrow_mut().outbox_mut().record_shown_sample(sample.chat)?;
            Ok(Left::Nothing)
        }
        Err(SendError::Later { after, .. }) => Ok(Left::AloneFor(after)),
        Err(error) => {
            tracing::debug!(%error, "the answer to the sample isn't shown yet; it is tried again");
            Ok(Left::Some)
        }
    }
}
