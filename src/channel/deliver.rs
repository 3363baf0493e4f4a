//! The one sender: takes planned parts from the outbox in order, sends each once, and writes down what became of it.
//!
//! It never sleeps and never repeats by itself: a wait that the channel asks for is stored with the part, and the next
//! wake comes back to it.

use std::time::Duration;

use chrono::TimeDelta;

use super::{Channel, Outgoing, SendError, render};
use crate::{
    clock::Clock,
    process::Identity,
    queue::{Claimed, PartOutcome, Store, StoreError, wait_after},
};

/// No new part is begun after so long; one send is bounded by the channel itself.
const BOUND: Duration = Duration::from_secs(30);

/// What a delivery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Parts that were confirmed.
    pub sent: usize,
    /// Parts that wait, are in doubt or have failed.
    pub left: usize,
}

/// Sends what may be sent now; `only` limits it to these messages.
///
/// # Errors
/// The store's. What the channel says is written to the store and is no error here.
pub async fn deliver(
    store: &mut Store,
    channel: &dyn Channel,
    only: Option<&[i64]>,
    me: &Identity,
    clock: &dyn Clock,
) -> Result<Delivered, StoreError> {
    let mut delivered = Delivered::default();
    let begun = std::time::Instant::now();
    while begun.elapsed() < BOUND {
        let Some(claimed) = store.claim_part(only, me, clock.now())? else {
            break;
        };
        let outcome = send(channel, &claimed, clock).await;
        match &outcome {
            PartOutcome::Sent(_) => delivered.sent += 1,
            PartOutcome::Later { why, .. } | PartOutcome::Unknown(why) | PartOutcome::Failed(why) => {
                delivered.left += 1;
                tracing::warn!(message = claimed.outgoing_id, part = claimed.part, %why, "not delivered");
            }
        }
        store.settle_part(&claimed, &outcome, clock.now())?;
    }
    Ok(delivered)
}

async fn send(channel: &dyn Channel, claimed: &Claimed, clock: &dyn Clock) -> PartOutcome {
    let part = render::Part {
        html: claimed.html.clone(),
        plain: claimed.plain.clone(),
    };
    let part = if claimed.is_repeat {
        render::with_repeat_mark(&part)
    } else {
        part
    };
    let outgoing = Outgoing {
        chat_id: claimed.chat_id,
        thread_id: claimed.thread_id,
        reply_to: claimed.reply_to,
        html: part.html,
        plain: part.plain,
        silent: false,
    };
    let later = |wait: TimeDelta, why: String| PartOutcome::Later {
        not_before: clock.now() + wait,
        why,
    };
    match channel.send(&outgoing).await {
        Ok(sent) => PartOutcome::Sent(sent.message_id),
        Err(SendError::Later { after, why }) => later(TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX), why),
        Err(SendError::NotSent { why }) => later(wait_after(claimed.attempts), why),
        Err(SendError::Ambiguous { why }) => PartOutcome::Unknown(why),
        Err(SendError::Never { why }) => PartOutcome::Failed(why),
    }
}
