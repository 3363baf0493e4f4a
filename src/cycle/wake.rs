//! A wake that holds the lock: settles what is open, then runs cycles until nothing is due.

use std::{rc::Rc, time::Duration};

use chrono::{DateTime, Utc};

use super::{
    Context, Report, WakeError, WakeOutcome,
    drive::Driven,
    lock::{self, WakeLock},
    machine::Cycle,
    observe::{self, Observation},
    orient::{self, Reason, Work},
    plan_file::{self, PlanFile},
    resume::{self, Teller},
    upkeep::merge_texts,
    verify::Account,
};
use crate::{
    channel::deliver,
    hands::{Hands, Shelter, copies::Copies},
    memory::templates::templates,
    policy::Rules,
    process::{self, Identity},
    queue::{Entry, Fence, HEAD_SEEN, NewCycle, StagedFile, Store, UpkeepKind},
    repo::{Created, MAINTAIN_COMMANDS, MAINTAIN_TIMEOUT, REMOTE_TIMEOUT, Repo, RepoError},
    tool::World,
    web::search::Engine,
};

/// Cycles that one wake runs at most; the rest is the next wake's.
const MAX_CYCLES: u32 = 50;
/// How long a wake may still take, once its time is up, to end what it has begun: a delivery with the send that is under way then;
/// two pushes of two tries each with a fetch between them; housekeeping. So long, too, it shows that it lives.
const ENDING_BOUND: Duration = Duration::from_secs(
    2 * deliver::BOUND.as_secs() + 5 * REMOTE_TIMEOUT.as_secs() + MAINTAIN_COMMANDS * MAINTAIN_TIMEOUT.as_secs(),
);

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
    /// Whether a person's many edits wait until nobody else does.
    pub(super) has_put_off: bool,
    /// The same of what was fetched.
    pub(super) has_put_off_commits: bool,
    /// Whether nobody waits just now for what is done.
    pub(super) may_take_long: bool,
    /// When this wake must have ended.
    pub(super) deadline: tokio::time::Instant,
    /// Whether what has failed stops one chat's work and nobody else's.
    pub(super) is_only_this_chats: bool,
    /// The chat that the mind is at work for, if it is at work for one.
    pub(super) chat_id: Option<i64>,
}

/// A cycle under way with the mind.
pub(super) struct Live {
    pub(super) cycle: NewCycle,
    pub(super) state: Cycle,
    pub(super) world: World,
    pub(super) plan_file: PlanFile,
    pub(super) account: Account,
    pub(super) hands: Hands,
    pub(super) work: Stopwatch,
    /// Turns that it had taken when this wake took it up.
    turns_before: u32,
}

impl Live {
    pub(super) fn new(
        cycle: NewCycle,
        state: Cycle,
        world: World,
        plan_file: PlanFile,
        account: Account,
        hands: Hands,
    ) -> Self {
        let turns_before = state.turns;
        Self { cycle, state, world, plan_file, account, hands, work: Stopwatch::default(), turns_before }
    }

    /// Whether this wake has brought it further.
    pub(super) fn has_progressed(&self) -> bool {
        self.state.turns > self.turns_before
    }
}

/// Measures what counts as working: a turn that is received, a call that ends. It stands still while the machine sleeps.
#[derive(Debug, Default)]
pub(super) struct Stopwatch(Option<tokio::time::Instant>);

impl Stopwatch {
    /// Something begins. What was measured before and didn't come to an end doesn't count.
    pub(super) fn start(&mut self) {
        self.0 = Some(tokio::time::Instant::now());
    }

    /// It has ended: what is journalled with its end, unless that took no time worth counting.
    pub(super) fn stop(&mut self) -> Option<Entry> {
        let ms = u64::try_from(self.0.take()?.elapsed().as_millis()).unwrap_or(u64::MAX);
        (ms > 0).then_some(Entry::Worked { ms })
    }
}

/// What a cycle leaves at its end, whatever it was about.
pub(super) struct Ending {
    pub(super) cycle: NewCycle,
    pub(super) messages: Vec<i64>,
    pub(super) account: Account,
    pub(super) staged: Vec<StagedFile>,
    /// Keys that are reasons no more.
    pub(super) handled: Vec<String>,
    pub(super) plan_file: PlanFile,
    /// The commit up to which people's commits were taken note of in it, if they were looked at.
    pub(super) head_shown: Option<String>,
    /// Files that are to go.
    pub(super) removed: Vec<crate::repo::Change>,
    /// The wake that it takes back.
    pub(super) undoes: Option<String>,
}

impl Ending {
    /// What a cycle's journal tells of its end; nothing is staged, nothing taken back.
    pub(super) fn new(cycle: NewCycle, state: Cycle, plan_file: PlanFile, mut account: Account) -> Self {
        account.receipts.extend(state.receipts.into_iter().filter_map(|receipt| receipt.what));
        Self {
            cycle,
            messages: state.messages,
            account,
            staged: Vec::new(),
            handled: state.handles,
            plan_file,
            head_shown: state.head_shown,
            removed: Vec::new(),
            undoes: None,
        }
    }
}

impl<'a> Wake<'a> {
    /// Takes the fence that goes with the lock.
    pub(super) fn begin(
        context: Context<'a>,
        store: &'a mut Store,
        lock: WakeLock,
        trigger: &'a str,
        report: &'a mut Report,
    ) -> Result<Self, WakeError> {
        let me = Identity::current();
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
            has_put_off: false,
            has_put_off_commits: false,
            may_take_long: false,
            deadline,
            is_only_this_chats: false,
            chat_id: None,
        })
    }

    /// Takes note of the cycle in which the last holder was killed, then says in the lock file who holds it now, and goes on
    /// saying so for as long as it may run. In this order: the old line is the only witness of that kill.
    pub(super) fn introduce(&mut self) -> Result<(), WakeError> {
        let (me, now) = (self.me.clone(), self.now());
        if let Some((left, cycle_id)) = self.lock.cut_off(&me) {
            let teller = Teller { owner_chat_id: self.context.config.owner_chat_id, redactor: self.context.redactor };
            resume::note_cut_off(self.store, self.fence, left, cycle_id, teller, now)?;
        }
        self.lock.describe(&me, now, lock::Work::default()).map_err(WakeError::Lock)?;
        self.lock.show_life(self.context.config.wake_timeout + ENDING_BOUND);
        Ok(())
    }

    /// Upkeep, then cycles. Says whether anything was done, so that an empty look ends the wake.
    pub(super) async fn run(&mut self, settles_doubts: bool) -> Result<bool, WakeError> {
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
            self.store.recover_outbox(self.fence, self.now())?;
        }
        self.clear_plan_files()?;
        let mut has_brought_in = false;
        if !self.is_stopped()? {
            has_brought_in = self.bring_in_parked(&repo)?;
            self.rewind_reminders()?;
        }
        let mut has_worked = self.upkeep().await? || has_brought_in;
        for _ in 0..MAX_CYCLES {
            let observation = Observation::look(self.store, Some(&repo), self.context)?;
            let reasons = observation.due(self.context);
            let Some(work) = orient::choose(reasons, &observation.mind, self.context.config.owner_chat_id) else {
                break;
            };
            // What hasn't begun is no worse off when it begins with the next wake.
            if *self.context.stop.borrow() || tokio::time::Instant::now() >= self.deadline {
                break;
            }
            has_worked = true;
            match work {
                Work::Resume { cycle_id, has_crashed } => self.resume(&repo, &cycle_id, has_crashed).await?,
                Work::Undo(undo) => self.undo(&repo, &undo).await?,
                Work::Mechanical(reasons) => self.by_rule(&repo, &observation, &reasons).await?,
                Work::Think { reasons } => self.think(&repo, observation, &reasons).await?,
            }
            if self.report.outcome == WakeOutcome::Failed && !std::mem::take(&mut self.is_only_this_chats) {
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
    pub(super) fn finish_interrupted(&mut self, repo: &Repo) -> Result<(), WakeError> {
        match repo.finish_interrupted(&merge_texts) {
            Ok(_) => Ok(self.store.upkeep_recovered(self.fence, UpkeepKind::Finish, self.now())?),
            // Whoever holds the lock is done soon; what commits tries again.
            Err(RepoError::Locked { .. }) => Ok(()),
            Err(error @ RepoError::Behind { .. }) => self.lags_behind(&error),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the plan files of cycles that were killed before they were journalled, or after their end: nothing of them is
    /// left to be done. Those of open cycles stay for their resumption.
    pub(super) fn clear_plan_files(&mut self) -> Result<(), WakeError> {
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

    /// Frees the lease; the lock goes with the value.
    pub(super) fn end(self) -> Result<(), WakeError> {
        Ok(self.store.release_lease(self.fence)?)
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.context.clock.now()
    }

    pub(super) fn open_repo(&mut self) -> Result<Repo, WakeError> {
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

    fn next_cycle_id(&self) -> Result<String, WakeError> {
        let first = format!("{}-{}", self.now().format("%Y%m%dT%H%M%SZ"), self.me.pid);
        let mut id = first.clone();
        // Several cycles of one process within a second, or with a clock that stands still, are counted.
        for count in 2.. {
            if self.store.cycle(&id)?.is_none() {
                break;
            }
            id = format!("{first}-{count}");
        }
        Ok(id)
    }

    pub(super) fn new_cycle(&mut self, reasons: &[Reason], model: &str) -> Result<NewCycle, WakeError> {
        let (chat_id, thread_id) = reasons
            .iter()
            .find_map(|reason| match reason {
                Reason::Messages { chat_id, thread_id, .. } => Some((Some(*chat_id), *thread_id)),
                _ => None,
            })
            .unwrap_or_default();
        Ok(NewCycle {
            id: self.next_cycle_id()?,
            trigger: self.trigger.to_owned(),
            reasons: reasons.iter().map(Reason::describe).collect(),
            chat_id,
            thread_id,
            model: model.to_owned(),
            system: "[]".to_owned(),
            tools: "[]".to_owned(),
        })
    }

    pub(super) fn open_plan_file(&mut self, cycle: &NewCycle, messages: &[i64]) -> Result<PlanFile, WakeError> {
        let (me, now) = (self.me.clone(), self.now());
        let (chat_id, thread_id) = (cycle.chat_id, cycle.thread_id);
        let work = lock::Work { cycle_id: Some(&cycle.id), chat_id, thread_id, messages };
        self.lock.describe(&me, now, work).map_err(WakeError::Lock)?;
        let dir = &self.context.config.workspace_dir;
        self.report.cycle_id = Some(cycle.id.clone());
        self.report.reasons.extend(cycle.reasons.iter().cloned());
        PlanFile::create(dir, &cycle.id, &cycle.reasons, now)
            .map_err(|source| WakeError::Workspace { path: dir.clone(), source })
    }

    /// A cycle with the mind.
    async fn think(&mut self, repo: &Repo, mut observation: Observation, reasons: &[Reason]) -> Result<(), WakeError> {
        let reported = (self.report.cycle_id.clone(), self.report.reasons.len());
        let mut cycle = self.new_cycle(reasons, self.context.model.name())?;
        let ids: Vec<i64> = reasons.iter().flat_map(Reason::messages).copied().collect();
        let plan_file = self.open_plan_file(&cycle, &ids)?;
        let mut account = Account::default();
        self.pull(repo, &mut account)?;
        self.take_in_person_edits(repo, &mut account)?;
        observation.person_commits = observe::person_commits(self.store, repo)?;
        observation.head = observe::head_of(repo)?;
        observation.reread(self.store)?;
        let now = self.now();
        let Some(seen) = orient::still_due(&observation.messages, &ids, &observation.mind, now) else {
            return self.leave_unbegun(&plan_file, reported);
        };
        let world = self.world(repo, &cycle, &observation.messages, &ids, &mut account)?;
        let opening = self.opening(&mut cycle, &world, &observation, reasons)?;
        super::check_readable(&world.documents)?;
        if !self.store.begin_cycle_on(self.fence, &cycle, &opening, &seen, now)? {
            return self.leave_unbegun(&plan_file, reported);
        }
        let mut state = Cycle::new(cycle.system.clone(), cycle.tools.clone());
        state.apply(&opening);
        let hands = self.hands(&world);
        self.carry_on(repo, Live::new(cycle, state, world, plan_file, account, hands)).await
    }

    /// Where programs of a cycle under these rules would run.
    pub(super) fn shelter(&self, rules: &Rules) -> Rc<Shelter> {
        Rc::new(Shelter::new(self.context.config, rules, process::beside("wake")))
    }

    /// Whether copies are kept of what a cycle has changed in a person's folders.
    pub(super) fn has_copies(&self, cycle_id: &str) -> bool {
        Copies::of(self.context.config).has(cycle_id)
    }

    pub(super) fn hands(&self, world: &World) -> Hands {
        let engine = self.context.config.brave_key.clone().map_or_else(Engine::default, Engine::brave);
        Hands::new(Rc::clone(&world.shelter), world.rules.clone()).searching(engine)
    }

    /// A cycle that waits for a person: the question is in the outbox, and the next wake after the answer goes on.
    async fn parked(&mut self, live: &Live) -> Result<(), WakeError> {
        self.report.outcome = WakeOutcome::Parked;
        self.store.park_cycle(self.fence, &live.cycle.id)?;
        self.lay_down();
        self.deliver().await
    }

    /// Names no cycle in the lock file any more: whatever ends this wake now is none of the cycle's doing, and nobody is shown that
    /// it is worked on, below its answer and for as long as a slow remote takes.
    /// A disk that is full then keeps nothing from being delivered.
    pub(super) fn lay_down(&mut self) {
        let (me, now) = (self.me.clone(), self.now());
        if let Err(error) = self.lock.describe(&me, now, lock::Work::default()) {
            tracing::warn!(%error, "the lock file still names a cycle that is over");
        }
    }

    /// Nothing was begun: while it was prepared the bot changed a message that it was about (an edit, a further picture of an
    /// album). The next look takes it up as it is then.
    pub(super) fn leave_unbegun(
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
    pub(super) async fn carry_on(&mut self, repo: &Repo, mut live: Live) -> Result<(), WakeError> {
        self.chat_id = live.cycle.chat_id;
        let driven = self.drive(&mut live).await;
        self.chat_id = None;
        match driven? {
            Driven::Complete => {}
            Driven::Interrupted(interrupt) => return self.interrupted(repo, &live, interrupt).await,
            Driven::Parked => return self.parked(&live).await,
        }
        Box::pin(self.complete(repo, live)).await
    }

    /// Ends a cycle of which nothing more is to be asked of the mind.
    pub(super) async fn complete(&mut self, repo: &Repo, mut live: Live) -> Result<(), WakeError> {
        let not_done = self.verify(&mut live)?;
        let Live { cycle, state, world, plan_file, mut account, .. } = live;
        account.not_done = not_done;
        let is_answered = |id: &&i64| !state.open.contains(id) && !state.kept.contains(id);
        self.report.answered += state.messages.iter().filter(is_answered).count();
        let staged = world.documents.staged();
        self.finish(repo, Ending { staged, ..Ending::new(cycle, state, plan_file, account) }).await
    }

    pub(super) fn remove_plan_file(&mut self, plan_file: &PlanFile) {
        if let Err(error) = plan_file.remove() {
            tracing::warn!(%error, "the plan file could not be removed");
        }
    }
}
