//! `health status`: a one-screen overview, gathered as a value and then rendered.

mod files;
mod questions;
mod screen;

use chrono::{DateTime, Utc};

use reveille_base::{
    disk::{self, Reserve},
    redact::Redactor,
};
use reveille_config::Config;
use reveille_git::Repo;
use reveille_index::embed;
use reveille_store::{Cap, CycleRow, ModelBreaker, Stopped, Store, Undelivered, UpkeepKind};

pub use files::OpenFile;
pub use questions::OpenQuestion;

use super::{
    checks::{machines::describe_duty, wakes::MANY},
    finding::Trouble,
    scene::Scene,
};
use crate::{
    RunMode,
    overview::{Overview, Queue, Viewer},
};

/// The overview. Unreadable parts are `None`, and `problems` gives the reasons.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HealthStatus {
    /// Time of the overview.
    pub at: DateTime<Utc>,
    /// The workspace's path.
    pub workspace: String,
    /// The last started cycle.
    pub last_wake: Option<LastWake>,
    /// Incoming messages.
    pub queue: Option<Queue>,
    /// Pending and failed files of queued messages.
    pub files: Vec<OpenFile>,
    /// Questions that wait for an answer.
    pub questions: Vec<OpenQuestion>,
    /// State of the wake lock.
    pub lock: Lock,
    /// The machine on duty, if several share the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<String>,
    /// The stop of all work, with its start.
    pub stopped: Option<Stopped>,
    /// The next reminder.
    pub next_reminder: Option<NextReminder>,
    /// Unconfirmed outgoing messages, with their states and errors.
    pub undelivered: Vec<Undelivered>,
    /// Their total number, including unlisted ones.
    #[serde(skip)]
    pub undelivered_count: usize,
    /// Time of the last successful poll of Telegram.
    pub heard_at: Option<DateTime<Utc>>,
    /// The memory's repository.
    pub git: Option<Git>,
    /// Space on the workspace's disk.
    pub disk: Option<Disk>,
    /// The answering model.
    pub model: ModelReport,
    /// Costs since the start of the person's day, in US dollars.
    pub spent_today_usd: f64,
    /// Daily budget, in US dollars.
    pub daily_budget_usd: f64,
    /// Costs since the start of the person's month, in US dollars.
    pub spent_month_usd: f64,
    /// Monthly budget, in US dollars. `None` without a limit.
    pub monthly_budget_usd: Option<f64>,
    /// Part of the monthly costs reserved for requests without a known end, in US dollars.
    pub reserved_usd: f64,
    /// True if the database couldn't be read to the end: empty fields may say nothing then.
    #[serde(skip)]
    pub is_store_unread: bool,
    /// Unreadable parts with the reasons.
    pub problems: Vec<String>,
    /// The method of searching the memory, in words.
    pub search: String,
}

/// The last started cycle.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LastWake {
    /// Its id, for `wake show`.
    pub cycle_id: String,
    /// Time of its start.
    pub started_at: Option<DateTime<Utc>>,
    /// Time of its end.
    pub ended_at: Option<DateTime<Utc>>,
    /// `running`, `waiting`, `parked`, `done`, `failed` or `abandoned`.
    pub state: &'static str,
    /// Reasons of the wake.
    pub reasons: Vec<String>,
    /// The commit's id.
    pub commit: Option<String>,
    /// The failure.
    pub error: Option<String>,
}

/// State of the wake lock.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Lock {
    /// `true` if the wake lock is held.
    pub is_held: bool,
    /// The holder's process id by the lock file.
    pub pid: Option<u32>,
    /// The holder's start, RFC 3339.
    pub since: Option<String>,
    /// The cycle in progress.
    pub cycle_id: Option<String>,
}

/// The next reminder.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NextReminder {
    /// Its time.
    pub at: DateTime<Utc>,
    /// Its text.
    pub text: String,
}

/// State of the memory's repository.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Git {
    /// The branch for the commits of wakes.
    pub branch: String,
    /// State of HEAD.
    pub condition: String,
    /// `true` if there is a remote.
    pub has_remote: bool,
    /// Number of commits that the remote lacks. `None` before the first contact.
    pub ahead: Option<usize>,
    /// Number of commits that this machine lacks.
    pub behind: Option<usize>,
    /// Id of the last commit.
    pub commit: Option<String>,
    /// Subject line of the last commit.
    pub subject: Option<String>,
    /// Time of the last commit.
    pub committed_at: Option<DateTime<Utc>>,
}

/// Space on the workspace's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Disk {
    /// Writable space, in bytes.
    pub free_bytes: u64,
    /// Reserve in bytes, below which the bot stops fetching messages; 0 disables it.
    pub reserve_bytes: u64,
    /// `true` if the free space is below the reserve.
    pub is_short: bool,
}

/// The configured model.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// `true` if it may be asked now.
    pub is_available: bool,
    /// Earliest time of the next request.
    pub not_before: Option<DateTime<Utc>>,
    /// The last connection error.
    pub error: Option<String>,
    /// Start of its last answered request. `None` if it has never answered.
    pub answered_at: Option<DateTime<Utc>>,
    /// The exhausted budget, if any: `day` or `month`.
    pub over_budget: Option<&'static str>,
    /// Number of chats whose last request was too large for the remaining budget.
    pub chats_without_room: usize,
    /// Preferred models that can't be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

/// A model in trouble, so the next of the chain is asked.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PassedOver {
    /// Its name.
    pub name: String,
    /// Start of the trouble.
    pub since: Option<DateTime<Utc>>,
    /// Time of the next try.
    pub not_before: Option<DateTime<Utc>>,
    /// The error.
    pub error: String,
}

impl From<&ModelBreaker> for PassedOver {
    fn from(it: &ModelBreaker) -> Self {
        Self { name: it.model.clone(), since: it.since, not_before: it.not_before, error: it.error.clone() }
    }
}

/// Gathers the overview without writing anything.
pub fn read_status(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthStatus {
    let scene = Scene::load(config, redactor, now, RunMode::Dry);
    let holder = scene.lock.holder.as_ref().filter(|_| scene.lock.is_held);
    let mut status = HealthStatus {
        at: now,
        workspace: config.workspace_dir.display().to_string(),
        last_wake: None,
        queue: None,
        files: Vec::new(),
        questions: Vec::new(),
        lock: Lock {
            is_held: scene.lock.is_held,
            pid: holder.map(|holder| holder.pid),
            since: holder.map(|holder| holder.started_at.clone()),
            cycle_id: holder.and_then(|holder| holder.cycle_id.clone()),
        },
        machines: describe_duty(config, now),
        stopped: None,
        next_reminder: None,
        undelivered: Vec::new(),
        undelivered_count: 0,
        heard_at: None,
        git: None,
        disk: None,
        model: ModelReport {
            name: config.effective_model().to_owned(),
            is_available: true,
            not_before: None,
            error: None,
            answered_at: None,
            over_budget: None,
            chats_without_room: 0,
            passed_over: Vec::new(),
        },
        spent_today_usd: 0.0,
        daily_budget_usd: config.daily_budget_usd,
        spent_month_usd: 0.0,
        monthly_budget_usd: config.monthly_budget_usd,
        reserved_usd: 0.0,
        is_store_unread: false,
        problems: Vec::new(),
        search: describe_search(config, None),
    };
    if let Err(trouble) = look_at_store(&scene, &mut status) {
        let why = scene.store_error().map_or_else(|| trouble.to_string(), ToString::to_string);
        status.is_store_unread = true;
        status.problems.push(redactor.redact(&why));
    }
    match disk::free_bytes(&config.workspace_dir) {
        Ok(free_bytes) => status.disk = Some(Disk::new(free_bytes, config.disk_reserve)),
        Err(error) => status.problems.push(format!("the disk's free space can't be read: {error}")),
    }
    match look_at_repo(&scene) {
        Ok(git) => status.git = git,
        Err(trouble) => {
            let why = scene.repo_error().map_or_else(|| trouble.to_string(), ToString::to_string);
            status.problems.push(redactor.redact(&why));
        }
    }
    status
}

fn look_at_store(scene: &Scene<'_>, status: &mut HealthStatus) -> Result<(), Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(());
    };
    // These are shown even if a damaged row elsewhere ends the look.
    status.stopped = store.chats().find_stop_order()?;
    status.last_wake = store.cycles().last_cycle()?.map(last_wake);
    status.files = store.attachments().open_files()?.into_iter().map(OpenFile::from).collect();
    let Overview { queue, outstanding, questions, budget, model, .. } =
        store.with_snapshot(|| Overview::read(store, scene.config, scene.now, Viewer::Console))?;
    status.queue = Some(queue);
    status.questions = questions.into_iter().map(OpenQuestion::from).collect();
    let wakes = store.maintenance().read_upkeep(UpkeepKind::Wake)?;
    if wakes.failures >= MANY {
        let (n, why) = (wakes.failures, wakes.error.as_deref().unwrap_or_default());
        status.problems.push(format!("{n} wakes in a row have failed: {why} (health check says how to fix it)"));
    }
    let odd = store.odd_rows()?;
    status.problems.extend(odd.iter().map(|row| format!("{} {} {}", row.table, row.id, row.describe())));
    let reminder = store.reminders().list_reminders()?.into_iter().next();
    status.next_reminder =
        reminder.map(|reminder| NextReminder { at: reminder.what.next_at, text: reminder.what.text });
    status.undelivered = store.outbox().list_undelivered_messages()?;
    status.undelivered_count = outstanding.total();
    status.heard_at = scene.config.bot_id().map_or(Ok(None), |bot_id| store.inbox().find_last_poll_time(bot_id))?;
    let passed_over = model.passed_over.iter().filter_map(|it| it.trouble.as_ref());
    let trouble = model.trouble;
    status.model = ModelReport {
        is_available: model.is_available,
        passed_over: passed_over.map(PassedOver::from).collect(),
        over_budget: model.over_budget.map(Cap::name),
        chats_without_room: model.chats_without_room,
        not_before: trouble.as_ref().and_then(|it| it.not_before).filter(|at| *at > scene.now),
        error: trouble.map(|it| it.error),
        answered_at: store.ledger().last_answer(&model.name)?,
        name: model.name,
    };
    status.search = describe_search(scene.config, Some(store));
    status.spent_today_usd = budget.today_usd;
    status.spent_month_usd = budget.month_usd;
    status.reserved_usd = budget.reserved_usd;
    Ok(())
}

/// Describes the method of searching. Asks no embedder, but reports the last wake's experience.
fn describe_search(config: &Config, store: Option<&Store>) -> String {
    let embedder = match embed::create_embedder(config) {
        Ok(None) => return "by words alone (EMBED_MODEL isn't set)".to_owned(),
        Ok(Some(embedder)) => embedder,
        Err(error) => return format!("by words alone: {error}"),
    };
    let trouble = store
        .and_then(|store| store.maintenance().read_upkeep(UpkeepKind::Embed).ok())
        .filter(|upkeep| upkeep.failures > 0);
    let is_allowed =
        store.and_then(|store| store.maintenance().allowed_embedder().ok()?).as_deref() == Some(embedder.id());
    match (embedder.destination(), trouble.and_then(|upkeep| upkeep.error)) {
        (Some(to), _) if !is_allowed => {
            format!("by words alone: {to} isn't allowed to receive texts (wake memory embed allow)")
        }
        (_, Some(why)) => format!("by words, and by meaning where already embedded: {why}"),
        (_, None) => format!("by meaning ({})", embedder.id()),
    }
}

fn last_wake(row: CycleRow) -> LastWake {
    LastWake {
        cycle_id: row.cycle.id,
        started_at: row.started_at,
        ended_at: row.ended_at,
        state: row.state.as_str(),
        reasons: row.cycle.reasons,
        commit: row.commit_id,
        error: row.error,
    }
}

fn look_at_repo(scene: &Scene<'_>) -> Result<Option<Git>, Trouble> {
    scene.repo()?.map(read_git).transpose()
}

fn read_git(repo: &Repo) -> Result<Git, Trouble> {
    let last = repo.history().list_commits(1)?.into_iter().next();
    let apart = repo.count_ahead_behind()?;
    Ok(Git {
        branch: repo.branch().to_owned(),
        condition: repo.read_condition()?.to_string(),
        has_remote: repo.has_remote(),
        ahead: apart.map(|(ahead, _)| ahead),
        behind: apart.map(|(_, behind)| behind),
        commit: last.as_ref().map(|commit| commit.id.to_string()),
        subject: last.as_ref().map(|commit| commit.subject.clone()),
        committed_at: last.map(|commit| commit.at),
    })
}

impl Disk {
    fn new(free_bytes: u64, reserve: Reserve) -> Self {
        Self { free_bytes, reserve_bytes: reserve.bytes(), is_short: reserve.is_undercut_by(free_bytes) }
    }
}

#[cfg(test)]
mod tests;
