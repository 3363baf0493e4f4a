//! Requests to Telegram and their results.

use std::{cell::RefCell, rc::Rc, time::Duration};

use tokio::time::Instant;

use reveille_channels::telegram::{self, Inbox, RawUpdate, Telegram, TelegramError};

use crate::bot::{poll_turn::PollTurn, room};

/// Maximum time, in seconds, that Telegram may hold a poll.
const POLL_TIMEOUT_S: u32 = 50;
/// Updates per poll, which is Telegram's limit.
const POLL_LIMIT: u8 = 100;
/// Minimum time between two empty polls, so a server that doesn't wait isn't polled in a tight loop.
const EMPTY_POLL_MIN: Duration = Duration::from_secs(1);

/// The source of updates.
#[derive(Clone)]
pub(super) struct UpdateSource {
    /// This machine's turn to poll.
    pub(super) turn: PollTurn,
    /// The updates that a webhook has left. `None` if the bot polls.
    pub(super) inbox: Option<Rc<RefCell<Inbox>>>,
}

/// The next request.
#[derive(Debug, Clone, Copy)]
pub(super) enum PollRequest {
    /// The bot's identity.
    Me,
    /// Updates from this offset on.
    Updates {
        offset: Option<i64>,
        /// Whether to find out who else fetches updates, in case of a conflict.
        explains_rival: bool,
    },
    /// Nothing for now, since the disk has no room.
    Nothing,
    /// Wait for this machine's turn.
    Turn,
}

/// The result of a request.
pub(super) enum Polled {
    Met(telegram::Me),
    Updates(Vec<RawUpdate>),
    Nothing,
}

/// Returns `true` if more updates may follow.
pub(super) fn brings_more(polled: &Result<Polled, TelegramError>) -> bool {
    match polled {
        Ok(Polled::Met(_)) => true,
        Ok(Polled::Updates(updates)) => !updates.is_empty(),
        Ok(Polled::Nothing) | Err(_) => false,
    }
}

/// Waits, then makes one request.
pub(super) async fn send_request(
    telegram: &Telegram,
    source: &UpdateSource,
    what: PollRequest,
    wait: Duration,
) -> Result<Polled, TelegramError> {
    tokio::time::sleep(wait).await;
    let (offset, explains_rival) = match what {
        PollRequest::Updates { offset, explains_rival } => (offset, explains_rival),
        PollRequest::Nothing => {
            tokio::time::sleep(room::LOOK_EVERY).await;
            return Ok(Polled::Nothing);
        }
        PollRequest::Turn => {
            source.turn.wait_for_turn().await;
            return Ok(Polled::Nothing);
        }
        PollRequest::Me => {
            return telegram.get_me().await.map(Polled::Met);
        }
    };
    if let Some(inbox) = &source.inbox {
        let updates = inbox.borrow_mut().next(offset, POLL_LIMIT);
        return updates
            .map(Polled::Updates)
            .map_err(|error| TelegramError::NotSent { why: format!("the inbox: {error}") });
    }
    let asked = Instant::now();
    let polled = tokio::select! {
        polled = telegram.get_updates(offset, POLL_LIMIT, POLL_TIMEOUT_S) => polled,
        () = source.turn.wait_for_end() => return Ok(Polled::Nothing),
    };
    let updates = match polled {
        Err(TelegramError::Conflict(said)) if explains_rival => {
            return Err(TelegramError::Conflict(describe_rival(telegram, said).await));
        }
        updates => updates?,
    };
    if updates.is_empty() {
        tokio::time::sleep_until(asked + EMPTY_POLL_MIN).await;
    }
    Ok(Polled::Updates(updates))
}

/// Describes the rival poller, as far as Telegram knows. A webhook is named by its host only, never by its full address.
async fn describe_rival(telegram: &Telegram, said: String) -> String {
    match telegram.get_webhook_info().await.map(|webhook| webhook.host()) {
        Ok(Some(host)) => format!(
            "{said}. The messages go to a webhook at {host} that another program has set for this bot. Run `bot webhook \
             delete` to remove it, and I'll take over"
        ),
        Ok(None) => format!("{said}. Another program is polling with this token"),
        Err(_) => said,
    }
}
