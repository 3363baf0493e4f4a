//! Stores the result of a poll with the answers to its commands, and records and reports failures.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::types::ChatRef;
use reveille_channels::telegram::{RawUpdate, TelegramError};
use reveille_cycle as cycle;
use reveille_store::{Accepted, Batch, NewOutgoing, Order, Ordered, StoreError, UpkeepKind};

use super::{Bot, poll::Polled};
use crate::bot::{
    BotContext, BotError, batch, commands, gap, pairing, receipt,
    report::{TelegramContact, record_report},
    restart, rules, stopped,
    trouble::Advice,
};

/// How often to record that polls succeed, if they are empty.
const NOTE_POLL_EVERY: TimeDelta = TimeDelta::seconds(60);

impl Bot<'_> {
    /// Takes in the result of a request. Returns the wait before the next one, and `true` if a message was stored.
    pub(super) fn handle_poll(&mut self, polled: Result<Polled, TelegramError>) -> Result<(Duration, bool), BotError> {
        let updates = match polled {
            Ok(Polled::Updates(updates)) => Some(updates),
            Ok(Polled::Nothing) => return Ok((Duration::ZERO, false)),
            Ok(Polled::Met(me)) => {
                tracing::info!(bot = me.username, "listening");
                self.is_token_known = true;
                self.me = Some(me);
                // fault: new-bot-never-reports
                record_report(&mut self.store, self.outside, TelegramContact::Reached);
                // The menu lasts as long as the token; a single turn leaves it alone.
                self.told.is_known.send_replace(!self.is_turn());
                None
            }
            Err(error @ TelegramError::Unauthorized(_)) if !self.is_token_known => {
                return Err(BotError::Unauthorized(error));
            }
            Err(error) => {
                // The cause may lie in the connection, or in the state of the network when it was made.
                self.outside.telegram.reconnect();
                let advice = self.telegram_trouble.with_telegram(&error, fastrand::f64());
                // A short network outage says nothing about the bot, and a long silence is reported separately.
                let is_network = matches!(
                    error,
                    TelegramError::NotSent { .. } | TelegramError::Ambiguous { .. } | TelegramError::RetryAfter(_)
                );
                if advice.say.is_some() && !is_network {
                    self.note_poll_failure(&error);
                }
                if is_network && self.me.is_none() {
                    record_report(&mut self.store, self.outside, TelegramContact::Unreachable);
                }
                return Ok((log_advice(advice), false));
            }
        };
        if self.telegram_trouble.end() {
            tracing::info!("Telegram can be reached again");
        }
        let Some(updates) = updates else {
            return Ok((Duration::ZERO, false));
        };
        match self.note_poll(!updates.is_empty()).and_then(|()| self.store_batch(&updates)) {
            Ok(accepted) => {
                if !updates.is_empty() && self.store_trouble.end() {
                    tracing::info!("messages are stored again");
                }
                self.send_answers(accepted.answers);
                self.told.bells.arrived.notify_one();
                Ok((Duration::ZERO, !accepted.stored.is_empty() || accepted.edited > 0 || accepted.has_orders))
            }
            Err(error) => {
                // The offset stays, so Telegram sends the same batch again.
                let advice = self.store_trouble.with_store(&error, fastrand::f64());
                self.outage = self.store_trouble.for_chat(&error);
                Ok((log_advice(advice), false))
            }
        }
    }

    /// Stores a batch with the answers to its commands and the next offset, in one transaction.
    fn store_batch(&mut self, updates: &[RawUpdate]) -> Result<Accepted, StoreError> {
        let BotContext { config, clock, redactor, telegram } = self.outside;
        let (me, now) = (&self.me, clock.now());
        let Some(me) = me.as_ref().filter(|_| !updates.is_empty()) else {
            return Ok(Accepted::default());
        };
        self.door.refresh(config, &self.store)?;
        let access = self.door.speakers(me);
        let tries = pairing::find_tries(updates, &access, &self.store.people().open_codes(now)?, &self.door.config);
        let updates = updates.get(..tries.taken).unwrap_or(updates);
        let working = self.store.chats().list_working_chats()?;
        let Some(mut reading) = batch::parse_batch(telegram.bot_id(), updates, &access, &working, redactor) else {
            return Ok(Accepted::default());
        };
        (reading.batch.pairs, reading.batch.wrong_codes) = (tries.pairs, tries.wrong);
        reading.batch.owner_chat = Some(config.owner_chat);
        let mut desk = commands::Desk::open(&self.store, &self.door.config, now)?;
        for asked in &reading.commands {
            let commands::CommandReply { text, order } = desk.answer(asked)?;
            let answer = asked.build_answer(telegram.bot_id(), redactor.redact(&text));
            let order = order.map(|order| order.with_titles(|title| redactor.redact(title)));
            reading.batch.commands.push(Ordered { answer, order, update_id: Some(asked.update_id) });
        }
        let notices = reading.build_notices(config.owner_chat);
        reading.batch.notices.extend(notices);
        for tap in &reading.batch.taps {
            reading.batch.rules.extend(rules::build_rule_message(&self.store, tap, redactor)?);
        }
        let stopped = |chat| desk.find_stop(chat);
        let is_all_work = desk.is_all_stopped();
        let notices = stopped::build_notices(&reading.batch.messages, stopped, is_all_work, &self.door.config, now);
        reading.batch.notices.extend(notices);
        // fault: batch-couldnt-stored-confirmed
        let mut accepted = self.store.inbox_mut().accept_batch(&reading.batch, now)?;
        self.note_floods(&reading.batch, &mut accepted, now);
        accepted.answers.extend(self.carry_out_rules(now));
        if !accepted.stored.is_empty() {
            for receipt in receipt::list_receipts(&reading.batch.messages) {
                // A receipt that finds no room is dropped as a courtesy.
                self.told.receipts.try_send(receipt).ok();
            }
        }
        for tap in accepted.taps.drain(..) {
            self.told.taps.try_send(tap).ok();
        }
        self.offset = Some(reading.batch.next_offset);
        self.is_to_restart |= accepted.restarts && self.may_restart(&mut accepted, now);
        if let Some(user_id) = accepted.paired {
            tracing::info!(user_id, "somebody has paired, and is listened to from now on");
            self.door.refresh(config, &self.store)?;
        }
        if accepted.orders.iter().any(|order| matches!(order, Order::Stop { .. } | Order::Resume { .. })) {
            self.told.bells.ordered.notify_one();
        }
        // A guest's cycle starts no program that a wake waits for.
        if accepted.orders.iter().any(|order| matches!(order, Order::Stop { is_owners: true })) {
            let lock_path = config.lock_path();
            // The order is durable. Ending takes seconds, and new messages must not wait for it.
            let ending = std::thread::Builder::new().spawn(move || cycle::stop::end_children(&lock_path));
            if let Err(error) = ending {
                tracing::warn!(%error, "what a wake has started isn't ended from here; the wake itself sees the order");
            }
        }
        Ok(accepted)
    }

    /// Adds and removes the ordered rules. Failures are retried with the next batch.
    pub(super) fn carry_out_rules(&mut self, now: DateTime<Utc>) -> Vec<i64> {
        rules::carry_out_rules(&mut self.store, self.outside.config, self.outside.redactor, now).unwrap_or_else(
            |error| {
                tracing::warn!(%error, "what became of a rule could not be read or written down");
                Vec::new()
            },
        )
    }

    /// Returns `true` if a new bot could replace this one. Otherwise tells the chat the reason.
    fn may_restart(&mut self, accepted: &mut Accepted, now: DateTime<Utc>) -> bool {
        let Some(why) = restart::find_obstacle(self.outside.config) else { return true };
        accepted.answers.extend(self.refuse_restart(&why, now));
        false
    }

    /// Tells whoever asked why the restart is impossible. Returns the messages to send.
    pub(super) fn refuse_restart(&mut self, why: &str, now: DateTime<Utc>) -> Vec<i64> {
        let text = self.outside.redactor.redact(&restart::render_refusal(why));
        tracing::warn!("asked to start anew, which isn't possible: {why}");
        self.store.maintenance_mut().end_restarts(&text, now).unwrap_or_else(|error| {
            tracing::warn!(%error, "why the bot doesn't restart couldn't be told");
            Vec::new()
        })
    }

    /// Notifies chats with very many waiting messages.
    fn note_floods(&mut self, batch: &Batch, accepted: &mut Accepted, now: DateTime<Utc>) {
        let chats: BTreeSet<ChatRef> = batch.messages.iter().map(|message| message.chat).collect();
        for chat in chats {
            match self.store.outbox_mut().tell_flood(chat, now, |waiting| build_flood_notice(chat, waiting)) {
                Ok(notice) => accepted.answers.extend(notice),
                Err(error) => tracing::debug!(%error, "a chat isn't told yet how many of its messages wait"),
            }
        }
    }

    /// Records the reason for failing polls, for status reports.
    fn note_poll_failure(&mut self, error: &TelegramError) {
        let (why, now) = (self.outside.redactor.redact(&error.to_string()), self.outside.clock.now());
        // The next successful poll clears it.
        self.noted_at = None;
        if let Err(error) = self.store.maintenance_mut().record_trouble(UpkeepKind::Poll, &why, now) {
            tracing::debug!(%error, "that polls fail is not written down");
        }
    }

    /// Records a successful poll and notifies people who may have lost messages in a long silence. Before a batch is
    /// stored this must succeed, because storing ends the silence.
    fn note_poll(&mut self, brings_something: bool) -> Result<(), StoreError> {
        // A single turn can't tell how long nobody listened; the webhook can.
        if self.is_turn() {
            return Ok(());
        }
        let (bot_id, now) = (self.outside.telegram.bot_id(), self.outside.clock.now());
        // By the wall clock, which goes on while the machine sleeps.
        if self.noted_at.is_some_and(|at| (now - at).abs() < NOTE_POLL_EVERY) {
            return Ok(());
        }
        let config = &self.door.config;
        let noted = self
            .store
            .inbox_mut()
            .record_poll(bot_id, now, |from, heard| gap::build_notices(config, bot_id, (from, now), heard));
        match noted {
            Ok(notices) => {
                self.noted_at = Some(now);
                self.store.maintenance_mut().trouble_over(UpkeepKind::Poll, now).ok();
                self.send_answers(notices);
                Ok(())
            }
            Err(error) if brings_something => Err(error),
            Err(error) => {
                tracing::debug!(%error, "that a poll was completed is not written down");
                Ok(())
            }
        }
    }
}

/// Logs the advice and returns the wait.
fn log_advice(advice: Advice) -> Duration {
    if let Some(text) = advice.say {
        tracing::warn!("{text}");
    }
    advice.wait
}

/// The notice for a chat with very many waiting messages.
fn build_flood_notice(chat: ChatRef, waiting: i64) -> NewOutgoing {
    let text = format!(
        "{waiting} of your messages are waiting. They're all safe: I'll answer them {} at a time, oldest first, \
         taking turns with other chats.",
        cycle::decide::brief::MAX_MESSAGES
    );
    NewOutgoing::notice(chat, text)
}
