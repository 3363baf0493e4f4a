//! Observe: reads the queue, the memory and the clock, and writes nothing. The same reading serves the gate before the lock and the cycle
//! after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{schedule::due::is_set_back, types::ChatRef};
use reveille_config::{Config, OFFLINE_MODEL, RepoUrl};
use reveille_git::{Condition, Glance, Oid, Repo, RepoError};
use reveille_memory as memory;
use reveille_memory::{
    decay,
    preferences::Preferences,
    tasks::{Task, TaskList},
    view,
};
use reveille_model::offline::Offline;
use reveille_store::{CycleReports, HEAD_SEEN, Incoming, Store, StoreError, UpkeepKind};

use crate::{
    background::{initiative, jobs, reflection, steps},
    context::{Context, WakeError},
    decide::{
        budget::{Budget, day_begin},
        lineup::{ModelState, RankedModel, SkipReason},
        orient,
        situation::{DueWork, Situation},
    },
    lease,
    look::retention,
};

/// The maximum number of a person's commits read.
const MAX_PERSON_COMMITS: usize = 20;

/// The tasks as their files tell.
pub(crate) struct ReadTasks {
    tasks: Vec<Task>,
    holds_nudges: bool,
    steps: Vec<DueWork>,
}

impl ReadTasks {
    pub(crate) fn read(
        (config, now): (&Config, DateTime<Utc>),
        read: impl Fn(&str) -> Result<Option<String>, RepoError>,
    ) -> Self {
        let tasks = read_tasks(&read);
        let holds_nudges = holds_nudges(&tasks, (config, now), &read);
        Self { holds_nudges, steps: list_due_steps(&tasks, config, &read), tasks }
    }
}

/// The observed state of the memory.
struct Memory {
    tasks: ReadTasks,
    person_commits: Vec<(String, String)>,
    head: Option<String>,
}

impl Situation {
    /// Reads the situation. `repo` is `None` before the first run has created it.
    pub(crate) fn read(store: &Store, repo: Option<&Repo>, context: Context<'_>) -> Result<Self, WakeError> {
        let told = store.cycles().read_waiting_reports()?;
        let read = |path: &str| repo.map_or(Ok(None), |repo| repo.read_work_tree(path));
        let memory = Memory {
            tasks: ReadTasks::read((context.config, context.clock.now()), read),
            person_commits: repo.map_or(Ok(Vec::new()), |repo| list_unshown_commits(store, repo, &told.heads))?,
            head: repo.map_or(Ok(None), read_head)?,
        };
        Self::read_with_memory(store, memory, told, context)
    }

    /// Reads the situation of a repository at rest, whose last commit is known.
    fn read_at_rest(store: &Store, memory: &Glance, context: Context<'_>) -> Result<Self, WakeError> {
        let read = |path: &str| memory.read_work_tree(path);
        let memory = Memory {
            tasks: ReadTasks::read((context.config, context.clock.now()), read),
            person_commits: Vec::new(),
            head: Some(memory.head().to_string()),
        };
        Self::read_with_memory(store, memory, store.cycles().read_waiting_reports()?, context)
    }

    fn read_with_memory(
        store: &Store,
        memory: Memory,
        told: CycleReports,
        context: Context<'_>,
    ) -> Result<Self, WakeError> {
        let (config, now) = (context.config, context.clock.now());
        let mut situation = Self::read_queue(store, memory.tasks, told, (config, now))?;
        situation.handled.extend(store.maintenance().handled_keys("budget/")?);
        Ok(Self {
            person_commits: memory.person_commits,
            head: memory.head,
            initiative: initiative::look::find_due(store, config, now)?,
            proposals: store.proposals().proposals_to_tell(now)?,
            ..situation
        })
    }

    /// Reads what the store and the tasks' files tell: all but people's commits, the initiative and agreed changes of orders, for which
    /// nobody waits. A chat that was told of a spent budget still counts as waiting for it.
    pub(crate) fn read_queue(
        store: &Store,
        ReadTasks { tasks, holds_nudges, steps }: ReadTasks,
        told: CycleReports,
        (config, now): (&Config, DateTime<Utc>),
    ) -> Result<Self, StoreError> {
        let mut handled = read_handled_task_keys(store)?;
        handled.extend(told.handles);
        let stopped_chats: BTreeSet<ChatRef> = store.chats().stopped_chats()?.into_keys().collect();
        let model = read_model_state(store, config, now)?;
        Ok(Self {
            messages: remove_stopped(store.inbox().list_queued_messages()?, &stopped_chats),
            open_cycles: store.cycles().open_cycles()?,
            reminders: store.reminders().list_reminders()?,
            guests: list_guests(store, (config, now), &tasks)?,
            tasks,
            handled,
            tells_left: count_tells_left(store, (config, now), config.owner_chat)?,
            quiet_hours: config.quiet_hours,
            holds_nudges,
            own_work: [jobs::look::list_due_jobs(store)?, steps::look::remove_handled(store, steps)?].concat(),
            to_reflect: reflection::look::find_due_days(store, config, now)?,
            undos: store.undos().open_undos()?,
            pressed: store.reminders().open_nudges()?,
            is_on_duty: lease::is_on_duty(config),
            is_stopped: store.chats().find_stop_order()?.is_some(),
            stopped_chats,
            ..Self::new_quiet(now, config.timezone, config.owner_chat, model)
        })
    }

    /// Reads the messages again: pulling takes a while, and a queued message may have been edited meanwhile.
    pub(crate) fn reread_messages(&mut self, store: &Store) -> Result<(), StoreError> {
        let mut now = store.inbox().list_queued_messages()?;
        self.messages.retain_mut(|message| match now.iter().position(|other| other.id == message.id) {
            Some(at) => {
                *message = now.swap_remove(at);
                true
            }
            None => false,
        });
        Ok(())
    }
}

/// Removes messages of chats whose work is stopped. These messages stay queued.
pub(crate) fn remove_stopped(mut messages: Vec<Incoming>, stopped_chats: &BTreeSet<ChatRef>) -> Vec<Incoming> {
    messages.retain(|message| !stopped_chats.contains(&message.chat));
    messages
}

/// Returns `true` if a wake has work: upkeep or a reason. Nothing is written.
pub(crate) fn is_anything_due(store: &Store, context: Context<'_>) -> Result<bool, WakeError> {
    let now = context.clock.now();
    // fault: question-hadnt-left-wake
    if context.channel.is_some() && store.outbox().has_deliverable(now)? {
        return Ok(true);
    }
    if has_texts_for_owner(store, context)? {
        return Ok(true);
    }
    if store.chats().find_stop_order()?.is_some() {
        return Ok(!orient::list_due_reasons(&Situation::read(store, None, context)?).is_empty());
    }
    let (dir, url) = (context.config.repo_dir(), context.config.repo_url.as_ref().map(RepoUrl::expose));
    if let Some(memory) =
        Glance::read(&dir, url).filter(|memory| read_seen_head(store).is_ok_and(|seen| seen == Some(memory.head())))
    {
        return Ok(is_clock_changed(store, context.config, now)?
            || is_fetch_due(store, memory.has_remote(), context)?
            || retention::is_due(store, context)?
            || jobs::look::is_due(store, context)?
            || !orient::list_due_reasons(&Situation::read_at_rest(store, &memory, context)?).is_empty());
    }
    let Some(repo) = open_repo(&dir)? else {
        return Ok(true);
    };
    if url.is_some_and(|url| !repo.has_origin(url)) {
        return Ok(true);
    }
    if is_clock_changed(store, context.config, now)?
        || repo.is_interrupted() && store.maintenance().read_upkeep(UpkeepKind::Finish)?.may_try(now)
        || is_parked_work_due(store, &repo, now)?
        || is_push_due(store, &repo, now)?
        || is_fetch_due(store, repo.has_remote(), context)?
        || retention::is_due(store, context)?
        || jobs::look::is_due(store, context)?
    {
        return Ok(true);
    }
    Ok(!orient::list_due_reasons(&Situation::read(store, Some(&repo), context)?).is_empty())
}

/// Returns `true` if the clock was set back, so that waiting items are brought forward and the next slots are computed again; or if the
/// person now lives in another time zone.
fn is_clock_changed(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<bool, StoreError> {
    Ok(is_zone_new(store, config, now)?
        || store.is_set_back(now)?
        || store.reminders().list_reminders()?.iter().any(|reminder| reminder.is_set_back(now)))
}

/// The key of the last time zone told to the person.
pub(crate) const ZONE: &str = "zone";

/// Returns `true` if the person should be told of their new time zone now.
pub(crate) fn is_zone_new(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<bool, StoreError> {
    let is_quiet = config.quiet_hours.is_some_and(|hours| hours.contains(now.with_timezone(&config.timezone).time()));
    Ok(!is_quiet && store.maintenance().find_handled_value(ZONE)?.is_some_and(|noted| noted != config.timezone.name()))
}

/// Returns `true` if texts for the terminal should go to the owner's chat.
pub(crate) fn has_texts_for_owner(store: &Store, context: Context<'_>) -> Result<bool, StoreError> {
    Ok(context.find_terminal_fallback().is_some() && store.terminals().has_for_owner()?)
}

/// Returns the next retry time among the chain's failing models. `None` if no retry is pending.
pub fn find_retry_time(
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let chain = config.list_usable_models();
    let breakers =
        store.maintenance().list_breakers()?.into_iter().filter(|breaker| chain.contains(&breaker.model.as_str()));
    Ok(breakers.filter_map(|breaker| breaker.not_before).filter(|at| *at > now).min())
}

/// Reads the state of the configured models, as the gate uses it.
pub fn read_model_state(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<ModelState, StoreError> {
    let breakers = store.maintenance().list_breakers()?;
    let lined_up = |name: &str| {
        let breaker = breakers.iter().find(|breaker| breaker.model == name && !breaker.may_try(now));
        RankedModel {
            name: name.to_owned(),
            is_thinking: name != OFFLINE_MODEL,
            is_free: config.is_free(name),
            is_here: config.is_local(name),
            out: breaker.map(|it| if it.fault.may_fall_back() { SkipReason::FallBack } else { SkipReason::StopChain }),
        }
    };
    let lineup: Vec<RankedModel> = config.list_usable_models().into_iter().map(lined_up).collect();
    let of_task = |name: &Option<String>| name.as_deref().filter(|name| config.can_use(name)).map(lined_up);
    // A model that a person has chosen answers everything. Without a thinking model none could take over from the simple one.
    let is_begun_by_it = config.chosen_model.is_none() && lineup.iter().any(|model| model.is_thinking);
    let simple = of_task(&config.model_simple).filter(|_| is_begun_by_it);
    let reflect = of_task(&config.model_reflect);
    let costs = lineup.iter().chain(&simple).chain(&reflect).any(|model| !model.is_free);
    let budget = if costs { Some(Budget::read(store, config, now)?) } else { None };
    let over_budget = budget.as_ref().and_then(Budget::find_reached_cap);
    let no_room = budget.map(|budget| budget.no_room).unwrap_or_default();
    let has_grammar = lineup.iter().any(|model| model.name == OFFLINE_MODEL);
    let grammar = (!has_grammar).then(|| Offline::new(config.timezone));
    let state =
        ModelState { lineup, simple, reflect, over_budget, no_room, grammar, ..ModelState::for_model(OFFLINE_MODEL) };
    Ok(state.with_local_chats(store.chats().local_chats()?, config.owner_chat))
}

/// Returns `true` if a push is due. A remote that was silent to a fetch gets no push for the same back-off.
pub(crate) fn is_push_due(store: &Store, repo: &Repo, now: DateTime<Utc>) -> Result<bool, WakeError> {
    let may_try = |kind| Ok::<_, WakeError>(store.maintenance().read_upkeep(kind)?.may_try(now));
    Ok(repo.has_remote()
        && is_ahead(repo)?
        && may_try(UpkeepKind::Push)?
        && may_try(UpkeepKind::Fetch)?
        && may_try(UpkeepKind::Lease)?)
}

pub(crate) fn is_fetch_due(store: &Store, has_remote: bool, context: Context<'_>) -> Result<bool, WakeError> {
    let now = context.clock.now();
    let upkeep = store.maintenance().read_upkeep(UpkeepKind::Fetch)?;
    let every = TimeDelta::from_std(context.config.pull_every).unwrap_or(TimeDelta::MAX);
    let is_time = upkeep.failures > 0
        || upkeep.last_ok_at.is_none_or(|at| now.signed_duration_since(at) >= every || is_set_back(at, now));
    Ok(has_remote && is_time && upkeep.may_try(now))
}

/// Returns `true` if parked work can be committed because HEAD is back. Completing an earlier commit comes first.
pub(crate) fn is_parked_work_due(store: &Store, repo: &Repo, now: DateTime<Utc>) -> Result<bool, WakeError> {
    let is_back = || Ok::<_, WakeError>(matches!(repo.read_condition()?, Condition::Normal | Condition::Unborn));
    Ok(!repo.parked_work().list_parked_branches()?.is_empty()
        && is_back()?
        && !repo.is_interrupted()
        && store.maintenance().read_upkeep(UpkeepKind::Parked)?.may_try(now))
}

/// Returns `true` if we have commits that the remote lacked at the last fetch.
fn is_ahead(repo: &Repo) -> Result<bool, WakeError> {
    Ok(match repo.count_ahead_behind()? {
        Some((ahead, _)) => ahead > 0,
        None => repo.head()?.is_some(),
    })
}

/// Opens the repository. `None` before the first run has created it.
pub(crate) fn open_repo(dir: &Path) -> Result<Option<Repo>, WakeError> {
    if dir.join(".git").exists() { Ok(Some(Repo::open(dir)?)) } else { Ok(None) }
}

/// Reads the keys of everything said or done about tasks at their times.
pub(crate) fn read_handled_task_keys(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let mut handled = BTreeSet::new();
    for kind in ["at/", "decay/", "due/"] {
        handled.extend(store.maintenance().handled_keys(kind)?);
    }
    Ok(handled)
}

pub(crate) fn read_tasks(read: impl Fn(&str) -> Result<Option<String>, RepoError>) -> Vec<Task> {
    [memory::ACTIVE, memory::BACKLOG]
        .iter()
        .filter_map(|path| read(path).ok().flatten().map(|text| (path, text)))
        .flat_map(|(path, text)| {
            let tasks = TaskList::parse(&text).0.tasks().to_vec();
            // A task in the backlog doesn't decay, but it can have a time.
            tasks.into_iter().map(move |mut task| {
                if *path == memory::BACKLOG {
                    task.touched = None;
                }
                task
            })
        })
        .collect()
}

/// Lists the next steps of long tasks.
pub(crate) fn list_due_steps(
    tasks: &[Task],
    config: &Config,
    read: impl Fn(&str) -> Result<Option<String>, RepoError>,
) -> Vec<DueWork> {
    steps::look::list_due_steps(tasks, config.owner_chat, read)
}

/// Returns `true` if the person's context holds nudges back. The context is read only if there is something to nudge about.
pub(crate) fn holds_nudges(
    tasks: &[Task],
    (config, now): (&Config, DateTime<Utc>),
    read: impl Fn(&str) -> Result<Option<String>, RepoError>,
) -> bool {
    let today = now.with_timezone(&config.timezone).date_naive();
    tasks.iter().any(|task| decay::find_task_stage(task, today).is_some())
        && read(memory::CONTEXT).ok().flatten().is_some_and(|text| Preferences::parse(&text).holds_nudges())
}

/// Lists the allowed chats besides the owner's that own tasks, each with its remaining messages for today.
pub(crate) fn list_guests(
    store: &Store,
    (config, now): (&Config, DateTime<Utc>),
    tasks: &[Task],
) -> Result<BTreeMap<ChatRef, usize>, StoreError> {
    let chats = tasks.iter().filter_map(|task| view::foreign_chat(task.chat(), config.owner_chat));
    chats
        .filter(|chat| config.allowed_chats.contains(chat))
        .map(|chat| Ok((chat, count_tells_left(store, (config, now), chat)?)))
        .collect()
}

pub(crate) fn count_tells_left(
    store: &Store,
    (config, now): (&Config, DateTime<Utc>),
    chat: ChatRef,
) -> Result<usize, StoreError> {
    let told = store.outbox().tells_since(chat, day_begin(now, config.timezone))?;
    let left = i64::from(config.tell_per_day) - told;
    Ok(usize::try_from(left).unwrap_or(0))
}

/// Returns the memory's current commit.
pub(crate) fn read_head(repo: &Repo) -> Result<Option<String>, WakeError> {
    Ok(repo.head()?.map(|id| id.to_string()))
}

/// Lists people's new commits without those already shown to waiting cycles. Otherwise each wake would start another cycle for them.
fn list_unshown_commits(store: &Store, repo: &Repo, heads: &[String]) -> Result<Vec<(String, String)>, WakeError> {
    let mut commits = person_commits(store, repo)?;
    for head in heads.iter().filter_map(|head| Oid::from_str(head).ok()) {
        // A missing commit hides nothing.
        if let Ok(since) = repo.history().peoples_commits_since(head, MAX_PERSON_COMMITS) {
            commits.retain(|(id, _)| since.iter().any(|commit| commit.id.to_string() == *id));
        }
    }
    Ok(commits)
}

/// Lists people's commits that no wake has seen, newest first. Empty before the first wake.
pub(crate) fn person_commits(store: &Store, repo: &Repo) -> Result<Vec<(String, String)>, WakeError> {
    find_current_seen_head(store, repo)?.map_or(Ok(Vec::new()), |seen| list_person_commits_since(repo, seen))
}

/// Returns the last seen commit.
pub(crate) fn read_seen_head(store: &Store) -> Result<Option<Oid>, WakeError> {
    Ok(store.maintenance().find_handled_value(HEAD_SEEN)?.and_then(|id| Oid::from_str(&id).ok()))
}

/// Returns the last seen commit, translated if the history was rewritten. A lost commit hides nothing.
pub(crate) fn find_current_seen_head(store: &Store, repo: &Repo) -> Result<Option<Oid>, WakeError> {
    let seen = read_seen_head(store)?;
    Ok(seen.map(|seen| repo.history().seen_now(seen)).transpose()?.flatten().or(seen))
}

/// Lists people's commits since this one, newest first.
pub(crate) fn list_person_commits_since(repo: &Repo, seen: Oid) -> Result<Vec<(String, String)>, WakeError> {
    if repo.head()? == Some(seen) {
        return Ok(Vec::new());
    }
    let commits = repo.history().peoples_commits_since(seen, MAX_PERSON_COMMITS)?;
    Ok(commits
        .into_iter()
        .map(|commit| (commit.id.to_string(), format!("{} ({})", commit.subject, commit.author)))
        .collect())
}
