//! The reasons for a wake that come from tasks: times that have come or were missed, deadlines, and neglected tasks.

use chrono::{DateTime, NaiveDate, Timelike as _, Utc};

use reveille_base::{
    schedule::{self, Missed, Slot, due::is_slot_missed, task_time},
    types::ChatRef,
};
use reveille_memory::{
    decay::{self, Stage},
    tasks::Task,
    view,
};

use crate::decide::situation::{Reason, Situation};

/// The hour from which a task's deadline is mentioned, in local time.
const DUE_FROM_HOUR: u32 = 8;
/// The hour until which the deadline isn't mentioned if the person has worked on the task that day.
const IN_MIND_UNTIL_HOUR: u32 = 17;

/// The key marking the time of a task's next step as handled.
pub fn task_key(title: &str, at: &str) -> String {
    format!("at/{title}/{at}")
}

/// The key marking a decay stage as handled.
pub fn decay_key(title: &str, touched: Option<chrono::NaiveDate>, stage: Stage) -> String {
    let touched = touched.map(|day| day.to_string()).unwrap_or_default();
    format!("decay/{title}/{touched}/{}", stage.name())
}

/// The key marking a task's deadline as mentioned: once on the day, and once afterwards.
pub fn due_key(title: &str, day: NaiveDate, is_missed: bool) -> String {
    format!("due/{title}/{day}{}", if is_missed { "/missed" } else { "" })
}

/// The tasks of one chat, and the limits on messages about them.
struct ChatTasks<'a> {
    tasks: Vec<&'a Task>,
    /// True if a thinking model handles the tasks. Otherwise a rule reports them.
    is_thinking: bool,
    /// The number of unasked messages left today.
    tells_left: usize,
    /// True while the owner's context holds back messages about neglected tasks.
    holds_nudges: bool,
    situation: &'a Situation,
}

impl<'a> ChatTasks<'a> {
    fn for_owner(observed: &'a Situation) -> Self {
        Self {
            tasks: list_tasks(observed, None),
            is_thinking: observed.model.is_thinking(),
            tells_left: observed.tells_left,
            holds_nudges: observed.holds_nudges,
            situation: observed,
        }
    }

    /// Collects a guest's tasks, as if there were no model. The owner's context doesn't hold back nudges to a guest.
    fn for_guest(observed: &'a Situation, chat: ChatRef, tells_left: usize) -> Self {
        let tasks = list_tasks(observed, Some(chat));
        Self { tasks, is_thinking: false, tells_left, holds_nudges: false, situation: observed }
    }
}

/// Lists the deadlines of the owner's tasks. A rule reports them, even if a model is available.
pub(crate) fn last_days_of_owner(observed: &Situation) -> Vec<Reason> {
    last_days(&ChatTasks::for_owner(observed))
}

/// Lists the reasons from the owner's tasks.
pub(crate) fn list_owner_reasons(observed: &Situation) -> Vec<Reason> {
    list_chat_reasons(&ChatTasks::for_owner(observed))
}

/// Lists the reasons from each guest's tasks, as if there were no model. A rule words the messages to guests, so they can't contain the
/// owner's data and cost nothing.
pub(crate) fn list_guest_reasons(observed: &Situation) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (chat, tells_left) in &observed.guests {
        let theirs = ChatTasks::for_guest(observed, *chat, *tells_left);
        let theirs = [list_chat_reasons(&theirs), last_days(&theirs)].concat();
        reasons.extend(theirs.into_iter().map(|what| Reason::OfGuest { chat: *chat, what: Box::new(what) }));
    }
    reasons
}

/// Lists the reasons from one chat's tasks.
fn list_chat_reasons(theirs: &ChatTasks<'_>) -> Vec<Reason> {
    let mut reasons = due_tasks(theirs);
    reasons.extend(list_neglected_tasks(theirs));
    if !theirs.is_thinking {
        // By rule, each reason is one unasked message. Those beyond today's limit wait for the next day.
        reasons.truncate(theirs.tells_left);
    }
    reasons.extend(missed_tasks(theirs));
    reasons
}

/// Lists tasks with a deadline today, and tasks with a missed deadline up to the limit of unasked messages. A task that the person touched
/// today is mentioned in the evening.
fn last_days(theirs: &ChatTasks<'_>) -> Vec<Reason> {
    let local = theirs.situation.now.with_timezone(&theirs.situation.tz);
    let (today, hour) = (local.date_naive(), local.hour());
    if is_quiet(theirs.situation) || hour < DUE_FROM_HOUR {
        return Vec::new();
    }
    let open = theirs.tasks.iter().copied().filter(|task| !decay::is_resting(task));
    let due = open.filter_map(|task| Some((task, task.due_date().filter(|due| *due <= today)?)));
    let (due_today, missed): (Vec<_>, Vec<_>) = due.partition(|(_, due)| *due == today);
    let is_in_mind = |task: &Task| task.touched == Some(today) && hour < IN_MIND_UNTIL_HOUR;
    let reason = |(task, day): (&Task, NaiveDate)| {
        let key = due_key(&task.title, day, day < today);
        let is_open = !theirs.situation.handled.contains(&key) && !is_in_mind(task);
        is_open.then(|| Reason::Due { title: task.title.clone(), day, next: task.get("next").map(str::to_owned), key })
    };
    let missed = missed.into_iter().filter_map(reason).take(theirs.tells_left);
    due_today.into_iter().filter_map(reason).chain(missed).collect()
}

/// Lists the tasks of a chat (`None`: the owner's).
fn list_tasks(observed: &Situation, chat: Option<ChatRef>) -> Vec<&Task> {
    // An unconfirmed task came from untrusted text. It isn't an order, so it never becomes due.
    let is_theirs =
        |task: &&Task| !task.is_unconfirmed() && view::foreign_chat(task.chat(), observed.owner_chat) == chat;
    observed.tasks.iter().filter(is_theirs).collect()
}

/// Lists tasks whose time has come. A thinking model may work silently at any hour; a rule only reports the time, so it waits for waking
/// hours.
fn due_tasks(theirs: &ChatTasks<'_>) -> Vec<Reason> {
    if !theirs.is_thinking && is_quiet(theirs.situation) {
        return Vec::new();
    }
    due_times(theirs)
        .filter(|due| due.task.missed == Missed::Run || !is_missed(theirs, due.at))
        .map(|DueTime { task, key, at }| Reason::Task {
            title: task.title.clone(),
            next: task.get("next").map(str::to_owned),
            missed_at: is_missed(theirs, at).then(|| at.with_timezone(&theirs.situation.tz).naive_local()),
            key,
        })
        .collect()
}

/// Lists missed times that aren't caught up on. Skipping one needs no model; reporting one is an unasked message.
fn missed_tasks(theirs: &ChatTasks<'_>) -> Vec<Reason> {
    let tells = if is_quiet(theirs.situation) { 0 } else { theirs.tells_left };
    let missed = |policy: Missed| {
        due_times(theirs).filter(move |due| due.task.missed == policy && is_missed(theirs, due.at)).map(
            |DueTime { task, key, .. }| Reason::MissedTask {
                title: task.title.clone(),
                at: task.step_time().unwrap_or_default().to_owned(),
                is_told: task.missed == Missed::Tell,
                key,
            },
        )
    };
    missed(Missed::Skip).chain(missed(Missed::Tell).take(tells)).collect()
}

/// A task's time that has come.
struct DueTime<'a> {
    task: &'a Task,
    /// The key that marks the time as handled.
    key: String,
    at: DateTime<Utc>,
}

/// Lists tasks whose unhandled time has come.
fn due_times<'a>(theirs: &'a ChatTasks<'_>) -> impl Iterator<Item = DueTime<'a>> {
    theirs.tasks.iter().copied().filter_map(|task| {
        let at = task_time(task.step_time()?, theirs.situation.tz).filter(|at| *at <= theirs.situation.now)?;
        let key = task_key(&task.title, task.step_time()?);
        (!theirs.situation.handled.contains(&key)).then_some(DueTime { task, key, at })
    })
}

/// Returns `true` if a task's time was missed. A time in quiet hours that only a rule reports becomes due when they end.
fn is_missed(theirs: &ChatTasks<'_>, at: DateTime<Utc>) -> bool {
    let local = at.with_timezone(&theirs.situation.tz).naive_local();
    let quiet = theirs.situation.quiet_hours.filter(|hours| !theirs.is_thinking && hours.contains(local.time()));
    let due = quiet.map_or(Slot { civil: local, at }, |hours| {
        let is_next_day = hours.until <= local.time();
        let day = if is_next_day { local.date().succ_opt().unwrap_or(local.date()) } else { local.date() };
        schedule::resolve_local_time(day.and_time(hours.until), theirs.situation.tz)
    });
    is_slot_missed(due, theirs.situation.now)
}

/// Returns the next approved change of the standing orders whose effect should be reported: one at a time, like all unasked messages.
pub(crate) fn find_agreed_change(observed: &Situation) -> Option<Reason> {
    let first = observed.proposals.first().filter(|_| !is_quiet(observed) && observed.tells_left > 0)?;
    Some(Reason::AgreedChange { proposal: Box::new(first.clone()) })
}

fn is_quiet(observed: &Situation) -> bool {
    let local = observed.now.with_timezone(&observed.tz);
    observed.quiet_hours.is_some_and(|hours| hours.contains(local.time()))
}

/// Lists neglected tasks. They are mentioned only outside quiet hours, so they become due only then.
fn list_neglected_tasks(theirs: &ChatTasks<'_>) -> Vec<Reason> {
    if is_quiet(theirs.situation) || theirs.holds_nudges {
        return Vec::new();
    }
    let local = theirs.situation.now.with_timezone(&theirs.situation.tz);
    theirs
        .tasks
        .iter()
        .filter_map(|task| {
            let stage = decay::find_task_stage(task, local.date_naive())?;
            // A task at its deadline is mentioned for that instead.
            if task.due_date().is_some_and(|due| due <= local.date_naive()) {
                return None;
            }
            let key = decay_key(&task.title, task.touched, stage);
            (!theirs.situation.handled.contains(&key)).then(|| Reason::Decay { title: task.title.clone(), stage, key })
        })
        .collect()
}
