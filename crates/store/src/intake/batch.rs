//! What one poll brings, in one transaction: messages, edits, commands, presses of buttons, and the next offset.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::rfc3339,
    types::{ButtonChoice, ChatRef, NudgeAnswer},
};

use super::{
    orders::{self, AnswerState, Order, Ordered},
    typed,
};
use crate::{
    Moved, NewIncoming, NewOutgoing, NewPaired, Proposal, Result, Store, Tap,
    chats::moved,
    cycles::{approvals, rules, undo},
    messages::{
        overheard,
        parts::{self, Taken},
    },
    outbox::planned,
    people::pairing,
    reminders::{answered, nudged},
    sql::{OptionalExtension as _, Transaction},
};

/// A batch of updates, as one transaction stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whose updates these are: offsets of different bots have nothing to do with each other.
    pub bot_id: i64,
    /// The batch's last update id + 1: what the next poll asks for.
    pub next_offset: i64,
    /// What was said, commands among it: one may turn out to be the rest of a text ([`crate::PartOf::Rest`]).
    pub messages: Vec<NewIncoming>,
    /// New versions of earlier messages, by their `channel_message_id`; taken in after `messages`.
    pub edits: Vec<NewIncoming>,
    /// Commands, with the bot's own answers and what they order, in the order in which they came.
    pub commands: Vec<Ordered>,
    /// The owner's chat: a yes or a no that is typed there can answer a question. None: it never does.
    pub owner_chat: Option<ChatRef>,
    /// Buttons under our messages that were pressed.
    pub taps: Vec<Tap>,
    /// What shows the rule to whoever pressed "always", by the question's nonce.
    pub rules: BTreeMap<String, NewOutgoing>,
    /// Groups that have another id now.
    pub moved: Vec<Moved>,
    /// What the bot has to say of its own accord.
    pub notices: Vec<NewOutgoing>,
    /// Updates of people who aren't listed: only counted.
    pub strangers: u32,
    /// Codes of strangers that pair nobody: only counted.
    pub wrong_codes: u32,
    /// Who sent a code that pairs; the batch ends there.
    pub pairs: Option<NewPaired>,
}

/// What became of a batch of updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Rows of new messages, and of corrections; a second delivery adds none.
    pub stored: Vec<i64>,
    /// How many updates changed a queued message: edits of what nobody has taken up, and further parts.
    pub edited: usize,
    /// Rows of the bot's own answers to commands.
    pub answers: Vec<i64>,
    /// What commands order, those that have come before among them.
    pub orders: Vec<Order>,
    /// Whether something was ordered or decided that was not before: what is due may be another thing now.
    pub has_orders: bool,
    /// Whether the bot is to start anew. An order that has come before doesn't count.
    pub restarts: bool,
    /// Who has paired.
    pub paired: Option<i64>,
    /// Buttons that were pressed, and whether that has decided the question.
    pub taps: Vec<(Tap, bool)>,
}

impl Accepted {
    fn count(&mut self, taken: Taken) {
        match taken {
            Taken::Stored(row) => self.stored.push(row),
            Taken::Changed => self.edited += 1,
            Taken::Nothing => {}
        }
    }
}

impl Store {
    /// Stores a batch of updates, the bot's own answers to commands among them and the next offset, in one
    /// transaction: only after it may the channel be told that they arrived.
    pub fn accept(&mut self, batch: &Batch, now: DateTime<Utc>) -> Result<Accepted> {
        // fault: batch-confirmed-synced
        self.write(|tx| {
            let mut accepted = Accepted::default();
        // fault end: batch-confirmed-synced
            for message in &batch.messages {
                let typed = batch.owner_chat.map(|owner| typed::take_in(tx, (batch.bot_id, owner), message, now));
                if let Some(answer) = typed.transpose()?.flatten() {
                    accepted.has_orders |= answer.has_decided;
                    accepted.answers.extend(answer.said);
                    continue;
                }
                for part in overheard::parts_before(tx, batch.bot_id, message)? {
                    accepted.count(parts::take_in(tx, batch.bot_id, &part, now)?);
                }
                accepted.count(parts::take_in(tx, batch.bot_id, message, now)?);
            }
            for edit in &batch.edits {
                accepted.count(parts::edit(tx, batch.bot_id, edit, now)?);
            }
            for ordered in &batch.commands {
                // fault: rest-long-text-runs
                if is_rest(tx, batch.bot_id, ordered)? {
                    continue;
                }
                accepted.orders.extend(ordered.order.clone());
                let answer = orders::accept(tx, ordered, now)?;
                accepted.has_orders |= answer.is_some() && ordered.order.as_ref().is_some_and(Order::is_work);
                accepted.restarts |= answer.is_some() && ordered.order == Some(Order::Restart);
                if let Some(AnswerState::Planned(row)) = answer {
                    accepted.answers.push(row);
                }
            }
            for tap in &batch.taps {
                let has_decided = match &tap.choice {
                    ButtonChoice::Approval { nonce, is_approval } => approvals::tap(tx, tap, (nonce, *is_approval), now)?,
                    ButtonChoice::Always { nonce } => {
                        let shown = batch.rules.get(nonce).map(|rule| rules::show(tx, tap, nonce, rule, now)).transpose()?;
                        accepted.answers.extend(shown.flatten());
                        false
                    }
                    ButtonChoice::Rule { nonce, is_yes } => rules::tap(tx, tap, (nonce, *is_yes), now)?,
                    ButtonChoice::Reminder { outgoing_id, answer } => answered::tap(tx, (tap.chat, tap.message_id), (*outgoing_id, *answer), now)?,
                    ButtonChoice::Nudge { outgoing_id, answer } => {
                        let has_decided = nudged::tap(tx, (tap.chat, tap.message_id), (*outgoing_id, *answer), now)?;
                        if has_decided && *answer == NudgeAnswer::TakeBack {
                            let (proposal, answer) = nudged::reported(tx, *outgoing_id)?;
                            undo::ask(tx, &Proposal::undone_as(proposal), &answer, now)?;
                        }
                        has_decided
                    }
                };
                accepted.has_orders |= has_decided;
                accepted.taps.push((tap.clone(), has_decided));
            }
            for moved in &batch.moved {
                moved::follow(tx, *moved, now)?;
            }
            for notice in &batch.notices {
                accepted.answers.extend(planned::insert(tx, notice, now)?);
            }
            overheard::forget(tx, now)?;
            pairing::count_wrong(tx, batch.wrong_codes, now)?;
            if let Some(who) = &batch.pairs
                && let Some(said) = pairing::pair(tx, batch.bot_id, who, now)?
            {
                accepted.paired = Some(who.user_id);
                accepted.answers.extend(said);
            }
            if batch.strangers > 0 {
                tx.execute(
                    "INSERT INTO counters (name, n, last_at) VALUES ('strangers', ?1, ?2)
                     ON CONFLICT (name) DO UPDATE SET n = counters.n + excluded.n, last_at = excluded.last_at",
                    (batch.strangers, rfc3339(now)),
                )?;
            }
            tx.execute(
                "INSERT INTO poll_state (bot_id, next_offset, last_poll_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (bot_id) DO UPDATE SET next_offset = excluded.next_offset, last_poll_at = excluded.last_poll_at",
                (batch.bot_id, batch.next_offset, rfc3339(now)),
            )?;
            Ok(accepted)
        })
    }

    /// The offset to ask for next: the last batch's last id + 1, or `None` before the first batch of this bot.
    pub fn next_offset(&self, bot_id: i64) -> Result<Option<i64>> {
        let offset = self
            .conn
            .query_row("SELECT next_offset FROM poll_state WHERE bot_id = ?1", [bot_id], |row| row.get(0))
            .optional()?;
        // Polls that brought nothing so far have left a 0.
        Ok(offset.filter(|offset| *offset != 0))
    }
}

/// Whether a command turned out to be the rest of a text: a row has taken in what it answers. Numbers of updates begin anew now and
/// then, so the message is compared, too.
fn is_rest(tx: &Transaction<'_>, bot_id: i64, command: &Ordered) -> Result<bool> {
    let is_rest = tx
        .prepare(
            "SELECT EXISTS (SELECT 1 FROM message_updates
                 WHERE bot_id = ?1 AND update_id = ?2 AND chat_id = ?3 AND channel_message_id = ?4)",
        )?
        .query_row((bot_id, command.update_id, command.answer.chat, command.answer.reply_to), |row| row.get(0))?;
    Ok(is_rest)
}
