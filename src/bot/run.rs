//! The loop: waits for what happens next, tells the deciding parts, carries out what they say.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf, process::Child, rc::Rc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    BotContext, BotEnd, BotError, batch, commands,
    door::Door,
    gap,
    media::Bells,
    nudge::{NudgeAction, NudgeEvent, Nudger, StoreLook},
    pairing,
    poll_turn::PollTurn,
    receipt::{self, Acknowledgement},
    report::report_in,
    restart,
    room::{self, Room},
    rules, stopped,
    trouble::{Advice, FailureStretch},
    wake,
};
use crate::{
    channel::{
        Channel as _, Outgoing,
        telegram::{self, Inbox, RawUpdate, Telegram, TelegramError},
    },
    cycle::{self, workspace},
    process, render,
    store::{Accepted, Batch, Displaced, NewOutgoing, Order, Ordered, Store, StoreError, Tap, UpkeepKind},
    types::ChatRef,
    wake_lock,
};

/// How long Telegram may hold a poll, in seconds.
const POLL_TIMEOUT_S: u32 = 50;
/// Updates per poll; Telegram gives at most so many.
const POLL_LIMIT: u8 = 100;
/// The shortest time between two polls that bring nothing: a server that doesn't wait isn't asked in a tight loop.
const EMPTY_POLL_MIN: Duration = Duration::from_secs(1);
/// How often it is written down that polls are completed, when they bring nothing.
const NOTE_POLL_EVERY: TimeDelta = TimeDelta::seconds(60);

/// How long it tries to confirm the last messages, for the machine that polls after this one.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the bot tries to say a last word.
const TELL_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a turn waits for the files of what it took in, before it leaves their messages to the next one.
const FILES_TIMEOUT: Duration = Duration::from_secs(600);

/// The bot, running.
pub(super) struct Bot<'a> {
    outside: BotContext<'a>,
    store: Store,
    source: UpdateSource,
    /// When a turn had taken in all that waited.
    taken_in: Option<Instant>,
    /// Who may speak.
    door: Door,
    /// Who the bot is: known once Telegram was reached.
    me: Option<telegram::Me>,
    /// Whether Telegram has ever accepted the token of this bot: then it is tried for ever.
    is_token_known: bool,
    /// When it was last written down that a poll was completed.
    noted_at: Option<DateTime<Utc>>,
    /// Where the next poll begins; moved only after what is below it was stored.
    offset: Option<i64>,
    telegram_trouble: FailureStretch,
    store_trouble: FailureStretch,
    look_trouble: FailureStretch,
    room: Room,
    nudger: Nudger,
    /// When the next tick is wanted, on the nudger's clock.
    tick_at: Duration,
    began: Instant,
    wake: PathBuf,
    child: Option<Child>,
    /// Wakes of ours that stopped, and aren't waited for; the next wake ends them.
    stopped: Vec<Child>,
    children: Signal,
    told: Aides,
    /// Wakes that the bot before this one had started, in whose place it is: they are its children.
    adopted: Vec<u32>,
    /// Whether it is to start anew.
    is_to_restart: bool,
    /// Whether it was said that what is open of a lost database can't be saved.
    has_complained: bool,
}

/// Those who work beside the loop, and are told what it knows.
pub(super) struct Aides {
    /// Who sends the answers to commands.
    pub(super) answers: mpsc::Sender<Vec<i64>>,
    /// Who shows that messages have arrived.
    pub(super) receipts: mpsc::Sender<Acknowledgement>,
    /// Who shows what has become of questions.
    pub(super) taps: mpsc::Sender<(Tap, bool)>,
    /// Who registers the menu of commands, once it is known which bot this is.
    pub(super) is_known: watch::Sender<bool>,
    /// Who shows that a wake runs.
    pub(super) is_running: watch::Sender<bool>,
    /// Who looks after the files of messages, and tells of those that have come to rest.
    pub(super) bells: Rc<Bells>,
}

/// Where updates come from.
#[derive(Clone)]
struct UpdateSource {
    /// Whether it is this machine's turn to poll.
    turn: PollTurn,
    /// What a webhook has left; none: they are polled.
    inbox: Option<Rc<RefCell<Inbox>>>,
}

/// What Telegram is asked next.
#[derive(Debug, Clone, Copy)]
enum Ask {
    /// Who the bot is.
    Me,
    /// What has come from this offset on.
    Updates {
        offset: Option<i64>,
        /// Whether it is looked who else fetches them, should somebody.
        explains_rival: bool,
    },
    /// Nothing for now: there is no room for what would come.
    Nothing,
    /// Nothing before it is this machine's turn.
    Turn,
}

/// What it answered.
enum Polled {
    Met(telegram::Me),
    Updates(Vec<RawUpdate>),
    Nothing,
}

/// What the loop waits for.
enum Happened {
    Stop,
    Child,
    Polled(Result<Polled, TelegramError>),
    FileSettled,
    Tick,
}

impl<'a> Bot<'a> {
    pub(super) fn new(
        outside: BotContext<'a>,
        mut store: Store,
        wake: PathBuf,
        told: Aides,
        (turn, inbox): (PollTurn, Option<Inbox>),
    ) -> Result<Self, BotError> {
        store.readmit(&outside.config.allowed_chats)?;
        let back = store.end_restarts(&restart::is_back(), outside.clock.now())?;
        let adopted = if back.is_empty() { Vec::new() } else { process::own_children() };
        if !back.is_empty() {
            // What has no place there is delivered by the next wake.
            told.answers.try_send(back).ok();
        }
        Ok(Self {
            offset: store.next_offset(outside.telegram.bot_id())?,
            is_token_known: store.last_heard(outside.telegram.bot_id())?.is_some(),
            noted_at: None,
            tick_at: if inbox.is_some() { FILES_TIMEOUT } else { Duration::ZERO },
            source: UpdateSource { turn, inbox: inbox.map(|inbox| Rc::new(RefCell::new(inbox))) },
            taken_in: None,
            door: Door::open(outside.config, &store)?,
            me: None,
            room: Room::recall(&store)?,
            outside,
            store,
            telegram_trouble: FailureStretch::default(),
            store_trouble: FailureStretch::default(),
            look_trouble: FailureStretch::default(),
            nudger: Nudger::default(),
            began: Instant::now(),
            wake,
            child: None,
            stopped: Vec::new(),
            children: signal(SignalKind::child()).map_err(BotError::Signals)?,
            told,
            adopted,
            is_to_restart: false,
            has_complained: false,
        })
    }

    /// Runs until it is asked to end, or to start anew, and the wake it started, if any, has finished.
    pub(super) async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Result<BotEnd, BotError> {
        let telegram = self.outside.telegram;
        let mut is_stopping = false;
        // What a kill has left.
        let told = self.carry_out_rules(self.outside.clock.now());
        self.send(told);
        let source = self.source.clone();
        let mut poll = Box::pin(ask(telegram, &source, self.next_ask(), Duration::ZERO));
        loop {
            let tick_at = self.began + self.tick_at;
            let happened = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop), if !is_stopping => Happened::Stop,
                _ = self.children.recv() => Happened::Child,
                polled = &mut poll, if !is_stopping && self.taken_in.is_none() => Happened::Polled(polled),
                () = self.told.bells.settled.notified() => Happened::FileSettled,
                () = tokio::time::sleep_until(tick_at) => Happened::Tick,
            };
            let event = match happened {
                Happened::Stop => {
                    tracing::info!("asked to end; no more polling");
                    is_stopping = true;
                    self.confirm().await;
                    Some(NudgeEvent::Stop)
                }
                Happened::Tick => Some(if self.lets_go() { NudgeEvent::Ended } else { NudgeEvent::Tick }),
                Happened::Child => {
                    let has_ended = self.reap();
                    if has_ended && self.is_turn() {
                        return Ok(BotEnd::Asked);
                    }
                    has_ended.then_some(NudgeEvent::Ended)
                }
                Happened::FileSettled => Some(NudgeEvent::Stored),
                Happened::Polled(polled) => {
                    let polled = if self.is_late() { Ok(Polled::Nothing) } else { polled };
                    let is_last = self.is_turn() && !brings_more(&polled);
                    let (wait, has_stored) = self.take_in(polled)?;
                    if is_last || self.is_turn() && !wait.is_zero() {
                        // What couldn't be taken in stays for the next turn.
                        self.taken_in = Some(Instant::now());
                    }
                    if self.is_to_restart
                        && let Some(why) = restart::refused_token(self.outside.config).await
                    {
                        self.is_to_restart = false;
                        let told = self.refuse_restart(why, self.outside.clock.now());
                        self.send(told);
                    }
                    // The next poll tells Telegram that what came before is kept.
                    let what = match self.store.displaced() {
                        None => self.next_ask(),
                        Some(how) => self.leave(how).await?,
                    };
                    if self.is_to_restart {
                        tracing::info!("asked to start anew; no more polling");
                        is_stopping = true;
                        self.confirm().await;
                        Some(NudgeEvent::Stop)
                    } else {
                        poll.set(ask(telegram, &source, what, wait));
                        match (self.is_turn(), self.taken_in) {
                            (false, _) => has_stored.then_some(NudgeEvent::Stored),
                            (true, taken_in) => taken_in.map(|_| NudgeEvent::Tick),
                        }
                    }
                }
            };
            if let Some(event) = event
                && self.nudge(event).is_break()
            {
                let is_anew = self.is_to_restart && !*stop.borrow();
                return Ok(if is_anew { BotEnd::Restart } else { BotEnd::Asked });
            }
            if self.is_turn_over() {
                return Ok(BotEnd::Asked);
            }
        }
    }

    fn is_turn(&self) -> bool {
        self.source.inbox.is_some()
    }

    /// Whether a turn has nothing to wait for: all is taken in, no wake runs, and no file is on its way.
    fn is_turn_over(&self) -> bool {
        let Some(since) = self.taken_in.filter(|_| !self.nudger.is_running()) else { return false };
        let awaits_files =
            |store: &Store| Ok::<_, StoreError>(store.queued()?.iter().any(|message| message.awaits_files));
        since.elapsed() > FILES_TIMEOUT || !awaits_files(&self.store).unwrap_or(false)
    }

    /// Whether what a poll brought comes too late: another machine may poll by now, and gets the same.
    fn is_late(&self) -> bool {
        self.me.is_some() && !self.source.turn.is_ours()
    }

    /// Tells Telegram that all is kept, so that the machine that polls next isn't given it again. What comes with the
    /// answer isn't looked at, and stays unconfirmed.
    async fn confirm(&self) {
        if let Some(offset) = self.offset.filter(|_| self.source.turn.is_shared() && self.source.turn.is_ours()) {
            let confirming = self.outside.telegram.get_updates(Some(offset), 1, 0);
            tokio::time::timeout(CONFIRM_TIMEOUT, confirming).await.ok();
        }
    }

    /// The database isn't where it was: what is open of it is saved, its person told past it, and the bot ends. It stays, and confirms
    /// nothing, for as long as that can't be saved.
    async fn leave(&mut self, how: Displaced) -> Result<Ask, BotError> {
        let path = workspace::saved_at(self.store.path(), self.outside.clock.now());
        let saved = match self.store.save_to(&path) {
            Ok(()) => {
                self.store.drop_log();
                Some(path)
            }
            Err(error) => {
                // What was made of it by then is no copy.
                std::fs::remove_file(&path).ok();
                let is_lost = matches!(error, StoreError::Damaged(_));
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::error!(%error, "{how} while the bot ran, and what is open of it can't be saved");
                }
                if !is_lost {
                    return Ok(Ask::Nothing);
                }
                None
            }
        };
        let error = BotError::Displaced { how, saved };
        self.tell_owner(&format!(
            "{error} Telegram keeps what you send for a day. `health check` on my machine says what to do."
        ))
        .await;
        Err(error)
    }

    /// Sends a word to the owner that no outbox keeps.
    async fn tell_owner(&self, text: &str) {
        let chat = self.door.config.owner_chat;
        let part = render::render(&self.outside.redactor.redact(text)).into_iter().next();
        let Some(part) = part.filter(|_| chat != ChatRef::TERMINAL) else { return };
        let outgoing = Outgoing {
            chat,
            thread_id: None,
            reply_to: None,
            html: part.html,
            plain: part.plain,
            silent: false,
            question: None,
            file: None,
        };
        if !matches!(tokio::time::timeout(TELL_TIMEOUT, self.outside.telegram.send(&outgoing)).await, Ok(Ok(_))) {
            tracing::warn!("the owner couldn't be told in chat");
        }
    }

    /// Tells the nudger and does what it says until it wants to wait. Breaks when all is over.
    fn nudge(&mut self, mut event: NudgeEvent) -> std::ops::ControlFlow<()> {
        loop {
            let action = self.nudger.on(event, self.began.elapsed());
            event = match action {
                NudgeAction::Look => self.look(),
                NudgeAction::Start => self.start_wake(),
                NudgeAction::Wait(until) => {
                    self.tick_at = until;
                    return std::ops::ControlFlow::Continue(());
                }
                NudgeAction::Finish => {
                    if self.child.is_some() {
                        tracing::info!("a wake still runs; it goes on by itself");
                    }
                    return std::ops::ControlFlow::Break(());
                }
            };
        }
    }

    fn look(&mut self) -> NudgeEvent {
        let now = self.outside.clock.now();
        let looked = self.door.look(self.outside.config, &self.store);
        let config = &self.door.config;
        let waiting = match looked.and_then(|()| cycle::waiting(&self.store, config, now)) {
            Ok(waiting) => waiting,
            Err(error) => {
                // Polling goes on: what comes is stored as soon as that is possible.
                if self.look_trouble.with_store(&error, 1.0).say.is_some() {
                    tracing::warn!(%error, "the queue could not be read; it is tried again until it can");
                }
                return NudgeEvent::LookFailed;
            }
        };
        self.look_trouble.over();
        // One that stopped is no reason to wait: the wake that is started replaces it.
        let is_held = wake_lock::read(&config.lock_path()).is_some_and(|holder| holder.is_at_work(config.stale_lock));
        self.told.is_running.send_replace(is_held);
        NudgeEvent::Looked(StoreLook {
            due: waiting.due,
            next_in: waiting.next_at.map(|at| (at - now).to_std().unwrap_or_default()),
            is_held,
        })
    }

    /// Starts a wake; its end is told by a signal.
    fn start_wake(&mut self) -> NudgeEvent {
        let start = if self.is_turn() { wake::start_turn } else { wake::start };
        match start(&self.wake, &self.outside.config.settings_arguments()) {
            Ok(child) => {
                tracing::info!(pid = child.id(), "a wake was started");
                self.child = Some(child);
                self.told.is_running.send_replace(true);
                NudgeEvent::Tick
            }
            Err(error) => {
                let program = self.wake.display();
                tracing::error!(%error, "{program} could not be started; messages stay queued, it is tried again later");
                NudgeEvent::StartFailed
            }
        }
    }

    /// Whether the wake that was started shows no life any more: then another one may take over.
    fn lets_go(&mut self) -> bool {
        let config = self.outside.config;
        let holder = wake_lock::read(&config.lock_path());
        let has_stopped = |child: &mut Child| {
            holder.as_ref().is_some_and(|holder| holder.pid == child.id() && !holder.is_at_work(config.stale_lock))
        };
        let stopped = self.child.take_if(has_stopped);
        let Some(child) = stopped else { return false };
        tracing::warn!(pid = child.id(), "the wake has stopped and isn't waited for any more");
        self.stopped.push(child);
        true
    }

    /// Whether the wake has ended.
    fn reap(&mut self) -> bool {
        self.stopped.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.adopted.retain(|child| !process::has_ended(*child));
        let Some(child) = &mut self.child else { return false };
        match child.try_wait() {
            Ok(None) => return false,
            Ok(Some(status)) if status.success() => tracing::info!("the wake has ended"),
            Ok(Some(status)) => {
                tracing::warn!("the wake ended with {}; what it was about stays queued", process::describe(status));
            }
            Err(error) => tracing::warn!(%error, "the wake can't be waited for"),
        }
        self.child = None;
        self.told.is_running.send_replace(false);
        true
    }

    fn next_ask(&mut self) -> Ask {
        let Some(me) = &self.me else {
            return Ask::Me;
        };
        self.door.invite(&mut self.store, self.outside, me);
        let outside = BotContext { config: &self.door.config, ..self.outside };
        if !self.source.turn.is_ours() {
            return Ask::Turn;
        }
        let notice = self.room.look(&mut self.store, outside);
        self.send(notice.into_iter().collect());
        if self.room.is_short() {
            return Ask::Nothing;
        }
        Ask::Updates { offset: self.offset, explains_rival: self.telegram_trouble.is_rival_news() }
    }

    /// Takes in what a call to Telegram brought. Says how long to wait before the next one and whether a message was
    /// stored.
    fn take_in(&mut self, polled: Result<Polled, TelegramError>) -> Result<(Duration, bool), BotError> {
        let updates = match polled {
            Ok(Polled::Updates(updates)) => Some(updates),
            Ok(Polled::Nothing) => return Ok((Duration::ZERO, false)),
            Ok(Polled::Met(me)) => {
                tracing::info!(bot = me.username, "listening");
                self.is_token_known = true;
                self.me = Some(me);
                report_in(&mut self.store, self.outside, true);
                // A menu is for as long as a token is; a turn leaves it as it is.
                self.told.is_known.send_replace(!self.is_turn());
                None
            }
            Err(error @ TelegramError::Unauthorized(_)) if !self.is_token_known => {
                return Err(BotError::Unauthorized(error));
            }
            Err(error) => {
                // What went wrong may lie in the connection, or in what was known of the network when it was made.
                self.outside.telegram.reconnect();
                let advice = self.telegram_trouble.with_telegram(&error, fastrand::f64());
                // A network that is away for a moment says nothing of the bot; a silence for long is told of by itself.
                let is_network = matches!(
                    error,
                    TelegramError::NotSent { .. } | TelegramError::Ambiguous { .. } | TelegramError::RetryAfter(_)
                );
                if advice.say.is_some() && !is_network {
                    self.note_poll_failed(&error);
                }
                if is_network && self.me.is_none() {
                    report_in(&mut self.store, self.outside, false);
                }
                return Ok((tell(advice), false));
            }
        };
        if self.telegram_trouble.over() {
            tracing::info!("Telegram can be reached again");
        }
        let Some(updates) = updates else {
            return Ok((Duration::ZERO, false));
        };
        match self.note_poll(!updates.is_empty()).and_then(|()| self.keep(&updates)) {
            Ok(accepted) => {
                if !updates.is_empty() && self.store_trouble.over() {
                    tracing::info!("messages are stored again");
                }
                self.send(accepted.answers);
                self.told.bells.arrived.notify_one();
                Ok((Duration::ZERO, !accepted.stored.is_empty() || accepted.edited > 0 || accepted.has_orders))
            }
            Err(error) => {
                // The offset stays where it is: Telegram gives the same batch again.
                let advice = self.store_trouble.with_store(&error, fastrand::f64());
                Ok((tell(advice), false))
            }
        }
    }

    /// Stores a batch with the answers to its commands and the next offset, in one transaction.
    fn keep(&mut self, updates: &[RawUpdate]) -> Result<Accepted, StoreError> {
        let BotContext { config, clock, redactor, telegram } = self.outside;
        let (me, now) = (&self.me, clock.now());
        let Some(me) = me.as_ref().filter(|_| !updates.is_empty()) else {
            return Ok(Accepted::default());
        };
        self.door.look(config, &self.store)?;
        let access = self.door.access(me);
        let tries = pairing::tries(updates, &access, &self.store.open_codes(now)?, &self.door.config);
        let updates = updates.get(..tries.taken).unwrap_or(updates);
        let Some(mut reading) = batch::read(telegram.bot_id(), updates, &access, redactor) else {
            return Ok(Accepted::default());
        };
        (reading.batch.pairs, reading.batch.wrong_codes) = (tries.pairs, tries.wrong);
        reading.batch.owner_chat = Some(config.owner_chat);
        let mut desk = commands::Desk::open(&self.store, &self.door.config, now)?;
        for asked in &reading.commands {
            let commands::CommandReply { text, order } = desk.answer(asked)?;
            let answer = asked.answer(telegram.bot_id(), redactor.redact(&text));
            let order = order.map(|order| order.with_titles(|title| redactor.redact(title)));
            reading.batch.commands.push(Ordered { answer, order, update_id: Some(asked.update_id) });
        }
        let notices = reading.notices(config.owner_chat);
        reading.batch.notices.extend(notices);
        for tap in &reading.batch.taps {
            reading.batch.rules.extend(rules::shown(&self.store, tap, redactor)?);
        }
        let stopped = |chat| desk.stopped(chat);
        let is_all_work = desk.is_all_stopped();
        let notices = stopped::notices(&reading.batch.messages, stopped, is_all_work, &self.door.config, now);
        reading.batch.notices.extend(notices);
        let mut accepted = self.store.accept(&reading.batch, now)?;
        self.note_floods(&reading.batch, &mut accepted, now);
        accepted.answers.extend(self.carry_out_rules(now));
        if !accepted.stored.is_empty() {
            for receipt in receipt::of(&reading.batch.messages) {
                // One that has no place is left out: it is a courtesy.
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
            self.door.look(config, &self.store)?;
        }
        if accepted.orders.iter().any(|order| matches!(order, Order::Stop { .. } | Order::Resume { .. })) {
            self.told.bells.ordered.notify_one();
        }
        // A guest's cycle starts no program that a wake waits for.
        if accepted.orders.iter().any(|order| matches!(order, Order::Stop { is_owners: true })) {
            let lock_path = config.lock_path();
            // The order is durable. This takes seconds, and what comes meanwhile isn't kept waiting for it.
            let ending = std::thread::Builder::new().spawn(move || cycle::stop::end_children(&lock_path));
            if let Err(error) = ending {
                tracing::warn!(%error, "what a wake has started isn't ended from here; the wake itself sees the order");
            }
        }
        Ok(accepted)
    }

    /// Writes rules that were ordered, and takes back what is to go. What can't be noted now is tried again with the next batch.
    fn carry_out_rules(&mut self, now: DateTime<Utc>) -> Vec<i64> {
        rules::carry_out_rules(&mut self.store, self.outside.config, self.outside.redactor, now).unwrap_or_else(
            |error| {
                tracing::warn!(%error, "what became of a rule could not be read or written down");
                Vec::new()
            },
        )
    }

    /// Whether a new bot could run in this one's place. Else the chat is told why not.
    fn may_restart(&mut self, accepted: &mut Accepted, now: DateTime<Utc>) -> bool {
        let Some(why) = restart::obstacle(self.outside.config) else { return true };
        accepted.answers.extend(self.refuse_restart(&why, now));
        false
    }

    /// Tells who wanted a restart why there is none. Says what is to be sent.
    fn refuse_restart(&mut self, why: &str, now: DateTime<Utc>) -> Vec<i64> {
        let text = self.outside.redactor.redact(&restart::refusal(why));
        tracing::warn!("asked to start anew, which isn't possible: {why}");
        self.store.end_restarts(&text, now).unwrap_or_else(|error| {
            tracing::warn!(%error, "why the bot doesn't restart couldn't be told");
            Vec::new()
        })
    }

    /// Tells chats of which very many messages wait.
    fn note_floods(&mut self, batch: &Batch, accepted: &mut Accepted, now: DateTime<Utc>) {
        let chats: BTreeSet<ChatRef> = batch.messages.iter().map(|message| message.chat).collect();
        for chat in chats {
            match self.store.tell_flood(chat, now, |waiting| flood(chat, waiting)) {
                Ok(notice) => accepted.answers.extend(notice),
                Err(error) => tracing::debug!(%error, "a chat isn't told yet how many of its messages wait"),
            }
        }
    }

    /// Writes down why polls fail, for those who ask how it goes.
    fn note_poll_failed(&mut self, error: &TelegramError) {
        let (why, now) = (self.outside.redactor.redact(&error.to_string()), self.outside.clock.now());
        // With the next poll that is completed it is over.
        self.noted_at = None;
        if let Err(error) = self.store.trouble(UpkeepKind::Poll, &why, now) {
            tracing::debug!(%error, "that polls fail is not written down");
        }
    }

    /// Writes down that a poll was completed, with a word to those who may have lost messages after a stretch of silence. A poll that
    /// brought something is about to be stored anyway: what it ends must be told before it is.
    fn note_poll(&mut self, brings_something: bool) -> Result<(), StoreError> {
        // A turn says nothing of how long nobody was listening: the webhook does.
        if self.is_turn() {
            return Ok(());
        }
        let (bot_id, now) = (self.outside.telegram.bot_id(), self.outside.clock.now());
        // By the clock of the wall, which goes on while the machine sleeps.
        if self.noted_at.is_some_and(|at| (now - at).abs() < NOTE_POLL_EVERY) {
            return Ok(());
        }
        let config = &self.door.config;
        let noted = self.store.heard(bot_id, now, |from, heard| gap::notices(config, bot_id, (from, now), heard));
        match noted {
            Ok(notices) => {
                self.noted_at = Some(now);
                self.store.trouble_over(UpkeepKind::Poll, now).ok();
                self.send(notices);
                Ok(())
            }
            Err(error) if brings_something => Err(error),
            Err(error) => {
                tracing::debug!(%error, "that a poll was completed is not written down");
                Ok(())
            }
        }
    }

    fn send(&self, answers: Vec<i64>) {
        if !answers.is_empty() && self.told.answers.try_send(answers).is_err() {
            tracing::warn!("too many messages wait to be sent; the next wake delivers them");
        }
    }
}

/// Whether more may come after it.
fn brings_more(polled: &Result<Polled, TelegramError>) -> bool {
    match polled {
        Ok(Polled::Met(_)) => true,
        Ok(Polled::Updates(updates)) => !updates.is_empty(),
        Ok(Polled::Nothing) | Err(_) => false,
    }
}

/// Says what is to be said and gives the wait.
fn tell(advice: Advice) -> Duration {
    if let Some(text) = advice.say {
        tracing::warn!("{text}");
    }
    advice.wait
}

/// One call to Telegram, after a wait.
async fn ask(telegram: &Telegram, source: &UpdateSource, what: Ask, wait: Duration) -> Result<Polled, TelegramError> {
    tokio::time::sleep(wait).await;
    let (offset, explains_rival) = match what {
        Ask::Updates { offset, explains_rival } => (offset, explains_rival),
        Ask::Nothing => {
            tokio::time::sleep(room::LOOK_EVERY).await;
            return Ok(Polled::Nothing);
        }
        Ask::Turn => {
            source.turn.comes().await;
            return Ok(Polled::Nothing);
        }
        Ask::Me => {
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
        () = source.turn.over() => return Ok(Polled::Nothing),
    };
    let updates = match polled {
        Err(TelegramError::Conflict(said)) if explains_rival => {
            return Err(TelegramError::Conflict(rival(telegram, said).await));
        }
        updates => updates?,
    };
    if updates.is_empty() {
        tokio::time::sleep_until(asked + EMPTY_POLL_MIN).await;
    }
    Ok(Polled::Updates(updates))
}

/// What a chat is told when very many messages of it wait.
fn flood(chat: ChatRef, waiting: i64) -> NewOutgoing {
    let text = format!(
        "{waiting} of your messages are waiting. All are safe: I'll answer them {} at a time, oldest first, in turn with everybody \
         else's.",
        cycle::decide::brief::MAX_MESSAGES
    );
    NewOutgoing::notice(chat, text)
}

/// Who else fetches the messages, as far as Telegram tells: a webhook is named by its host, never by its whole address.
async fn rival(telegram: &Telegram, said: String) -> String {
    match telegram.get_webhook_info().await.map(|webhook| webhook.host()) {
        Ok(Some(host)) => format!(
            "{said}. They go to a webhook at {host}, which some program set for this bot; `bot webhook delete` removes it, and I'll \
             take over"
        ),
        Ok(None) => format!("{said}. Another program polls with this token"),
        Err(_) => said,
    }
}
