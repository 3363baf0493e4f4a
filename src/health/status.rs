//! `health status`: one screen for a person who asks how it is going. Gathered as a value, then rendered.

mod files;
mod questions;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

pub use files::OpenFile;
pub use questions::OpenQuestion;

use super::{
    finding::Trouble,
    scene::Scene,
    words::{ago, local, size},
};
use crate::{
    config::{CONSOLE_CHAT_ID, Config},
    cycle::{
        budget,
        orient::{count, is_answerable},
    },
    disk::{self, Reserve},
    queue::{Cap, CycleRow, Prospect, Stopped, Store, Undelivered, UpkeepKind},
    redact::Redactor,
    repo::Repo,
};

/// Files that are late and are shown; the rest is counted.
const MAX_SHOWN: usize = 5;
/// Undelivered messages that are shown, each with its reason; the rest is counted.
const MAX_UNDELIVERED: usize = 100;
/// How much of a text is shown, in characters.
const MAX_TEXT_CHARS: usize = 80;

/// How it is going. Parts that can't be looked at are none, and `problems` says why.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Overview {
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
    pub mind: MindState,
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

/// Messages that wait for an answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Queue {
    /// That the present mind can answer now.
    pub waiting: usize,
    /// That wait for another mind, or for its return.
    pub held: usize,
    /// That wait for a file of theirs to be fetched or listened to.
    pub awaiting_files: usize,
    /// That too many wakes failed on: a person decides on them.
    pub given_up: usize,
    /// When the oldest of all that wait came.
    pub oldest_at: Option<DateTime<Utc>>,
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

/// The configured mind.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MindState {
    /// Its name.
    pub name: String,
    /// Whether it may be asked now.
    pub is_available: bool,
    /// Not asked before.
    pub not_before: Option<DateTime<Utc>>,
    /// Why it couldn't be reached last.
    pub error: Option<String>,
    /// The budget that is spent, if one is: `day` or `month`.
    pub over_budget: Option<&'static str>,
    /// Of how many chats the last request had no room under what is left of a budget.
    pub chats_without_room: usize,
}

/// Looks, without writing anything.
pub fn overview(config: &Config, redactor: &Redactor, now: DateTime<Utc>) -> Overview {
    let scene = Scene::look(config, redactor, now, true);
    let holder = scene.lock.holder.as_ref().filter(|_| scene.lock.is_held);
    let mut overview = Overview {
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
        stopped: None,
        next_reminder: None,
        undelivered: Vec::new(),
        undelivered_count: 0,
        heard_at: None,
        git: None,
        disk: None,
        mind: MindState {
            name: config.effective_model().to_owned(),
            is_available: true,
            not_before: None,
            error: None,
            over_budget: None,
            chats_without_room: 0,
        },
        spent_today_usd: 0.0,
        daily_budget_usd: config.daily_budget_usd,
        spent_month_usd: 0.0,
        monthly_budget_usd: config.monthly_budget_usd,
        reserved_usd: 0.0,
        problems: Vec::new(),
    };
    if let Err(trouble) = look_at_store(&scene, &mut overview) {
        let why = scene.store_error().map_or_else(|| trouble.to_string(), ToString::to_string);
        overview.problems.push(redactor.redact(&why));
    }
    match disk::free_bytes(&config.workspace_dir) {
        Ok(free_bytes) => overview.disk = Some(Disk::of(free_bytes, config.disk_reserve)),
        Err(error) => overview.problems.push(format!("the disk can't be asked for its free space: {error}")),
    }
    match look_at_repo(&scene) {
        Ok(git) => overview.git = git,
        Err(trouble) => {
            let why = scene.repo_error().map_or_else(|| trouble.to_string(), ToString::to_string);
            overview.problems.push(redactor.redact(&why));
        }
    }
    overview
}

fn look_at_store(scene: &Scene<'_>, overview: &mut Overview) -> Result<(), Trouble> {
    let Some(store) = scene.store()? else {
        return Ok(());
    };
    overview.last_wake = store.last_cycle()?.map(last_wake);
    overview.queue = Some(queue(scene, store)?);
    overview.stopped = store.stopped()?;
    overview.files = store.open_files()?.into_iter().map(OpenFile::from).collect();
    overview.questions = store.pending_approvals(scene.now)?.into_iter().map(OpenQuestion::from).collect();
    let reminder = store.reminders()?.into_iter().next();
    overview.next_reminder =
        reminder.map(|reminder| NextReminder { at: reminder.what.next_at, text: reminder.what.text });
    overview.undelivered = store.undelivered()?;
    overview.undelivered_count = store.outstanding()?.total();
    overview.heard_at = scene.config.bot_id().map_or(Ok(None), |bot_id| store.last_heard(bot_id))?;
    let upkeep = store.upkeep(UpkeepKind::Model)?;
    let mind = scene.mind(store)?;
    overview.mind = MindState {
        is_available: mind.is_available,
        over_budget: mind.over_budget.map(Cap::name),
        chats_without_room: mind.no_room.len(),
        not_before: upkeep.not_before.filter(|at| *at > scene.now),
        error: upkeep.error,
        ..overview.mind.clone()
    };
    let budget = scene.budget(store)?;
    overview.spent_today_usd = budget.today_usd;
    overview.spent_month_usd = budget.month_usd;
    overview.reserved_usd = budget.reserved_usd;
    Ok(())
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

fn queue(scene: &Scene<'_>, store: &Store) -> Result<Queue, Trouble> {
    let mind = scene.mind(store)?;
    let queued = store.queued()?;
    let (all, oldest_at) = store.queue_depth()?;
    let answerable = queued.iter().filter(|message| mind.is_available && is_answerable(message, &mind, scene.now));
    let waiting = answerable.count();
    let awaiting_files = queued.iter().filter(|message| message.awaits_files).count();
    let held = usize::try_from(all).unwrap_or(0).saturating_sub(waiting + awaiting_files);
    Ok(Queue { waiting, held, awaiting_files, given_up: store.dead_letters()?.len(), oldest_at })
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

impl Overview {
    /// The screen.
    pub fn render(&self, tz: Tz) -> String {
        let lines = [
            ("workspace", self.workspace.clone()),
            ("last wake", self.last_wake_line()),
            ("now", self.lock_line()),
            ("queue", self.queue_line()),
            ("reminder", self.reminder_line(tz)),
            ("outbox", self.outbox_line()),
            ("telegram", self.heard_line()),
            ("memory", self.git_line()),
            ("disk", self.disk_line()),
            ("mind", self.mind_line()),
            ("cost", self.cost_line()),
        ];
        let mut text: String = lines.iter().map(|(name, what)| format!("{name:<10} {what}\n")).collect();
        for question in &self.questions {
            text.push_str(&format!("{:<10} {}\n", "question", questions::line(question, self.at)));
        }
        for file in self.files.iter().take(MAX_SHOWN) {
            text.push_str(&format!("{:<10} {}\n", "file", files::line(file, self.at)));
        }
        if let Some(more @ 1..) = self.files.len().checked_sub(MAX_SHOWN) {
            text.push_str(&format!("{:<10} and {more} more\n", "file"));
        }
        for problem in &self.problems {
            text.push_str(&format!("{:<10} {problem}\n", "problem"));
        }
        text
    }

    fn last_wake_line(&self) -> String {
        let Some(wake) = &self.last_wake else {
            return "none yet: wake --once".to_owned();
        };
        let when = wake.started_at.map_or_else(|| "at an unknown time".to_owned(), |at| ago(at, self.at));
        let why = short(&wake.reasons.join("; "));
        let error = wake.error.as_deref().map(|error| format!(": {}", short(error))).unwrap_or_default();
        // Only what was committed can be shown.
        let show = wake.commit.as_ref().map(|_| format!("; wake show {}", wake.cycle_id)).unwrap_or_default();
        format!("{when}, {}{error} ({why}){show}", wake.state)
    }

    fn lock_line(&self) -> String {
        let line = self.holder_line();
        let Some(stopped) = &self.stopped else { return line };
        let since = stopped.at.map(|at| format!(" {}", ago(at, self.at))).unwrap_or_default();
        format!("stopped{since} (wake resume goes on); {line}")
    }

    fn holder_line(&self) -> String {
        match (self.lock.is_held, self.lock.pid) {
            (false, _) => "asleep".to_owned(),
            (true, None) => "a wake is at work".to_owned(),
            (true, Some(pid)) => {
                let cycle = self.lock.cycle_id.as_deref().map(|id| format!(", {id}")).unwrap_or_default();
                format!("a wake is at work (pid {pid}{cycle})")
            }
        }
    }

    fn queue_line(&self) -> String {
        let Some(queue) = &self.queue else {
            return "nothing yet".to_owned();
        };
        let mut line = match queue.waiting {
            0 => "empty".to_owned(),
            n => format!("{n} waiting"),
        };
        if queue.held > 0 {
            line.push_str(&format!(", {} kept until a mind can answer", queue.held));
        }
        if queue.awaiting_files > 0 {
            line.push_str(&format!(", {} waiting for files", queue.awaiting_files));
        }
        if queue.given_up > 0 {
            line.push_str(&format!(", {} given up (wake queue list)", queue.given_up));
        }
        if let Some(at) = queue.oldest_at {
            line.push_str(&format!(", the oldest came {}", ago(at, self.at)));
        }
        line
    }

    fn reminder_line(&self, tz: Tz) -> String {
        match &self.next_reminder {
            None => "none".to_owned(),
            Some(next) => format!("{} ({}): {}", local(next.at, tz), ago(next.at, self.at), short(&next.text)),
        }
    }

    fn outbox_line(&self) -> String {
        let mut lines: Vec<String> = self.undelivered.iter().take(MAX_UNDELIVERED).map(undelivered_line).collect();
        match self.undelivered_count.saturating_sub(lines.len()) {
            0 if lines.is_empty() => lines.push("everything is delivered".to_owned()),
            0 => {}
            more => lines.push(format!("and {more} more")),
        }
        lines.join(&format!("\n{:<10} ", ""))
    }

    fn heard_line(&self) -> String {
        self.heard_at.map_or_else(|| "never heard".to_owned(), |at| format!("last heard {}", ago(at, self.at)))
    }

    fn git_line(&self) -> String {
        let Some(git) = &self.git else {
            return "none yet".to_owned();
        };
        let remote = match (git.has_remote, git.ahead, git.behind) {
            (false, ..) => "no remote".to_owned(),
            (true, Some(0), Some(0)) => "the remote has everything".to_owned(),
            (true, Some(ahead), Some(behind)) => format!("{ahead} ahead, {behind} behind the remote"),
            (true, ..) => "the remote wasn't seen yet".to_owned(),
        };
        let commit = match (&git.commit, git.committed_at) {
            (Some(id), Some(at)) => {
                let id: String = id.chars().take(8).collect();
                let subject = short(git.subject.as_deref().unwrap_or_default());
                format!("{id} {} {subject}", ago(at, self.at))
            }
            _ => "no commit yet".to_owned(),
        };
        format!("{}, {}; {remote}; {commit}", git.branch, git.condition)
    }

    fn cost_line(&self) -> String {
        let today = (self.spent_today_usd, self.daily_budget_usd);
        budget::describe(today, (self.spent_month_usd, self.monthly_budget_usd), self.reserved_usd)
    }

    fn disk_line(&self) -> String {
        match self.disk {
            None => "not known".to_owned(),
            Some(disk) if disk.is_short => format!(
                "{} free, less than the reserve of {}: the bot fetches no messages, Telegram keeps them for a day",
                size(disk.free_bytes),
                size(disk.reserve_bytes)
            ),
            Some(disk) => format!("{} free", size(disk.free_bytes)),
        }
    }

    fn mind_line(&self) -> String {
        let name = &self.mind.name;
        match (self.mind.is_available, self.mind.not_before, &self.mind.error) {
            (true, _, None) if self.mind.chats_without_room > 0 => format!(
                "{name}; what is left of a budget has no room for the next request of {}",
                count(self.mind.chats_without_room, "chat")
            ),
            (true, _, None) => name.clone(),
            (_, not_before, Some(error)) => {
                let next = not_before.map(|at| format!("; asked again {}", ago(at, self.at))).unwrap_or_default();
                format!("{name}, which couldn't be reached: {}{next}", short(error))
            }
            (false, _, None) if self.mind.over_budget == Some(Cap::Month.name()) => {
                format!("{name}, not asked before the month is over: its budget is spent")
            }
            (false, _, None) => format!("{name}, not asked before midnight: the budget is spent"),
        }
    }
}

fn undelivered_line(message: &Undelivered) -> String {
    let to = match message.chat_id {
        CONSOLE_CHAT_ID => "the console".to_owned(),
        chat => format!("chat {chat}"),
    };
    let why = message.error.as_deref().map(|error| format!(": {}", short(error))).unwrap_or_default();
    let next = message.not_before.as_deref().map(|at| format!(", not before {at}")).unwrap_or_default();
    let state = match message.prospect() {
        Prospect::InDoubt => "sent twice without Telegram's word, may have come",
        Prospect::Tried | Prospect::Refused => message.state.as_str(),
    };
    format!("{} to {to}: {state}{why}{next}", message.id)
}

/// One line of a text, cut off.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TEXT_CHARS {
        return line;
    }
    let cut: String = line.chars().take(MAX_TEXT_CHARS - 1).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::parse_time, queue::PartState};

    fn at(text: &str) -> Option<DateTime<Utc>> {
        parse_time(text)
    }

    fn nothing_yet() -> Overview {
        Overview {
            at: at("2026-11-21T12:00:00Z").unwrap(),
            workspace: "/home/me/.local/share/reveille".to_owned(),
            last_wake: None,
            queue: None,
            files: Vec::new(),
            questions: Vec::new(),
            lock: Lock { is_held: false, pid: None, since: None, cycle_id: None },
            stopped: None,
            next_reminder: None,
            undelivered: Vec::new(),
            undelivered_count: 0,
            heard_at: None,
            git: None,
            disk: Some(Disk::of(3 << 30, Reserve::of_mib(100))),
            mind: MindState {
                name: "offline".to_owned(),
                is_available: true,
                not_before: None,
                error: None,
                over_budget: None,
                chats_without_room: 0,
            },
            spent_today_usd: 0.0,
            daily_budget_usd: 5.0,
            spent_month_usd: 0.0,
            monthly_budget_usd: None,
            reserved_usd: 0.0,
            problems: Vec::new(),
        }
    }

    #[test]
    fn before_the_first_wake() {
        insta::assert_snapshot!(nothing_yet().render(chrono_tz::UTC), @"
        workspace  /home/me/.local/share/reveille
        last wake  none yet: wake --once
        now        asleep
        queue      nothing yet
        reminder   none
        outbox     everything is delivered
        telegram   never heard
        memory     none yet
        disk       3.0 GiB free
        mind       offline
        cost       0.00 of 5.00 USD today, 0.00 this month
        ");
    }

    #[test]
    fn what_is_not_delivered_is_listed_and_the_rest_counted() {
        let message = |id: i64, state, is_repeat| Undelivered {
            id,
            chat_id: 7,
            state,
            is_repeat,
            created_at: "2026-11-21T11:00:00.000Z".to_owned(),
            not_before: None,
            error: Some("no answer".to_owned()),
            attempts: 2,
        };
        let undelivered = vec![message(1, PartState::Unknown, true), message(2, PartState::Unknown, false)];
        let few = Overview { undelivered_count: 2, undelivered, ..nothing_yet() };
        insta::assert_snapshot!(few.outbox_line(), @"
        1 to chat 7: sent twice without Telegram's word, may have come: no answer
                   2 to chat 7: unknown: no answer
        ");
        let undelivered = (1..=200).map(|id| message(id, PartState::Planned, false)).collect();
        let many = Overview { undelivered_count: 204, undelivered, ..nothing_yet() };
        let line = many.outbox_line();
        assert!(line.contains("\n           100 to chat 7") && line.ends_with("\n           and 104 more"), "{line}");
        assert_eq!(line.lines().count(), 101);
    }

    #[test]
    fn in_the_middle_of_a_busy_day() {
        let busy = Overview {
            last_wake: Some(LastWake {
                cycle_id: "20261121T115500Z-812".to_owned(),
                started_at: at("2026-11-21T11:55:00Z"),
                ended_at: None,
                state: "running",
                reasons: vec!["2 messages in chat 7".to_owned()],
                commit: None,
                error: None,
            }),
            queue: Some(Queue {
                waiting: 2,
                held: 1,
                awaiting_files: 1,
                given_up: 0,
                oldest_at: at("2026-11-21T11:54:00Z"),
            }),
            lock: Lock {
                is_held: true,
                pid: Some(812),
                since: Some("2026-11-21T11:55:00.000Z".to_owned()),
                cycle_id: Some("20261121T115500Z-812".to_owned()),
            },
            next_reminder: Some(NextReminder {
                at: at("2026-11-21T14:00:00Z").unwrap(),
                text: "call   mum".to_owned(),
            }),
            files: vec![OpenFile {
                id: 5,
                message_id: 9,
                kind: "video_note".to_owned(),
                state: crate::queue::FileState::Wanted,
                attempts: 2,
                not_before: at("2026-11-21T12:01:00Z"),
                error: Some("Telegram can't be reached".to_owned()),
                path: None,
            }],
            questions: vec![OpenQuestion {
                id: 2,
                tool: "bash".to_owned(),
                risk: "dangerous".to_owned(),
                chat_id: 7,
                cycle_id: "20261121T110000Z-811".to_owned(),
                asked_at: at("2026-11-21T11:00:00Z"),
                expires_at: at("2026-11-22T11:00:00Z"),
            }],
            undelivered: vec![Undelivered {
                id: 3,
                chat_id: 7,
                state: PartState::Planned,
                is_repeat: false,
                created_at: "2026-11-21T11:00:00.000Z".to_owned(),
                not_before: Some("2026-11-21T12:10:00.000Z".to_owned()),
                error: Some("Too Many Requests".to_owned()),
                attempts: 1,
            }],
            undelivered_count: 1,
            heard_at: at("2026-11-21T11:57:00Z"),
            git: Some(Git {
                branch: "main".to_owned(),
                condition: "as it should be".to_owned(),
                has_remote: true,
                ahead: Some(1),
                behind: Some(0),
                commit: Some("0123456789abcdef".to_owned()),
                subject: Some("Answered".to_owned()),
                committed_at: at("2026-11-21T10:00:00Z"),
            }),
            disk: Some(Disk::of(90 << 20, Reserve::of_mib(100))),
            mind: MindState {
                name: "claude".to_owned(),
                is_available: false,
                not_before: at("2026-11-21T12:01:00Z"),
                error: Some("overloaded".to_owned()),
                over_budget: None,
                chats_without_room: 0,
            },
            spent_today_usd: 1.5,
            ..nothing_yet()
        };
        insta::assert_snapshot!(busy.render(chrono_tz::Europe::Berlin), @"
        workspace  /home/me/.local/share/reveille
        last wake  5 min ago, running (2 messages in chat 7)
        now        a wake is at work (pid 812, 20261121T115500Z-812)
        queue      2 waiting, 1 kept until a mind can answer, 1 waiting for files, the oldest came 6 min ago
        reminder   Sat 2026-11-21 15:00 (in 2 h): call mum
        outbox     3 to chat 7: planned: Too Many Requests, not before 2026-11-21T12:10:00.000Z
        telegram   last heard 3 min ago
        memory     main, as it should be; 1 ahead, 0 behind the remote; 01234567 2 h ago Answered
        disk       90.0 MiB free, less than the reserve of 100.0 MiB: the bot fetches no messages, Telegram keeps them for a day
        mind       claude, which couldn't be reached: overloaded; asked again in 1 min
        cost       1.50 of 5.00 USD today, 0.00 this month
        question   2: may I use bash (dangerous)?, asked 1 h ago, no answer is a no in 23 h; wake approvals list shows it, approve 2 or deny 2 decides
        file       5 (video note of message 9) to be fetched: Telegram can't be reached; next in 1 min
        ");
    }
}
