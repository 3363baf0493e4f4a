//! The content of one poll, stored in one transaction: messages, edits, commands, presses of buttons, and the next offset.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::format_rfc3339,
    types::{ButtonChoice, ChatRef, NudgeAnswer},
};

use super::{
    orders::{self, AnswerState, Order, Ordered},
    typed,
};
use crate::{
    Moved, NewIncoming, NewOutgoing, NewPaired, Proposal, Result, Tap,
    areas::{Inbox, ReadStore, WriteStore},
    chats::moved,
    cycles::{approvals, rules, undo},
    messages::{
        overheard,
        parts::{self, UpdateEffect},
    },
    outbox::{planned, rich},
    people::pairing,
    reminders::{answered, nudged},
    sql::{OptionalExtension as _, Transaction},
};

/// A batch of updates for one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The bot of these updates: each bot has offsets of its own.
    pub bot_id: i64,
    /// The batch's last update id + 1, the offset of the next poll.
    pub next_offset: i64,
    /// The messages, including commands that may turn out to be the rest of a text ([`crate::PartOf::Rest`]).
    pub messages: Vec<NewIncoming>,
    /// New versions of earlier messages, by `channel_message_id`; processed after `messages`.
    pub edits: Vec<NewIncoming>,
    /// Commands with their orders and the bot's own answers, in order of arrival.
    pub commands: Vec<Ordered>,
    /// The owner's chat, where a typed yes or no can answer a question; `None` to disable that.
    pub owner_chat: Option<ChatRef>,
    /// Presses of buttons under our messages.
    pub taps: Vec<Tap>,
    /// The message that shows the rule after a press of "always", by the question's nonce.
    pub rules: BTreeMap<String, NewOutgoing>,
    /// Groups with a new id.
    pub moved: Vec<Moved>,
    /// The bot's own notices.
    pub notices: Vec<NewOutgoing>,
    /// The number of updates from unlisted people.
    pub strangers: u32,
    /// The number of wrong pairing codes from strangers.
    pub wrong_codes: u32,
    /// The person who sent a valid pairing code; the batch ends there.
    pub pairs: Option<NewPaired>,
}

/// The result of storing a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Rows of new messages, and of corrections; a second delivery adds none.
    pub stored: Vec<i64>,
    /// The number of updates that changed a queued message: edits of unclaimed messages, and later parts of split ones.
    pub edited: usize,
    /// Rows of the bot's own answers to commands.
    pub answers: Vec<i64>,
    /// The orders of the commands, including repeated deliveries.
    pub orders: Vec<Order>,
    /// Whether there is a new order or decision, so that other work may be due now.
    pub has_orders: bool,
    /// Whether the bot should restart. A repeated delivery doesn't count.
    pub restarts: bool,
    /// The person who has paired.
    pub paired: Option<i64>,
    /// The presses, each with `true` if it decided its question.
    pub taps: Vec<(Tap, bool)>,
}

impl Accepted {
    fn count_message(&mut self, effect: UpdateEffect) {
        match effect {
            UpdateEffect::Stored(row) => self.stored.push(row),
            UpdateEffect::Changed => self.edited += 1,
            UpdateEffect::Nothing => {}
        }
    }
}

impl<S: ReadStore> Inbox<S> {
    /// The offset for the next poll: the last batch's last id + 1; `None` before this bot's first batch.
    pub fn next_offset(&self, bot_id: i64) -> Result<Option<i64>> {
        let offset = self
            .0
            .store()
            .conn
            .query_row("SELECT next_offset FROM poll_state WHERE bot_id = ?1", [bot_id], |row| row.get(0))
            .optional()?;
        // Polls without updates leave a 0.
        Ok(offset.filter(|offset| *offset != 0))
    }
}

impl<S: WriteStore> Inbox<S> {
    /// Stores a batch of updates, with the bot's own answers and the next offset, in one transaction. Confirm the updates to the channel
    /// only after this returns.
    pub fn accept_batch(&mut self, batch: &Batch, now: DateTime<Utc>) -> Result<Accepted> {
        // fault: batch-confirmed-synced
        self.0.write(|tx| {
            let mut accepted = Accepted::default();
        // fault end: batch-confirmed-synced
            for message in &batch.messages {
                let typed = batch.owner_chat.map(|owner| typed::process_typed_answer(tx, (batch.bot_id, owner), message, now));
                if let Some(answer) = typed.transpose()?.flatten() {
                    accepted.has_orders |= answer.has_decided;
                    accepted.answers.extend(answer.reply_row);
                    continue;
                }
                for part in overheard::take_earlier_parts(tx, batch.bot_id, message)? {
                    accepted.count_message(parts::process_message(tx, batch.bot_id, &part, now)?);
                }
                accepted.count_message(parts::process_message(tx, batch.bot_id, message, now)?);
            }
            for edit in &batch.edits {
                accepted.count_message(parts::process_edit(tx, batch.bot_id, edit, now)?);
            }
            for ordered in &batch.commands {
                // fault: rest-long-text-runs
                if is_rest(tx, batch.bot_id, ordered)? {
                    continue;
                }
                accepted.orders.extend(ordered.order.clone());
                let answer = orders::accept_order(tx, ordered, now)?;
                accepted.has_orders |= answer.is_some() && ordered.order.as_ref().is_some_and(Order::is_work);
                accepted.restarts |= answer.is_some() && ordered.order == Some(Order::Restart);
                if let Some(AnswerState::Planned(row)) = answer {
                    accepted.answers.push(row);
                }
            }
            for tap in &batch.taps {
                let has_decided = match &tap.choice {
                    ButtonChoice::Approval { nonce, answer } => approvals::record_tap(tx, tap, (nonce, *answer), now)?,
                    ButtonChoice::Always { nonce } => {
                        let shown = batch.rules.get(nonce).map(|rule| rules::show_rule(tx, tap, nonce, rule, now)).transpose()?;
                        accepted.answers.extend(shown.flatten());
                        false
                    }
                    ButtonChoice::Rule { nonce, is_yes } => rules::record_tap(tx, tap, (nonce, *is_yes), now)?,
                    ButtonChoice::Reminder { outgoing_id, answer } => answered::record_tap(tx, (tap.chat, tap.message_id), (*outgoing_id, *answer), now)?,
                    ButtonChoice::Nudge { outgoing_id, answer } => {
                        let has_decided = nudged::record_tap(tx, (tap.chat, tap.message_id), (*outgoing_id, *answer), now)?;
                        if has_decided && *answer == NudgeAnswer::TakeBack {
                            let (proposal, answer) = nudged::read_reported_proposal(tx, *outgoing_id)?;
                            undo::order_undo(tx, &Proposal::undone_as(proposal), &answer, now)?;
                        }
                        has_decided
                    }
                    ButtonChoice::Sample { outgoing_id, answer } => rich::record_tap(tx, (tap.chat, tap.message_id), (*outgoing_id, *answer), now)?,
                };
                accepted.has_orders |= has_decided;
                accepted.taps.push((tap.clone(), has_decided));
            }
            for moved in &batch.moved {
                moved::move_group(tx, *moved, now)?;
            }
            for notice in &batch.notices {
                accepted.answers.extend(planned::insert(tx, notice, now)?);
            }
            overheard::delete_old_messages(tx, now)?;
            pairing::count_wrong(tx, batch.wrong_codes, now)?;
            if let Some(who) = &batch.pairs
                && let Some(said) = pairing::pair_sender(tx, batch.bot_id, who, now)?
            {
                accepted.paired = Some(who.user_id);
                accepted.answers.extend(said);
            }
            if batch.strangers > 0 {
                tx.execute(
                    "INSERT INTO counters (name, n, last_at) VALUES ('strangers', ?1, ?2)
                     ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n, last_at = excluded.last_at",
                    (batch.strangers, format_rfc3339(now)),
                )?;
            }
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, last_poll_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (bot_id) DO UPDATE SET next_offset = excluded.next_offset, last_poll_at = excluded.last_poll_at",
                (batch.bot_id, batch.next_offset, format_rfc3339(now)),
            )?;
            Ok(accepted)
        })
    }
}

/// Returns whether a command turned out to continue a long text that Telegram had split: a stored row has absorbed its message. Update
/// ids alone don't prove that, since they start over now and then, so the message ids are compared, too.
fn is_rest(tx: &Transaction<'_>, bot_id: i64, command: &Ordered) -> Result<bool> {
    let is_rest = tx
        .prepare(
            "SELECT EXISTS (SELECT 1 FROM message_updates
                 WHERE bot_id = ?1 AND update_id = ?2 AND chat_id = ?3 AND channel_message_id = ?4)",
        )?
        .query_row((bot_id, command.update_id, command.answer.chat, command.answer.reply_to), |row| row.get(0))?;
    Ok(is_rest)
}
