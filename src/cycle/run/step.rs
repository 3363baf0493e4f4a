//! Decide and act: the shell around the state machine. It asks (`turn`), runs, records, and looks for messages that have come
//! meanwhile; what to do next is always the machine's answer.

use chrono::{DateTime, Utc};

use super::attached::Allowance;
use crate::{
    config::OFFLINE_MODEL,
    cycle::{
        context::{Reply, WakeError},
        decide::{
            brief::{self, File},
            interrupt::Interrupt,
            limits::{Limits, is_reserved},
            machine::{self, Step, ToolRequest},
            orient::{self, last_channel_id},
            taint,
            uptake::OUTSIDE,
            verify,
        },
        look::observe,
        run::approve::{Judged, called},
        session::{Live, Wake},
    },
    outside,
    store::{Change, Entry, Incoming, MessageOutcome, NewOutgoing, NewReminder, OutgoingKind, ShownTask, StagedFile},
    tool::{Done, Outcome, Refusal, Registry, Unwoken, answer, unwoken_key},
    words,
    zone::Tz,
};

/// How driving a cycle ended.
pub(in crate::cycle) enum Driven {
    /// Nothing more is to be done.
    Complete,
    /// A person is asked about a call, or whether to go on.
    Parked,
    /// It stopped before its end.
    Interrupted(Interrupt),
}

impl Wake<'_> {
    /// Runs the machine until it is finished or interrupted.
    pub(in crate::cycle) async fn drive(&mut self, live: &mut Live) -> Result<Driven, WakeError> {
        let driven = self.step(live).await;
        // However it ended: a model that keeps something between turns waits for nothing now.
        self.context.model.rest();
        driven
    }

    async fn step(&mut self, live: &mut Live) -> Result<Driven, WakeError> {
        let tooling = self.tooling();
        let registry = &tooling.registry;
        let limits = if self.context.model.name() == OFFLINE_MODEL { Limits::OFFLINE } else { Limits::STANDARD };
        loop {
            if let Some(interrupt) = self.is_to_end()? {
                return Ok(Driven::Interrupted(interrupt));
            }
            let step = match live.state.next(&limits) {
                Step::Call(call) if registry.acts(&call.name) => {
                    live.state.before_call(&call, &limits).unwrap_or(Step::Call(call))
                }
                step => step,
            };
            match step {
                // A client has taken the one turn that there is.
                Step::Ask if live.cycle.model == OUTSIDE => return Ok(Driven::Complete),
                Step::Ask => {
                    if let Err(interrupt) = self.ask(live).await? {
                        return Ok(Driven::Interrupted(interrupt));
                    }
                }
                Step::Call(request) => match self.judge(live, registry, &request)? {
                    Judged::Allowed(entries) => {
                        if let Err(interrupt) = self.call(live, registry, &request, entries).await? {
                            return Ok(Driven::Interrupted(interrupt));
                        }
                    }
                    Judged::Refused(entries, why) => self.refuse(live, &request, entries, why)?,
                    Judged::Asked => return Ok(Driven::Parked),
                },
                Step::Limit(request) => {
                    self.ask_to_go_on(live, &limits, &request)?;
                    return Ok(Driven::Parked);
                }
                Step::Await(request) if is_reserved(&request.id) => {
                    if !self.is_go_on_decided(live, &request)? {
                        return Ok(Driven::Parked);
                    }
                }
                Step::Await(request) => match self.decided(live, &request)? {
                    Some(decided) => self.record(live, &decided, &[])?,
                    None => return Ok(Driven::Parked),
                },
                Step::Allowed(request) => {
                    if let Err(interrupt) = self.call_approved(live, registry, &request).await? {
                        return Ok(Driven::Interrupted(interrupt));
                    }
                }
                Step::Again { call, was_allowed } => {
                    let effect = registry.get(&call.name).map(|tool| tool.effect);
                    let doubt = machine::doubt(effect, was_allowed && registry.acts(&call.name));
                    match (doubt, self.forbidden(live, registry, &call)) {
                        (None, Some((judged, why))) => self.refuse(live, &call, vec![judged], why)?,
                        (None, None) => {
                            if let Err(interrupt) = self.call(live, registry, &call, Vec::new()).await? {
                                return Ok(Driven::Interrupted(interrupt));
                            }
                        }
                        (Some(why), _) => self.settle(live, &call, Err(Refusal(why.to_owned())))?,
                    }
                }
                Step::Reject { call, why } => self.settle(live, &call, Err(Refusal(why)))?,
                Step::Say(raw) => {
                    self.record(
                        live,
                        &Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None },
                        &[],
                    )?;
                }
                Step::Tell(results) => self.tell(live, results)?,
                Step::Answer { text, outcome } => self.answer(live, text, outcome)?,
                Step::Join => {
                    if !self.join(live)? {
                        return Ok(Driven::Complete);
                    }
                }
                Step::Finish => return Ok(Driven::Complete),
            }
        }
    }

    /// Runs one call: journalled before, with what allowed it, its outcome and changes in one transaction after. A call that is
    /// interrupted has no outcome: what it left undone, and whether it may be run again, is seen when its cycle goes on.
    async fn call(
        &mut self,
        live: &mut Live,
        registry: &Registry,
        request: &ToolRequest,
        mut entries: Vec<Entry>,
    ) -> Result<Result<(), Interrupt>, WakeError> {
        entries.push(called(request));
        self.record_all(live, &entries, &[])?;
        self.carry_out(live, registry, request).await
    }

    /// What [`Wake::call`] does once the call is journalled.
    pub(in crate::cycle) async fn carry_out(
        &mut self,
        live: &mut Live,
        registry: &Registry,
        request: &ToolRequest,
    ) -> Result<Result<(), Interrupt>, WakeError> {
        let Live { state, world, hands, .. } = live;
        world.now = self.context.clock.now();
        world.open_messages.clone_from(&state.open);
        world.replies = state.replies;
        world.taint = taint::origin(&state.taints);
        live.work.start();
        let outcome = match self.unless_interrupted(registry.run(&request.name, &request.input, world, hands)).await {
            Ok(outcome) => outcome,
            Err(interrupt) => return Ok(Err(interrupt)),
        };
        crate::cycle::context::check_readable(&live.world.documents)?;
        let outcome = outcome.and_then(|done| self.without_secrets(done));
        self.settle(live, request, outcome)?;
        Ok(Ok(()))
    }

    /// Refuses to write a secret into the memory, be it as a document's name: the file could never be committed again.
    fn without_secrets(&self, done: Done) -> Outcome {
        let redactor = self.context.redactor;
        let is_new_in = |file: &StagedFile| match file.base.as_deref() {
            Some(base) => redactor.contains_secret(&file.content) && !redactor.contains_secret(base),
            None => redactor.contains_secret(&file.content) || redactor.contains_secret(&file.path),
        };
        let writes_secret = |change: &Change| matches!(change, Change::File(file) if is_new_in(file));
        if done.changes.iter().any(writes_secret) {
            return Err(Refusal("This holds a key or token, which is not written down. Nothing was done.".to_owned()));
        }
        Ok(done)
    }

    /// Journals how a call ended, with what makes it true.
    pub(in crate::cycle) fn settle(
        &mut self,
        live: &mut Live,
        request: &ToolRequest,
        outcome: Outcome,
    ) -> Result<(), WakeError> {
        self.settle_with(live, request, Vec::new(), outcome)
    }

    /// The same behind `entries`.
    pub(in crate::cycle) fn settle_with(
        &mut self,
        live: &mut Live,
        request: &ToolRequest,
        mut entries: Vec<Entry>,
        outcome: Outcome,
    ) -> Result<(), WakeError> {
        let redactor = self.context.redactor;
        let is_error = outcome.as_ref().map_or(true, |done| done.is_failure);
        let mut done = outcome.unwrap_or_else(|refusal| Done { content: refusal.0, ..Done::default() });
        // A refusal is our own word, but for what an error from outside has brought into it.
        if let Some(outside) = is_error.then(|| outside::origins_in(&done.content)).flatten() {
            done.taint = taint::joined(done.taint.into_iter().chain([outside]));
            done.content = outside::unmarked(&done.content).into_owned();
        }
        let changes = self.fit_to_leave(done.changes);
        let receipt = done.receipt.map(|what| redactor.redact(&what));
        let entry = Entry::Outcome {
            call: request.id.clone(),
            name: request.name.clone(),
            content: redactor.redact(&done.content),
            is_error,
            receipt: receipt.clone(),
            closed: closed(&changes),
            taint: done.taint.map(|origin| redactor.redact(&origin)),
            image: done.image,
        };
        entries.push(entry);
        entries.extend(live.work.stop());
        self.record_all(live, &entries, &changes)?;
        let written = match &live.state.plan {
            _ if is_error => Ok(()),
            Some(plan) if request.name == "plan" => live.plan_file.plan(plan, redactor),
            _ => live.plan_file.progress(self.now(), receipt.as_deref().unwrap_or(&request.name)),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "the plan file could not be written");
        }
        Ok(())
    }

    /// Takes a text as the answer to the open messages.
    fn answer(&mut self, live: &mut Live, text: String, outcome: MessageOutcome) -> Result<(), WakeError> {
        live.world.open_messages.clone_from(&live.state.open);
        let changes = match live.world.chat {
            Some(_) => answer(&live.world, text, outcome),
            // Nobody has asked for this work: its owner is told why it ended.
            None => vec![Change::Send(NewOutgoing {
                key: Some(format!("ended/{}", live.cycle.id)),
                ..NewOutgoing::notice(live.world.owner_chat, text)
            })],
        };
        let changes = self.fit_to_leave(changes);
        let messages = closed(&changes);
        let verb = if outcome == MessageOutcome::Refused { "Declined to answer" } else { "Answered" };
        let receipt = match messages.len() {
            0 => "Told why the work ended".to_owned(),
            n => format!("{verb} {}", words::count(n, "message")),
        };
        self.record(live, &Entry::Answered { messages, receipt }, &changes)
    }

    /// Puts messages that have come for this chat meanwhile into the conversation.
    fn join(&mut self, live: &mut Live) -> Result<bool, WakeError> {
        self.say_with_news(live, |new, files, now, tz| Some(brief::joined(new, files, now, tz)))
    }

    /// Tells the model what its calls have come to, and what its person has said meanwhile: it needn't finish first what may be
    /// wanted no more. The offline model takes no time, and deals with messages one lot after the other.
    fn tell(&mut self, live: &mut Live, results: String) -> Result<(), WakeError> {
        let with_news =
            |new: &[&Incoming], files: &[File], now, tz| brief::results_and_joined(&results, new, files, now, tz);
        let hears_news = self.context.model.name() != OFFLINE_MODEL && live.cycle.model != OUTSIDE;
        if hears_news && self.say_with_news(live, with_news)? {
            return Ok(());
        }
        self.record(
            live,
            &Entry::Said { raw: results, messages: Vec::new(), handles: Vec::new(), head: None, taint: None },
            &[],
        )
    }

    /// Journals a user message that `say` makes of the messages that have come for this chat; false if there are none.
    fn say_with_news(
        &mut self,
        live: &mut Live,
        say: impl Fn(&[&Incoming], &[File], DateTime<Utc>, Tz) -> Option<String>,
    ) -> Result<bool, WakeError> {
        let mind = observe::mind_of(&self.store, self.context)?;
        let (queued, open_cycles) = (self.store.queued()?, self.store.open_cycles()?);
        let now = self.now();
        let session = self.store.session_of(&live.cycle.id)?;
        let (session, knows) = (session.as_deref(), &live.state.messages);
        let new = orient::joining(&queued, &live.cycle, session, knows, &open_cycles, &mind, now);
        if new.is_empty() {
            return Ok(false);
        }
        let files = self.files_of(&new, Allowance::left_by(&live.state.conversation.messages))?;
        let Some(raw) = say(&new, &files, now, live.world.tz) else {
            return Ok(false);
        };
        let ids: Vec<i64> = new.iter().map(|message| message.id).collect();
        let reply_to = last_channel_id(&queued, &ids);
        let raw = brief::with_images(self.context.redactor.redact_json(&raw), &files);
        let taint = taint::of(&new, &files);
        let said = Entry::Said { raw, messages: ids, handles: Vec::new(), head: None, taint };
        // One that was edited this very moment joins with the next turn, or has a cycle of its own.
        if !self.store.join(&live.cycle.id, &said, &new)? {
            return Ok(false);
        }
        live.state.apply(&said);
        if let Some(chat) = &mut live.world.chat {
            chat.reply_to = reply_to.or(chat.reply_to);
        }
        live.world.attachments = self.attachments(&live.cycle)?;
        Ok(true)
    }

    /// Holds the plan against the receipts; what has none is written down and told.
    pub(in crate::cycle) fn verify(&mut self, live: &mut Live) -> Result<Vec<String>, WakeError> {
        let Some(plan) = &live.state.plan else {
            return Ok(Vec::new());
        };
        let not_done = verify::not_done(plan, &live.state.receipts);
        let world = &live.world;
        let (chat, thread_id) = world.chat.map_or((world.owner_chat, None), |chat| (chat.id, chat.thread_id));
        let notice = verify::notice(&not_done).map(|text| {
            Change::Send(NewOutgoing {
                key: Some(format!("not-done/{}", live.cycle.id)),
                thread_id,
                ..NewOutgoing::notice(chat, text)
            })
        });
        let changes = self.fit_to_leave(notice.into_iter().collect());
        self.record(live, &Entry::Verified { not_done: not_done.clone() }, &changes)?;
        Ok(not_done)
    }

    /// Journals an entry with its changes, and brings the state and the world along.
    pub(in crate::cycle) fn record(
        &mut self,
        live: &mut Live,
        entry: &Entry,
        changes: &[Change],
    ) -> Result<(), WakeError> {
        self.record_all(live, std::slice::from_ref(entry), changes)
    }

    /// The same for entries that stand or fall together.
    fn record_all(&mut self, live: &mut Live, entries: &[Entry], changes: &[Change]) -> Result<(), WakeError> {
        self.store.record_all(&live.cycle.id, entries, changes)?;
        entries.iter().for_each(|entry| live.state.apply(entry));
        for change in changes {
            match change {
                Change::File(file) => live.world.documents.apply(file),
                Change::Send(message) => {
                    live.world.told_keys.extend(message.key.clone());
                    live.world.told_today += u32::from(message.kind == OutgoingKind::Tell);
                    self.report.replies.push(Reply { chat: message.chat, text: message.text.clone() });
                }
                Change::AddReminder(_) | Change::EndReminder { .. } => {
                    live.world.reminders = self.store.reminders()?;
                }
                Change::ShowTasks { tasks, .. } => live.world.shown_tasks.clone_from(tasks),
                Change::Undo { wake, .. } => live.world.undoable.retain(|known| known.wake != *wake),
                Change::Handled { key, .. } if *key == unwoken_key(live.cycle.chat) => {
                    live.world.unwoken = Unwoken::default();
                }
                Change::Done { .. } | Change::Hold { .. } | Change::Handled { .. } | Change::Fire(_) => {}
            }
        }
        Ok(())
    }

    /// Nothing that is written or sent holds a live secret. Whether its links lead anywhere is decided where it is queued.
    fn fit_to_leave(&self, changes: Vec<Change>) -> Vec<Change> {
        let redactor = self.context.redactor;
        let fit = |change| match change {
            Change::Send(message) => Change::Send(NewOutgoing { text: redactor.redact(&message.text), ..message }),
            Change::AddReminder(reminder) => {
                Change::AddReminder(NewReminder { text: redactor.redact(&reminder.text), ..reminder })
            }
            Change::ShowTasks { chat, tasks } => {
                let fit = |task: ShownTask| ShownTask { title: redactor.redact(&task.title), ..task };
                Change::ShowTasks { chat, tasks: tasks.into_iter().map(fit).collect() }
            }
            other => other,
        };
        changes.into_iter().map(fit).collect()
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
