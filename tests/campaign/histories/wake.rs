//! A wake, step by step, as `cycle` uses the store. Each step is one transaction or one outside act, so a history can crash
//! between any two. The product chooses the next step: `orient`, `machine`, `uptake`.

use chrono::TimeDelta;
use fastrand::Rng;

use reveille_base::{clock::FixedClock, process::Identity, types::Usage, zone::Tz};
use reveille_cycle::{
    CutOff, Uptake,
    decide::{
        fold::Window,
        limits::{Limits, Stretch},
        lineup::ModelState,
        machine::{Cycle, Step, ToolRequest},
        orient::{self, Work},
        situation::{Reason, Situation},
    },
    decide_resumption,
};
use reveille_store::{
    Change, Claimed, CycleEnd, CycleState, Entry, Fence, FencedStore, Firing, ModelFault, NO_MODEL, NewCycle,
    NewOutgoing, OutgoingKind, PartOutcome, Reminder, Round,
};

use super::{
    scene::{OWNER, Scene},
    turns::{self, Answer},
};

/// Few turns, so a cycle meets the limit, and so few tokens that every conversation is folded.
const LIMITS: Limits = Limits { window: Some(Window::for_model(10)), ..Limits::from_stretch(Stretch::new(5, None), 3) };

/// A wake with the lease.
pub(super) struct Wake {
    pub(super) fence: Fence,
    at: At,
    /// No new cycle begins; only the outbox is still sent.
    ends: bool,
}

/// A running cycle with the model.
struct Live {
    cycle: NewCycle,
    state: Cycle,
}

/// An ended cycle with its results.
struct Ended {
    id: String,
    state: CycleState,
    handled: Vec<String>,
    failed: Vec<i64>,
}

/// The next step.
enum At {
    Begun,
    Looking,
    Opening(Vec<Reason>),
    Driving(Box<Live>),
    Asked(Box<Live>),
    Called(Box<Live>, ToolRequest),
    Pausing(Box<Live>),
    GivingUp(String, Box<Cycle>, bool),
    Committing(String, Vec<String>),
    Ending(Ended),
    Delivering,
    Sending(Claimed),
    Releasing,
    Over,
}

impl Wake {
    pub(super) fn begin(scene: &mut Scene) -> Result<Self, String> {
        let fence = scene.store.take_lease(&Identity::current(), scene.now).map_err(text)?;
        if fence.0 <= scene.model.fence {
            return Err(format!("fence {} came after {}", fence.0, scene.model.fence));
        }
        scene.model.fence = fence.0;
        Ok(Self { fence, at: At::Begun, ends: false })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.at, At::Over)
    }

    /// The part the wake was sending.
    pub(super) fn sending(&self) -> Option<&Claimed> {
        if let At::Sending(claimed) = &self.at { Some(claimed) } else { None }
    }

    /// Does one step.
    pub(super) fn step(&mut self, scene: &mut Scene, random: &mut Rng) -> Result<(), String> {
        let at = std::mem::replace(&mut self.at, At::Over);
        self.at = match at {
            At::Begun => {
                // A running cycle was left by a killed wake; a real wake learns that from the lock file.
                for row in scene.store.cycles().open_cycles().map_err(text)? {
                    if row.state == CycleState::Running {
                        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                            .cycles_mut()
                            .note_cut_off(&row.cycle.id, &[], None)
                            .map_err(text)?;
                    }
                }
                scene.silence_bot(random)?;
                if scene.store.outbox().has_doubtful(scene.now).map_err(text)? {
                    FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                        .outbox_mut()
                        .recover_outbox()
                        .map_err(text)?;
                }
                At::Delivering
            }
            At::Looking => self.look(scene)?,
            At::Opening(reasons) => self.open(scene, &reasons)?,
            At::Driving(live) => self.drive(scene, live)?,
            At::Asked(live) => self.hear(scene, live, random)?,
            At::Called(live, request) => self.outcome(scene, live, &request, random)?,
            At::Pausing(live) => self.pause(scene, &live)?,
            At::GivingUp(id, state, counts) => self.give_up(scene, id, &state, counts)?,
            At::Committing(id, handled) => {
                let staged = scene.store.journal().list_staged_files(&id).map_err(text)?;
                scene.outside.commit(&id, &staged)?;
                At::Ending(Ended { id, state: CycleState::Done, handled, failed: Vec::new() })
            }
            At::Ending(ended) => self.end(scene, &ended)?,
            At::Delivering => self.claim(scene)?,
            At::Sending(claimed) => self.send(scene, &claimed, random)?,
            At::Releasing | At::Over => {
                FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now)).release_lease().map_err(text)?;
                At::Over
            }
        };
        Ok(())
    }

    fn look(&self, scene: &mut Scene) -> Result<At, String> {
        if self.ends {
            return Ok(At::Releasing);
        }
        let store = &scene.store;
        let breaker = store.maintenance().find_breaker(scene.model_name).map_err(text)?;
        let may_try = breaker.is_none_or(|breaker| breaker.may_try(scene.now));
        let model_state = ModelState::for_model(scene.model_name);
        let model_state = if may_try { model_state } else { model_state.out_of_reach() };
        let observed = Situation {
            messages: store.inbox().list_queued_messages().map_err(text)?,
            open_cycles: store.cycles().open_cycles().map_err(text)?,
            reminders: store.reminders().list_reminders().map_err(text)?,
            tells_left: 3,
            ..Situation::new_quiet(scene.now, Tz::UTC, OWNER, model_state)
        };
        let (reasons, reminders) = (orient::list_due_reasons(&observed), &observed.reminders);
        match orient::choose(reasons, &observed.model, OWNER) {
            None | Some(Work::Undo(_)) => Ok(At::Releasing),
            Some(Work::Resume { cycle_id, has_crashed }) => self.resume(scene, cycle_id, has_crashed),
            Some(Work::Think { reasons }) => Ok(At::Opening(reasons)),
            Some(Work::Mechanical(reasons)) => {
                let is_due = |reminder: &&Reminder| reasons.contains(&Reason::Reminder { id: reminder.id });
                let due: Vec<&Reminder> = reminders.iter().filter(is_due).collect();
                self.by_rule(scene, &reasons, &due)
            }
        }
    }

    fn open(&self, scene: &mut Scene, reasons: &[Reason]) -> Result<At, String> {
        let cycle = scene.new_cycle(scene.model_name, reasons);
        let messages: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
        let opening = said(format!("{:?}", cycle.reasons), messages);
        let entries = std::slice::from_ref(&opening);
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .cycles_mut()
            .begin_cycle(&cycle, entries, &[])
            .map_err(text)?;
        scene.model.begin(&cycle, entries)?;
        let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
        state.apply(&opening);
        Ok(At::Driving(Box::new(Live { cycle, state })))
    }

    fn resume(&self, scene: &mut Scene, id: String, has_crashed: bool) -> Result<At, String> {
        let row = scene.store.cycles().find_cycle(&id).map_err(text)?.ok_or("an open cycle isn't there")?;
        let journal = scene.store.journal().read_journal(&id).map_err(text)?;
        let state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
        let cut = CutOff { is_committed: scene.outside.committed.contains(&id), has_crashed };
        match decide_resumption(&row, &journal, scene.model_name, cut) {
            Uptake::Conclude => {
                Ok(At::Ending(Ended { id, state: CycleState::Done, handled: state.handles, failed: Vec::new() }))
            }
            Uptake::GiveUp(giving_up) => Ok(At::GivingUp(id, Box::new(state), giving_up.is_counted())),
            Uptake::Publish => {
                FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                    .cycles_mut()
                    .resume_cycle(&id)
                    .map_err(text)?;
                scene.model.resume(&id, false)?;
                Ok(At::Committing(id, state.handles))
            }
            Uptake::GoOn => {
                if has_crashed {
                    FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                        .cycles_mut()
                        .count_try(&id)
                        .map_err(text)?;
                }
                FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                    .cycles_mut()
                    .resume_cycle(&id)
                    .map_err(text)?;
                scene.model.resume(&id, has_crashed)?;
                Ok(At::Driving(Box::new(Live { cycle: row.cycle, state })))
            }
        }
    }

    /// Carries out a rule, which is journalled with its cycle's beginning.
    fn by_rule(&self, scene: &mut Scene, reasons: &[Reason], due: &[&Reminder]) -> Result<At, String> {
        let cycle = scene.new_cycle(NO_MODEL, reasons);
        let rounds: Result<Vec<_>, String> = due.iter().map(|reminder| round(scene, reminder)).collect();
        let changes: Vec<Change> = rounds?.into_iter().map(Change::Fire).collect();
        let done = [Entry::ByRule { receipts: Vec::new(), handles: Vec::new(), head: None }];
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .cycles_mut()
            .begin_cycle(&cycle, &done, &changes)
            .map_err(text)?;
        scene.model.begin(&cycle, &done)?;
        scene.model.change(&cycle.id, &changes)?;
        Ok(At::Committing(cycle.id, Vec::new()))
    }

    /// One step of the machine, as in `cycle::drive`.
    fn drive(&mut self, scene: &mut Scene, mut live: Box<Live>) -> Result<At, String> {
        match live.state.next(&LIMITS) {
            Step::Ask => {
                self.record(scene, &mut live, &Entry::Asked, &[])?;
                Ok(At::Asked(live))
            }
            // The effect of these tools is in the transaction of the outcome, so a call without an outcome had no effect.
            Step::Call(request) | Step::Allowed(request) | Step::Again { call: request, .. } => {
                let ToolRequest { id: call, name, input } = request.clone();
                self.record(scene, &mut live, &Entry::Called { call, name, input, taint: None }, &[])?;
                Ok(At::Called(live, request))
            }
            // Nobody can be asked here, which counts as a no.
            Step::Limit(request) => {
                let (call, why) = (request.id, "Nobody was asked.".to_owned());
                self.record(scene, &mut live, &Entry::Decided { call, is_approved: false, why }, &[])?;
                Ok(At::Driving(live))
            }
            Step::Await(request) => Err(format!("nobody is asked here, and yet {} is waited for", request.name)),
            Step::Reject { call, why } => {
                let entry = turns::failed(&call, &why);
                self.record(scene, &mut live, &entry, &[])?;
                Ok(At::Driving(live))
            }
            Step::Say(raw) => {
                self.record(scene, &mut live, &said(raw, Vec::new()), &[])?;
                Ok(At::Driving(live))
            }
            Step::Tell(raw) => {
                let ask = live.state.fold_ask(&LIMITS, &raw).map(|ask| Entry::FoldAsked { ask, tokens: 1 });
                self.record(scene, &mut live, &said(raw, Vec::new()), &[])?;
                ask.map(|ask| self.record(scene, &mut live, &ask, &[])).transpose()?;
                Ok(At::Driving(live))
            }
            Step::Fold(summary) => {
                let folded = Entry::Folded { raw: summary.text, messages: 1, before: 10, after: 1 };
                self.record(scene, &mut live, &folded, &[])?;
                Ok(At::Driving(live))
            }
            Step::Fail(_) => {
                self.ends = true;
                Ok(At::GivingUp(live.cycle.id, Box::new(live.state), true))
            }
            Step::Answer { text, outcome } => {
                let messages = live.state.open.clone();
                let changes = turns::answer(live.cycle.chat, &text, &messages, outcome);
                let entry = Entry::Answered { messages, receipt: "Answered".to_owned() };
                self.record(scene, &mut live, &entry, &changes)?;
                Ok(At::Driving(live))
            }
            Step::Join => match joining(scene, &live)? {
                new if new.is_empty() => self.verify(scene, live),
                new => {
                    self.record(scene, &mut live, &said("more came".to_owned(), new), &[])?;
                    Ok(At::Driving(live))
                }
            },
            Step::Finish => self.verify(scene, live),
        }
    }

    fn verify(&self, scene: &mut Scene, mut live: Box<Live>) -> Result<At, String> {
        self.record(scene, &mut live, &Entry::Verified { not_done: Vec::new() }, &[])?;
        Ok(At::Committing(live.cycle.id, live.state.handles))
    }

    /// Handles the model's answer to a request.
    fn hear(&mut self, scene: &mut Scene, mut live: Box<Live>, random: &mut Rng) -> Result<At, String> {
        match turns::turn(random, &live.cycle.id, &live.state, scene) {
            Answer::Turn { content, stop } => {
                FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                    .maintenance_mut()
                    .record_model_answer(&live.cycle.model)
                    .map_err(text)?;
                let usage = Usage { output: 1, ..Usage::default() };
                self.record(scene, &mut live, &Entry::Turn { content, stop, usage }, &[])?;
                Ok(At::Driving(live))
            }
            Answer::CutOff => {
                let entry = Entry::Discarded { why: "cut off".to_owned(), usage: Usage::default() };
                self.record(scene, &mut live, &entry, &[])?;
                Ok(At::Driving(live))
            }
            Answer::Unavailable => {
                FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
                    .maintenance_mut()
                    .record_model_failure(&live.cycle.model, ModelFault::Outage, "overloaded", None)
                    .map_err(text)?;
                if let (Some(chat), Some(first)) = (live.cycle.chat, live.state.open.first()) {
                    let notice = turns::notice(chat, "I can't think right now.", format!("waits/{first}"));
                    self.change(scene, &live.cycle.id, &[notice])?;
                }
                Ok(At::Pausing(live))
            }
            Answer::Rejected => {
                self.ends = true;
                Ok(At::GivingUp(live.cycle.id, Box::new(live.state), true))
            }
            Answer::Stopped => Ok(At::Pausing(live)),
            // The cycle is left as it is; the next wake resumes it as an interrupted one.
            Answer::OutOfTime => Ok(At::Releasing),
        }
    }

    fn pause(&mut self, scene: &mut Scene, live: &Live) -> Result<At, String> {
        self.ends = true;
        let id = &live.cycle.id;
        if live.state.turns == 0 {
            let ended = Ended { id: id.clone(), state: CycleState::Failed, handled: Vec::new(), failed: Vec::new() };
            return Ok(At::Ending(ended));
        }
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .cycles_mut()
            .pause_cycle(id, scene.now, "it waits")
            .map_err(text)?;
        scene.model.pause(id);
        Ok(At::Delivering)
    }

    fn outcome(
        &self,
        scene: &mut Scene,
        mut live: Box<Live>,
        call: &ToolRequest,
        random: &mut Rng,
    ) -> Result<At, String> {
        let (entry, changes) = turns::outcome(scene, &live.cycle, &live.state, call, random);
        self.record(scene, &mut live, &entry, &changes)?;
        Ok(At::Driving(live))
    }

    fn give_up(&self, scene: &mut Scene, id: String, state: &Cycle, counts: bool) -> Result<At, String> {
        if counts {
            let key = state.open.first().map_or(id.clone(), i64::to_string);
            let notice = turns::notice(OWNER, "I gave up.", format!("gave-up/{key}"));
            self.change(scene, &id, &[notice])?;
        }
        let failed = if counts { state.open.clone() } else { Vec::new() };
        Ok(At::Ending(Ended { id, state: CycleState::Abandoned, handled: Vec::new(), failed }))
    }

    fn end(&self, scene: &mut Scene, ended: &Ended) -> Result<At, String> {
        let Ended { id, state, handled, failed } = ended;
        let commit_id = (*state == CycleState::Done).then_some("a commit");
        let end = CycleEnd { commit_id, handled, failed_messages: failed, ..CycleEnd::new(*state) };
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .cycles_mut()
            .end_cycle(id, &end)
            .map_err(text)?;
        scene.model.end(id, *state, failed);
        Ok(At::Delivering)
    }

    fn claim(&self, scene: &mut Scene) -> Result<At, String> {
        let Some(claimed) = scene.claim()? else { return Ok(At::Looking) };
        scene.leaves(&claimed, false)?;
        Ok(At::Sending(claimed))
    }

    fn send(&self, scene: &mut Scene, claimed: &Claimed, random: &mut Rng) -> Result<At, String> {
        // A claim during a send gets another chat's part, or none.
        let other = if scene.is_calm || random.bool() { None } else { scene.claim()? };
        if let Some(other) = other {
            if other.chat == claimed.chat {
                return Err(format!("two parts of chat {} are under way", claimed.chat));
            }
            let put_back = PartOutcome::Later { not_before: scene.now, why: "put back".to_owned() };
            scene.store.outbox_mut().settle_part(&other, &put_back, scene.now).map_err(text)?;
        }
        scene.report_late_of(claimed, random)?;
        let outcome = scene.send(claimed, false, random)?;
        scene.store.outbox_mut().settle_part(claimed, &outcome, scene.now).map_err(text)?;
        Ok(At::Delivering)
    }

    /// Journals an entry with its changes. The journal must then match the wake's own state.
    fn record(&self, scene: &mut Scene, live: &mut Live, entry: &Entry, changes: &[Change]) -> Result<(), String> {
        let id = &live.cycle.id;
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .journal_mut()
            .record_entry(id, entry, changes)
            .map_err(text)?;
        scene.model.record(id, entry, changes)?;
        live.state.apply(entry);
        let journal = scene.store.journal().read_journal(id).map_err(text)?;
        if Cycle::replay(live.cycle.system.clone(), live.cycle.tools.clone(), &journal) != live.state {
            return Err(format!("the journal of {id} isn't its state, after {entry:?}"));
        }
        Ok(())
    }

    fn change(&self, scene: &mut Scene, id: &str, changes: &[Change]) -> Result<(), String> {
        FencedStore::new(&mut scene.store, self.fence, &FixedClock(scene.now))
            .journal_mut()
            .apply_changes(id, changes)
            .map_err(text)?;
        scene.model.change(id, changes)
    }
}

/// The round of a due reminder.
fn round(scene: &Scene, reminder: &Reminder) -> Result<Round, String> {
    let history = scene.store.reminders().reminder_history(reminder.id, reminder.what.slot).map_err(text)?;
    let turn = reminder.series(Tz::UTC).decide_turn(&history, scene.now);
    let message = turn.happens.map(|slot| NewOutgoing {
        chat: reminder.what.chat,
        text: format!("{} at {}", reminder.what.text, slot.civil),
        kind: OutgoingKind::Reminder,
        ..NewOutgoing::default()
    });
    Ok(Round { firings: vec![Firing { id: reminder.id, turn, missed: reminder.what.missed }], message })
}

/// New messages for a cycle's chat since its beginning.
fn joining(scene: &Scene, live: &Live) -> Result<Vec<i64>, String> {
    let model_state = ModelState::for_model(scene.model_name);
    let queued = scene.store.inbox().list_queued_messages().map_err(text)?;
    let open = scene.store.cycles().open_cycles().map_err(text)?;
    let new =
        orient::list_new_messages(&queued, &live.cycle, None, &live.state.messages, &open, &model_state, scene.now);
    Ok(new.iter().map(|message| message.id).collect())
}

/// The result of an attempt, and whether the part arrived.
pub(super) fn fate(random: &mut Rng, scene: &Scene) -> (bool, PartOutcome) {
    let unknown = || PartOutcome::Unknown("the connection was cut".to_owned());
    match if scene.is_calm { 0 } else { random.u32(0..10) } {
        0..6 => (true, PartOutcome::Sent { id: 1, date: None }),
        6 => {
            let not_before = scene.now + TimeDelta::seconds(random.i64(0..90));
            (false, PartOutcome::Later { not_before, why: "too many requests".to_owned() })
        }
        7 => (false, PartOutcome::Failed("blocked".to_owned())),
        8 => (true, unknown()),
        _ => (false, unknown()),
    }
}

fn said(raw: String, messages: Vec<i64>) -> Entry {
    Entry::Said { raw, messages, handles: Vec::new(), head: None, taint: None }
}

/// An error of the store, which must never occur for the wake that holds the lease.
pub(super) fn text(error: impl std::fmt::Display) -> String {
    format!("the store said: {error}")
}
