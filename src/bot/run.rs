//! The main loop: waits for the next event, passes it to the deciding modules, and carries out their decisions.

mod poll;
mod take_in;
mod wakes;

use std::{cell::RefCell, path::PathBuf, process::Child, rc::Rc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::Instant,
};

use reveille_base::{process, types::ChatRef};
use reveille_channels::{
    Channel as _, Outgoing,
    telegram::{self, Inbox, TelegramError},
};
use reveille_cycle::workspace;
use reveille_memory::render;
use reveille_store::{Displaced, Store, StoreError, Tap};

use self::poll::{PollRequest, Polled, UpdateSource, brings_more, send_request};
use super::{
    BotContext, BotEnd, BotError,
    door::Door,
    media::Bells,
    nudge::{NudgeEvent, Nudger},
    poll_turn::PollTurn,
    receipt::Acknowledgement,
    restart,
    room::Room,
    trouble::FailureStretch,
};

/// Maximum time to confirm the last messages for the machine that polls next.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to send a last message.
const TELL_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time a single turn waits for files, before it leaves their messages to the next turn.
const FILES_TIMEOUT: Duration = Duration::from_secs(600);

/// The running bot.
pub(super) struct Bot<'a> {
    outside: BotContext<'a>,
    store: Store,
    source: UpdateSource,
    /// The time when a single turn had taken in all waiting updates.
    taken_in: Option<Instant>,
    /// Controls who may speak.
    door: Door,
    /// The bot's identity, known once Telegram was reached.
    me: Option<telegram::Me>,
    /// `true` if Telegram has ever accepted this bot's token, which is then retried for ever.
    is_token_known: bool,
    /// The time of the last recorded poll.
    noted_at: Option<DateTime<Utc>>,
    /// The offset of the next poll. It moves only after everything below it was stored.
    offset: Option<i64>,
    telegram_trouble: FailureStretch,
    store_trouble: FailureStretch,
    /// The pending message to the owner about a database that can't be used.
    outage: Option<String>,
    look_trouble: FailureStretch,
    room: Room,
    nudger: Nudger,
    /// The time of the next tick, on the nudger's clock.
    tick_at: Duration,
    began: Instant,
    wake: PathBuf,
    child: Option<Child>,
    /// Stalled wakes that the bot no longer waits for; the next wake ends them.
    stopped: Vec<Child>,
    children: Signal,
    told: Aides,
    /// Wakes of the previous bot before a restart. They are children of this process.
    adopted: Vec<u32>,
    /// `true` if the bot should restart.
    is_to_restart: bool,
    /// `true` if a failure to save the lost database was logged.
    has_complained: bool,
}

/// Channels to the tasks beside the loop.
pub(super) struct Aides {
    /// To the sender of commands' answers.
    pub(super) answers: mpsc::Sender<Vec<i64>>,
    /// To the task that shows receipts.
    pub(super) receipts: mpsc::Sender<Acknowledgement>,
    /// To the task that shows the outcome of questions.
    pub(super) taps: mpsc::Sender<(Tap, bool)>,
    /// To the task that registers the command menu, once the bot's identity is known.
    pub(super) is_known: watch::Sender<bool>,
    /// To the tasks that show a running wake.
    pub(super) is_running: watch::Sender<bool>,
    /// To and from the tasks that handle files of messages.
    pub(super) bells: Rc<Bells>,
}

/// An event in the loop.
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
        store.people_mut().readmit_people(&outside.config.allowed_chats)?;
        let back = store.maintenance_mut().end_restarts(&restart::is_back(), outside.clock.now())?;
        let adopted = if back.is_empty() { Vec::new() } else { process::own_children() };
        if !back.is_empty() {
            // The next wake delivers the messages that find no room.
            told.answers.try_send(back).ok();
        }
        Ok(Self {
            offset: store.inbox().next_offset(outside.telegram.bot_id())?,
            is_token_known: store.inbox().find_last_poll_time(outside.telegram.bot_id())?.is_some(),
            noted_at: None,
            tick_at: if inbox.is_some() { FILES_TIMEOUT } else { Duration::ZERO },
            source: UpdateSource { turn, inbox: inbox.map(|inbox| Rc::new(RefCell::new(inbox))) },
            taken_in: None,
            door: Door::open(outside.config, &store)?,
            me: None,
            room: Room::load(&store)?,
            outside,
            store,
            telegram_trouble: FailureStretch::default(),
            store_trouble: FailureStretch::default(),
            outage: None,
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

    /// Runs until the bot is asked to end or restart and its wake, if any, has finished.
    pub(super) async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Result<BotEnd, BotError> {
        let telegram = self.outside.telegram;
        let mut is_stopping = false;
        // Rules left over by a kill.
        let told = self.carry_out_rules(self.outside.clock.now());
        self.send_answers(told);
        let source = self.source.clone();
        let mut poll = Box::pin(send_request(telegram, &source, self.next_ask(), Duration::ZERO));
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
                    self.confirm_updates().await;
                    Some(NudgeEvent::Stop)
                }
                Happened::Tick => Some(if self.give_up_stalled_wake() { NudgeEvent::Ended } else { NudgeEvent::Tick }),
                Happened::Child => {
                    let has_ended = self.reap_wake();
                    if has_ended && self.is_turn() {
                        return Ok(BotEnd::Asked);
                    }
                    has_ended.then_some(NudgeEvent::Ended)
                }
                Happened::FileSettled => Some(NudgeEvent::Stored),
                Happened::Polled(polled) => {
                    let polled = if self.is_late() { Ok(Polled::Nothing) } else { polled };
                    let is_last = self.is_turn() && !brings_more(&polled);
                    let (wait, has_stored) = self.handle_poll(polled)?;
                    if let Some(text) = self.outage.take() {
                        self.tell_owner(&text).await;
                    }
                    if is_last || self.is_turn() && !wait.is_zero() {
                        // Updates that couldn't be taken in stay for the next turn.
                        self.taken_in = Some(Instant::now());
                    }
                    if self.is_to_restart
                        && let Some(why) = restart::check_new_token(self.outside.config).await
                    {
                        self.is_to_restart = false;
                        let told = self.refuse_restart(why, self.outside.clock.now());
                        self.send_answers(told);
                    }
                    // The next poll tells Telegram that the previous updates are kept.
                    let what = match self.store.find_displaced_file() {
                        None => self.next_ask(),
                        Some(how) => self.handle_displaced_database(how).await?,
                    };
                    if self.is_to_restart {
                        tracing::info!("asked to start anew; no more polling");
                        is_stopping = true;
                        self.confirm_updates().await;
                        Some(NudgeEvent::Stop)
                    } else {
                        poll.set(send_request(telegram, &source, what, wait));
                        match (self.is_turn(), self.taken_in) {
                            (false, _) => has_stored.then_some(NudgeEvent::Stored),
                            (true, taken_in) => taken_in.map(|_| NudgeEvent::Tick),
                        }
                    }
                }
            };
            if let Some(event) = event
                && self.run_nudger(event).is_break()
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

    /// Returns `true` if a single turn has nothing to wait for: everything is taken in, no wake runs, and no file is
    /// pending.
    fn is_turn_over(&self) -> bool {
        let Some(since) = self.taken_in.filter(|_| !self.nudger.is_running()) else { return false };
        let awaits_files = |store: &Store| {
            Ok::<_, StoreError>(store.inbox().list_queued_messages()?.iter().any(|message| message.awaits_files))
        };
        since.elapsed() > FILES_TIMEOUT || !awaits_files(&self.store).unwrap_or(false)
    }

    /// Returns `true` if a result comes too late: another machine may poll by now and get the same updates.
    fn is_late(&self) -> bool {
        self.me.is_some() && !self.source.turn.is_ours()
    }

    /// Confirms all kept updates, so the next machine's poll doesn't get them again. Updates in the answer are ignored
    /// and stay unconfirmed.
    async fn confirm_updates(&self) {
        if let Some(offset) = self.offset.filter(|_| self.source.turn.is_shared() && self.source.turn.is_ours()) {
            let confirming = self.outside.telegram.get_updates(Some(offset), 1, 0);
            tokio::time::timeout(CONFIRM_TIMEOUT, confirming).await.ok();
        }
    }

    /// Handles a database file that was moved or replaced: saves the open contents, tells the owner directly, and ends
    /// the bot. If saving fails for a temporary reason, the bot stays and confirms nothing.
    async fn handle_displaced_database(&mut self, how: Displaced) -> Result<PollRequest, BotError> {
        let path = workspace::build_copy_path(self.store.path(), self.outside.clock.now());
        let saved = match self.store.save_copy(&path) {
            Ok(()) => {
                self.store.drop_log();
                Some(path)
            }
            Err(error) => {
                // The unfinished copy is useless.
                std::fs::remove_file(&path).ok();
                let is_lost = matches!(error, StoreError::Damaged(_));
                if !std::mem::replace(&mut self.has_complained, true) {
                    tracing::error!(%error, "{how} while the bot ran, and what is open of it can't be saved");
                }
                if !is_lost {
                    return Ok(PollRequest::Nothing);
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

    async fn tell_owner(&self, text: &str) {
        tell_owner(BotContext { config: &self.door.config, ..self.outside }, text).await;
    }

    fn next_ask(&mut self) -> PollRequest {
        let Some(me) = &self.me else {
            return PollRequest::Me;
        };
        self.door.invite(&mut self.store, self.outside, me);
        let outside = BotContext { config: &self.door.config, ..self.outside };
        if !self.source.turn.is_ours() {
            return PollRequest::Turn;
        }
        let notice = self.room.check_disk(&mut self.store, outside);
        self.send_answers(notice.into_iter().collect());
        if self.room.is_short() {
            return PollRequest::Nothing;
        }
        PollRequest::Updates { offset: self.offset, explains_rival: self.telegram_trouble.is_rival_news() }
    }

    fn send_answers(&self, answers: Vec<i64>) {
        if !answers.is_empty() && self.told.answers.try_send(answers).is_err() {
            tracing::warn!("too many messages wait to be sent; the next wake delivers them");
        }
    }
}

/// Sends the owner a message past the outbox. Returns `false` if it should be tried again.
pub(super) async fn tell_owner(outside: BotContext<'_>, text: &str) -> bool {
    let chat = outside.config.owner_chat;
    let part = render::render(&outside.redactor.redact(text)).into_iter().next();
    let Some(part) = part.filter(|_| chat != ChatRef::TERMINAL) else { return true };
    let outgoing = Outgoing {
        chat,
        thread_id: None,
        reply_to: None,
        html: part.html,
        plain: part.plain,
        silent: false,
        question: None,
        rich: None,
        file: None,
    };
    let is_told = matches!(tokio::time::timeout(TELL_TIMEOUT, outside.telegram.send(&outgoing)).await, Ok(Ok(_)));
    if !is_told {
        tracing::warn!("the owner couldn't be told in chat");
    }
    is_told
}
