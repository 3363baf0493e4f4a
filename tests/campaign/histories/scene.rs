//! A real store with all its writers, and the plain model beside it.

mod holders;

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use fastrand::Rng;

use reveille_base::{process::Identity, types::ChatRef};
use reveille_cycle::decide::situation::Reason;
use reveille_store::{
    Batch, Claimed, Fence, NewCycle, NewIncoming, Ordered, OutgoingKind, PartOf, PartOutcome, PartState, Pick, Store,
};

use super::{
    check,
    command::{Act, Command, Temper},
    home::Home,
    look::Look,
    model::Model,
    outside::Outside,
    turns,
    wake::{self, Wake, text},
};

/// The owner's chat; the other one belongs to somebody else.
pub(super) const OWNER: ChatRef = ChatRef::from_telegram(7);
const CHATS: [ChatRef; 3] = [OWNER, OWNER, ChatRef::from_telegram(8)];
const BOT_ID: i64 = 99;
const MODELS: [&str; 2] = ["one model", "another model"];
/// Messages between the beginnings of two albums.
const ALBUM_EVERY: i64 = 12;
/// Seconds from which a pause counts as sleep, so connections to a shared database are lost.
const ASLEEP_S: u32 = 3_600;
/// Steps after which an undisturbed wake should long have ended.
const MAX_STEPS: u32 = 3_000;
/// Undisturbed wakes at the end: one for each failure a message may still have, and one more.
const CALM_WAKES: u32 = 4;

/// The store, its writers, the model and the outside world.
pub(super) struct Scene {
    bot: Store,
    /// The wake's.
    pub(super) store: Store,
    /// The store of the machine that worked before; `None` with a file.
    elsewhere: Option<Store>,
    /// Whether the wake's connection still holds its turn among the machines that share the database.
    has_turn: bool,
    pub(super) look: Look,
    /// Declared after its open connections, so it is dropped after them.
    pub(super) home: Home,
    pub(super) now: DateTime<Utc>,
    latest: DateTime<Utc>,
    pub(super) model: Model,
    pub(super) outside: Outside,
    pub(super) model_name: &'static str,
    pub(super) temper: Temper,
    /// Whether failures are over.
    pub(super) is_calm: bool,
    wake: Option<Wake>,
    old: Vec<Fence>,
    batches: Vec<Batch>,
    /// The part the bot is sending.
    bots: Option<Claimed>,
    /// Sends of presumed-dead processes, and whether they arrived.
    ghosts: Vec<(Claimed, bool)>,
    drawn: i64,
}

impl Scene {
    /// Starts with a fresh database.
    pub(super) fn new(temper: Temper, home: Home) -> Result<Self, String> {
        let now = NaiveDateTime::default().and_utc() + TimeDelta::days(20_000);
        Ok(Self {
            bot: home.open()?,
            store: home.open()?,
            elsewhere: None,
            has_turn: false,
            look: home.look()?,
            home,
            now,
            latest: now,
            model: Model::default(),
            outside: Outside::default(),
            model_name: MODELS[0],
            temper,
            is_calm: false,
            wake: None,
            old: Vec::new(),
            batches: Vec::new(),
            bots: None,
            ghosts: Vec::new(),
            drawn: 0,
        })
    }

    /// Plays a command, and checks everything.
    pub(super) fn play(&mut self, command: Command) -> Result<(), String> {
        let random = &mut Rng::with_seed(command.seed);
        match command.act {
            Act::Accept => self.accept(random)?,
            Act::AcceptAgain => self.accept_again(random)?,
            Act::Say => self.say()?,
            Act::TakeOver => self.begin_wake()?,
            Act::Work(steps) => self.work(u32::from(steps), random)?,
            Act::Kill => self.kill_wake(random)?,
            Act::Reboot => self.reboot(random)?,
            Act::OldHolder => self.old_holder(random)?,
            Act::BotClaims => self.bot_claims(random)?,
            Act::BotSettles => self.bot_settles(random)?,
            Act::KillBot => self.kill_bot(random)?,
            Act::LateReport => self.late_report(random)?,
            Act::Show => self.show()?,
            Act::Retry => self.by_hand(random, true)?,
            Act::Drop => self.by_hand(random, false)?,
            Act::Pass(seconds) => {
                self.pass(i64::from(seconds));
                if seconds >= ASLEEP_S {
                    self.cut_off()?;
                }
            }
            Act::JumpBack(seconds) => self.now -= TimeDelta::seconds(i64::from(seconds)),
            Act::SwitchModel => self.model_name = if self.model_name == MODELS[0] { MODELS[1] } else { MODELS[0] },
        }
        check::always(self)
    }

    /// Ends all failures and runs wakes to their ends until all is settled.
    pub(super) fn calm_down(&mut self) -> Result<(), String> {
        let random = &mut Rng::with_seed(0);
        self.is_calm = true;
        self.now = self.latest;
        self.kill_wake(random)?;
        self.bot_settles(random)?;
        for _ in 0..CALM_WAKES {
            self.pass(7_200);
            self.work(MAX_STEPS, random)?;
            if self.wake.is_some() {
                return Err(format!("an undisturbed wake had not ended after {MAX_STEPS} steps"));
            }
            check::always(self)?;
        }
        self.show()?;
        check::at_the_end(self)
    }

    /// The start of a cycle.
    pub(super) fn new_cycle(&mut self, model: &str, reasons: &[Reason]) -> NewCycle {
        let chat = reasons.iter().find_map(|reason| match reason {
            Reason::Messages { chat, .. } => Some(*chat),
            _ => None,
        });
        NewCycle {
            id: format!("cycle-{}", self.draw()),
            trigger: "history".to_owned(),
            reasons: reasons.iter().map(Reason::describe).collect(),
            chat,
            thread_id: None,
            model: model.to_owned(),
            system: "[]".to_owned(),
            tools: "[]".to_owned(),
            work: None,
        }
    }

    /// Checks that a claimed part may be sent now. The bot's own answers wait for no other part, and no part waits for one that is
    /// known to have arrived: a first attempt's late report can come during the second, marked one.
    pub(super) fn leaves(&self, claimed: &Claimed, is_bots: bool) -> Result<(), String> {
        let key = (claimed.outgoing_id, claimed.part);
        let under_way = [self.bots.as_ref(), self.wake.as_ref().and_then(Wake::sending)].into_iter().flatten();
        for other in under_way {
            let others = (other.outgoing_id, other.part);
            let is_before = others < key && other.chat == claimed.chat && !is_bots;
            if others == key || is_before && !self.has_been_told(other)? {
                return Err(format!("{key:?} leaves while {others:?} of the same chat is under way"));
            }
        }
        self.may_leave(claimed.outgoing_id)
    }

    /// Tells whether the arrival of this part is recorded.
    fn has_been_told(&self, part: &Claimed) -> Result<bool, String> {
        let sql = format!(
            "SELECT state = 'sent' FROM outgoing_parts WHERE outgoing_id = {} AND part = {}",
            part.outgoing_id, part.part
        );
        Ok(self.look.rows(&sql, |row| row.get(0))?.contains(&true))
    }

    fn may_leave(&self, row: i64) -> Result<(), String> {
        self.model.may_leave(self.nth(row)?, &self.outside.committed)
    }

    /// The position of this row among the written messages.
    fn nth(&self, row: i64) -> Result<usize, String> {
        let written = self.look.rows("SELECT id FROM outgoing_messages ORDER BY id", |row| row.get::<i64>(0))?;
        Ok(written.iter().position(|id| *id == row).unwrap_or(usize::MAX))
    }

    /// Notes an arrival. The bot's own answers may overtake parts that wait for a wake, and any part may overtake the messages of a
    /// cycle that waited.
    fn arrive(&mut self, claimed: &Claimed, is_bots: bool) -> Result<(), String> {
        let is_in_turn = !is_bots && !self.model.has_waited(self.nth(claimed.outgoing_id)?);
        self.outside.arrive(claimed, is_in_turn)
    }

    /// The next part a wake may send.
    pub(super) fn claim(&mut self) -> Result<Option<Claimed>, String> {
        self.store.outbox_mut().claim_part(Pick::default(), &Identity::current(), self.now).map_err(text)
    }

    /// Ends an attempt.
    pub(super) fn send(&mut self, claimed: &Claimed, is_bots: bool, random: &mut Rng) -> Result<PartOutcome, String> {
        let (has_arrived, outcome) = wake::fate(random, self);
        if matches!(outcome, PartOutcome::Unknown(_)) {
            self.outside.doubt(claimed);
        }
        if has_arrived {
            self.arrive(claimed, is_bots)?;
        }
        Ok(outcome)
    }

    fn draw(&mut self) -> i64 {
        self.drawn += 1;
        self.drawn
    }

    fn pass(&mut self, seconds: i64) {
        self.now += TimeDelta::seconds(seconds);
        self.latest = self.latest.max(self.now);
    }

    fn accept(&mut self, random: &mut Rng) -> Result<(), String> {
        // IDs are a key without an order: sometimes they restart at a lower number.
        let restart = if random.u32(0..5) == 0 { 1_000_000 - 10_000 * self.draw() } else { 1_000_000 };
        let mut batch = Batch { bot_id: BOT_ID, strangers: random.u32(0..2), ..Batch::default() };
        for _ in 0..random.u32(1..4) {
            let id = self.draw();
            batch.next_offset = restart + id + 1;
            // Sometimes a part of an album; a chat has one album after the other.
            let is_part = random.u32(0..3) == 0;
            batch.messages.push(NewIncoming {
                chat: *random.choice(&CHATS).unwrap_or(&OWNER),
                text: format!("message {id}"),
                channel_message_id: Some(id),
                update_id: Some(restart + id),
                part_of: is_part.then(|| PartOf::Album(format!("album {}", id / ALBUM_EVERY))),
                ..NewIncoming::default()
            });
        }
        if random.u32(0..3) == 0
            && let Some(edited) =
                random.choice(self.batches.iter().flat_map(|batch| &batch.messages).collect::<Vec<_>>())
        {
            let (edited, id) = (edited.clone(), self.draw());
            batch.next_offset = restart + id + 1;
            let text = format!("{}, edited {id}", edited.text);
            batch.edits.push(NewIncoming { text, update_id: Some(restart + id), ..edited });
        }
        if random.u32(0..3) == 0 {
            let text = turns::long_or_short(random, &format!("status {}", batch.next_offset));
            let answer = turns::outgoing(OWNER, &text, OutgoingKind::Command);
            batch.commands.push(Ordered { answer, order: None, update_id: None });
        }
        self.store_batch(&batch)?;
        self.batches.push(batch);
        Ok(())
    }

    /// Delivers a stored batch again, as after a bot that died before it confirmed the batch. Its answers to commands are already
    /// keyed.
    fn accept_again(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(batch) = random.choice(&self.batches) else { return Ok(()) };
        let batch = Batch { commands: Vec::new(), strangers: 0, ..batch.clone() };
        self.store_batch(&batch)
    }

    fn store_batch(&mut self, batch: &Batch) -> Result<(), String> {
        let accepted = self.bot.inbox_mut().accept_batch(batch, self.now).map_err(text)?;
        self.model.accept(batch, &accepted.stored, &accepted.answers)
    }

    fn say(&mut self) -> Result<(), String> {
        let said = NewIncoming { text: format!("said {}", self.draw()), ..NewIncoming::default() };
        let row = self.bot.inbox_mut().queue_message(said.chat, &said.text, self.now).map_err(text)?;
        self.model.queue(row, &said)
    }

    fn work(&mut self, steps: u32, random: &mut Rng) -> Result<(), String> {
        let mut wake = match self.wake.take() {
            Some(wake) => wake,
            None => self.new_wake()?,
        };
        for _ in 0..steps {
            wake.step(self, random)?;
            if wake.is_over() {
                return Ok(());
            }
        }
        self.wake = Some(wake);
        Ok(())
    }

    /// Lets the bot claim a part of its own answers, independent of other waiting parts.
    fn bot_claims(&mut self, random: &mut Rng) -> Result<(), String> {
        let sql = "SELECT id FROM outgoing_messages WHERE kind = 'command' ORDER BY id";
        let answers: Vec<i64> = self.look.rows(sql, |row| row.get(0))?;
        let last = answers.len().saturating_sub(random.usize(1..4));
        let only = answers.get(last..).unwrap_or_default();
        if self.bots.is_none() {
            let claimed = self
                .bot
                .outbox_mut()
                .claim_part(Pick { only: Some(only), ..Pick::default() }, &Identity::current(), self.now)
                .map_err(text)?;
            claimed.as_ref().map_or(Ok(()), |claimed| self.leaves(claimed, true))?;
            self.bots = claimed;
        }
        Ok(())
    }

    fn bot_settles(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(claimed) = self.bots.take() else { return Ok(()) };
        let outcome = self.send(&claimed, true, random)?;
        self.bot.outbox_mut().settle_part(&claimed, &outcome, self.now).map_err(text)
    }

    fn kill_bot(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(claimed) = self.bots.take() else { return Ok(()) };
        self.outside.doubt(&claimed);
        let has_arrived = random.bool();
        if has_arrived {
            self.arrive(&claimed, true)?;
        }
        self.forget_sender(&claimed)?;
        self.bot = self.home.open()?;
        self.ghosts.push((claimed, has_arrived));
        Ok(())
    }

    /// Lets a bot hang in a send for longer than any takes. It has sent the part or not, and reports late or never.
    pub(super) fn silence_bot(&mut self, random: &mut Rng) -> Result<(), String> {
        let parts = self.store.unsent_parts(self.now).map_err(text)?;
        let is_late = |claimed: &mut Claimed| {
            parts.iter().any(|part| {
                part.outgoing_id == claimed.outgoing_id && part.state == PartState::Attempting && !part.is_under_way
            })
        };
        let Some(claimed) = self.bots.take_if(is_late) else { return Ok(()) };
        self.outside.doubt(&claimed);
        let has_arrived = random.bool();
        if has_arrived {
            self.arrive(&claimed, true)?;
        }
        self.ghosts.push((claimed, has_arrived));
        Ok(())
    }

    fn late_report(&mut self, random: &mut Rng) -> Result<(), String> {
        let Some(ghost) = self.ghosts.pop() else { return Ok(()) };
        self.report_late(&ghost, random)
    }

    /// While a part is sent again, its presumed-dead sender may report.
    pub(super) fn report_late_of(&mut self, claimed: &Claimed, random: &mut Rng) -> Result<(), String> {
        let is_of_it =
            |(ghost, _): &(Claimed, bool)| (ghost.outgoing_id, ghost.part) == (claimed.outgoing_id, claimed.part);
        let Some(at) = self.ghosts.iter().position(is_of_it).filter(|_| random.bool()) else { return Ok(()) };
        let ghost = self.ghosts.swap_remove(at);
        self.report_late(&ghost, random)
    }

    /// Lets a late report arrive. Only a success counts; anything else belongs to an abandoned attempt.
    fn report_late(&mut self, (claimed, has_arrived): &(Claimed, bool), random: &mut Rng) -> Result<(), String> {
        let outcome = match (has_arrived, random.bool()) {
            (true, true) => PartOutcome::Sent { id: 1, date: None },
            (false, true) => PartOutcome::Failed("refused".to_owned()),
            (_, false) => PartOutcome::Unknown("no answer".to_owned()),
        };
        let sql = format!(
            "SELECT state || attempts FROM outgoing_parts WHERE outgoing_id = {} AND part = {}",
            claimed.outgoing_id, claimed.part
        );
        let state = |look: &Look| look.rows(&sql, |row| row.get::<String>(0));
        let before = state(&self.look)?;
        self.bot.outbox_mut().settle_part(claimed, &outcome, self.now).map_err(text)?;
        let after = state(&self.look)?;
        let is_its_own = before.iter().any(|state| state.ends_with(&claimed.attempts.to_string()));
        if before == after || is_its_own || matches!(outcome, PartOutcome::Sent { .. }) {
            return Ok(());
        }
        Err(format!("a late {outcome:?} made {before:?} of a part {after:?}"))
    }

    fn show(&mut self) -> Result<(), String> {
        for (row, _) in self.bot.terminals().console_unshown(None).map_err(text)? {
            self.may_leave(row)?;
            self.bot.terminals_mut().record_shown_text(row, self.now).map_err(text)?;
        }
        Ok(())
    }

    /// Lets a person retry or drop a message.
    fn by_hand(&mut self, random: &mut Rng, is_retry: bool) -> Result<(), String> {
        let rows: BTreeSet<i64> = self.model.messages.keys().copied().collect();
        let Some(row) = random.choice(rows) else { return Ok(()) };
        let (done, expected) = if is_retry {
            (self.bot.inbox_mut().retry_message(row), self.model.retry(row))
        } else {
            (self.bot.inbox_mut().discard_message(row, self.now), self.model.drop(row))
        };
        if done.map_err(text)? == expected {
            Ok(())
        } else {
            Err(format!("message {row}: asked for, and not {expected}"))
        }
    }
}
