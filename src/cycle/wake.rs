//! A wake that holds the lock: settles what is open, then runs cycles until nothing is due.

use chrono::{DateTime, Utc};

use super::{
    Context, Report, WakeError, WakeOutcome,
    drive::{Driven, Interrupt},
    lock::WakeLock,
    machine::Cycle,
    observe::{self, Observation},
    orient::{self, Reason, Work},
    plan_file::PlanFile,
    verify::Account,
};
use crate::{
    memory::{decay, templates::templates},
    process::Identity,
    queue::{Change, CycleEnd, CycleState, Entry, Fence, Firing, NewCycle, NewOutgoing, Reminder, StagedFile, Store},
    repo::{Created, Repo},
    schedule::Slot,
};

/// Cycles that one wake runs at most; the rest is the next wake's.
const MAX_CYCLES: u32 = 50;
/// Resumptions of a cycle after crashes, kills and time-outs; then it is given up.
const MAX_TRIES: u32 = 3;
/// Slots of one reminder that were missed and are told of at most.
const MAX_MISSED: usize = 20;

/// The holder of the wake lock.
pub struct Wake<'a> {
    pub(super) context: Context<'a>,
    pub(super) store: &'a mut Store,
    pub(super) lock: WakeLock,
    pub(super) me: Identity,
    pub(super) fence: Fence,
    pub(super) trigger: &'a str,
    pub(super) report: &'a mut Report,
    pub(super) has_fetched: bool,
    /// When this wake must have ended.
    pub(super) deadline: tokio::time::Instant,
    cycles: u32,
}

/// What a cycle needs at its end, whatever it was about.
pub(super) struct Ending<'e> {
    pub(super) cycle_id: &'e str,
    pub(super) reasons: &'e [String],
    pub(super) chat_id: Option<i64>,
    pub(super) messages: &'e [i64],
    pub(super) account: Account,
    pub(super) staged: Vec<StagedFile>,
    pub(super) handled: Vec<(String, String)>,
    pub(super) plan_file: &'e PlanFile,
}

impl<'a> Wake<'a> {
    /// Takes the fence that goes with the lock.
    pub(super) fn begin(
        context: Context<'a>,
        store: &'a mut Store,
        lock: WakeLock,
        me: Identity,
        trigger: &'a str,
        report: &'a mut Report,
    ) -> Result<Self, WakeError> {
        let fence = store.take_lease(&me, context.clock.now())?;
        let deadline = tokio::time::Instant::now() + context.config.wake_timeout;
        Ok(Self {
            context,
            store,
            lock,
            me,
            fence,
            trigger,
            report,
            has_fetched: false,
            deadline,
            cycles: 0,
        })
    }

    /// Upkeep, then cycles. Says whether anything was done, so that an empty look ends the wake.
    pub(super) async fn run(&mut self) -> Result<bool, WakeError> {
        let repo = self.open_repo()?;
        self.store.recover_outbox(self.fence, self.now())?;
        let mut has_worked = self.upkeep(&repo).await?;
        for _ in 0..MAX_CYCLES {
            let observation = Observation::look(self.store, Some(&repo), self.context)?;
            let reasons = observation.due(self.context);
            let Some(work) = orient::choose(reasons, &observation.mind, self.context.config.owner_chat_id) else {
                break;
            };
            if *self.context.stop.borrow() {
                break;
            }
            has_worked = true;
            match work {
                Work::Resume { cycle_id, has_crashed } => self.resume(&repo, &cycle_id, has_crashed).await?,
                Work::Mechanical(reasons) => self.by_rule(&repo, &observation, &reasons).await?,
                Work::Think { reasons } => self.think(&repo, &observation, reasons).await?,
            }
            if self.report.outcome == WakeOutcome::Failed {
                break;
            }
        }
        if has_worked && self.report.outcome == WakeOutcome::Idle {
            self.report.outcome = WakeOutcome::Worked;
        }
        Ok(has_worked)
    }

    /// Frees the lease; the lock goes with the value.
    pub(super) fn end(self) -> Result<(), WakeError> {
        Ok(self.store.release_lease(self.fence)?)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.context.clock.now()
    }

    fn open_repo(&mut self) -> Result<Repo, WakeError> {
        let config = self.context.config;
        let url = config.repo_url.as_ref().map(crate::config::RepoUrl::expose);
        let (repo, created) = Repo::open_or_create(&config.repo_dir(), url, &templates(), self.now())?;
        let how = match created {
            Created::Existing => return Ok(repo),
            Created::FromTemplates => "made from the templates",
            Created::Cloned => "cloned from REPO_URL",
            Created::ClonedEmpty => "made from the templates for the empty remote",
        };
        self.report
            .notes
            .push(format!("The memory at {} was {how}.", config.repo_dir().display()));
        self.report.outcome = WakeOutcome::Worked;
        // What people commit from now on is news.
        if let Some(head) = repo.head()? {
            let now = self.now();
            self.store
                .set_handled(self.fence, observe::HEAD_SEEN, &head.to_string(), now)?;
        }
        Ok(repo)
    }

    fn next_cycle_id(&mut self) -> String {
        let stamp = self.now().format("%Y%m%dT%H%M%SZ");
        let first = format!("{stamp}-{}", self.me.pid);
        self.cycles += 1;
        // Several cycles of one process within a second, or with a clock that stands still, are told apart by a letter.
        let mut id = first.clone();
        for suffix in 'b'..='z' {
            match self.store.cycle(&id) {
                Ok(Some(_)) => id = format!("{first}{suffix}"),
                _ => break,
            }
        }
        id
    }

    fn new_cycle(&mut self, reasons: &[Reason], model: &str) -> NewCycle {
        let (chat_id, thread_id) = reasons
            .iter()
            .find_map(|reason| match reason {
                Reason::Messages { chat_id, thread_id, .. } => Some((Some(*chat_id), *thread_id)),
                _ => None,
            })
            .unwrap_or_default();
        NewCycle {
            id: self.next_cycle_id(),
            trigger: self.trigger.to_owned(),
            reasons: reasons.iter().map(Reason::describe).collect(),
            chat_id,
            thread_id,
            model: model.to_owned(),
            system: "[]".to_owned(),
            tools: "[]".to_owned(),
        }
    }

    fn open_plan_file(&mut self, cycle: &NewCycle) -> Result<PlanFile, WakeError> {
        let (me, now) = (self.me.clone(), self.now());
        self.lock
            .describe(&me, now, Some(&cycle.id), cycle.chat_id, cycle.thread_id)
            .map_err(WakeError::Lock)?;
        let dir = &self.context.config.workspace_dir;
        self.report.cycle_id = Some(cycle.id.clone());
        self.report.reasons.extend(cycle.reasons.iter().cloned());
        PlanFile::create(dir, &cycle.id, &cycle.reasons, now).map_err(|source| WakeError::Workspace {
            path: dir.clone(),
            source,
        })
    }

    /// A cycle without a mind: reminders are sent, decay and a task's time are told by rule, a person's commits are noted.
    async fn by_rule(&mut self, repo: &Repo, observation: &Observation, reasons: &[Reason]) -> Result<(), WakeError> {
        let cycle = self.new_cycle(reasons, "none");
        let plan_file = self.open_plan_file(&cycle)?;
        let mut account = Account::default();
        self.take_in_person_edits(repo, &mut account)?;
        let now = self.now();
        self.store.begin_cycle(self.fence, &cycle, &[], now)?;
        let mut handled = Vec::new();
        for reason in reasons {
            match reason {
                Reason::Reminder { id } => {
                    if let Some(reminder) = observation.reminders.iter().find(|reminder| reminder.id == *id) {
                        let (firing, receipt) = self.firing(reminder, &cycle.id);
                        self.store.fire(self.fence, &[firing], now)?;
                        account.receipts.push(receipt);
                    }
                }
                Reason::Task { title, next, key } => {
                    let next = next.as_deref().unwrap_or("no next step is written down");
                    self.tell_by_rule(
                        &cycle.id,
                        key,
                        &format!("It is time for “{title}”: {next}."),
                        &mut account,
                    )?;
                    handled.push((key.clone(), String::new()));
                }
                Reason::Decay { title, stage, key } => {
                    let touched = observation
                        .tasks
                        .iter()
                        .find(|task| task.title == *title)
                        .and_then(|task| task.touched);
                    let today = now.with_timezone(&self.context.config.timezone).date_naive();
                    let days = touched.map_or(0, |touched| decay::quiet_days(touched, today));
                    self.tell_by_rule(&cycle.id, key, &stage.wording(title, days), &mut account)?;
                    handled.push((key.clone(), String::new()));
                }
                Reason::PersonCommits { subjects } => {
                    account.receipts.extend(
                        subjects
                            .iter()
                            .map(|subject| format!("Noted a person's commit: {subject}")),
                    );
                }
                Reason::Messages { .. } | Reason::Resume { .. } => {}
            }
        }
        let reasons = cycle.reasons.clone();
        self.finish(
            repo,
            Ending {
                cycle_id: &cycle.id,
                reasons: &reasons,
                chat_id: None,
                messages: &[],
                account,
                staged: Vec::new(),
                handled,
                plan_file: &plan_file,
            },
        )
        .await
    }

    /// Speaks to the owner by rule, once per key.
    fn tell_by_rule(&mut self, cycle_id: &str, key: &str, text: &str, account: &mut Account) -> Result<(), WakeError> {
        let message = NewOutgoing {
            chat_id: self.context.config.owner_chat_id,
            text: text.to_owned(),
            kind: "tell".to_owned(),
            key: Some(format!("tell/{key}")),
            ..NewOutgoing::default()
        };
        self.store
            .change(self.fence, cycle_id, &[Change::Send(message)], self.now())?;
        account.receipts.push(format!("Told: {text}"));
        Ok(())
    }

    /// A due reminder's message and its next slot; slots that were missed while nothing ran are said and not sent one by one.
    fn firing(&self, reminder: &Reminder, cycle_id: &str) -> (Firing, String) {
        let now = self.now();
        let what = &reminder.what;
        let tz = what.zone.parse().unwrap_or(self.context.config.timezone);
        let missed = what
            .rule
            .as_ref()
            .map(|rule| rule.missed(what.next_at, now, tz, MAX_MISSED))
            .unwrap_or_default();
        let late = now.signed_duration_since(what.next_at).num_minutes();
        let mut text = format!("⏰ {}", what.text);
        if !missed.is_empty() {
            text.push_str(&format!(
                "\n\n(It was due {} more times while I was not running.)",
                missed.len()
            ));
        } else if late >= 10 {
            text.push_str(&format!(
                "\n\n(It was due at {}; I was not running then.)",
                what.slot.format("%a %H:%M")
            ));
        }
        let next = what
            .rule
            .as_ref()
            .and_then(|rule| rule.next_after(now, tz))
            .map(|Slot { civil, at }| (civil, at));
        let firing = Firing {
            id: reminder.id,
            slot: what.slot,
            message: NewOutgoing {
                chat_id: what.chat_id,
                text,
                kind: "reminder".to_owned(),
                thread_id: what.thread_id,
                cycle_id: Some(cycle_id.to_owned()),
                ..NewOutgoing::default()
            },
            next,
        };
        (firing, format!("Reminded: {}", what.text))
    }

    /// A cycle with the mind.
    async fn think(&mut self, repo: &Repo, observation: &Observation, reasons: Vec<Reason>) -> Result<(), WakeError> {
        let mut cycle = self.new_cycle(&reasons, self.context.model.name());
        let plan_file = self.open_plan_file(&cycle)?;
        let mut account = Account::default();
        self.pull(repo, &mut account).await?;
        self.take_in_person_edits(repo, &mut account)?;
        let ids: Vec<i64> = reasons
            .iter()
            .flat_map(|reason| {
                if let Reason::Messages { ids, .. } = reason {
                    ids.clone()
                } else {
                    Vec::new()
                }
            })
            .collect();
        let mut world = self.world(
            repo,
            &cycle.id,
            cycle.chat_id,
            cycle.thread_id,
            &observation.messages,
            &ids,
            &mut account,
        )?;
        let opening = self.opening(&mut cycle, &world, observation, &ids)?;
        self.store
            .begin_cycle(self.fence, &cycle, std::slice::from_ref(&opening), self.now())?;
        let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
        state.apply(&opening);
        let handled = reasons.iter().filter_map(handled_key).collect();
        self.carry_on(repo, &cycle, &mut state, &mut world, account, handled, &plan_file)
            .await
    }

    /// Takes an interrupted cycle up from its journal.
    async fn resume(&mut self, repo: &Repo, cycle_id: &str, has_crashed: bool) -> Result<(), WakeError> {
        let Some(row) = self.store.cycle(cycle_id)? else {
            return Ok(());
        };
        let plan_file = PlanFile::reopen(&self.context.config.workspace_dir, cycle_id);
        self.report.cycle_id = Some(cycle_id.to_owned());
        self.report.reasons.push(format!("resume {cycle_id}"));
        if let Some(commit) = repo.wake_commit(cycle_id)? {
            // It was cut off after its commit: only its end has to be written down.
            return self
                .conclude(repo, cycle_id, &commit.to_string(), &[], &plan_file)
                .await;
        }
        let journal = self.store.journal(cycle_id)?;
        let mut account = Account::default();
        account
            .notes
            .push(format!("Went on with the wake {cycle_id}, which was interrupted."));
        if journal.is_empty() || row.cycle.model == "none" {
            // Nothing of a conversation: what it did is in the database, what it was about is due again.
            return self
                .give_up(
                    repo,
                    cycle_id,
                    &Cycle::new(String::new(), String::new()),
                    &plan_file,
                    None,
                )
                .await;
        }
        let mut state = Cycle::replay(row.cycle.system.clone(), row.cycle.tools.clone(), &journal);
        if row.cycle.model != self.context.model.name() {
            let why = format!("it was begun by {}, which is not the mind any more", row.cycle.model);
            return self
                .give_up(repo, cycle_id, &state, &plan_file, Some((&why, false)))
                .await;
        }
        if has_crashed && row.tries >= MAX_TRIES {
            let why = format!("it was cut off {} times", row.tries + 1);
            return self
                .give_up(repo, cycle_id, &state, &plan_file, Some((&why, true)))
                .await;
        }
        self.store.resume_cycle(self.fence, cycle_id, has_crashed)?;
        let (me, now) = (self.me.clone(), self.now());
        self.lock
            .describe(&me, now, Some(cycle_id), row.cycle.chat_id, row.cycle.thread_id)
            .map_err(WakeError::Lock)?;
        self.take_in_person_edits(repo, &mut account)?;
        let messages = self.store.queued()?;
        let open = state.open.clone();
        let mut world = self.world(
            repo,
            cycle_id,
            row.cycle.chat_id,
            row.cycle.thread_id,
            &messages,
            &open,
            &mut account,
        )?;
        world.replies = state.replies;
        self.carry_on(
            repo,
            &row.cycle,
            &mut state,
            &mut world,
            account,
            Vec::new(),
            &plan_file,
        )
        .await
    }

    /// Drives a cycle to its end, or writes down why it stopped.
    #[expect(
        clippy::too_many_arguments,
        reason = "the whole of a cycle under way, handed on once"
    )]
    async fn carry_on(
        &mut self,
        repo: &Repo,
        cycle: &NewCycle,
        state: &mut Cycle,
        world: &mut crate::tool::World,
        mut account: Account,
        handled: Vec<(String, String)>,
        plan_file: &PlanFile,
    ) -> Result<(), WakeError> {
        match self.drive(cycle, state, world, plan_file).await? {
            Driven::Complete => {
                let not_done = self.verify(cycle, state, world)?;
                account
                    .receipts
                    .extend(state.receipts.iter().filter_map(|receipt| receipt.what.clone()));
                account.not_done = not_done;
                let messages = state.messages.clone();
                self.report.answered += messages.iter().filter(|id| !state.open.contains(id)).count();
                self.finish(
                    repo,
                    Ending {
                        cycle_id: &cycle.id,
                        reasons: &cycle.reasons,
                        chat_id: cycle.chat_id,
                        messages: &messages,
                        account,
                        staged: world.documents.staged(),
                        handled,
                        plan_file,
                    },
                )
                .await
            }
            Driven::Interrupted(interrupt) => self.interrupted(repo, cycle, state, interrupt, plan_file).await,
        }
    }

    /// Writes down why a cycle stopped. What was said stays queued, what was paid for stays in the journal.
    async fn interrupted(
        &mut self,
        repo: &Repo,
        cycle: &NewCycle,
        state: &Cycle,
        interrupt: Interrupt,
        plan_file: &PlanFile,
    ) -> Result<(), WakeError> {
        let now = self.now();
        let why = self.context.redactor.redact(&interrupt.to_string());
        tracing::warn!(cycle = %cycle.id, %why, "the cycle was interrupted");
        self.report.outcome = WakeOutcome::Failed;
        self.report.error = Some(why.clone());
        match &interrupt {
            Interrupt::Stopped => return Ok(self.store.pause_cycle(self.fence, &cycle.id, now, &why)?),
            // Left as running: the next wake takes it up as one that was cut off, which is counted.
            Interrupt::OutOfTime => return Ok(()),
            Interrupt::Rejected(_) => {
                return self
                    .give_up(repo, &cycle.id, state, plan_file, Some((&why, true)))
                    .await;
            }
            Interrupt::Unavailable { retry_after, .. } => {
                let at_least = retry_after.and_then(|wait| chrono::TimeDelta::from_std(wait).ok());
                self.store
                    .upkeep_failed(self.fence, observe::MODEL, &why, at_least, now)?;
            }
            Interrupt::OverBudget => {}
        }
        self.say_once_that_it_waits(cycle, state, &interrupt)?;
        if state.turns > 0 {
            self.store.pause_cycle(self.fence, &cycle.id, now, &why)?;
        } else {
            let end = CycleEnd {
                state: CycleState::Failed,
                commit_id: None,
                error: Some(&why),
                handled: &[],
                repairs: &[],
                failed_messages: &[],
            };
            self.store.end_cycle(self.fence, &cycle.id, &end, now)?;
            self.remove_plan_file(plan_file);
        }
        self.deliver().await
    }

    /// Tells the asking chat, once for each stretch of trouble, that its message is kept.
    fn say_once_that_it_waits(
        &mut self,
        cycle: &NewCycle,
        state: &Cycle,
        interrupt: &Interrupt,
    ) -> Result<(), WakeError> {
        let (Some(chat_id), Some(first)) = (cycle.chat_id, state.open.first()) else {
            return Ok(());
        };
        let notice = NewOutgoing {
            chat_id,
            text: interrupt.notice(),
            kind: "notice".to_owned(),
            key: Some(match interrupt {
                Interrupt::OverBudget => {
                    let today = self.now().with_timezone(&self.context.config.timezone).date_naive();
                    format!("budget/{chat_id}/{today}")
                }
                _ => format!("waits/{first}"),
            }),
            thread_id: cycle.thread_id,
            ..NewOutgoing::default()
        };
        Ok(self
            .store
            .change(self.fence, &cycle.id, &[Change::Send(notice)], self.now())?)
    }

    /// Ends a cycle that can't be resumed: its messages go back to the queue, its unpublished work onto a branch of its own.
    async fn give_up(
        &mut self,
        repo: &Repo,
        cycle_id: &str,
        state: &Cycle,
        plan_file: &PlanFile,
        why: Option<(&str, bool)>,
    ) -> Result<(), WakeError> {
        let now = self.now();
        let staged = self.store.staged(cycle_id)?;
        if !staged.is_empty() {
            let branch = format!("recovered/{cycle_id}");
            let message = format!("Unfinished work of the wake {cycle_id}\n");
            let (branch, _) = repo.park(&branch, &super::finish::changes(&staged), &message, now)?;
            self.report
                .notes
                .push(format!("Its unfinished work is on the branch {branch}."));
        }
        let (why, counts) = why.unwrap_or(("it was cut off before it began", false));
        if counts && let Some(row) = self.store.cycle(cycle_id)?.filter(|_| !state.open.is_empty()) {
            let notice = NewOutgoing {
                chat_id: row.cycle.chat_id.unwrap_or(self.context.config.owner_chat_id),
                text: format!(
                    "I gave up a piece of work because {why}. Your message is kept, and I start over with it."
                ),
                kind: "notice".to_owned(),
                key: Some(format!("gave-up/{cycle_id}")),
                thread_id: row.cycle.thread_id,
                ..NewOutgoing::default()
            };
            self.store.change(self.fence, cycle_id, &[Change::Send(notice)], now)?;
        }
        let end = CycleEnd {
            state: CycleState::Abandoned,
            commit_id: None,
            error: Some(why),
            handled: &[],
            repairs: &[],
            failed_messages: if counts { &state.open } else { &[] },
        };
        self.store.end_cycle(self.fence, cycle_id, &end, now)?;
        self.remove_plan_file(plan_file);
        self.deliver().await
    }

    pub(super) fn remove_plan_file(&mut self, plan_file: &PlanFile) {
        if let Err(error) = plan_file.remove() {
            tracing::warn!(%error, "the plan file could not be removed");
        }
    }

    /// Journals an entry with its changes and brings the state along.
    pub(super) fn record(
        &mut self,
        cycle_id: &str,
        state: &mut Cycle,
        entry: Entry,
        changes: &[Change],
    ) -> Result<(), WakeError> {
        let now = self.now();
        self.store.record(self.fence, cycle_id, &entry, changes, now)?;
        state.apply(&entry);
        Ok(())
    }
}

/// What a reason leaves behind once it was thought about.
fn handled_key(reason: &Reason) -> Option<(String, String)> {
    match reason {
        Reason::Task { key, .. } | Reason::Decay { key, .. } => Some((key.clone(), String::new())),
        _ => None,
    }
}
