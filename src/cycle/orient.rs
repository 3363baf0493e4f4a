//! Orient: is anything due, why, and what is taken up first? Pure functions of what was observed. No reason, no model call.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;

use super::{brief::MAX_MESSAGES, gate::waiting_for_files};
use crate::{
    clock::is_over,
    config::QuietHours,
    memory::{
        decay::{self, Stage},
        tasks::Task,
        view,
    },
    queue::{Cap, CycleRow, CycleState, Incoming, NewCycle, Reminder, Undo},
    schedule::{self, Missed, Slot, due::was_missed},
    words::{count, day_and_time},
};

/// How `at:` is written in a task.
pub const AT_FORMATS: [&str; 3] = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"];

/// The mind that is configured, as the gate needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mind {
    /// Its name.
    pub name: String,
    /// Whether it can think of things that nobody asked for: the offline mind only answers.
    pub is_thinking: bool,
    /// Whether it may be asked now: not in back-off, and no budget is spent.
    pub is_available: bool,
    /// The budget that is spent, if one is.
    pub over_budget: Option<Cap>,
    /// The chats (none: work that nobody asked for) whose last request had no room under what is left of a budget.
    pub no_room: BTreeMap<Option<i64>, Cap>,
}

impl Mind {
    /// The budget for which a chat has to wait; none: work that nobody asked for.
    pub fn out_of_budget(&self, chat_id: Option<i64>) -> Option<Cap> {
        self.over_budget.or_else(|| self.no_room.get(&chat_id).copied())
    }
}

/// What the gate looks at.
pub struct Observed<'a> {
    /// Now.
    pub now: DateTime<Utc>,
    /// The person's zone.
    pub tz: Tz,
    /// The configured mind.
    pub mind: &'a Mind,
    /// The queue: the chats in their turn, of each the oldest first.
    pub messages: &'a [Incoming],
    /// Cycles that didn't end.
    pub open_cycles: &'a [CycleRow],
    /// Active reminders.
    pub reminders: &'a [Reminder],
    /// Active and waiting tasks.
    pub tasks: &'a [Task],
    /// Keys that are reasons no more.
    pub handled: &'a BTreeSet<String>,
    /// How often the owner may still be spoken to unasked today.
    pub tells_left: usize,
    /// Whose tasks say nothing of a chat.
    pub owner_chat_id: i64,
    /// The chats besides the owner's that may be spoken to, and how often each still may unasked today. Tasks of others are
    /// nobody's.
    pub guests: &'a BTreeMap<i64, usize>,
    /// When nothing is said unasked.
    pub quiet_hours: Option<QuietHours>,
    /// Commits of people since the last wake, newest first, as (id, what).
    pub person_commits: &'a [(String, String)],
    /// Wakes that are to be undone, in the order in which that was asked for.
    pub undos: &'a [Undo],
    /// Whether all work is stopped.
    pub is_stopped: bool,
}

/// A reason to wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A person asked for a wake to be undone.
    Undo {
        /// Which.
        undo: Undo,
    },
    /// A cycle was interrupted.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// Whether it crashed, which counts against its tries, or only waited.
        has_crashed: bool,
    },
    /// Messages of one chat (and topic) wait for an answer.
    Messages {
        /// The chat.
        chat_id: i64,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Rows, oldest first.
        ids: Vec<i64>,
    },
    /// Messages of one chat wait because a budget is spent, and nobody was told so yet.
    OverBudget {
        /// Which.
        cap: Cap,
        /// The chat.
        chat_id: i64,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Told once under this key.
        key: String,
    },
    /// A reminder's slot has come.
    Reminder {
        /// Its number.
        id: i64,
    },
    /// The assistant's own next step of a task has come.
    Task {
        /// The task.
        title: String,
        /// What it says is next.
        next: Option<String>,
        /// When that was due, if it was missed: it is done late.
        missed_at: Option<NaiveDateTime>,
        /// Handled once under this key.
        key: String,
    },
    /// The time of a task's next step was missed, and by the task's own word it isn't done late.
    MissedTask {
        /// The task.
        title: String,
        /// When it was due, as written.
        at: String,
        /// Whether the person is told.
        is_told: bool,
        /// Handled once under this key.
        key: String,
    },
    /// A task was left untouched for long.
    Decay {
        /// The task.
        title: String,
        /// How long.
        stage: Stage,
        /// Handled once under this key.
        key: String,
    },
    /// Something of a task that belongs to a chat that isn't the owner's: told there by rule, whatever the mind.
    OfGuest {
        /// The chat.
        chat_id: i64,
        /// What it is about.
        what: Box<Reason>,
    },
    /// A person committed to the memory.
    PersonCommits {
        /// What they say, newest first.
        subjects: Vec<String>,
    },
}

impl Reason {
    /// The messages that it is about.
    pub fn messages(&self) -> &[i64] {
        if let Self::Messages { ids, .. } = self { ids } else { &[] }
    }

    /// The key under which it is a reason no more once it was taken up.
    pub fn handled_key(&self) -> Option<String> {
        match self {
            Self::Task { key, .. }
            | Self::MissedTask { key, .. }
            | Self::Decay { key, .. }
            | Self::OverBudget { key, .. } => Some(key.clone()),
            Self::OfGuest { what, .. } => what.handled_key(),
            _ => None,
        }
    }

    /// In a few words, for trailers, the plan file and people.
    pub fn describe(&self) -> String {
        match self {
            Self::Undo { undo } => format!("undo {}", undo.wake),
            Self::Resume { cycle_id, .. } => format!("resume {cycle_id}"),
            Self::Messages { chat_id: 0, ids, .. } => format!("{} from the console", count(ids.len(), "message")),
            Self::Messages { chat_id, ids, .. } => format!("{} in chat {chat_id}", count(ids.len(), "message")),
            Self::OverBudget { chat_id, .. } => format!("chat {chat_id} waits for the budget"),
            Self::Reminder { id } => format!("reminder {id}"),
            Self::Task { title, missed_at: None, .. } => format!("task {title:?} has its next step now"),
            Self::Task { title, missed_at: Some(at), .. } => {
                format!("task {title:?} has its next step now, late: it was due {}", day_and_time(*at))
            }
            Self::MissedTask { title, .. } => format!("task {title:?} missed its time"),
            Self::Decay { title, stage, .. } => format!("task {title:?} is quiet: {}", stage.name()),
            Self::OfGuest { chat_id, what } => format!("{} (chat {chat_id})", what.describe()),
            Self::PersonCommits { subjects } => count(subjects.len(), "commit by a person"),
        }
    }
}

/// All that is due, the most urgent first. What a person wants undone goes before whatever builds on it, and while all else is
/// stopped: it is what a person does next who has stopped something that went wrong.
pub fn due(observed: &Observed<'_>) -> Vec<Reason> {
    // A cycle by rule that was cut off has nothing left but its commit and its end: an undo with its commit made isn't begun again.
    let (mut reasons, resumptions): (Vec<_>, Vec<_>) =
        resumptions(observed).into_iter().partition(|reason| is_by_rule(reason, observed.open_cycles));
    reasons.extend(observed.undos.iter().map(|undo| Reason::Undo { undo: undo.clone() }));
    if observed.is_stopped {
        return reasons;
    }
    reasons.extend(resumptions);
    reasons.extend(due_reminders(observed));
    reasons.extend(messages(observed));
    reasons.extend(waiting_for_budget(observed));
    reasons.extend(of_guests(observed));
    let may_think = observed.mind.is_available && observed.mind.out_of_budget(None).is_none();
    if may_think || !observed.mind.is_thinking {
        let owners = tasks_of(observed, None);
        reasons.extend(of_tasks(&Observed { tasks: &owners, ..*observed }));
        if !observed.person_commits.is_empty() {
            let subjects = observed.person_commits.iter().map(|(_, subject)| subject.clone()).collect();
            reasons.push(Reason::PersonCommits { subjects });
        }
    }
    reasons
}

/// What there is to be done about one chat's tasks.
fn of_tasks(observed: &Observed<'_>) -> Vec<Reason> {
    let mut reasons = due_tasks(observed);
    reasons.extend(decaying(observed));
    if !observed.mind.is_thinking {
        // Told by rule, each of them speaks unasked; what the day has no room for waits for the next.
        reasons.truncate(observed.tells_left);
    }
    reasons.extend(missed_tasks(observed));
    reasons
}

/// The tasks of a chat; none: of the owner's.
fn tasks_of(observed: &Observed<'_>, chat_id: Option<i64>) -> Vec<Task> {
    let is_theirs = |task: &&Task| view::foreign_chat(task.chat_id(), observed.owner_chat_id) == chat_id;
    observed.tasks.iter().filter(is_theirs).cloned().collect()
}

/// What there is to be done about each guest's tasks, as if there were no mind: what is said in another chat than the owner's is
/// a rule's words, so that nothing of the owner's can be in it, and costs nobody anything.
fn of_guests(observed: &Observed<'_>) -> Vec<Reason> {
    let by_rule = Mind { is_thinking: false, ..observed.mind.clone() };
    let mut reasons = Vec::new();
    for (chat_id, tells_left) in observed.guests {
        let tasks = tasks_of(observed, Some(*chat_id));
        let theirs = of_tasks(&Observed { tasks: &tasks, mind: &by_rule, tells_left: *tells_left, ..*observed });
        reasons.extend(theirs.into_iter().map(|what| Reason::OfGuest { chat_id: *chat_id, what: Box::new(what) }));
    }
    reasons
}

/// What a cycle takes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A wake is undone.
    Undo(Undo),
    /// An interrupted cycle.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// Whether it crashed.
        has_crashed: bool,
    },
    /// What needs no mind: these reasons are acted on by rule.
    Mechanical(Vec<Reason>),
    /// What the mind is asked for: one chat's messages at most, and other reasons if they are the owner's affair.
    Think {
        /// Messages first.
        reasons: Vec<Reason>,
    },
}

/// Chooses the next cycle's work among what is due: what is undone and interrupted work first, then what needs no mind, then one chat.
pub fn choose(reasons: Vec<Reason>, mind: &Mind, owner_chat_id: i64) -> Option<Work> {
    match reasons.first() {
        Some(Reason::Resume { cycle_id, has_crashed }) => {
            return Some(Work::Resume { cycle_id: cycle_id.clone(), has_crashed: *has_crashed });
        }
        Some(Reason::Undo { undo }) => return Some(Work::Undo(undo.clone())),
        _ => {}
    }
    let is_mechanical = |reason: &Reason| match reason {
        Reason::Reminder { .. } | Reason::MissedTask { .. } | Reason::OverBudget { .. } | Reason::OfGuest { .. } => {
            true
        }
        Reason::Messages { .. } | Reason::Resume { .. } | Reason::Undo { .. } => false,
        Reason::Task { .. } | Reason::Decay { .. } | Reason::PersonCommits { .. } => !mind.is_thinking,
    };
    let (mechanical, rest): (Vec<_>, Vec<_>) = reasons.into_iter().partition(is_mechanical);
    if !mechanical.is_empty() {
        return Some(Work::Mechanical(mechanical));
    }
    let (messages, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|reason| matches!(reason, Reason::Messages { .. }));
    let mut chosen: Vec<Reason> = messages.into_iter().take(1).collect();
    let is_owners = match chosen.first() {
        Some(Reason::Messages { chat_id, .. }) => *chat_id == owner_chat_id,
        _ => true,
    };
    if is_owners {
        chosen.extend(others);
    }
    (!chosen.is_empty()).then_some(Work::Think { reasons: chosen })
}

/// Whether the configured mind can be given this message now, as far as the message itself tells.
pub fn is_answerable(message: &Incoming, mind: &Mind, now: DateTime<Utc>) -> bool {
    !message.awaits_files
        && message.held_for.as_deref() != Some(&mind.name)
        && message.not_before.is_none_or(|at| is_over(at, now))
}

/// The messages with these `ids`, if each of them may still be given to the mind: an edit or a further part of an album may have
/// brought files that are on their way, a person may have taken one out of the queue.
pub fn still_due<'a>(
    queued: &'a [Incoming],
    ids: &[i64],
    mind: &Mind,
    now: DateTime<Utc>,
) -> Option<Vec<&'a Incoming>> {
    let waiting = waiting_for_files(queued, now);
    let is_due = |message: &&Incoming| !waiting.contains(&message.id) && is_answerable(message, mind, now);
    ids.iter().map(|id| queued.iter().find(|message| message.id == *id).filter(is_due)).collect()
}

/// Messages that have come for the chat of `cycle` while it runs, oldest first: not those it `knows`, nor those that stand in
/// the conversation of another one that will go on. A cycle that has had its share of messages ends when another chat waits.
pub fn joining<'a>(
    queued: &'a [Incoming],
    cycle: &NewCycle,
    knows: &[i64],
    open_cycles: &[CycleRow],
    mind: &Mind,
    now: DateTime<Utc>,
) -> Vec<&'a Incoming> {
    let is_another_chats = |message: &Incoming| {
        Some(message.chat_id) != cycle.chat_id && !is_taken(message, open_cycles) && is_answerable(message, mind, now)
    };
    if knows.len() >= MAX_MESSAGES && queued.iter().any(is_another_chats) {
        return Vec::new();
    }
    let waiting = waiting_for_files(queued, now);
    let is_new = |message: &&Incoming| {
        (Some(message.chat_id), message.thread_id) == (cycle.chat_id, cycle.thread_id)
            && !knows.contains(&message.id)
            && !is_taken(message, open_cycles)
            && !waiting.contains(&message.id)
            && is_answerable(message, mind, now)
    };
    queued.iter().filter(is_new).take(MAX_MESSAGES).collect()
}

/// The key under which a task's own next step is handled.
pub fn task_key(title: &str, at: &str) -> String {
    format!("at/{title}/{at}")
}

/// The key under which a decay line is handled.
pub fn decay_key(title: &str, touched: Option<chrono::NaiveDate>, stage: Stage) -> String {
    let touched = touched.map(|day| day.to_string()).unwrap_or_default();
    format!("decay/{title}/{touched}/{}", stage.name())
}

/// The key under which a chat was told that its messages, from the oldest on, wait for a budget.
pub fn budget_key(chat_id: i64, oldest: i64, cap: Cap) -> String {
    match cap {
        Cap::Day => format!("budget/{chat_id}/{oldest}"),
        Cap::Month => format!("budget/{chat_id}/{oldest}/month"),
    }
}

/// Reads a task's `at:` as an instant.
pub fn task_time(at: &str, tz: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(at.trim()) {
        return Some(at.with_timezone(&Utc));
    }
    let civil = AT_FORMATS.iter().find_map(|format| {
        NaiveDateTime::parse_from_str(at.trim(), format)
            .or_else(|_| {
                chrono::NaiveDate::parse_from_str(at.trim(), format)
                    .map(|day| day.and_time(schedule::when::DEFAULT_TIME))
            })
            .ok()
    })?;
    Some(schedule::resolve(civil, tz).at)
}

fn resumptions(observed: &Observed<'_>) -> Vec<Reason> {
    observed
        .open_cycles
        .iter()
        .filter(|cycle| cycle.not_before.is_none_or(|at| is_over(at, observed.now)))
        .filter(|cycle| cycle.asks_until.is_none_or(|at| at <= observed.now))
        .filter(|cycle| {
            let may_think = observed.mind.is_available && observed.mind.out_of_budget(cycle.cycle.chat_id).is_none();
            cycle.state == CycleState::Running || may_think
        })
        .map(|cycle| Reason::Resume { cycle_id: cycle.cycle.id.clone(), has_crashed: cycle.was_cut_off })
        .collect()
}

fn is_by_rule(reason: &Reason, open_cycles: &[CycleRow]) -> bool {
    let Reason::Resume { cycle_id, .. } = reason else { return false };
    open_cycles.iter().any(|row| row.cycle.id == *cycle_id && row.cycle.is_by_rule())
}

/// What an interrupted cycle has in its conversation is answered by that cycle.
fn is_taken(message: &Incoming, open_cycles: &[CycleRow]) -> bool {
    message.cycle_id.as_ref().is_some_and(|id| open_cycles.iter().any(|open| open.cycle.id == *id))
}

/// How it stands with a message of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is to be answered now.
    Due,
    /// A cycle has it.
    InHand,
    /// Files are waited for, its own or those of one before it.
    Files,
    /// The mind is known not to answer it: another one may.
    Mind,
    /// A budget is spent.
    Budget,
    /// It, or the mind, is tried again later.
    BackOff,
}

/// How it stands with each message of the queue.
pub fn standings<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = (&'a Incoming, Standing)> {
    let waiting = waiting_for_files(observed.messages, observed.now);
    observed.messages.iter().map(move |message| {
        let standing = if is_taken(message, observed.open_cycles) {
            Standing::InHand
        } else if waiting.contains(&message.id) {
            Standing::Files
        } else if message.held_for.as_deref() == Some(&observed.mind.name) {
            Standing::Mind
        } else if observed.mind.out_of_budget(Some(message.chat_id)).is_some() {
            Standing::Budget
        } else if !observed.mind.is_available || !is_answerable(message, observed.mind, observed.now) {
            Standing::BackOff
        } else {
            Standing::Due
        };
        (message, standing)
    })
}

fn messages(observed: &Observed<'_>) -> Vec<Reason> {
    let mut chats: Vec<(i64, Option<i64>, Vec<i64>)> = Vec::new();
    for (message, _) in standings(observed).filter(|(_, standing)| *standing == Standing::Due) {
        match chats.iter_mut().find(|(chat, thread, _)| (*chat, *thread) == (message.chat_id, message.thread_id)) {
            Some((_, _, ids)) if ids.len() >= MAX_MESSAGES => {}
            Some((_, _, ids)) => ids.push(message.id),
            None => chats.push((message.chat_id, message.thread_id, vec![message.id])),
        }
    }
    chats.into_iter().map(|(chat_id, thread_id, ids)| Reason::Messages { chat_id, thread_id, ids }).collect()
}

/// A chat is told once for as long as its oldest message waits, however many follow.
fn waiting_for_budget(observed: &Observed<'_>) -> Vec<Reason> {
    let mut chats = BTreeSet::new();
    let waiting = observed
        .messages
        .iter()
        .filter(|message| message.held_for.as_deref() != Some(&observed.mind.name) && chats.insert(message.chat_id));
    waiting
        .filter_map(|oldest| {
            let cap = observed.mind.out_of_budget(Some(oldest.chat_id))?;
            let key = budget_key(oldest.chat_id, oldest.id, cap);
            let (chat_id, thread_id) = (oldest.chat_id, oldest.thread_id);
            (!observed.handled.contains(&key)).then_some(Reason::OverBudget { cap, chat_id, thread_id, key })
        })
        .collect()
}

fn due_reminders(observed: &Observed<'_>) -> Vec<Reason> {
    let due = observed.reminders.iter().filter(|reminder| reminder.what.next_at <= observed.now);
    due.map(|reminder| Reason::Reminder { id: reminder.id }).collect()
}

/// A thinking mind may work silently at any hour; without one a task's time is only told of, and that waits for waking hours.
fn due_tasks(observed: &Observed<'_>) -> Vec<Reason> {
    if !observed.mind.is_thinking && is_quiet(observed) {
        return Vec::new();
    }
    due_times(observed)
        .filter(|(task, _, at)| task.missed == Missed::Run || !is_missed(observed, *at))
        .map(|(task, key, at)| Reason::Task {
            title: task.title.clone(),
            next: task.get("next").map(str::to_owned),
            missed_at: is_missed(observed, at).then(|| at.with_timezone(&observed.tz).naive_local()),
            key,
        })
        .collect()
}

/// Times that were missed and aren't made up for. Leaving one out needs no mind; telling of it speaks unasked.
fn missed_tasks(observed: &Observed<'_>) -> Vec<Reason> {
    let tells = if is_quiet(observed) { 0 } else { observed.tells_left };
    let missed = |policy: Missed| {
        due_times(observed).filter(move |(task, _, at)| task.missed == policy && is_missed(observed, *at)).map(
            |(task, key, _)| Reason::MissedTask {
                title: task.title.clone(),
                at: task.at().unwrap_or_default().to_owned(),
                is_told: task.missed == Missed::Tell,
                key,
            },
        )
    };
    missed(Missed::Skip).chain(missed(Missed::Tell).take(tells)).collect()
}

/// Tasks whose time has come and wasn't handled yet, with its key and instant.
fn due_times<'a>(observed: &'a Observed<'_>) -> impl Iterator<Item = (&'a Task, String, DateTime<Utc>)> {
    observed.tasks.iter().filter_map(|task| {
        let at = task_time(task.at()?, observed.tz).filter(|at| *at <= observed.now)?;
        let key = task_key(&task.title, task.at()?);
        (!observed.handled.contains(&key)).then_some((task, key, at))
    })
}

/// Whether a task's time was missed. What may only be told of in waking hours is due when they begin.
fn is_missed(observed: &Observed<'_>, at: DateTime<Utc>) -> bool {
    let local = at.with_timezone(&observed.tz).naive_local();
    let quiet = observed.quiet_hours.filter(|hours| !observed.mind.is_thinking && hours.contains(local.time()));
    let due = quiet.map_or(Slot { civil: local, at }, |hours| {
        let is_next_day = hours.until <= local.time();
        let day = if is_next_day { local.date().succ_opt().unwrap_or(local.date()) } else { local.date() };
        schedule::resolve(day.and_time(hours.until), observed.tz)
    });
    was_missed(due, observed.now)
}

fn is_quiet(observed: &Observed<'_>) -> bool {
    let local = observed.now.with_timezone(&observed.tz);
    observed.quiet_hours.is_some_and(|hours| hours.contains(local.time()))
}

/// Decay is spoken of in waking hours only, so it becomes due then.
fn decaying(observed: &Observed<'_>) -> Vec<Reason> {
    if is_quiet(observed) {
        return Vec::new();
    }
    let local = observed.now.with_timezone(&observed.tz);
    observed
        .tasks
        .iter()
        .filter_map(|task| {
            let stage = decay::stage_of(task, local.date_naive())?;
            let key = decay_key(&task.title, task.touched, stage);
            (!observed.handled.contains(&key)).then(|| Reason::Decay { title: task.title.clone(), stage, key })
        })
        .collect()
}

#[cfg(test)]
mod tests;
