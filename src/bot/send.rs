//! `bot send`: a message from a script or a terminal, through the same outbox and sender as every reply.

use chrono::{DateTime, Utc};

use reveille_base::{clock::Clock, process::Identity, redact::Redactor, types::ChatRef};
use reveille_channels::{Channel, delivery};
use reveille_config::Config;
use reveille_store::{NewOutgoing, PartState, Stopped, Store, StoreError, Undelivered};

use super::BotError;

/// The fate of a message. Except for [`Sending::Failed`] it is delivered or safely queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sending {
    /// Telegram confirmed all of it.
    Delivered,
    /// Shown in the terminal by the next wake there.
    Shown,
    /// Waiting in the outbox; wakes try again.
    Waits {
        /// The earliest time of the next try.
        until: Option<DateTime<Utc>>,
        /// The failure, if it was tried.
        why: Option<String>,
    },
    /// Waiting in the outbox until all work is resumed.
    Stopped(Stopped),
    /// In doubt: it may have arrived. The next wake sends it once more, marked as a repeat.
    InDoubt {
        /// The failure.
        why: String,
    },
    /// Telegram has refused it for good.
    Failed {
        /// The failure and the possible remedy.
        why: String,
    },
}

/// Queues a message and delivers it at once. The caller checks that the chat may be written to.
///
/// # Errors
/// If the workspace or the store fails; then nothing is stored or sent.
pub async fn send(
    config: &Config,
    channel: Option<&dyn Channel>,
    clock: &dyn Clock,
    redactor: &Redactor,
    chat: ChatRef,
    text: &str,
) -> Result<Sending, BotError> {
    reveille_cycle::workspace::prepare_workspace(config)?;
    let mut store = reveille_cycle::workspace::open_database(config)?;
    let message = NewOutgoing::notice(chat, redactor.redact(text));
    let id = store.outbox_mut().plan_message(&message, clock.now())?;
    if chat == ChatRef::TERMINAL {
        return Ok(Sending::Shown);
    }
    // The message is stored by now: if a delivery fails, wakes retry it.
    match deliver_message(&mut store, channel, clock, redactor, id).await {
        Ok(sending) => Ok(sending),
        Err(error) => Ok(Sending::Waits { until: None, why: Some(redactor.redact(&error.to_string())) }),
    }
}

async fn deliver_message(
    store: &mut Store,
    channel: Option<&dyn Channel>,
    clock: &dyn Clock,
    redactor: &Redactor,
    id: Option<i64>,
) -> Result<Sending, StoreError> {
    if let Some(stopped) = store.chats().find_stop_order()? {
        return Ok(Sending::Stopped(stopped));
    }
    let Some(id) = id else {
        return Ok(Sending::Waits { until: None, why: None });
    };
    if let Some(channel) = channel {
        delivery::deliver_due(store, channel, Some(&[id]), &Identity::current(), clock, redactor).await?;
    }
    Ok(store.outbox().undelivered_message(id)?.map_or(Sending::Delivered, classify_undelivered))
}

fn classify_undelivered(left: Undelivered) -> Sending {
    let why = left.error;
    match left.state {
        PartState::Failed => Sending::Failed { why: why.unwrap_or_else(|| "for an unknown reason".to_owned()) },
        PartState::Unknown => Sending::InDoubt { why: why.unwrap_or_else(|| "the connection was lost".to_owned()) },
        PartState::Planned | PartState::Attempting | PartState::Sent => {
            Sending::Waits { until: left.not_before.as_deref().and_then(reveille_base::clock::parse_time), why }
        }
    }
}
