//! `bot send`: a message from a script or a terminal, by the same outbox and the same sender as every reply.

use chrono::{DateTime, Utc};

use reveille_base::{clock::Clock, process::Identity, redact::Redactor, types::ChatRef};
use reveille_channels::{Channel, delivery};
use reveille_config::Config;
use reveille_store::{NewOutgoing, PartState, Stopped, Store, StoreError, Undelivered};

use super::BotError;

/// What became of a message. Except for [`Sending::Failed`] it is delivered or safely queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sending {
    /// Telegram confirmed all of it.
    Delivered,
    /// For the console: the next wake in a terminal shows it.
    Shown,
    /// It waits in the outbox; wakes try again.
    Waits {
        /// Not before.
        until: Option<DateTime<Utc>>,
        /// Why, if it was tried.
        why: Option<String>,
    },
    /// It waits in the outbox until work goes on: all of it is stopped.
    Stopped(Stopped),
    /// It may have arrived. The next wake sends it once more, marked as a repeat.
    InDoubt {
        /// What happened.
        why: String,
    },
    /// Telegram will never take it.
    Failed {
        /// What happened and what can be done.
        why: String,
    },
}

/// Queues a message and delivers it at once. Whether the chat may be written to is for the caller to check.
///
/// # Errors
/// The workspace's or the store's: nothing was stored then, and nothing is sent.
pub async fn send(
    config: &Config,
    channel: Option<&dyn Channel>,
    clock: &dyn Clock,
    redactor: &Redactor,
    chat: ChatRef,
    text: &str,
) -> Result<Sending, BotError> {
    reveille_cycle::workspace::prepare_workspace(config)?;
    let mut store = reveille_cycle::workspace::open(config)?;
    let message = NewOutgoing::notice(chat, redactor.redact(text));
    let id = store.plan_message(&message, clock.now())?;
    if chat == ChatRef::TERMINAL {
        return Ok(Sending::Shown);
    }
    // From here on it is stored: whatever fails, wakes deliver it.
    match sent(&mut store, channel, clock, redactor, id).await {
        Ok(sending) => Ok(sending),
        Err(error) => Ok(Sending::Waits { until: None, why: Some(redactor.redact(&error.to_string())) }),
    }
}

async fn sent(
    store: &mut Store,
    channel: Option<&dyn Channel>,
    clock: &dyn Clock,
    redactor: &Redactor,
    id: Option<i64>,
) -> Result<Sending, StoreError> {
    if let Some(stopped) = store.stopped()? {
        return Ok(Sending::Stopped(stopped));
    }
    let Some(id) = id else {
        return Ok(Sending::Waits { until: None, why: None });
    };
    if let Some(channel) = channel {
        delivery::deliver(store, channel, Some(&[id]), &Identity::current(), clock, redactor).await?;
    }
    Ok(store.undelivered_message(id)?.map_or(Sending::Delivered, read))
}

fn read(left: Undelivered) -> Sending {
    let why = left.error;
    match left.state {
        PartState::Failed => Sending::Failed { why: why.unwrap_or_else(|| "for an unknown reason".to_owned()) },
        PartState::Unknown => Sending::InDoubt { why: why.unwrap_or_else(|| "the connection was lost".to_owned()) },
        PartState::Planned | PartState::Attempting | PartState::Sent => {
            Sending::Waits { until: left.not_before.as_deref().and_then(reveille_base::clock::parse_time), why }
        }
    }
}
