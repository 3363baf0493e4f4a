//! A wake that holds the lock: settles what is open, then runs cycles until nothing is due.

use std::time::Duration;

use super::resume::{self, Teller};
use crate::{
    cycle::{
        context::{WakeError, WakeOutcome},
        decide::{
            machine::Cycle,
            merge::merge_texts,
            orient::{self, Work},
            situation::Reason,
            verify::Account,
        },
        look::observe::{self, Observation},
        plan_file::{self, PlanFile},
        run::step::Driven,
        session::{Ending, Live, Next, Wake},
    },
    delivery,
    memory::templates::templates,
    repo::{Created, MAINTAIN_COMMANDS, MAINTAIN_TIMEOUT, REMOTE_TIMEOUT, Repo, RepoError},
    store::{HEAD_SEEN, UpkeepKind},
    wake_lock,
};

/// Cycles that one wake runs at most; the rest is the next wake's.
const MAX_CYCLES: u32 = 50;
/// How long a wake may still take, once its time is up, to end what it has begun: a delivery with the send that is under way then;
/// two pushes of two tries each with a fetch between them; housekeeping. So long, too, it shows that it lives.
const ENDING_BOUND: Duration = Duration::from_secs(
    2 * delivery::BOUND.as_secs() + 5 * REMOTE_TIMEOUT.as_secs() + MAINTAIN_COMMANDS * MAINTAIN_TIMEOUT.as_secs(),
);

impl Wake<'_> {
    /// Takes note of the cycle in which the last holder was killed, then says in the lock file who holds it now, and goes on
    /// saying so for as long as it may run. In this order: the old line is the only witness of that kill.
    pub(in crate::cycle) fn introduce(&mut self) -> Result<(), WakeError> {
        let (me, now) = (self.me.clone(), self.now());
        if let Some((left, cycle_id)) = self.lock.cut_off(&me) {
            let teller = Teller { owner_chat: self.context.config.owner_chat, redactor: self.context.redactor };
            resume::note_cut_off(&mut self.store, left, cycle_id, teller)?;
        }
        self.lock.describe(&me, now, wake_lock::LockedWork::default()).map_err(WakeError::Lock)?;
        self.lock.show_life(self.context.config.wake_timeout + ENDING_BOUND);
        Ok(())
    }

    /// Upkeep, then cycles. Says whether anything was done, so that an empty look ends the wake.
    pub(in crate::cycle) async fn run(&mut self, settles_doubts: bool) -> Result<bool, WakeError> {
        let repo = self.open_repo()?;
        // Whoever died while git held a lock would otherwise hold up every fetch.
        let removed = repo.remove_stale_locks();
        if !removed.is_empty() {
            tracing::warn!(?removed, "locks of dead git programs are removed");
        }
        self.finish_interrupted(&repo)?;
        if self.store.handled(HEAD_SEEN)?.is_none() {
            self.see_head(&repo)?;
        }
        if settles_doubts {
            self.store.recover_outbox()?;
        }
        self.clear_plan_files()?;
        let mut has_brought_in = false;
        if !self.is_stopped()? {
            has_brought_in = self.bring_in_parked(&repo)?;
            self.rewind_reminders()?;
        }
        let mut has_worked = self.upkeep().await? || has_brought_in;
        for _ in 0..MAX_CYCLES {
            let observation = Observation::look(&self.store, Some(&repo), self.context)?;
            let reasons = observation.due(self.context);
            let Some(work) = orient::choose(reasons, &observation.mind, self.context.config.owner_chat) else {
                break;
            };
            // What hasn't begun is no worse off when it begins with the next wake.
            if *self.context.stop.borrow() || tokio::time::Instant::now() >= self.deadline {
                break;
            }
            has_worked = true;
            let next = match work {
                Work::Resume { cycle_id, has_crashed } => self.resume(&repo, &cycle_id, has_crashed).await?,
                Work::Undo(undo) => self.undo(&repo, &undo).await.map(|()| Next::Others)?,
                Work::Mechanical(reasons) => {
                    self.by_rule(&repo, &observation, &reasons).await.map(|()| Next::Others)?
                }
                Work::Think { reasons } => self.think(&repo, observation, &reasons).await?,
            };
            if next == Next::Nobody {
                break;
            }
        }
        // Last, when whoever waited has their answer.
        has_worked |= self.after_answers(&repo)?;
        if self.report.outcome != WakeOutcome::Failed && !self.is_stopped()? {
            has_worked |= self.forget_old().await?;
        }
        if has_worked && self.report.outcome == WakeOutcome::Idle {
            self.report.outcome = WakeOutcome::Worked;
        }
        if self.report.outcome == WakeOutcome::Worked && self.is_to_end()?.is_none() {
            self.maintain(&repo)?;
        }
        Ok(has_worked)
    }

    /// Brings files and index up with a commit that a killed wake had made: the memory is read from the files.
    pub(in crate::cycle) fn finish_interrupted(&mut self, repo: &Repo) -> Result<(), WakeError> {
        match repo.finish_interrupted(&merge_texts) {
            Ok(_) => Ok(self.store.upkeep_recovered(UpkeepKind::Finish)?),
            // Whoever holds the lock is done soon; what commits tries again.
            Err(RepoError::Locked { .. }) => Ok(()),
            Err(error @ RepoError::Behind { .. }) => self.lags_behind(&error),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the plan files of cycles that were killed before they were journalled, or after their end: nothing of them is
    /// left to be done. Those of open cycles stay for their resumption.
    pub(in crate::cycle) fn clear_plan_files(&mut self) -> Result<(), WakeError> {
        let dir = &self.context.config.workspace_dir;
        let found = plan_file::left_over(dir).map_err(|source| WakeError::Workspace { path: dir.clone(), source })?;
        let open = self.store.open_cycles()?;
        for (_, cycle_id) in found {
            if !open.iter().any(|row| row.cycle.id == cycle_id) {
                self.remove_plan_file(&PlanFile::reopen(dir, &cycle_id));
            }
        }
        Ok(())
    }

    pub(in crate::cycle) fn open_repo(&mut self) -> Result<Repo, WakeError> {
        let config = self.context.config;
        let url = config.repo_url.as_ref().map(crate::config::RepoUrl::expose);
        let (repo, created) = Repo::open_or_create(&config.repo_dir(), url, &templates(), self.now())?;
        let how = match created {
            Created::Existing => return Ok(repo),
            Created::FromTemplates => "made from the templates",
            Created::Cloned => "cloned from REPO_URL",
            Created::ClonedEmpty => "made from the templates for the empty remote",
            Created::Unjoined(why) => {
                self.begin_without_remote(&why)?;
                "made from the templates"
            }
        };
        self.report.notes.push(format!("The memory at {} was {how}.", config.repo_dir().display()));
        self.report.outcome = WakeOutcome::Worked;
        Ok(repo)
    }

    /// A cycle with the model.
    async fn think(
        &mut self,
        repo: &Repo,
        mut observation: Observation,
        reasons: &[Reason],
    ) -> Result<Next, WakeError> {
        let reported = (self.report.cycle_id.clone(), self.report.reasons.len());
        let mut cycle = self.new_cycle(reasons, self.context.model.name())?;
        let ids: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
        let plan_file = self.open_plan_file(&cycle, &ids)?;
        let mut account = Account::default();
        self.pull(repo, &mut account)?;
        self.take_in_person_edits(repo, &mut account)?;
        observation.person_commits = observe::person_commits(&self.store, repo)?;
        observation.head = observe::head_of(repo)?;
        observation.reread(&self.store)?;
        let now = self.now();
        let Some(seen) = orient::still_due(&observation.messages, &ids, &observation.mind, now) else {
            return self.leave_unbegun(&plan_file, reported).map(|()| Next::Others);
        };
        let world = self.world(repo, &cycle, &observation.messages, &ids, &mut account)?;
        let opening = self.opening(&mut cycle, &world, &observation, reasons)?;
        crate::cycle::context::check_readable(&world.documents)?;
        if !self.store.begin_cycle_on(&cycle, &opening, &seen)? {
            return self.leave_unbegun(&plan_file, reported).map(|()| Next::Others);
        }
        let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
        state.apply(&opening);
        let hands = self.hands(&world);
        self.carry_on(repo, Live::new(cycle, state, world, plan_file, account, hands)).await
    }

    /// A cycle that waits for a person: the question is in the outbox, and the next wake after the answer goes on.
    async fn parked(&mut self, live: &Live) -> Result<(), WakeError> {
        self.report.outcome = WakeOutcome::Parked;
        self.store.park_cycle(&live.cycle.id)?;
        self.lay_down();
        self.deliver().await
    }

    /// Nothing was begun: while it was prepared the bot changed a message that it was about (an edit, a further picture of an
    /// album). The next look takes it up as it is then.
    pub(in crate::cycle) fn leave_unbegun(
        &mut self,
        plan_file: &PlanFile,
        (cycle_id, n_reasons): (Option<String>, usize),
    ) -> Result<(), WakeError> {
        tracing::info!("a message changed before it was taken up; it is looked at once more");
        self.lay_down();
        self.report.cycle_id = cycle_id;
        self.report.reasons.truncate(n_reasons);
        self.remove_plan_file(plan_file);
        Ok(())
    }

    /// Drives a cycle to its end, or writes down why it stopped.
    pub(in crate::cycle) async fn carry_on(&mut self, repo: &Repo, mut live: Live) -> Result<Next, WakeError> {
        self.chat = live.cycle.chat;
        let driven = self.drive(&mut live).await;
        self.chat = None;
        match driven? {
            Driven::Complete => {}
            Driven::Interrupted(interrupt) => return self.interrupted(repo, &live, interrupt).await,
            Driven::Parked => return self.parked(&live).await.map(|()| Next::Others),
        }
        Box::pin(self.complete(repo, live)).await.map(|()| Next::Others)
    }

    /// Ends a cycle of which nothing more is to be asked of the model.
    pub(in crate::cycle) async fn complete(&mut self, repo: &Repo, mut live: Live) -> Result<(), WakeError> {
        let not_done = self.verify(&mut live)?;
        let Live { cycle, state, world, plan_file, mut account, .. } = live;
        account.not_done = not_done;
        let is_answered = |id: &&i64| !state.open.contains(id) && !state.kept.contains(id);
        self.report.answered += state.messages.iter().filter(is_answered).count();
        let staged = world.documents.staged();
        self.finish(repo, Ending { staged, ..Ending::new(cycle, state, plan_file, account) }).await
    }
}
