//! `health status`: one screen for a person who asks how it is going. Gathered as a value, then rendered.

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
    checks::{machines::who_works, wakes::MANY},
    finding::Trouble,
    scene::Scene,
};
use crate::overview::{Overview, Queue, Viewer};

/// How it is going. Parts that can't be looked at are none, and `problems` says why.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HealthStatus {
    /// When this was.
    pub at: DateTime<Utc>,
    /// Where everything is kept.
    pub workspace: String,
    /// The cycle that began last.
    pub last_wake: Option<LastWake>,
    /// Messages in.
    pub queue: Option<Queue>,
    /// Files of queued messages that are on their way or were given up.
    pub files: Vec<OpenFile>,
    /// What waits for a person's word.
    pub questions: Vec<OpenQuestion>,
    /// Whether a wake is at work.
    pub lock: Lock,
    /// Who works, where several machines share the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<String>,
    /// That all work was stopped, and since when.
    pub stopped: Option<Stopped>,
    /// The next reminder.
    pub next_reminder: Option<NextReminder>,
    /// Messages out that weren't confirmed, each with its state and reason.
    pub undelivered: Vec<Undelivered>,
    /// How many there are of them, beyond those that are listed too.
    #[serde(skip)]
    pub undelivered_count: usize,
    /// When a poll of Telegram was last completed.
    pub heard_at: Option<DateTime<Utc>>,
    /// The memory's repository.
    pub git: Option<Git>,
    /// The room on the workspace's disk.
    pub disk: Option<Disk>,
    /// Who answers.
    pub model: ModelReport,
    /// What was spent since the person's day began, in US dollars.
    pub spent_today_usd: f64,
    /// What may be spent in a day, in US dollars.
    pub daily_budget_usd: f64,
    /// What was spent since the person's month began, in US dollars.
    pub spent_month_usd: f64,
    /// What may be spent in a month, in US dollars; none: no bound.
    pub monthly_budget_usd: Option<f64>,
    /// What of the month's is only set aside for requests whose end isn't known, in US dollars.
    pub reserved_usd: f64,
    /// What couldn't be looked at, and why.
    pub problems: Vec<String>,
    /// How the memory is searched, in words.
    pub search: String,
}

/// The last wake's cycle.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LastWake {
    /// Its id, for `wake show`.
    pub cycle_id: String,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// `running`, `waiting`, `parked`, `done`, `failed` or `abandoned`.
    pub state: &'static str,
    /// Why it woke.
    pub reasons: Vec<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Who is at work.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Lock {
    /// Whether the wake lock is held.
    pub is_held: bool,
    /// By whom, as the lock file says.
    pub pid: Option<u32>,
    /// Since when, RFC 3339.
    pub since: Option<String>,
    /// The cycle under way.
    pub cycle_id: Option<String>,
}

/// What the person will be reminded of next.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NextReminder {
    /// When.
    pub at: DateTime<Utc>,
    /// Of what.
    pub text: String,
}

/// Where the memory's repository stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Git {
    /// The branch that wakes commit on.
    pub branch: String,
    /// Where HEAD is.
    pub condition: String,
    /// Whether there is a remote.
    pub has_remote: bool,
    /// Commits that the remote lacks; none before it was seen.
    pub ahead: Option<usize>,
    /// Commits that we lack.
    pub behind: Option<usize>,
    /// The last commit's id.
    pub commit: Option<String>,
    /// Its first line.
    pub subject: Option<String>,
    /// When it was made.
    pub committed_at: Option<DateTime<Utc>>,
}

/// The room on the workspace's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Disk {
    /// What we may still write, in bytes.
    pub free_bytes: u64,
    /// With less than this the bot fetches no messages; 0: it always does.
    pub reserve_bytes: u64,
    /// Whether there is less.
    pub is_short: bool,
}

/// The configured model.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// Whether it may be asked now.
    pub is_available: bool,
    /// Not asked before.
    pub not_before: Option<DateTime<Utc>>,
    /// Why it couldn't be reached last.
    pub error: Option<String>,
    /// When its last answer was asked for; none: it wasn't tried yet, or never answered.
    pub answered_at: Option<DateTime<Utc>>,
    /// The budget that is spent, if one is: `day` or `month`.
    pub over_budget: Option<&'static str>,
    /// Of how many chats the last request had no room under what is left of a budget.
    pub chats_without_room: usize,
    /// The models that are preferred to it and can't be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

/// A model of the chain that is in trouble, so that the next one is asked.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PassedOver {
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: Option<DateTime<Utc>>,
    /// When it is tried again.
    pub not_before: Option<DateTime<Utc>>,
    /// Why.
    pub error: String,
}

impl From<&ModelBreaker> for PassedOver {
    fn from(it: &ModelBreaker) -> Self {
        Self { name: it.model.clone(), since: it.since, not_before: it.not_before, error: it.error.clone() }
    }
}

/// Looks, without writing anything.
pub fn look(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> HealthStatus {
    let scene = Scene::look(config, redactor, now, true);
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
        machines: who_works(config, now),
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
        problems: Vec::new(),
        search: search(config, None),
    };
    if let Err(trouble) = look_at_store(&scene, &mut status) {
        let why = scene.store_error().map_or_else(|| trouble.to_string(), ToString::to_string);
        status.problems.push(redactor.redact(&why));
    }
    match disk::free_bytes(&config.workspace_dir) {
        Ok(free_bytes) => status.disk = Some(Disk::of(free_bytes, config.disk_reserve)),
        Err(error) => status.problems.push(format!("the disk can't be asked for its free space: {error}")),
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
    let Overview { stopped, last_cycle, queue, outstanding, questions, budget, model, .. } =
        store.reading(|| Overview::look(store, scene.config, scene.now, Viewer::Console))?;
    status.last_wake = last_cycle.map(last_wake);
    status.queue = Some(queue);
    status.stopped = stopped;
    status.files = store.open_files()?.into_iter().map(OpenFile::from).collect();
    status.questions = questions.into_iter().map(OpenQuestion::from).collect();
    let wakes = store.upkeep(UpkeepKind::Wake)?;
    if wakes.failures >= MANY {
        let (n, why) = (wakes.failures, wakes.error.as_deref().unwrap_or_default());
        status.problems.push(format!("{n} wakes in a row have failed: {why} (health check says how to fix it)"));
    }
    let odd = store.odd_rows()?;
    status.problems.extend(odd.iter().map(|row| format!("{} {} {}", row.table, row.id, row.in_words())));
    let reminder = store.reminders()?.into_iter().next();
    status.next_reminder =
        reminder.map(|reminder| NextReminder { at: reminder.what.next_at, text: reminder.what.text });
    status.undelivered = store.undelivered()?;
    status.undelivered_count = outstanding.total();
    status.heard_at = scene.config.bot_id().map_or(Ok(None), |bot_id| store.last_heard(bot_id))?;
    let passed_over = model.passed_over.iter().filter_map(|it| it.trouble.as_ref());
    let trouble = model.trouble;
    status.model = ModelReport {
        is_available: model.is_available,
        passed_over: passed_over.map(PassedOver::from).collect(),
        over_budget: model.over_budget.map(Cap::name),
        chats_without_room: model.chats_without_room,
        not_before: trouble.as_ref().and_then(|it| it.not_before).filter(|at| *at > scene.now),
        error: trouble.map(|it| it.error),
        answered_at: store.last_answer(&model.name)?,
        name: model.name,
    };
    status.search = search(scene.config, Some(store));
    status.spent_today_usd = budget.today_usd;
    status.spent_month_usd = budget.month_usd;
    status.reserved_usd = budget.reserved_usd;
    Ok(())
}

/// How the memory is searched. Nothing is asked for it: how the last wake fared is told.
fn search(config: &Config, store: Option<&Store>) -> String {
    let embedder = match embed::of(config) {
        Ok(None) => return "by words alone (EMBED_MODEL isn't set)".to_owned(),
        Ok(Some(embedder)) => embedder,
        Err(error) => return format!("by words alone: {error}"),
    };
    let trouble = store.and_then(|store| store.upkeep(UpkeepKind::Embed).ok()).filter(|upkeep| upkeep.failures > 0);
    let is_allowed = store.and_then(|store| store.allowed_embedder().ok()?).as_deref() == Some(embedder.id());
    match (embedder.leaves_for(), trouble.and_then(|upkeep| upkeep.error)) {
        (Some(to), _) if !is_allowed => {
            format!("by words alone: {to} isn't allowed to get texts (wake memory embed allow)")
        }
        (_, Some(why)) => format!("by words, and by meaning as far as it was embedded: {why}"),
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
    scene.repo()?.map(git).transpose()
}

fn git(repo: &Repo) -> Result<Git, Trouble> {
    let last = repo.log(1)?.into_iter().next();
    let apart = repo.ahead_behind()?;
    Ok(Git {
        branch: repo.branch().to_owned(),
        condition: repo.condition()?.to_string(),
        has_remote: repo.has_remote(),
        ahead: apart.map(|(ahead, _)| ahead),
        behind: apart.map(|(_, behind)| behind),
        commit: last.as_ref().map(|commit| commit.id.to_string()),
        subject: last.as_ref().map(|commit| commit.subject.clone()),
        committed_at: last.map(|commit| commit.at),
    })
}

impl Disk {
    fn of(free_bytes: u64, reserve: Reserve) -> Self {
        Self { free_bytes, reserve_bytes: reserve.bytes(), is_short: reserve.is_broken_into(free_bytes) }
    }
}

#[cfg(test)]
mod tests;
