//! Orders about tasks without a model. Each is one commit of the person under the wake lock, and starts no cycle.
//! Uncommitted edits become a separate commit before it.

use chrono::{DateTime, NaiveDate};
use serde_json::{Value, json};

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools, PersonsCommit};
use reveille_base::{
    schedule::{When, parse_only_day, parse_only_time},
    types::ChatRef,
    zone::Tz,
};
use reveille_git::{FileChange, LeftAlone};
use reveille_memory as memory;
use reveille_memory::tasks::TaskList;
use reveille_model::offline::grammar::{self, TaskLine, TaskLineError};
use reveille_store::Change;
use reveille_tools::{Chat, Documents, Done, Refusal, Registry, World};

use super::{OrderError, build_world};

/// An order about tasks. A task is named by its title, by unique words of it, or by its number in the last displayed list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOrder {
    /// Add a task.
    Add(NewTask),
    /// Finish a task.
    Done {
        /// The task.
        task: String,
    },
    /// Give up a task.
    Drop {
        /// The task.
        task: String,
    },
    /// Mark a task as worked on today.
    Touch {
        /// The task.
        task: String,
    },
    /// Set or remove a key of a task.
    Set {
        /// The task.
        task: String,
        /// The key; `title` renames it.
        key: String,
        /// The value. `None` removes the key.
        value: Option<String>,
    },
    /// Pause a long task before its next step.
    Pause {
        /// The task.
        task: String,
    },
    /// Resume a long task with the step where it stopped.
    Resume {
        /// The task.
        task: String,
        /// `true` to skip that step.
        skip: bool,
        /// Advice for the step.
        advice: Option<String>,
    },
    /// Set or remove several keys of a task in one step.
    Edit {
        /// The task.
        task: String,
        /// The keys in their order; `title` comes last, since it renames the task.
        keys: Vec<TaskKey>,
    },
    /// Exchange a task with its open neighbour in the same list.
    Shift {
        /// The task.
        task: String,
        /// Where to.
        to: ShiftTo,
    },
    /// Move a task to the other list.
    Move {
        /// The task.
        task: String,
        /// `true` moves it to the backlog, `false` to the active tasks.
        to_backlog: bool,
    },
}

/// A key of a task with its new value. `None` removes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskKey {
    /// The key; `title` renames the task.
    pub name: &'static str,
    /// The value.
    pub value: Option<String>,
}

/// Where a task goes within its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShiftTo {
    /// Before the task before it.
    Up,
    /// After the task after it.
    Down,
}

/// A task to add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTask {
    /// The title.
    pub title: String,
    /// `true` adds it to the backlog.
    pub in_backlog: bool,
    /// The next step.
    pub next: Option<String>,
    /// Time when the assistant takes that step itself, in words.
    pub at: Option<String>,
    /// The deadline's day, in words.
    pub due: Option<String>,
    /// The priority, a word of the person's choice.
    pub priority: Option<String>,
    /// Why it matters.
    pub why: Option<String>,
    /// The project.
    pub project: Option<String>,
}

/// The result of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutcome {
    /// The confirmation for the person.
    pub told: String,
    /// Files whose edits couldn't be committed before the order.
    pub left_alone: Vec<LeftAlone>,
    /// The commit. `None` if nothing had to change.
    pub commit: Option<PersonsCommit>,
}

/// Carries out an order.
///
/// # Errors
/// [`OrderError::Refused`] with advice on what to type. Nothing was changed then.
pub fn carry_out(
    session: &mut PersonSession<'_>,
    tools: PersonSessionTools<'_>,
    order: &TaskOrder,
) -> Result<TaskOutcome, OrderError> {
    let now = tools.clock.now();
    // The person's edits are committed first, so that the order sees them and they stay the person's own.
    let edits = session.commit_edits()?;
    let chat = Chat { id: ChatRef::TERMINAL, thread_id: None, reply_to: None };
    let mut world = build_world(tools.config, session.readable_store(), now, chat)?;
    world.memory.documents = Documents::new(session.repo.root(), Vec::new());
    world.conversation.shown_tasks = session.readable_store().outbox().shown_tasks(ChatRef::TERMINAL)?;
    let Calls { told, did, handled } = make_changes(order, &mut world)?;
    if let Some((path, why)) = world.memory.documents.take_trouble() {
        return Err(OrderError::Refused(format!("{} can't be read: {why}. Nothing was changed.", path.display())));
    }
    let staged = world.memory.documents.list_staged_files();
    let writes_secret = |text: &str| tools.redactor.contains_secret(text);
    if staged.iter().any(|file| writes_secret(&file.content) && !file.base.as_deref().is_some_and(writes_secret)) {
        return Err(OrderError::Refused(
            "This contains a key or token, which I don't save. Nothing was done.".to_owned(),
        ));
    }
    let changed = staged.into_iter().filter(|file| file.base.as_ref() != Some(&file.content));
    let changes: Vec<FileChange> =
        changed.map(|file| FileChange { path: file.path, base: file.base, content: Some(file.content) }).collect();
    let mut ordered = TaskOutcome { told: told.join("\n"), left_alone: edits.left_alone, commit: None };
    if changes.is_empty() {
        return Ok(ordered);
    }
    if let Some(left) = ordered.left_alone.iter().find(|left| changes.iter().any(|change| change.path == left.path)) {
        return Err(OrderError::Refused(format!(
            "{} has changes that I can't commit, because it {}. Nothing was done.",
            left.path, left.why
        )));
    }
    for change in &changes {
        session.repo.check_writable(&change.path).map_err(reveille_account::provenance::ProvenanceError::from)?;
    }
    let did = did.as_deref().unwrap_or("Changed the tasks");
    ordered.commit = Some(session.commit_step(&changes, did, did)?);
    for (key, value) in handled {
        session.fenced_store().maintenance_mut().set_handled_value(&key, &value)?;
    }
    Ok(ordered)
}

/// The results of an order's calls.
#[derive(Default)]
struct Calls {
    told: Vec<String>,
    /// The first change, which names the commit.
    did: Option<String>,
    handled: Vec<(String, String)>,
}

/// Applies the order's changes to the documents of `world`.
fn make_changes(order: &TaskOrder, world: &mut World) -> Result<Calls, OrderError> {
    let mut calls = Calls::default();
    let mut keep = |done: Done, world: &mut World| {
        for change in done.changes {
            match change {
                Change::File(file) => world.memory.documents.apply(&file),
                Change::Handled { key, value } => calls.handled.push((key, value)),
                _ => {}
            }
        }
        calls.did = calls.did.take().or(done.receipt);
        calls.told.push(done.content);
    };
    if let TaskOrder::Shift { task, to } = order {
        let done = shift_task(task, *to, world)?;
        keep(done, world);
        return Ok(calls);
    }
    let registry = Registry::for_orders();
    for (tool, input) in build_calls(order, world.local_time())? {
        match registry.call(tool, &input.to_string(), world) {
            Ok(done) if done.is_failure => return Err(OrderError::Refused(done.content)),
            Ok(done) => keep(done, world),
            // A refusal that ends as a sentence is complete; a fragment gets this ending.
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(calls)
}

/// Exchanges a task with its neighbour among the open tasks of its list. The order is a person's own, so no tool has it.
fn shift_task(query: &str, to: ShiftTo, world: &World) -> Result<Done, OrderError> {
    let lists = read_lists(&world.memory.documents);
    let found = [memory::ACTIVE, memory::BACKLOG].into_iter().zip(&lists).find_map(|(path, list)| {
        let title = list.find(query).ok()?.title.clone();
        Some((path, list, title))
    });
    let Some((path, list, title)) = found else {
        return Err(OrderError::Refused("That task no longer exists. Nothing was changed.".to_owned()));
    };
    let open: Vec<&str> = list.tasks().iter().filter(|task| !task.is_done()).map(|task| task.title.as_str()).collect();
    let place = open.iter().position(|known| *known == title);
    let neighbour = place.and_then(|place| match to {
        ShiftTo::Up => place.checked_sub(1),
        ShiftTo::Down => place.checked_add(1),
    });
    let Some(neighbour) = neighbour.and_then(|place| open.get(place)) else {
        let end = if to == ShiftTo::Up { "first" } else { "last" };
        return Ok(Done { content: format!("“{title}” is the {end} one already."), ..Done::default() });
    };
    let quoted = |title: &str| format!("“{title}”");
    let text = list.swap(&quoted(&title), &quoted(neighbour)).map_err(Refusal::new)?;
    let side = if to == ShiftTo::Up { "before" } else { "after" };
    Ok(Done {
        content: format!("Moved {side} “{neighbour}”: {title}"),
        receipt: Some(format!("Moved the task “{title}” {side} “{neighbour}”")),
        changes: vec![world.memory.documents.stage(path, text)],
        ..Done::default()
    })
}

/// Builds the call that sets or removes a key.
fn build_set_call(
    task: &str,
    key: &str,
    value: Option<&str>,
    now: DateTime<Tz>,
) -> Result<(&'static str, Value), OrderError> {
    let value = match (key.to_lowercase().as_str(), value) {
        ("at", Some(at)) => Some(parse_moment(at, "at", now)?.format("%Y-%m-%d %H:%M").to_string()),
        ("due", Some(due)) => Some(parse_day(due, "due", now)?.to_string()),
        (_, value) => value.map(str::to_owned),
    };
    Ok(("task_update", json!({"task": task, "key": key, "value": value})))
}

/// Translates the order into tool calls.
fn build_calls(order: &TaskOrder, now: DateTime<Tz>) -> Result<Vec<(&'static str, Value)>, OrderError> {
    let one = |tool, input| Ok(vec![(tool, input)]);
    match order {
        TaskOrder::Add(new) => {
            let at = new.at.as_deref().map(|at| parse_moment(at, "at", now)).transpose()?;
            let due = new.due.as_deref().map(|due| parse_day(due, "due", now)).transpose()?.map(|due| due.to_string());
            let list = if new.in_backlog { "backlog" } else { "active" };
            let mut input = json!({"title": new.title, "list": list});
            let at = at.map(|at| at.format("%Y-%m-%d %H:%M").to_string());
            let fields =
                [("next", &new.next), ("at", &at), ("due", &due), ("why", &new.why), ("project", &new.project)];
            for (key, value) in fields {
                if let (Some(value), Some(input)) = (value, input.as_object_mut()) {
                    input.insert(key.to_owned(), json!(value));
                }
            }
            let further = [("priority", new.priority.clone())];
            // Quotation marks make it match the whole title.
            let set = |(key, value)| {
                ("task_update", json!({"task": format!("“{}”", new.title.trim()), "key": key, "value": value}))
            };
            let further = further.into_iter().filter_map(|(key, value)| Some(set((key, value?))));
            Ok(std::iter::once(("task_add", input)).chain(further).collect())
        }
        TaskOrder::Done { task } => one("task_done", json!({"task": task})),
        TaskOrder::Drop { task } => one("task_done", json!({"task": task, "dropped": true})),
        TaskOrder::Touch { task } => one("task_touch", json!({"task": task})),
        TaskOrder::Set { task, key, value } => Ok(vec![build_set_call(task, key, value.as_deref(), now)?]),
        TaskOrder::Edit { task, keys } => {
            keys.iter().map(|key| build_set_call(task, key.name, key.value.as_deref(), now)).collect()
        }
        TaskOrder::Shift { .. } => Ok(Vec::new()),
        TaskOrder::Pause { task } => one("long_task_change", json!({"task": task, "pause": true})),
        TaskOrder::Resume { task, skip, advice } => {
            one("long_task_change", json!({"task": task, "skip": skip, "advice": advice}))
        }
        TaskOrder::Move { task, to_backlog } => {
            one("task_move", json!({"task": task, "to": if *to_backlog { "backlog" } else { "active" }}))
        }
    }
}

const EXPECTED: &str = "Try “tomorrow”, “friday 9:00” or 2026-11-23. Nothing was done.";

/// Parses a day in words; today is allowed.
fn parse_day(text: &str, what: &str, now: DateTime<Tz>) -> Result<NaiveDate, OrderError> {
    match parse_only_day(text, now) {
        Some(Ok(day)) => Ok(day),
        Some(Err(trouble)) => Err(OrderError::Refused(format!("{what}: “{text}” {trouble}. {EXPECTED}"))),
        None => Err(OrderError::Refused(format!("{what}: “{text}” isn't understood as a time. {EXPECTED}"))),
    }
}

/// Parses a single time in words, as local time.
fn parse_moment(text: &str, what: &str, now: DateTime<Tz>) -> Result<chrono::NaiveDateTime, OrderError> {
    match parse_only_time(text, now) {
        Some(Ok(When::At(slot))) => Ok(slot.civil),
        Some(Ok(When::Every(_))) => Err(OrderError::Refused(format!(
            "{what} takes one time, and “{text}” recurs: set a reminder for that. {EXPECTED}"
        ))),
        Some(Err(trouble)) => Err(OrderError::Refused(format!("{what}: “{text}” {trouble}. {EXPECTED}"))),
        None => Err(OrderError::Refused(format!("{what}: “{text}” isn't understood as a time. {EXPECTED}"))),
    }
}

/// Reads a task that a person typed as one line.
///
/// # Errors
/// A line that could mean several things, or no task, with what to type instead.
pub fn read_line(line: &str, now: DateTime<Tz>) -> Result<TaskLine, OrderError> {
    grammar::read_task_line(line, now).map_err(|error| {
        let why = error.to_string();
        let is_whole = why.ends_with('.') && matches!(error, TaskLineError::Day(_));
        OrderError::Refused(if is_whole { why } else { format!("{why}. Nothing was added.") })
    })
}

/// Reads both lists from the work tree.
pub fn read_lists(documents: &Documents) -> [TaskList; 2] {
    [memory::ACTIVE, memory::BACKLOG].map(|path| TaskList::parse(&documents.text(path)).0)
}
