//! The waiting work, as far as the queue and the tasks' files tell. This serves the bot, the page and the chat, which open no repository.
//! They use the same gate as the wake; cron's wakes find any further work in git.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chrono::{DateTime, Utc};

use reveille_config::Config;
use reveille_git::RepoError;
use reveille_store::{Store, StoreError};
use reveille_tools::Documents;

use crate::decide::{
    orient::{self, Standing},
    situation::{Reason, Situation},
};
use crate::{
    background::jobs,
    look::observe::{self, ReadTasks},
};

/// An item of due work. A wake has made progress if one of them is gone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DueItem {
    /// A message, by its number.
    Message(i64),
    /// An interrupted cycle, by its id.
    Resume(String),
    /// A chat that waits for the budget, in words.
    OverBudget(String),
    /// Other work, in words.
    Other(String),
}

impl fmt::Display for DueItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => write!(f, "message {id}"),
            Self::Resume(cycle_id) => write!(f, "resume {cycle_id}"),
            Self::OverBudget(words) | Self::Other(words) => f.write_str(words),
        }
    }
}

/// The result of a look at the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The due work.
    pub due: BTreeSet<DueItem>,
    /// The number of messages by standing.
    pub messages: BTreeMap<Standing, usize>,
    /// The next known due time: of a reminder, a held message, or the end of a delivery's back-off.
    pub next_at: Option<DateTime<Utc>>,
}

/// Reads the queue. Nothing is written.
pub fn read_waiting_work(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<Waiting, StoreError> {
    let documents = Documents::new(&config.repo_dir(), Vec::new());
    let tasks = ReadTasks::read((config, now), |path| Ok::<_, RepoError>(documents.get(path)));
    let told = store.cycles().read_waiting_reports()?;
    let observed = Situation::read_queue(store, tasks, told, (config, now))?;
    let mut due: BTreeSet<DueItem> = orient::list_due_reasons(&observed).iter().flat_map(list_items).collect();
    let named = |is_due: bool, name: &str| is_due.then(|| DueItem::Other(name.to_owned()));
    let mut standings = BTreeMap::new();
    for (_, standing) in orient::list_standings(&observed) {
        *standings.entry(standing).or_default() += 1;
    }
    if config.telegram_token.is_some() {
        due.extend(named(store.outbox().has_deliverable(now)?, "deliveries"));
    }
    if observed.is_stopped {
        return Ok(Waiting { due, messages: standings, next_at: None });
    }
    let is_set_back = store.is_set_back(now)? || observed.reminders.iter().any(|reminder| reminder.is_set_back(now));
    due.extend(named(is_set_back, "a clock that was set back"));
    due.extend(named(observe::is_zone_new(store, config, now)?, "a new time zone"));
    due.extend(named(jobs::look::is_any_due(store, config, now)?, "a standing job"));
    if config.telegram_token.is_some() {
        due.extend(named(store.outbox().has_doubtful(now)?, "uncertain deliveries"));
    }
    let times = [
        store.reminders().find_next_reminder_time()?,
        store.jobs().find_next_job_time()?,
        store.outbox().next_delivery()?,
    ];
    let held = observed.messages.iter().filter_map(|message| message.not_before);
    let next_at = times.into_iter().flatten().chain(held).filter(|at| *at > now).min();
    Ok(Waiting { due, messages: standings, next_at })
}

/// Lists each message separately, so that answering one of two counts as progress.
fn list_items(reason: &Reason) -> Vec<DueItem> {
    match reason {
        Reason::Messages { ids, .. } | Reason::Stale { ids, .. } => ids.iter().copied().map(DueItem::Message).collect(),
        Reason::Resume { cycle_id, .. } => vec![DueItem::Resume(cycle_id.clone())],
        Reason::OverBudget { .. } => vec![DueItem::OverBudget(reason.describe())],
        other => vec![DueItem::Other(other.describe())],
    }
}
