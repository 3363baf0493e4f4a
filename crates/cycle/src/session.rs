//! A wake that holds the lock: its state, and the cycle in progress.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    rc::Rc,
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    process::Identity,
    types::{ChatRef, OwnWork},
};
use reveille_index::IndexPlace;
use reveille_live::LiveFeed;
use reveille_model::Model;
use reveille_policy::Rules;
use reveille_sandbox::{
    exec::{Exec, Shelter, copies::Copies, folders::CycleFolder},
    web::search::Engine,
};
use reveille_store::{
    Entry, FencedStore, ModelFault, NewCycle, NewOutgoing, StagedFile, Store, StoreError, UpkeepKind,
    wake_lock::{self, WakeLock},
};
use reveille_tools::{World, mcp::client};

use crate::{
    context::{Context, Report, WakeError},
    decide::{
        interrupt::Interrupt,
        lineup::ModelState,
        machine::{Cycle, Receipt},
        situation::Reason,
        verify::Account,
    },
    look::observe,
    plan_file::PlanFile,
    sharing::Sharing,
    tooling::{Means, Tooling},
};

/// Prefix of the keys, followed by a cycle's id, of cycles that ended without reading untrusted text.
const CLEAN_FOLDER: &str = "scratch-clean/";
/// Prefix of the keys, followed by a granted folder, that hold the last write by a tainted cycle.
pub(crate) const TAINTED_WRITE: &str = "tainted-write/";

/// The holder of the wake lock.
pub(super) struct Session<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) store: FencedStore<'a>,
    /// Declared before the lock, so that it is given back first.
    pub(crate) sharing: Sharing,
    pub(crate) lock: WakeLock,
    pub(crate) me: Identity,
    pub(crate) trigger: &'a str,
    pub(crate) report: &'a mut Report,
    /// The repository's state relative to the remote and to a person's edits.
    pub(crate) sync: SyncState,
    /// The time by which this wake must end.
    pub(crate) deadline: tokio::time::Instant,
    /// The chat the model works for, if any.
    pub(crate) chat: Option<ChatRef>,
    /// The index of the memory, opened once per wake.
    pub(crate) index: IndexPlace,
    means: &'a Means<'a>,
    /// The model given to the wake.
    given: &'a dyn Model,
    /// The state of the models, as of the last look or [`Session::refresh_models`].
    models: Rc<ModelState>,
}

/// The repository's sync state; see [`crate::maintain::sync`].
#[derive(Debug, Default)]
pub(crate) struct SyncState {
    pub(crate) has_fetched: bool,
    /// True if a person's many edits wait until no other work is due.
    pub(crate) has_put_off: bool,
    /// True if fetched commits wait in the same way.
    pub(crate) has_put_off_commits: bool,
    /// True if the index was updated during the last push.
    pub(crate) is_indexed: Cell<bool>,
}

/// The consequence of a cycle's end for the rest of its wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Next {
    /// Other cycles may run: this one is done, or only it was obstructed.
    Continue,
    /// No cycle may run: the obstacle would stop each of them.
    Stop,
}

/// The reason for leaving a step early. Either variant leaves all steps at once through `?`.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The cycle stops here. A later wake may resume it.
    Interrupted(Interrupt),
    /// The wake can't work.
    Failed(WakeError),
}

impl From<Interrupt> for Halt {
    fn from(interrupt: Interrupt) -> Self {
        Self::Interrupted(interrupt)
    }
}

impl From<WakeError> for Halt {
    fn from(error: WakeError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// A cycle in progress with the model.
pub(crate) struct Live {
    pub(crate) cycle: NewCycle,
    pub(crate) state: Cycle,
    pub(crate) world: World,
    pub(crate) plan_file: PlanFile,
    pub(crate) account: Account,
    pub(crate) exec: Exec,
    pub(crate) work: Stopwatch,
    /// The preview for whoever watches.
    pub(crate) feed: Rc<RefCell<LiveFeed>>,
    /// The number of turns before this wake resumed the cycle.
    turns_before: u32,
}

impl Live {
    pub(crate) fn new(
        cycle: NewCycle,
        state: Cycle,
        world: World,
        plan_file: PlanFile,
        account: Account,
        exec: Exec,
    ) -> Self {
        let turns_before = state.turns;
        let feed = Rc::new(RefCell::new(LiveFeed::unwatched()));
        Self { cycle, state, world, plan_file, account, exec, work: Stopwatch::default(), feed, turns_before }
    }

    /// True if this wake has added a turn.
    pub(crate) fn has_progressed(&self) -> bool {
        self.state.turns > self.turns_before
    }
}

/// Measures working time: a received turn, a completed call. The stopwatch stands still while the machine sleeps.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch(Option<tokio::time::Instant>);

impl Stopwatch {
    /// Starts a measurement. An earlier one without an end is dropped.
    pub(crate) fn start(&mut self) {
        self.0 = Some(tokio::time::Instant::now());
    }

    /// Ends the measurement and returns its journal entry. `None` below one millisecond.
    pub(crate) fn stop(&mut self) -> Option<Entry> {
        let ms = u64::try_from(self.0.take()?.elapsed().as_millis()).unwrap_or(u64::MAX);
        (ms > 0).then_some(Entry::Worked { ms })
    }
}

/// The result of a cycle at its end, of any kind.
pub(crate) struct Ending {
    pub(crate) cycle: NewCycle,
    pub(crate) messages: Vec<i64>,
    pub(crate) account: Account,
    pub(crate) staged: Vec<StagedFile>,
    /// Keys to be marked as handled.
    pub(crate) handled: Vec<String>,
    pub(crate) plan_file: PlanFile,
    /// The last commit up to which this cycle took note of people's commits, if it did.
    pub(crate) head_shown: Option<String>,
    /// Files to be deleted.
    pub(crate) removed: Vec<reveille_git::FileChange>,
    /// The wake undone by this cycle.
    pub(crate) undoes: Option<String>,
    /// The models that worked on the cycle before the final one.
    pub(crate) models_before: Vec<String>,
}

impl Ending {
    /// Builds the ending from a cycle's journal, with nothing staged or undone.
    pub(crate) fn new(cycle: NewCycle, state: Cycle, plan_file: PlanFile, mut account: Account) -> Self {
        let told = |receipts: &[Receipt]| receipts.iter().filter(|receipt| receipt.what.is_some()).count();
        let own = state.own_receipts.and_then(|own| state.receipts.get(..own));
        account.own_receipts = own.map(|own| account.receipts.len() + told(own));
        // fault: conversation-goes-forgets-log
        account.receipts.extend(state.receipts.into_iter().filter_map(|receipt| receipt.what));
        account.notes.extend(state.folding.done.iter().map(|folded| format!("{}.", folded.describe())));
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
            models_before: state.models_before,
        }
    }
}

/// Lists the granted folders written to by tainted cycles, with the time of the last such write.
///
/// # Errors
/// If the store can't be read.
pub fn tainted_writes(store: &Store) -> Result<Vec<(PathBuf, DateTime<Utc>)>, StoreError> {
    let written = store.maintenance().handled_values(TAINTED_WRITE)?;
    let folder_and_time = written.iter().filter_map(|(key, at)| {
        let folder = PathBuf::from(key.strip_prefix(TAINTED_WRITE)?);
        // An unreadable time counts as the latest possible.
        Some((folder, parse_time(at).unwrap_or(DateTime::<Utc>::MAX_UTC)))
    });
    Ok(folder_and_time.collect())
}

impl<'a> Session<'a> {
    /// Starts a session and takes the fence that belongs to the lock.
    pub(crate) fn begin(
        context: Context<'a>,
        means: &'a Means<'a>,
        store: &'a mut Store,
        (lock, sharing): (WakeLock, Sharing),
        trigger: &'a str,
        report: &'a mut Report,
    ) -> Result<Self, WakeError> {
        let me = Identity::current();
        let fence = store.take_lease(&me, context.clock.now())?;
        let deadline = tokio::time::Instant::now() + context.config.wake_timeout;
        let mut store = FencedStore::new(store, fence, context.clock);
        match &sharing {
            Sharing::Unshared | Sharing::Cut { why: None } => {}
            Sharing::Held(_) => store.maintenance_mut().record_upkeep_recovery(UpkeepKind::Lease)?,
            Sharing::Cut { why: Some(why) } => {
                tracing::warn!(%why, "the lease can't be asked for: this wake works on what it has, and pushes nothing");
                store.maintenance_mut().record_upkeep_failure(UpkeepKind::Lease, why, None)?;
            }
        }
        Ok(Self {
            context,
            store,
            sharing,
            lock,
            me,
            trigger,
            report,
            sync: SyncState::default(),
            deadline,
            chat: None,
            index: IndexPlace::from_config(context.config).kept_open(),
            means,
            given: context.model,
            models: Rc::new(ModelState::for_model(context.model.name())),
        })
    }

    /// Frees the machines' lease first, then the store's. Dropping the value frees the lock.
    pub(crate) fn end(mut self) -> Result<(), WakeError> {
        self.sharing = Sharing::Unshared;
        Ok(self.store.release_lease()?)
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.context.clock.now()
    }

    fn next_cycle_id(&self) -> Result<String, WakeError> {
        let first = format!("{}-{}", self.now().format("%Y%m%dT%H%M%SZ"), self.me.pid);
        let mut id = first.clone();
        // A counter separates several cycles of one process within a second, or under a clock that stands still.
        for count in 2.. {
            if self.store.cycles().find_cycle(&id)?.is_none() {
                break;
            }
            id = format!("{first}-{count}");
        }
        Ok(id)
    }

    pub(crate) fn new_cycle(&mut self, reasons: &[Reason], model: &str) -> Result<NewCycle, WakeError> {
        let (chat, thread_id) = reasons
            .iter()
            .find_map(|reason| match reason {
                Reason::Messages { chat, thread_id, .. } => Some((Some(*chat), *thread_id)),
                _ => None,
            })
            .unwrap_or_default();
        Ok(NewCycle {
            id: self.next_cycle_id()?,
            trigger: self.trigger.to_owned(),
            reasons: reasons.iter().map(Reason::describe).collect(),
            chat,
            thread_id,
            model: model.to_owned(),
            system: "[]".to_owned(),
            tools: "[]".to_owned(),
            work: match reasons {
                [Reason::Own { due }] => Some(due.work.clone()),
                [Reason::Reflection { .. }] => Some(OwnWork::Reflection),
                _ => None,
            },
        })
    }

    pub(crate) fn open_plan_file(&mut self, cycle: &NewCycle, messages: &[i64]) -> Result<PlanFile, WakeError> {
        let (me, now) = (self.me.clone(), self.now());
        let (chat, thread_id) = (cycle.chat, cycle.thread_id);
        let work = wake_lock::LockedWork { cycle_id: Some(&cycle.id), chat, thread_id, messages };
        self.lock.write_holder(&me, now, work).map_err(WakeError::Lock)?;
        let dir = &self.context.config.workspace_dir;
        self.report.cycle_id = Some(cycle.id.clone());
        self.report.reasons.extend(cycle.reasons.iter().cloned());
        PlanFile::create(dir, &cycle.id, &cycle.reasons, now)
            .map_err(|source| WakeError::Workspace { path: dir.clone(), source })
    }

    /// Returns the place where a cycle's programs run under these rules.
    pub(crate) fn shelter_of_cycle(&self, rules: &Rules, cycle: &str) -> Result<Rc<Shelter>, StoreError> {
        let clean = self.store.maintenance().handled_keys(CLEAN_FOLDER)?;
        let clean = clean.iter().filter_map(|key| key.strip_prefix(CLEAN_FOLDER)).map(str::to_owned);
        let shelter = client::build_shelter(self.context.config, rules, &self.tooling().servers);
        Ok(Rc::new(shelter.for_cycle(cycle, clean).with_tainted_writes(tainted_writes(&self.store)?)))
    }

    /// Records that a cycle ended without reading untrusted text, so that later cycles may see its scratch files.
    pub(crate) fn note_clean(&mut self, cycle: &str) -> Result<(), StoreError> {
        let folder = CycleFolder::new(&self.context.config.scratch_dir(), cycle);
        if folder.path().is_dir() && self.store.outbox().find_cycle_taints(cycle)?.is_none() {
            let now = format_rfc3339(self.now());
            self.store.maintenance_mut().set_handled_value(&format!("{CLEAN_FOLDER}{cycle}"), &now)?;
        }
        Ok(())
    }

    /// Returns the place where programs outside any cycle run under these rules.
    pub(crate) fn build_shelter(&self, rules: &Rules) -> Rc<Shelter> {
        Rc::new(client::build_shelter(self.context.config, rules, &self.tooling().servers))
    }

    /// Returns the state of the models. It stays the same within a look and within a step of a cycle, so that all decisions of one step
    /// agree.
    pub(crate) fn models(&self) -> Rc<ModelState> {
        Rc::clone(&self.models)
    }

    /// Takes over the state of the models that a look has read.
    pub(crate) fn set_models(&mut self, models: ModelState) {
        self.models = Rc::new(models);
    }

    /// Reads the state of the models again: before each step of a cycle, and after a model's failure.
    pub(crate) fn refresh_models(&mut self) -> Result<(), StoreError> {
        self.models = Rc::new(observe::read_model_state(&self.store, self.context.config, self.now())?);
        Ok(())
    }

    /// Returns the tools and servers as this wake has read them.
    pub(crate) fn tooling(&self) -> Rc<Tooling> {
        self.means.tooling(self.context)
    }

    /// Switches to the model of this name, with its tools. Returns the error as text if the model can't be created. Such a model counts as
    /// one with a rejected key: the chain's next model is asked, and a cycle waits only if there is no other.
    pub(crate) fn try_model(&mut self, name: &str) -> Result<Option<String>, WakeError> {
        match self.use_model(name) {
            Ok(()) => Ok(None),
            Err(error @ WakeError::Model(_)) => {
                let why = self.context.redactor.redact(&error.to_string());
                tracing::warn!(model = name, %why, "a model can't be asked");
                self.store.maintenance_mut().record_model_failure(name, ModelFault::Account, &why, None)?;
                self.refresh_models()?;
                Ok(Some(why))
            }
            Err(error) => Err(error),
        }
    }

    fn use_model(&mut self, name: &str) -> Result<(), WakeError> {
        if self.context.model.name() != name {
            self.context.model = match self.given.name() == name {
                true => self.given,
                false => self.means.models.get(name).map_err(WakeError::Model)?,
            };
        }
        Ok(())
    }

    /// Drops the tools and servers, because a person's approval may have changed them. The next cycle reads them again.
    pub(crate) fn forget_tooling(&self) {
        self.means.forget_tooling();
    }

    pub(crate) fn build_exec(&self, world: &World) -> Exec {
        let engine = self.context.config.brave_key.clone().map_or_else(Engine::default, Engine::brave);
        Exec::new(Rc::clone(&world.means.shelter), world.means.rules.clone()).with_search_engine(engine)
    }

    /// Removes the cycle from the lock file, so that a later failure isn't blamed on the cycle and the progress display ends with the
    /// answer. An error is only logged: a full disk must not prevent delivery.
    pub(crate) fn remove_cycle_from_lock(&mut self) {
        let (me, now) = (self.me.clone(), self.now());
        if let Err(error) = self.lock.write_holder(&me, now, wake_lock::LockedWork::default()) {
            tracing::warn!(%error, "the lock file still names a cycle that is over");
        }
    }

    pub(crate) fn remove_plan_file(&mut self, plan_file: &PlanFile) {
        if let Err(error) = plan_file.remove() {
            tracing::warn!(%error, "the plan file could not be removed");
        }
    }

    /// True if copies exist of a person's files that a cycle has changed.
    pub(crate) fn has_copies(&self, cycle_id: &str) -> bool {
        Copies::from_config(self.context.config).has_wake(cycle_id)
    }

    /// Tells the owner of a problem that only they can solve, once per key. Returns `true` if the message is new.
    pub(crate) fn alarm(&mut self, key: &str, text: String) -> Result<bool, WakeError> {
        let message = NewOutgoing {
            key: Some(format!("alarm/{key}")),
            ..NewOutgoing::notice(self.context.config.owner_chat, text)
        };
        Ok(self.store.outbox_mut().plan_wake_message(&message)?.is_some())
    }

    /// Drops a cycle before its start, because the bot changed one of its messages meanwhile (an edit, another picture of an album). The
    /// next look sees the new version.
    pub(crate) fn drop_unstarted_cycle(
        &mut self,
        plan_file: &PlanFile,
        (cycle_id, n_reasons): (Option<String>, usize),
    ) -> Result<(), WakeError> {
        tracing::info!("a message changed before its cycle began; the next look reads it again");
        self.remove_cycle_from_lock();
        self.report.cycle_id = cycle_id;
        self.report.reasons.truncate(n_reasons);
        self.remove_plan_file(plan_file);
        Ok(())
    }
}
