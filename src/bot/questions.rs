//! Shows the outcome under each question, reminder and nudge, and tells whoever pressed a button if the press has
//! decided it.
//!
//! The decision was made in the transaction that stored the press. Showing it is a courtesy: it is retried as long as
//! it may succeed, and nothing depends on it. While Telegram asks for a pause, nothing is shown.

use std::cell::RefCell;

use tokio::{
    sync::{mpsc, watch},
    time::{Duration, Instant},
};

use reveille_base::{
    clock::Clock,
    types::{ApprovalAnswer, ButtonChoice, ChatRef},
    words::local_day_and_time,
    zone::Tz,
};
use reveille_channels::{Buttons, SendError};
use reveille_store::{Approval, ApprovalState, RuleState, Store, StoreError, Tap, Unshown, is_long};

use super::{answered, sample};

/// Maximum presses in the channel. Telegram gives up on an unanswered press by itself.
pub(super) const MAX_WAITING: usize = 64;
/// The wait before showing failed outcomes again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Works until the senders are dropped.
pub(super) async fn show(
    channel: &dyn Buttons,
    store: &RefCell<Store>,
    clock: &dyn Clock,
    tz: Tz,
    mut taps: mpsc::Receiver<(Tap, bool)>,
    mut is_running: watch::Receiver<bool>,
) {
    let mut again_at = None;
    let mut not_before = Instant::now();
    loop {
        if not_before <= Instant::now() {
            match show_outcomes(channel, store, tz).await {
                Ok(Left::Nothing) => again_at = None,
                Ok(Left::Some) => again_at = Some(Instant::now() + AGAIN_AFTER),
                Ok(Left::AloneFor(time)) => {
                    // fault: became-question-shown-telegram
                    not_before = Instant::now() + time;
                    again_at = Some(not_before);
                    // fault end: became-question-shown-telegram
                }
                Err(error) => {
                    tracing::debug!(%error, "what became of questions could not be read or written down");
                    again_at = Some(Instant::now() + AGAIN_AFTER);
                }
            }
        }
        let again = async {
            match again_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // The end of a wake may have decided something too, such as expired questions. Presses come first, so a waiting
        // press is still answered when the bot ends.
        tokio::select! {
            biased;
            tap = taps.recv() => match tap {
                // A later answer is useless.
                Some((tap, has_decided)) if not_before <= Instant::now() => {
                    if let Some(time) = answer_press(channel, store, clock, tz, &tap, has_decided).await {
                        not_before = Instant::now() + time;
                        again_at = Some(not_before);
                    }
                }
                Some(_) => {}
                None => return,
            },
            changed = is_running.changed() => if changed.is_err() { return },
            () = again => {}
        }
    }
}

/// The remaining work.
pub(super) enum Left {
    Nothing,
    Some,
    /// Telegram asks for a pause of this length.
    AloneFor(Duration),
}

/// Answers whoever pressed a button. Returns the pause that Telegram asks for, if any.
async fn answer_press(
    channel: &dyn Buttons,
    store: &RefCell<Store>,
    clock: &dyn Clock,
    tz: Tz,
    tap: &Tap,
    has_decided: bool,
) -> Option<Duration> {
    let text = match &tap.choice {
        ButtonChoice::Approval { answer: ApprovalAnswer::Yes, .. } if has_decided => "Allowed, once.".to_owned(),
        ButtonChoice::Approval { answer: ApprovalAnswer::No, .. } if has_decided => "Not done.".to_owned(),
        ButtonChoice::Approval { nonce, .. } => render_answer(store, nonce, |approval| why_not(approval, clock)),
        ButtonChoice::Always { nonce } => {
            render_answer(store, nonce, |approval| match (approval.state, approval.rule) {
                (ApprovalState::Pending, Some(RuleState::Shown)) if approval.chat == tap.chat => {
                    "Here is the rule. Nothing is allowed yet."
                }
                _ => why_not(approval, clock),
            })
        }
        ButtonChoice::Rule { is_yes: false, .. } if has_decided => "Not added. The question is still open.".to_owned(),
        ButtonChoice::Rule { nonce, is_yes } => render_answer(store, nonce, |approval| match approval.rule {
            Some(RuleState::Added) if *is_yes && has_decided => "Added. From now on I'll do this without asking.",
            Some(RuleState::Added) => "This rule has already been added.",
            Some(_) if has_decided => "Nothing was added. I'll tell you why.",
            Some(RuleState::Declined) => "You've already declined this rule. “Always allow this” shows it again.",
            _ => why_not(approval, clock),
        }),
        ButtonChoice::Reminder { outgoing_id, .. } | ButtonChoice::Nudge { outgoing_id, .. } => {
            answered::render_toast(store, *outgoing_id, has_decided, tz)
        }
        ButtonChoice::Sample { answer, .. } if has_decided => sample::describe_answer(*answer).to_owned(),
        ButtonChoice::Sample { .. } => "You've already answered this.".to_owned(),
    };
    match channel.answer_tap(&tap.callback_id, &text).await {
        Ok(()) => None,
        Err(error) => {
            tracing::debug!(%error, "a press was not answered");
            if let SendError::Later { after, .. } = error { Some(after) } else { None }
        }
    }
}

/// Renders an answer from the question that a button belongs to.
fn render_answer(store: &RefCell<Store>, nonce: &str, say: impl FnOnce(&Approval) -> &'static str) -> String {
    match store.borrow().approvals().approval_by_nonce(nonce) {
        Ok(Some(approval)) => say(&approval).to_owned(),
        Ok(None) | Err(_) => "I no longer have this question. Nothing was done.".to_owned(),
    }
}

fn why_not(approval: &Approval, clock: &dyn Clock) -> &'static str {
    match approval.state {
        ApprovalState::Approved => "This has already been allowed.",
        ApprovalState::Denied => "This has already been refused.",
        ApprovalState::Withdrawn => "This question is over. Nothing was done.",
        _ if approval.is_expired(clock.now()) => "This came too late. Nothing was done.",
        _ => "Only the person I asked can answer this.",
    }
}

/// Shows every outcome that isn't shown yet, and returns the remaining work.
async fn show_outcomes(channel: &dyn Buttons, store: &RefCell<Store>, tz: Tz) -> Result<Left, StoreError> {
    let mut left = match answered::show_outcomes(channel, store, tz).await? {
        Left::AloneFor(time) => return Ok(Left::AloneFor(time)),
        left => left,
    };
    match sample::show_answer(channel, store).await? {
        Left::AloneFor(time) => return Ok(Left::AloneFor(time)),
        Left::Some => left = Left::Some,
        Left::Nothing => {}
    }
    let unshown = store.borrow().rules().unshown_rules()?;
    for (Unshown { approval, message_id, text }, row) in unshown {
        let shown = match message_id {
            Some(message_id) => {
                channel
                    .edit_message(approval.chat, message_id, &format!("{text}\n\n{}", describe_rule_outcome(&approval)))
                    .await
            }
            None => Ok(()),
        };
        match shown {
            Ok(()) | Err(SendError::Never { .. }) => {
                store.borrow_mut().rules_mut().record_shown_rule(approval.id, row)?;
            }
            Err(SendError::Later { after, .. }) => return Ok(Left::AloneFor(after)),
            Err(error) => {
                tracing::debug!(%error, "what became of a rule is not shown yet");
                left = Left::Some;
            }
        }
    }
    let unshown = store.borrow().approvals().unshown_approvals()?;
    for Unshown { approval, message_id, text } in unshown {
        let Some(message_id) = message_id.filter(|_| approval.chat != ChatRef::TERMINAL) else {
            // A question without a message needs no edit. A copy in delivery keeps its buttons, and a press on it is
            // answered.
            store.borrow_mut().approvals_mut().record_shown_state(approval.id, approval.state)?;
            continue;
        };
        let text = format!("{text}\n\n{}", describe_outcome(&approval, tz));
        let shown = if is_long(&approval.action, &approval.named, &approval.reasons) {
            channel.edit_caption(approval.chat, message_id, &text).await
        } else {
            channel.edit_message(approval.chat, message_id, &text).await
        };
        match shown {
            Ok(()) | Err(SendError::Never { .. }) => {
                store.borrow_mut().approvals_mut().record_shown_state(approval.id, approval.state)?;
            }
            Err(SendError::Later { after, .. }) => return Ok(Left::AloneFor(after)),
            Err(error) => {
                tracing::debug!(%error, "what became of a question is not shown yet");
                left = Left::Some;
            }
        }
    }
    Ok(left)
}

fn describe_outcome(approval: &Approval, tz: Tz) -> String {
    let at = approval.decided_at.map(|at| format!(", {}", local_day_and_time(at, tz))).unwrap_or_default();
    let by = if approval.decided_by.as_deref() == Some("console") { " in the terminal" } else { "" };
    match approval.state {
        ApprovalState::Approved if approval.rule == Some(RuleState::Added) => {
            format!("✅ Allowed{by}, now and always{at}.")
        }
        ApprovalState::Approved => format!("✅ Allowed{by}, once{at}."),
        ApprovalState::Denied => format!("❌ Refused{by}{at}."),
        ApprovalState::Expired => "⌛ Nobody answered in time, so I didn't do it.".to_owned(),
        ApprovalState::Withdrawn => "This question is over: nothing was done.".to_owned(),
        ApprovalState::Pending => String::new(),
    }
}

/// Describes the outcome of a rule.
fn describe_rule_outcome(approval: &Approval) -> &'static str {
    match approval.rule {
        Some(RuleState::Added) => "✅ Added. /rules lists it and can remove it.",
        Some(RuleState::Declined) => "❌ Not added. The question is still open.",
        _ => "❌ Not added: the question was answered another way.",
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use chrono::DateTime;

    use super::*;
    use reveille_base::clock::FixedClock;
    use reveille_channels::{Channel, DoneFuture, Outgoing, Presence, SendFuture};

    /// A channel that counts the presses that it answers, and can do nothing else.
    #[derive(Default)]
    struct Answers(Cell<u32>);

    impl Channel for Answers {
        fn send<'a>(&'a self, _: &'a Outgoing) -> SendFuture<'a> {
            panic!("nothing is sent here")
        }
    }

    impl Presence for Answers {
        fn show_typing<'a>(&'a self, _: ChatRef, _: Option<i64>) -> DoneFuture<'a> {
            panic!("nothing is shown here")
        }

        fn acknowledge<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            panic!("nothing has come here")
        }

        fn edit_message<'a>(&'a self, _: ChatRef, _: i64, _: &'a str) -> DoneFuture<'a> {
            panic!("nothing is changed here")
        }

        fn show_draft<'a>(&'a self, _: &'a reveille_channels::DraftMessage) -> DoneFuture<'a> {
            panic!("nothing is shown here")
        }

        fn delete_message<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            panic!("nothing is deleted here")
        }
    }

    impl Buttons for Answers {
        fn edit_caption<'a>(&'a self, _: ChatRef, _: i64, _: &'a str) -> DoneFuture<'a> {
            panic!("nothing is changed here")
        }

        fn answer_tap<'a>(&'a self, _: &'a str, _: &'a str) -> DoneFuture<'a> {
            self.0.set(self.0.get() + 1);
            Box::pin(async { Ok(()) })
        }
    }

    #[test]
    fn a_press_that_waits_when_the_bot_ends_is_answered() {
        let dir = tempfile::tempdir().unwrap();
        let store = RefCell::new(Store::open(&dir.path().join("messages.db")).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        // Several times: which of two ready ends is taken first may be left to chance.
        for _ in 0..20 {
            let channel = Answers::default();
            let (taps, tapped) = mpsc::channel(MAX_WAITING);
            let (is_running, running) = watch::channel(false);
            let tap = Tap {
                callback_id: "1".to_owned(),
                choice: ButtonChoice::Approval { nonce: "none".to_owned(), answer: ApprovalAnswer::Yes },
                chat: ChatRef::from_telegram(7),
                message_id: 70,
                message_date: None,
                sender_id: 7,
            };
            taps.try_send((tap, true)).unwrap();
            drop((taps, is_running));
            let clock = FixedClock(DateTime::UNIX_EPOCH);
            runtime.block_on(show(&channel, &store, &clock, "Europe/Berlin".parse::<Tz>().unwrap(), tapped, running));
            assert_eq!(channel.0.get(), 1);
        }
    }
}
