//! The waiting work, as far as the queue and the tasks' files tell. This serves the bot, the page and the chat, which open no repository.
//! They use the same gate as the wake; cron's wakes find any further work in git.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use reveille_config::Config;
use reveille_git::RepoError;
use reveille_store::{Store, StoreError};
use reveille_tools::Documents;

use crate::{
    background::{self, jobs, reflection},
    look::observe,
};
use crate::{
    decide::{
        orient::{self, Standing},
        situation::{Reason, Situation},
    },
    lease,
};

/// The result of a look at the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// A name for each due item: a message, a reminder, an interrupted cycle, deliveries.
    pub due: BTreeSet<String>,
    /// The number of messages by standing.
    pub messages: BTreeMap<Standing, usize>,
    /// The next known due time: of a reminder, a held message, or the end of a delivery's back-off.
    pub next_at: Option<DateTime<Utc>>,
}

/// Reads the queue. Nothing is written.
pub fn read_waiting_work(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<Waiting, StoreError> {
    let stopped_chats = store.chats().stopped_chats()?.into_keys().collect();
    let documents = Documents::new(&config.repo_dir(), Vec::new());
    let read = |path: &str| Ok::<_, RepoError>(documents.get(path));
    let tasks = observe::read_tasks(read);
    let mut handled = observe::handled_of_tasks(store)?;
    handled.extend(store.cycles().read_waiting_reports()?.handles);
    let steps = background::look::remove_handled(store, observe::list_due_steps(&tasks, config, read))?;
    let model = observe::model_state(store, config, now)?;
    let observed = Situation {
        messages: observe::remove_stopped(store.inbox().list_queued_messages()?, &stopped_chats),
        open_cycles: store.cycles().open_cycles()?,
        reminders: store.reminders().list_reminders()?,
        handled,
        tells_left: observe::count_tells_left(store, (config, now), config.owner_chat)?,
        guests: observe::list_guests(store, (config, now), &tasks)?,
        quiet_hours: config.quiet_hours,
        holds_nudges: observe::holds_nudges(&tasks, (config, now), read),
        own_work: [background::look::list_due_jobs(store)?, steps].concat(),
        to_reflect: reflection::look::find_due_days(store, config, now)?,
        tasks,
        undos: store.undos().open_undos()?,
        pressed: store.reminders().open_nudges()?,
        is_on_duty: lease::is_on_duty(config),
        is_stopped: store.chats().find_stop_order()?.is_some(),
        stopped_chats,
        ..Situation::new_quiet(now, config.timezone, config.owner_chat, model)
    };
    let mut due: BTreeSet<String> = orient::list_due_reasons(&observed).iter().flat_map(list_names).collect();
    let mut standings = BTreeMap::new();
    for (_, standing) in orient::list_standings(&observed) {
        *standings.entry(standing).or_default() += 1;
    }
    if config.telegram_token.is_some() {
        due.extend(store.outbox().has_deliverable(now)?.then(|| "deliveries".to_owned()));
    }
    if observed.is_stopped {
        return Ok(Waiting { due, messages: standings, next_at: None });
    }
    let is_set_back = store.is_set_back(now)? || observed.reminders.iter().any(|reminder| reminder.is_set_back(now));
    due.extend(is_set_back.then(|| "a clock that was set back".to_owned()));
    due.extend(observe::is_zone_new(store, config, now)?.then(|| "a new time zone".to_owned()));
    due.extend(jobs::look::is_any_due(store, config, now)?.then(|| "a standing job".to_owned()));
    if config.telegram_token.is_some() {
        due.extend(store.outbox().has_doubtful(now)?.then(|| "uncertain deliveries".to_owned()));
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

/// Names each message separately, so that answering one of two counts as progress.
fn list_names(reason: &Reason) -> Vec<String> {
    match reason {
        Reason::Messages { ids, .. } | Reason::Stale { ids, .. } => {
            ids.iter().map(|id| format!("message {id}")).collect()
        }
        other => vec![other.describe()],
    }
}
