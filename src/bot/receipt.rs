//! Confirms at once that messages have arrived and are kept: a reaction to the last message of each chat in a batch.
//!
//! Receipts are a courtesy after the batch was stored, and never retried.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use reveille_base::types::ChatRef;
use reveille_channels::{Presence, SendError};
use reveille_store::{NewIncoming, PartOf};

/// Maximum receipts in the channel; further ones are dropped.
pub(super) const MAX_WAITING: usize = 64;

/// A later receipt is useless.
const SHOWN_WITHIN: Duration = Duration::from_secs(3);

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    chat: ChatRef,
    message_id: i64,
}

/// Returns the last message to the assistant of each chat. Messages between people in a group don't count, and a
/// command gets an answer instead.
pub(super) fn list_receipts(messages: &[NewIncoming]) -> Vec<Acknowledgement> {
    let ours = messages.iter().filter(|message| !message.is_only_part && message.part_of != Some(PartOf::Rest));
    let last: BTreeMap<ChatRef, i64> =
        ours.filter_map(|message| Some((message.chat, message.channel_message_id?))).collect();
    last.into_iter().map(|(chat, message_id)| Acknowledgement { chat, message_id }).collect()
}

/// Shows receipts until their sender is dropped. While Telegram asks for a pause, they are dropped.
pub(super) async fn acknowledge(channel: &dyn Presence, mut receipts: mpsc::Receiver<Acknowledgement>) {
    let mut not_before = Instant::now();
    while let Some(Acknowledgement { chat, message_id }) = receipts.recv().await {
        // Courtesies must not delay the bot's end.
        if receipts.is_closed() {
            break;
        }
        if Instant::now() < not_before {
            continue;
        }
        match tokio::time::timeout(SHOWN_WITHIN, channel.acknowledge(chat, message_id)).await {
            Ok(Err(SendError::Later { after, .. })) => not_before = Instant::now() + after,
            Ok(Err(error)) => tracing::debug!(%error, "a receipt was not shown"),
            Err(_) | Ok(Ok(())) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_acknowledged_once_in_each_chat() {
        let message = |chat, channel_message_id| NewIncoming { chat, channel_message_id, ..NewIncoming::default() };
        let to_others = NewIncoming { is_only_part: true, ..message(ChatRef::from_telegram(7), Some(3)) };
        let command = NewIncoming { part_of: Some(PartOf::Rest), ..message(ChatRef::from_telegram(8), Some(6)) };
        let messages = [
            message(ChatRef::from_telegram(7), Some(1)),
            message(ChatRef::from_telegram(8), Some(5)),
            message(ChatRef::from_telegram(7), Some(2)),
            message(ChatRef::from_telegram(9), None),
            to_others,
            command,
        ];
        let receipts = list_receipts(&messages);
        assert_eq!(
            receipts,
            [
                Acknowledgement { chat: ChatRef::from_telegram(7), message_id: 2 },
                Acknowledgement { chat: ChatRef::from_telegram(8), message_id: 5 }
            ]
        );
    }
}
