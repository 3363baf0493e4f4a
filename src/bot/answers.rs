//! Sends the bot's messages, mostly answers to commands. Runs beside the polling, so a slow send doesn't delay incoming
//! messages, and takes the chats in turn, so a flood of commands in one chat doesn't delay the others.

use tokio::sync::{mpsc, watch};

use reveille_base::process::Identity;
use reveille_channels::delivery::{self, Tried, Turns};
use reveille_store::{Store, StoreError};

use super::{BotContext, poll_turn::PollTurn, progress};

/// Maximum batches of answers in the channel. Further ones stay in the outbox for the next wake.
pub(super) const MAX_WAITING: usize = 64;
/// Maximum messages among which the next is chosen. Further batches stay in the channel.
const MAX_DUE: usize = 1_000;

/// Sends the answers. Ends with the sender of `to_send`, or shortly after that of `is_running`. The next wake delivers
/// unsent ones.
pub(super) async fn send(
    outside: BotContext<'_>,
    outbox: Store,
    to_send: mpsc::Receiver<Vec<i64>>,
    turn: PollTurn,
    is_running: watch::Receiver<bool>,
) {
    tokio::select! {
        () = send_all(outside, outbox, to_send, &turn) => {}
        () = progress::wait_past_end(is_running) => {}
    }
}

async fn send_all(outside: BotContext<'_>, mut outbox: Store, mut to_send: mpsc::Receiver<Vec<i64>>, turn: &PollTurn) {
    let (mut due, mut turns) = (Vec::new(), Turns::default());
    while let Some(ids) = to_send.recv().await {
        due.extend(ids);
        while !due.is_empty() {
            // Batches that have arrived meanwhile take their turn with the rest.
            while due.len() < MAX_DUE
                && let Ok(ids) = to_send.try_recv()
            {
                due.extend(ids);
            }
            if let Err(error) = send_next(outside, &mut outbox, &mut due, turn, &mut turns).await {
                tracing::warn!(%error, "an answer to a command could not be sent now; a later wake delivers it");
                due.clear();
            }
        }
    }
}

/// Sends one part of a message in `due`, and removes the messages that are finished or left to a later wake.
async fn send_next(
    outside: BotContext<'_>,
    outbox: &mut Store,
    due: &mut Vec<i64>,
    turn: &PollTurn,
    turns: &mut Turns,
) -> Result<(), StoreError> {
    let BotContext { telegram, clock, redactor, .. } = outside;
    let (may_send, me) = (|| turn.is_ours(), Identity::current());
    match delivery::deliver_next(outbox, telegram, (due, &may_send), turns, &me, clock, redactor).await? {
        Some(Tried { outgoing_id, is_sent }) => {
            if !is_sent || outbox.outbox().undelivered_message(outgoing_id)?.is_none() {
                due.retain(|id| *id != outgoing_id);
            }
        }
        None => due.clear(),
    }
    Ok(())
}
