//! Shows under each nudge what its person did about it, in place of the buttons, and tells who pressed one.

use std::cell::RefCell;

use super::questions::Left;
use crate::{
    channel::{Buttons, SendError},
    store::{AnsweredNudge, Store, StoreError},
    types::NudgeAnswer,
    words::local_day_and_time,
    zone::Tz,
};

/// What a press is answered with. `answered`: what is known of the nudge's answer.
pub(super) fn toast(answered: Option<AnsweredNudge>, has_decided: bool, tz: Tz) -> String {
    match answered {
        Some(answered) if has_decided => outcome(&answered, tz),
        Some(_) => "You've answered this before.".to_owned(),
        None => "This button isn't good any more. Nothing was done.".to_owned(),
    }
}

/// Shows what isn't shown yet. Says what is left of it.
pub(super) async fn look(channel: &dyn Buttons, store: &RefCell<Store>, tz: Tz) -> Result<Left, StoreError> {
    let mut left = Left::Nothing;
    let unshown = store.borrow().unshown_nudge_answers()?;
    for answered in unshown {
        let text = format!("{}\n\n{}", answered.text, outcome(&answered, tz));
        let shown = if answered.is_caption {
            channel.edit_caption(answered.chat, answered.message_id, &text).await
        } else {
            channel.edit(answered.chat, answered.message_id, &text).await
        };
        match shown {
            Ok(()) | Err(SendError::Never { .. }) => store.borrow_mut().nudge_answer_is_shown(answered.outgoing_id)?,
            Err(SendError::Later { after, .. }) => return Ok(Left::AloneFor(after)),
            Err(error) => {
                tracing::debug!(%error, "what became of a nudge is not shown yet");
                left = Left::Some;
            }
        }
    }
    Ok(left)
}

fn outcome(answered: &AnsweredNudge, tz: Tz) -> String {
    match (answered.answer, answered.again_at) {
        (NudgeAnswer::InTheMorning, Some(at)) => format!("💤 I'll remind you {}.", local_day_and_time(at, tz)),
        (NudgeAnswer::Done | NudgeAnswer::InTheMorning, _) => "✅ Done: it leaves your tasks.".to_owned(),
        (NudgeAnswer::NoMore, _) => "🔕 No more nudges. Tell me if you want them again.".to_owned(),
    }
}
