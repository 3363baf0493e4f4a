//! Replaces the buttons of each reminder and nudge by its outcome, and confirms the press to the person who pressed.

use std::cell::RefCell;

use reveille_base::{types::NudgeAnswer, words::local_day_and_time, zone::Tz};
use reveille_channels::{Buttons, SendError};
use reveille_store::{AnsweredMessage, Store, StoreError};

use super::questions::Left;

/// Returns the short text that Telegram shows for a press.
pub(super) fn render_toast(store: &RefCell<Store>, outgoing_id: i64, has_decided: bool, tz: Tz) -> String {
    match store.borrow().reminders().find_message_answer(outgoing_id) {
        Ok(Some(answered)) if has_decided => describe_outcome(&answered, tz),
        Ok(Some(_)) => "You've already answered this.".to_owned(),
        Ok(None) | Err(_) => "This button no longer works. Nothing was done.".to_owned(),
    }
}

/// Shows every outcome that isn't shown yet, and returns what is left to do.
pub(super) async fn show_outcomes(channel: &dyn Buttons, store: &RefCell<Store>, tz: Tz) -> Result<Left, StoreError> {
    let mut left = Left::Nothing;
    let unshown = store.borrow().reminders().unshown_answers()?;
    for answered in unshown {
        let text = format!("{}\n\n{}", answered.text, describe_outcome(&answered, tz));
        let shown = if answered.is_caption {
            channel.edit_caption(answered.chat, answered.message_id, &text).await
        } else {
            channel.edit_message(answered.chat, answered.message_id, &text).await
        };
        match shown {
            Ok(()) | Err(SendError::Never { .. }) => {
                store.borrow_mut().reminders_mut().record_shown_answer(answered.outgoing_id)?;
            }
            Err(SendError::Later { after, .. }) => return Ok(Left::AloneFor(after)),
            Err(error) => {
                tracing::debug!(%error, "an outcome isn't shown yet; it is tried again");
                left = Left::Some;
            }
        }
    }
    Ok(left)
}

fn describe_outcome(answered: &AnsweredMessage, tz: Tz) -> String {
    match (answered.nudge, answered.again_at) {
        (Some(NudgeAnswer::NoMore), _) => "🔕 No more nudges. Tell me if you want them again.".to_owned(),
        (Some(NudgeAnswer::TakeBack), _) => "↩️ Taking it back. I'll tell you when it's done.".to_owned(),
        (Some(NudgeAnswer::Done), _) => "✅ Done. I'll take it off your tasks.".to_owned(),
        (_, Some(at)) => format!("💤 I'll remind you again {}.", local_day_and_time(at, tz)),
        (_, None) => "✅ Done.".to_owned(),
    }
}
