//! Decide and act: the shell around the state machine. It asks, runs, records, and looks for messages that have come
//! meanwhile; what to do next is always the machine's answer.

use std::{collections::BTreeSet, time::Duration};

use super::{
    WakeError, brief,
    machine::{Cycle, Limits, Request, Step},
    observe::{self, Observation, day_begin},
    plan_file::PlanFile,
    verify,
    wake::Wake,
};
use crate::{
    config::OFFLINE_MODEL,
    memory::{self, skill},
    model::{
        ModelError, Turn,
        anthropic::{price, retry},
    },
    queue::{Change, Entry, Incoming, NewCycle, NewOutgoing},
    repo::Repo,
    tool::{Chat, Documents, Registry, World, answer},
};

/// Requests that one cycle makes at most.
const MAX_ROUNDS: u32 = 30;

/// How driving a cycle ended.
pub(super) enum Driven {
    /// Nothing more is to be done.
    Complete,
    /// It stopped before its end.
    Interrupted(Interrupt),
}

/// Why a cycle stopped before its end, by what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Interrupt {
    /// The mind can't be reached now: wait and go on.
    #[error("{why}")]
    Unavailable {
        /// What happened.
        why: String,
        /// What the server asked for.
        retry_after: Option<Duration>,
        /// Whether a person has to do something about it.
        needs_person: bool,
    },
    /// The mind's server won't take this conversation: give the cycle up.
    #[error("{0}")]
    Rejected(String),
    /// The day's budget is spent: wait for tomorrow.
    #[error("the day's budget is spent")]
    OverBudget,
    /// The wake has taken as long as it may.
    #[error("the wake has taken as long as it may (WAKE_TIMEOUT_MIN)")]
    OutOfTime,
    /// The process was asked to end.
    #[error("the wake was asked to stop")]
    Stopped,
}

impl Interrupt {
    /// What the asking chat is told.
    pub(super) fn notice(&self) -> String {
        match self {
            Self::OverBudget => "Today's budget for thinking is spent (DAILY_BUDGET_USD). Your message is kept, and I answer it tomorrow.".to_owned(),
            Self::Unavailable { why, needs_person: true, .. } => {
                format!("I can't think right now, and it needs you to mend it: {why}. Your message is kept; I answer it as soon as that works again.")
            }
            other => format!("I can't reach my mind right now ({other}). Your message is kept; I try again by myself and answer as soon as I can."),
        }
    }
}

impl Wake<'_> {
    /// Builds what the tools see.
    #[expect(clippy::too_many_arguments, reason = "the parts of the world, named once")]
    pub(super) fn world(
        &mut self,
        repo: &Repo,
        wake_id: &str,
        chat_id: Option<i64>,
        thread_id: Option<i64>,
        messages: &[Incoming],
        open: &[i64],
        account: &mut verify::Account,
    ) -> Result<World, WakeError> {
        let config = self.context.config;
        let now = self.now();
        let documents = Documents::new(repo.root(), self.store.staged(wake_id)?);
        let (skills, problems) = skills(&documents);
        account.notes.extend(problems);
        let since = day_begin(now, config.timezone);
        Ok(World {
            wake_id: wake_id.to_owned(),
            mind: self.context.model.name().to_owned(),
            now,
            tz: config.timezone,
            chat: chat_id.map(|id| Chat {
                id,
                thread_id,
                reply_to: last_channel_id(messages, open),
            }),
            open_messages: open.to_vec(),
            replies: 0,
            owner_chat_id: config.owner_chat_id,
            told_keys: self.store.told_keys()?,
            told_today: u32::try_from(self.store.told_since("tell", since)?).unwrap_or(u32::MAX),
            tell_per_day: config.tell_per_day,
            quiet_hours: config.quiet_hours,
            reminders: self.store.reminders()?,
            documents,
            skills,
        })
    }

    /// The cycle's fixed parts and its first message.
    pub(super) fn opening(
        &mut self,
        cycle: &mut NewCycle,
        world: &World,
        observation: &Observation,
        ids: &[i64],
    ) -> Result<Entry, WakeError> {
        let redactor = self.context.redactor;
        let orders = world.documents.text(memory::CLAUDE);
        cycle.system = redactor.redact(&brief::system(&orders, &world.skills));
        cycle.tools = registry(self.context.model.name()).definitions();
        let exchanges = match cycle.chat_id {
            Some(chat) => self.store.exchanges(chat, brief::MAX_EXCHANGES)?,
            None => Vec::new(),
        };
        let messages: Vec<&Incoming> = observation
            .messages
            .iter()
            .filter(|message| ids.contains(&message.id))
            .collect();
        let raw = brief::opening(&brief::Brief {
            wake_id: &cycle.id,
            now: world.now,
            tz: world.tz,
            reasons: &cycle.reasons,
            done_already: &[],
            person_commits: &observation.person_commits,
            exchanges: &exchanges,
            messages: &messages,
            documents: &world.documents,
        });
        Ok(Entry::Said {
            raw: redactor.redact(&raw),
            messages: ids.to_vec(),
        })
    }

    /// Runs the machine until it is finished or interrupted.
    pub(super) async fn drive(
        &mut self,
        cycle: &NewCycle,
        state: &mut Cycle,
        world: &mut World,
        plan_file: &PlanFile,
    ) -> Result<Driven, WakeError> {
        let registry = registry(self.context.model.name());
        let limits = Limits { max_rounds: MAX_ROUNDS };
        loop {
            if *self.context.stop.borrow() {
                return Ok(Driven::Interrupted(Interrupt::Stopped));
            }
            match state.next(limits) {
                Step::Ask => {
                    if let Err(interrupt) = self.ask(cycle, state).await? {
                        return Ok(Driven::Interrupted(interrupt));
                    }
                }
                Step::Call(request) => self.call(cycle, state, world, &registry, &request, plan_file)?,
                Step::Reject { call, why } => self.settle(cycle, state, &call, why.to_owned(), true, None, &[])?,
                Step::Say(raw) => self.record(
                    &cycle.id,
                    state,
                    Entry::Said {
                        raw,
                        messages: Vec::new(),
                    },
                    &[],
                )?,
                Step::Answer { text, outcome } => self.answer(cycle, state, world, text, outcome)?,
                Step::Join => {
                    if !self.join(cycle, state, world)? {
                        return Ok(Driven::Complete);
                    }
                }
                Step::Finish => return Ok(Driven::Complete),
            }
        }
    }

    /// Asks for the next turn, with the retries that the error allows, and records it.
    async fn ask(&mut self, cycle: &NewCycle, state: &mut Cycle) -> Result<Result<(), Interrupt>, WakeError> {
        if self.is_over_budget()? {
            return Ok(Err(Interrupt::OverBudget));
        }
        self.record(&cycle.id, state, Entry::Asked, &[])?;
        for attempt in 1.. {
            let error = match self.turn(state).await {
                Ok(Ok(turn)) => {
                    self.book(cycle, &turn.usage, false)?;
                    if cycle.model != OFFLINE_MODEL && attempt > 1 {
                        tracing::info!(attempt, "the mind answered after a retry");
                    }
                    self.store.upkeep_recovered(self.fence, observe::MODEL, self.now())?;
                    let Turn {
                        content, stop, usage, ..
                    } = turn;
                    self.record(&cycle.id, state, Entry::Turn { content, stop, usage }, &[])?;
                    return Ok(Ok(()));
                }
                Ok(Err(error)) => error,
                Err(interrupt) => return Ok(Err(interrupt)),
            };
            let why = self.context.redactor.redact(&error.to_string());
            tracing::warn!(attempt, %why, "the mind did not answer");
            if let ModelError::Transient { spent, .. } = &error {
                self.book(cycle, spent, true)?;
                self.record(
                    &cycle.id,
                    state,
                    Entry::Discarded {
                        why: why.clone(),
                        usage: *spent,
                    },
                    &[],
                )?;
            }
            match retry::backoff(&error, attempt, fastrand::f64()) {
                Some(wait) => {
                    if let Some(interrupt) = self.wait(wait).await {
                        return Ok(Err(interrupt));
                    }
                }
                None => return Ok(Err(interrupt_of(error, why))),
            }
        }
        Ok(Err(Interrupt::OutOfTime))
    }

    /// One request, given up when the process is asked to end or the wake's time is over.
    async fn turn(&self, state: &Cycle) -> Result<Result<Turn, ModelError>, Interrupt> {
        let mut stop = self.context.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Err(Interrupt::Stopped),
            () = tokio::time::sleep_until(self.deadline) => Err(Interrupt::OutOfTime),
            turn = self.context.model.turn(&state.conversation) => Ok(turn),
        }
    }

    async fn wait(&self, time: Duration) -> Option<Interrupt> {
        let mut stop = self.context.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Some(Interrupt::Stopped),
            () = tokio::time::sleep_until(self.deadline) => Some(Interrupt::OutOfTime),
            () = tokio::time::sleep(time) => None,
        }
    }

    /// Whether the day's budget is spent: looked at before each request, so a day overruns by one request at most.
    fn is_over_budget(&self) -> Result<bool, WakeError> {
        let config = self.context.config;
        let spent = self.store.spent_since(day_begin(self.now(), config.timezone))?.cost_usd;
        Ok(self.context.model.name() != OFFLINE_MODEL && spent >= config.daily_budget_usd)
    }

    fn book(&mut self, cycle: &NewCycle, usage: &crate::model::Usage, is_discarded: bool) -> Result<(), WakeError> {
        if *usage == crate::model::Usage::default() {
            return Ok(());
        }
        let cost_usd = if cycle.model == OFFLINE_MODEL {
            0.0
        } else {
            price::cost_usd(&cycle.model, usage)
        };
        self.report.tokens += *usage;
        self.report.cost_usd += cost_usd;
        let now = self.now();
        Ok(self
            .store
            .book(self.fence, &cycle.id, &cycle.model, *usage, cost_usd, is_discarded, now)?)
    }

    /// Runs one call: journalled before, its outcome and changes in one transaction after.
    fn call(
        &mut self,
        cycle: &NewCycle,
        state: &mut Cycle,
        world: &mut World,
        registry: &Registry,
        request: &Request,
        plan_file: &PlanFile,
    ) -> Result<(), WakeError> {
        let called = Entry::Called {
            call: request.id.clone(),
            name: request.name.clone(),
            input: request.input.clone(),
        };
        self.record(&cycle.id, state, called, &[])?;
        world.now = self.now();
        world.open_messages.clone_from(&state.open);
        world.replies = state.replies;
        let now = self.now();
        match registry.call(&request.name, &request.input, world) {
            Ok(done) => {
                let changes = self.redacted(done.changes);
                self.settle(
                    cycle,
                    state,
                    request,
                    done.content,
                    false,
                    done.receipt.clone(),
                    &changes,
                )?;
                self.take_note(world, &changes)?;
                let recorded = match (&state.plan, request.name.as_str()) {
                    (Some(plan), "plan") => plan_file.plan(plan),
                    _ => plan_file.progress(now, done.receipt.as_deref().unwrap_or(&request.name)),
                };
                if let Err(error) = recorded {
                    tracing::warn!(%error, "the plan file could not be written");
                }
            }
            Err(refusal) => self.settle(cycle, state, request, refusal.0, true, None, &[])?,
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one journal entry")]
    fn settle(
        &mut self,
        cycle: &NewCycle,
        state: &mut Cycle,
        request: &Request,
        content: String,
        is_error: bool,
        receipt: Option<String>,
        changes: &[Change],
    ) -> Result<(), WakeError> {
        let redactor = self.context.redactor;
        let outcome = Entry::Outcome {
            call: request.id.clone(),
            name: request.name.clone(),
            content: redactor.redact(&content),
            is_error,
            receipt: receipt.map(|what| redactor.redact(&what)),
            closed: closed(changes),
        };
        self.record(&cycle.id, state, outcome, changes)
    }

    /// Nothing that is written or sent holds a live secret.
    fn redacted(&self, changes: Vec<Change>) -> Vec<Change> {
        let redactor = self.context.redactor;
        changes
            .into_iter()
            .map(|change| match change {
                Change::Send(message) => Change::Send(NewOutgoing {
                    text: redactor.redact(&message.text),
                    ..message
                }),
                other => other,
            })
            .collect()
    }

    /// Brings the world along with what was recorded.
    fn take_note(&mut self, world: &mut World, changes: &[Change]) -> Result<(), WakeError> {
        for change in changes {
            match change {
                Change::File(file) => world.documents.apply(file),
                Change::Send(message) => {
                    world.told_keys.extend(message.key.clone());
                    world.told_today += u32::from(message.kind == "tell");
                    self.report.replies.push(super::Reply {
                        chat_id: message.chat_id,
                        text: message.text.clone(),
                    });
                }
                Change::AddReminder(_) | Change::EndReminder { .. } => world.reminders = self.store.reminders()?,
                Change::Done { .. } | Change::Hold { .. } | Change::Handled { .. } => {}
            }
        }
        Ok(())
    }

    /// Takes a text as the answer to the open messages.
    fn answer(
        &mut self,
        cycle: &NewCycle,
        state: &mut Cycle,
        world: &mut World,
        text: String,
        outcome: &'static str,
    ) -> Result<(), WakeError> {
        world.open_messages.clone_from(&state.open);
        let changes = self.redacted(answer(world, text, outcome));
        let messages = closed(&changes);
        let verb = if outcome == "refused" {
            "Declined to answer"
        } else {
            "Answered"
        };
        let receipt = format!("{verb} {}", super::orient::count(messages.len(), "message"));
        self.record(&cycle.id, state, Entry::Answered { messages, receipt }, &changes)?;
        self.take_note(world, &changes)
    }

    /// Puts messages that have come for this chat meanwhile into the conversation.
    fn join(&mut self, cycle: &NewCycle, state: &mut Cycle, world: &mut World) -> Result<bool, WakeError> {
        let Some(chat) = cycle.chat_id else { return Ok(false) };
        let mind = observe::mind_of(self.store, self.context)?;
        let queued = self.store.queued()?;
        let now = self.now();
        let new: Vec<&Incoming> = queued
            .iter()
            .filter(|message| (message.chat_id, message.thread_id) == (chat, cycle.thread_id))
            .filter(|message| {
                !state.messages.contains(&message.id) && super::orient::is_answerable(message, &mind, now)
            })
            .collect();
        if new.is_empty() {
            return Ok(false);
        }
        let ids: Vec<i64> = new.iter().map(|message| message.id).collect();
        if let Some(chat) = &mut world.chat {
            chat.reply_to = last_channel_id(&queued, &ids).or(chat.reply_to);
        }
        let raw = self.context.redactor.redact(&brief::joined(&new, now, world.tz));
        self.record(&cycle.id, state, Entry::Said { raw, messages: ids }, &[])?;
        Ok(true)
    }

    /// Holds the plan against the receipts; what has none is written down and told.
    pub(super) fn verify(
        &mut self,
        cycle: &NewCycle,
        state: &mut Cycle,
        world: &mut World,
    ) -> Result<Vec<String>, WakeError> {
        let Some(plan) = &state.plan else { return Ok(Vec::new()) };
        let not_done = verify::not_done(plan, &state.receipts);
        let mut changes = Vec::new();
        if let Some(text) = verify::notice(&not_done) {
            let (chat_id, thread_id) = world
                .chat
                .map_or((world.owner_chat_id, None), |chat| (chat.id, chat.thread_id));
            changes.push(Change::Send(NewOutgoing {
                chat_id,
                text,
                kind: "notice".to_owned(),
                key: Some(format!("not-done/{}", cycle.id)),
                thread_id,
                ..NewOutgoing::default()
            }));
        }
        let changes = self.redacted(changes);
        self.record(
            &cycle.id,
            state,
            Entry::Verified {
                not_done: not_done.clone(),
            },
            &changes,
        )?;
        self.take_note(world, &changes)?;
        Ok(not_done)
    }
}

/// The tools of a mind.
fn registry(mind: &str) -> Registry {
    if mind == OFFLINE_MODEL {
        Registry::offline()
    } else {
        Registry::standard()
    }
}

/// Messages that changes answer or put aside.
fn closed(changes: &[Change]) -> Vec<i64> {
    changes
        .iter()
        .flat_map(|change| match change {
            Change::Done { messages, .. } | Change::Hold { messages, .. } => messages.clone(),
            _ => Vec::new(),
        })
        .collect()
}

fn interrupt_of(error: ModelError, why: String) -> Interrupt {
    match error {
        ModelError::Transient { retry_after, .. } => Interrupt::Unavailable {
            why,
            retry_after,
            needs_person: false,
        },
        ModelError::Account { .. } => Interrupt::Unavailable {
            why,
            retry_after: None,
            needs_person: true,
        },
        // An unknown model is a setting to be mended, not a fault of the conversation.
        ModelError::Rejected { status: 404, .. } => Interrupt::Unavailable {
            why,
            retry_after: None,
            needs_person: true,
        },
        ModelError::Rejected { .. } => Interrupt::Rejected(why),
    }
}

/// The channel's id of the last of these messages, to reply to.
fn last_channel_id(messages: &[Incoming], ids: &[i64]) -> Option<i64> {
    messages
        .iter()
        .rev()
        .find(|message| ids.contains(&message.id))
        .and_then(|message| message.channel_message_id)
}

/// The skills that can be read, and notes on those that can't.
fn skills(documents: &Documents) -> (Vec<skill::Skill>, Vec<String>) {
    let (mut skills, mut notes, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for path in documents.list() {
        let Some(folder) = path
            .strip_prefix("skills/")
            .and_then(|rest| rest.strip_suffix("/SKILL.md"))
        else {
            continue;
        };
        match skill::Skill::parse(&documents.text(&path)) {
            Ok(skill) => {
                notes.extend(
                    skill
                        .check_folder(folder)
                        .map(|problem| super::skill_note(&path, &problem)),
                );
                if seen.insert(skill.name.clone()) {
                    skills.push(skill);
                }
            }
            Err(problem) => notes.push(super::skill_note(&path, &problem)),
        }
    }
    (skills, notes)
}
