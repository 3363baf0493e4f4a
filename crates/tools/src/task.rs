//! Tasks: adding, updating, renaming, touching, finishing or dropping, and moving between the active list (at most seven) and the backlog.
//!
//! A number refers to the list shown to the chat last. The shown titles are remembered, so that later changes never
//! redirect a number to another task.

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::{
    schedule::{parse_only_day, task_time},
    types::Effect,
    words::format_count,
};
use reveille_memory as memory;
use reveille_memory::{
    decay, imported, others,
    project::project_name,
    quoting::content_words,
    tasks::{Prose, Task, TaskDraft, TaskError, TaskList, due_in_words},
};
use reveille_policy::Reach;
use reveille_store::{Change, ShownTask};

use super::{Done, NamedList, Outcome, Refusal, Tool, Touched, World, check_text, project, reminder, shorten_text};

/// Maximum number of lines quoted that read like tasks but aren't.
const MAX_PROSE: usize = 5;

/// One of the two lists of tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum List {
    /// Live tasks, at most seven.
    #[default]
    Active,
    /// Tasks that wait for the right moment.
    Backlog,
}

impl List {
    fn path(self) -> &'static str {
        match self {
            Self::Active => memory::ACTIVE,
            Self::Backlog => memory::BACKLOG,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Active => "the active tasks",
            Self::Backlog => "the backlog",
        }
    }

    fn read(self, world: &World) -> TaskList {
        TaskList::parse(&world.memory.documents.text(self.path())).0
    }

    fn stage(self, world: &World, text: String) -> Change {
        world.memory.documents.stage(self.path(), text)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// A short title.
    title: String,
    /// Where it goes.
    #[serde(default)]
    list: List,
    /// The next step.
    #[serde(default)]
    next: Option<String>,
    /// If the next step is yours: its local time, such as `2026-11-23 09:00`. You are woken then.
    #[serde(default)]
    at: Option<String>,
    /// The day by which it has to be done, such as `friday`. Your person is told on that day, and once it is missed.
    #[serde(default)]
    due: Option<String>,
    /// Why it matters.
    #[serde(default)]
    why: Option<String>,
    /// The project that it is a part of.
    #[serde(default)]
    project: Option<String>,
    /// Anything else worth keeping with it.
    #[serde(default)]
    notes: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// The task: its title, or words that only it has.
    task: String,
    /// `title`, `status`, `next`, `due` (a day), `at`, `missed` (what to do when `at` was missed: `run`, `skip` or `tell`), `why`, or a key of its own.
    key: String,
    /// The new value; without it the key is removed.
    #[serde(default)]
    value: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// The task: its title, or words that only it has.
    task: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Finish {
    /// The task: its title, or words that only it has.
    task: String,
    /// It is given up, not finished.
    #[serde(default)]
    dropped: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The task: its title, or words that only it has.
    task: String,
    /// Where it goes.
    to: List,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Show {
    /// Which list.
    #[serde(default)]
    list: List,
    /// True to number the tasks for display: a number that your person then gives means this list.
    #[serde(default)]
    numbered: bool,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "task_add",
            "Add a task. At most seven are active; others go to the backlog.",
            Effect::Idempotent,
            add_task,
        )
        .with_reach(Reach::Persists),
        Tool::new(
            "task_update",
            "Set or remove one key of a task, such as `next`, `at` or `status`, or rename it (`title`). Counts as touching it.",
            Effect::Idempotent,
            update_task,
        )
        .with_reach(Reach::Persists),
        Tool::new(
            "task_touch",
            "Say that a task was worked on or talked about today, so that it doesn't count as forgotten.",
            Effect::Idempotent,
            touch_task,
        )
        .with_reach(Reach::Persists),
        Tool::new(
            "task_done",
            "Finish a task, or drop it. It leaves its list; the episodic memory keeps that it was done or dropped.",
            Effect::Idempotent,
            finish_task,
        )
        .with_reach(Reach::Persists),
        Tool::new(
            "task_move",
            "Move a task between the active tasks and the backlog, with everything in it.",
            Effect::Idempotent,
            move_task,
        )
        .with_reach(Reach::Persists),
        Tool::new("task_list", "List the tasks of one list, as they are now.", Effect::Read, show_tasks)
            .with_targets(|args: &Show| Touched::Documents(vec![args.list.path().to_owned()])),
    ]
}

fn add_task(args: &Add, world: &World) -> Outcome {
    let title = check_text(&args.title, "title", 120)?;
    let list = args.list.read(world);
    if args.list == List::Active {
        list.check_room(world.foreign_chat()).map_err(Refusal::new)?;
    }
    let other = if args.list == List::Active { List::Backlog } else { List::Active };
    if let Ok(found) = other.read(world).find(&title)
        && found.title.eq_ignore_ascii_case(&title)
    {
        return Err(Refusal::new(format!("“{title}” is already in {}; move it instead.", other.name())));
    }
    check_time(args.at.as_deref(), world)?;
    let due = args.due.as_deref().map(|due| parse_due_day(due, world)).transpose()?;
    let draft = TaskDraft {
        title: title.clone(),
        status: Some(if args.list == List::Active { "active" } else { "waiting" }.to_owned()),
        touched: Some(world.local_time().date_naive()),
        next: args.next.clone(),
        at: args.at.clone(),
        due,
        why: args.why.clone(),
        project: args.project.as_deref().map(check_project_name).transpose()?,
        body: args.notes.clone().unwrap_or_default(),
    };
    let mut text = list.add(&draft).map_err(Refusal::new)?;
    if let Some(chat) = world.foreign_chat() {
        text = TaskList::parse(&text).0.set(&title, "chat", Some(&chat.to_string())).map_err(Refusal::new)?;
    }
    let due_note =
        due.map(|due| format!(", {}", due_in_words(due, world.local_time().date_naive()))).unwrap_or_default();
    let done = Done {
        content: format!("Added to {}: {title}{due_note}", args.list.name()),
        receipt: Some(format!("Added the task “{}” to {}{due_note}", shorten_text(&title), args.list.name())),
        changes: vec![args.list.stage(world, text)],
        ..Done::default()
    };
    Ok(if args.at.is_some() || due.is_some() { world.append_wake_warning(done) } else { done })
}

fn update_task(args: &Update, world: &World) -> Outcome {
    let Found { list, tasks, title, taint } = find_task(&args.task, world)?;
    if args.key.eq_ignore_ascii_case("chat") {
        return Err(Refusal::new("Whose task it is can't be changed here. Nothing was done."));
    }
    // Only the person may confirm an imported task. A command by the person runs without a cycle, so its id is empty.
    if args.key.eq_ignore_ascii_case(imported::UNCONFIRMED_KEY)
        // fault: model-confirms-task-came
        && tasks.is_unconfirmed(&title)
        && !world.cycle.id.is_empty()
    {
        return Err(Refusal::new(format!(
            "What came in from another program is confirmed by your person: `wake task set '{title}' {}` takes the line away. Nothing \
             was done.",
            imported::UNCONFIRMED_KEY
        )));
    }
    if args.key.eq_ignore_ascii_case("at") {
        check_time(args.value.as_deref(), world)?;
    }
    let mut value = args.value.clone();
    if args.key.eq_ignore_ascii_case("project") {
        value = value.as_deref().map(check_project_name).transpose()?;
    }
    let is_due = args.key.eq_ignore_ascii_case("due");
    if is_due {
        value = value.as_deref().map(|due| parse_due_day(due, world)).transpose()?.map(|day| day.to_string());
    }
    if args.key.eq_ignore_ascii_case("title") {
        return rename_task(&Found { list, tasks, title, taint }, args.value.as_deref().unwrap_or_default(), world);
    }
    let text = tasks.set(&title, &args.key, value.as_deref()).map_err(Refusal::new)?;
    let text = touch_by_title(&text, &title, world)?;
    let content = describe_change(&title, &args.key, value.as_deref());
    let value = value.as_deref().map_or_else(|| "removed".to_owned(), |value| format!("now “{}”", shorten_text(value)));
    let done = Done {
        content,
        receipt: Some(format!("Updated the task “{}”: {} {value}", shorten_text(&title), args.key)),
        changes: vec![list.stage(world, text)],
        taint,
        ..Done::default()
    };
    let is_timed = args.value.is_some() && (is_due || args.key.eq_ignore_ascii_case("at"));
    Ok(if is_timed { world.append_wake_warning(done) } else { done })
}

/// Describes a changed key of a task for the person.
fn describe_change(title: &str, key: &str, value: Option<&str>) -> String {
    let title = format!("“{}”", shorten_text(title));
    let lower = key.to_lowercase();
    match (lower.as_str(), value.map(shorten_text)) {
        ("at", Some(at)) => format!("I'll take the next step of {title} at {at}."),
        ("at", None) => format!("I'll no longer take the next step of {title} on my own."),
        ("due", Some(due)) => {
            let day = due.parse::<chrono::NaiveDate>().map_or(due, |day| day.format("%a %-d %b").to_string());
            format!("{title} is due {day}.")
        }
        ("due", None) => format!("{title} no longer has a due date."),
        ("next", Some(next)) => format!("The next step of {title}: {next}"),
        (_, Some(value)) => format!("{title}: “{key}” is {value} now."),
        (_, None) => format!("{title} no longer has “{key}”."),
    }
}

fn rename_task(Found { list, tasks, title, taint }: &Found, to: &str, world: &World) -> Outcome {
    let to = check_text(to, "title", 120)?;
    let other = if *list == List::Active { List::Backlog } else { List::Active };
    if other.read(world).find_titled(&to).is_some() {
        return Err(Refusal::new(format!("“{to}” is in {} already. Nothing was done.", other.name())));
    }
    let text = tasks.rename(title, &to).map_err(|error| match taint {
        // The error may name another chat's task.
        Some(_) => Refusal::new("There is a task of that title already. Nothing was done."),
        None => Refusal::new(error),
    })?;
    let text = TaskList::parse(&text).0;
    let text = touch_by_title(text.text(), &to, world)?;
    Ok(Done {
        content: format!("Renamed: {title} is now “{to}”."),
        receipt: Some(format!("Renamed the task “{}” to “{}”", shorten_text(title), shorten_text(&to))),
        changes: vec![list.stage(world, text)],
        taint: taint.clone(),
        ..Done::default()
    })
}

fn touch_task(args: &Which, world: &World) -> Outcome {
    let Found { list, tasks, title, taint } = find_task(&args.task, world)?;
    let text = touch_by_title(tasks.text(), &title, world)?;
    if text == tasks.text() {
        return Ok(Done { taint, ..Done::from_text(format!("“{title}” was touched today already.")) });
    }
    Ok(Done {
        content: format!("“{title}” is touched today."),
        receipt: Some(format!("Touched the task “{}”", shorten_text(&title))),
        changes: vec![list.stage(world, text)],
        taint,
        ..Done::default()
    })
}

fn finish_task(args: &Finish, world: &World) -> Outcome {
    let Found { list, tasks, title, taint } = find_task(&args.task, world)?;
    let (text, _) = tasks.take(&title).map_err(Refusal::new)?;
    let project = tasks.find_titled(&title).and_then(Task::project).filter(|_| taint.is_none());
    let what = format!("{} the task “{title}”", if args.dropped { "Dropped" } else { "Finished" });
    let logged = project.and_then(|name| project::stage_log_entry(&name, &what, world));
    Ok(Done {
        content: format!("{}: {title}", if args.dropped { "Dropped" } else { "Done" }),
        receipt: Some(format!(
            "{} the task “{}”",
            if args.dropped { "Dropped" } else { "Finished" },
            shorten_text(&title)
        )),
        changes: std::iter::once(list.stage(world, text)).chain(logged).collect(),
        taint,
        ..Done::default()
    })
}

/// Finishes the task with these words, ignoring articles. A task with additional words is only suggested, because another may be meant.
pub(super) fn finish_named_task(said: &str, world: &World) -> Outcome {
    let said_words = content_words(said);
    // "I did the bathroom" matches any task about the bathroom.
    let is_generic_verb = |word: &str| matches!(word, "do" | "finish");
    let begins_a_title = [List::Active, List::Backlog].iter().any(|list| {
        list.read(world).tasks().iter().any(|task| content_words(&task.title).first() == said_words.first())
    });
    let wanted = match said_words.split_first() {
        Some((verb, rest)) if is_generic_verb(verb) && !rest.is_empty() && !begins_a_title => rest.to_vec(),
        _ => said_words,
    };
    let lists = [List::Active, List::Backlog].map(|list| (list, list.read(world)));
    let visible_titles = lists.iter().flat_map(|(list, tasks)| {
        tasks.tasks().iter().filter(|task| !is_of_another_chat(task, *list, tasks, world)).map(|task| &task.title)
    });
    let similar: Vec<(&String, Vec<String>)> = visible_titles
        .map(|title| (title, content_words(title)))
        .filter(|(_, words)| !wanted.is_empty() && wanted.iter().all(|word| words.contains(word)))
        .collect();
    let mut equal = similar.iter().filter(|(_, words)| words.len() == wanted.len()).map(|(title, _)| *title);
    let meant = match (similar.as_slice(), equal.next(), equal.next()) {
        (_, Some(title), None) => Some(title),
        ([(title, words)], None, _) if is_task_object(&wanted, words, title) => Some(*title),
        _ => None,
    };
    match (meant, similar.first()) {
        (Some(title), _) => finish_task(&Finish { task: format!("“{title}”"), dropped: false }, world),
        (None, Some((title, _))) => Err(Refusal::new(format!(
            "There's no task exactly like that, but “{title}” is close. If that one is done, say “{title} is done”. Nothing has changed."
        ))),
        (None, None) => Err(Refusal::new("There's no task like that.")),
    }
}

/// Returns true if the words name a task's object: "the vet" of "ring the vet", "the slides" of "finish the budget
/// slides". Generic words don't count.
fn is_task_object(wanted: &[String], words: &[String], title: &str) -> bool {
    const GENERIC: &[&str] =
        &["work", "job", "day", "week", "thing", "stuff", "school", "meeting", "project", "today", "list"];
    // "Milk" isn't the object of "buy milk frother": after the object, a title may only continue with another phrase.
    const PHRASE_STARTS: &[&str] =
        &["for", "at", "by", "before", "on", "to", "about", "with", "in", "of", "from", "this", "next", "and", "until"];
    let lower = title.to_lowercase();
    let last = wanted.last().map_or("", String::as_str);
    let next_word = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .skip_while(|word| *word != last)
        .nth(1);
    let is_whole_object = |part: &[String]| {
        part.ends_with(wanted)
            || (part.starts_with(wanted) && next_word.is_none_or(|word| PHRASE_STARTS.contains(&word)))
    };
    let is_specific = wanted.iter().any(|word| !GENERIC.contains(&word.as_str()));
    // "Called Okafor" matches "call Mr Okafor".
    let has_same_ends = wanted.len() > 1 && wanted.first() == words.first() && wanted.last() == words.last();
    is_specific && (has_same_ends || is_whole_object(words) || words.get(1..).is_some_and(is_whole_object))
}

fn move_task(args: &Move, world: &World) -> Outcome {
    let Found { list: from, tasks, title, taint } = find_task(&args.task, world)?;
    if from == args.to {
        return Ok(Done::from_text(format!("“{title}” is already in {}.", from.name())));
    }
    let target = args.to.read(world);
    if args.to == List::Active {
        let chat = tasks.find(&title).map_err(Refusal::new)?.get("chat").and_then(|chat| chat.parse().ok());
        target.check_room(chat).map_err(Refusal::new)?;
    }
    let (rest, block) = tasks.take(&title).map_err(Refusal::new)?;
    let text = target.put(&block).map_err(|error| match taint {
        // The error names the task.
        Some(_) => {
            Refusal::new(format!("There is a task of that title in {} already. Nothing was done.", args.to.name()))
        }
        None => Refusal::new(error),
    })?;
    let status = if args.to == List::Active { "active" } else { "waiting" };
    let text = TaskList::parse(&text).0.set(&title, "status", Some(status)).map_err(Refusal::new)?;
    let text = touch_by_title(&text, &title, world)?;
    Ok(Done {
        content: format!("Moved to {}: {title}", args.to.name()),
        receipt: Some(format!("Moved the task “{}” to {}", shorten_text(&title), args.to.name())),
        changes: vec![from.stage(world, rest), args.to.stage(world, text)],
        taint,
        ..Done::default()
    })
}

fn show_tasks(args: &Show, world: &World) -> Outcome {
    let list = args.list.read(world);
    let mut lines: Vec<_> = list
        .tasks()
        .iter()
        .enumerate()
        .map(|(number, task)| {
            let mark = if args.numbered { format!("{}.", number + 1) } else { "-".to_owned() };
            let next = task.get("next").map(|next| format!(" — next: {next}")).unwrap_or_default();
            let project = task.project().map(|name| format!(" (project {name})")).unwrap_or_default();
            let due = task.due_date().map(|due| format!(", {}", due_in_words(due, world.local_time().date_naive())));
            format!("{mark} {}{project}{}{next}", task.title, due.unwrap_or_default())
        })
        .collect();
    if lines.is_empty() {
        lines.push(format!("There's nothing in {}.", args.list.name()));
    }
    let prose = list.find_unheaded_lines();
    lines.extend(describe_prose(args.list.path(), &prose));
    // Who asks what is left to do wants to know of the scheduled reminders, too.
    let reminders = reminder::list_visible_reminders(world).count();
    if args.numbered && args.list == List::Active && reminders > 0 {
        lines.push(format!(
            "{} set as well: “list reminders” shows {}.",
            format_count(reminders, "reminder"),
            if reminders == 1 { "it" } else { "them" }
        ));
    }
    let own = list.tasks().iter().map(|task| task.line).chain(prose.iter().map(|prose| prose.line));
    let path = args.list.path();
    let taint =
        own.into_iter().any(|line| others::has_untrusted_lines(path, list.text(), world.foreign_chat(), line, line));
    let shown = |task: &Task| ShownTask { path: path.to_owned(), title: task.title.clone() };
    let changes = world
        .conversation
        .chat
        .filter(|_| args.numbered)
        .map(|chat| Change::ShowTasks { chat: chat.id, tasks: list.tasks().iter().map(shown).collect() });
    Ok(Done {
        taint: taint.then(|| others::ORIGIN.to_owned()),
        changes: changes.into_iter().collect(),
        ..Done::from_text(lines.join("\n"))
    })
}

/// Lists a day's due tasks, a line each; for today, the overdue ones as well. Also returns the source of untrusted text, if any.
pub(super) fn list_due_tasks(date: NaiveDate, world: &World) -> (Vec<String>, Option<String>) {
    let today = world.local_time().date_naive();
    let (mut lines, mut has_untrusted) = (Vec::new(), false);
    for list in [List::Active, List::Backlog] {
        let tasks = list.read(world);
        for task in tasks.tasks().iter().filter(|task| !task.is_unconfirmed() && !decay::is_resting(task)) {
            let Some(due) = task.due_date().filter(|due| *due == date || date == today && *due < today) else {
                continue;
            };
            lines.push(format!("Task: {}, {}", task.title, due_in_words(due, today)));
            has_untrusted |=
                others::has_untrusted_lines(list.path(), tasks.text(), world.foreign_chat(), task.line, task.line);
        }
    }
    (lines, has_untrusted.then(|| others::ORIGIN.to_owned()))
}

/// Quotes the lines of a list that read like tasks but aren't; `None` without such lines.
pub fn describe_prose(path: &str, prose: &[Prose]) -> Option<String> {
    let named: Vec<_> = prose.iter().take(MAX_PROSE).map(|prose| format!("“{}”", prose.text)).collect();
    let first = prose.first()?;
    let more = match prose.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let file = path.rsplit('/').next().unwrap_or(path);
    Some(format!(
        "\nAlso written in {file}: {}{more}, not as a task. Say “add task {}” to make it one.",
        named.join(", "),
        first.text
    ))
}

/// A found task.
struct Found {
    /// The list of the task.
    list: List,
    /// The content of that list.
    tasks: TaskList,
    /// The title.
    title: String,
    /// The source of untrusted text, for another chat's task.
    taint: Option<String>,
}

impl Found {
    fn new(list: List, tasks: TaskList, title: String, world: &World) -> Self {
        let found = tasks.tasks().iter().find(|task| task.title == title);
        let is_theirs = found.is_some_and(|task| is_of_another_chat(task, list, &tasks, world));
        Self { list, title, taint: is_theirs.then(|| others::ORIGIN.to_owned()), tasks }
    }
}

/// Returns true for another chat's task, whose text is untrusted.
fn is_of_another_chat(task: &Task, list: List, tasks: &TaskList, world: &World) -> bool {
    others::has_untrusted_lines(list.path(), tasks.text(), world.foreign_chat(), task.line, task.line)
}

/// Builds the refusal for a task that wasn't found. It names similar tasks except other chats', because a refusal can't taint the cycle.
fn refuse_not_found(mut error: TaskError, world: &World) -> Refusal {
    let is_untrusted = |title: &String| {
        [List::Active, List::Backlog].iter().any(|list| {
            let tasks = list.read(world);
            tasks.tasks().iter().any(|task| task.title == *title && is_of_another_chat(task, *list, &tasks, world))
        })
    };
    let mut left_out = false;
    if let TaskError::NotFound { similar: named, .. } | TaskError::Ambiguous { candidates: named, .. } = &mut error {
        let all = named.len();
        named.retain(|title| !is_untrusted(title));
        left_out = named.len() < all;
    }
    match left_out {
        true => Refusal::new(format!("{error}. Tasks of other chats are similar, too: see the list.")),
        false => Refusal::with_list(error, NamedList::Tasks),
    }
}

/// Parses the number in "2", "#2", "t2" or "task 2".
fn parse_number(query: &str) -> Option<usize> {
    let query = query.trim().to_lowercase();
    let query = query.strip_prefix("task").map_or(query.as_str(), str::trim_start);
    query.trim_start_matches(['#', 't']).parse().ok()
}

/// Finds the task for a number in the list shown to the chat last.
fn find_by_number(number: usize, world: &World) -> Result<Found, Refusal> {
    let why = if world.conversation.shown_tasks.is_empty() {
        "I haven't shown you a list with numbers yet".to_owned()
    } else {
        format!("There is no longer a task {number} in the list that I showed you last")
    };
    // The title in that list isn't mentioned, because the task may be another chat's.
    let unknown = || Refusal::with_list(&why, NamedList::NumberedTasks);
    let shown = number.checked_sub(1).and_then(|at| world.conversation.shown_tasks.get(at)).ok_or_else(unknown)?;
    let first = if shown.path == memory::BACKLOG { List::Backlog } else { List::Active };
    let other = if first == List::Active { List::Backlog } else { List::Active };
    for list in [first, other] {
        let tasks = list.read(world);
        if tasks.tasks().iter().any(|task| task.title == shown.title) {
            return Ok(Found::new(list, tasks, shown.title.clone(), world));
        }
    }
    Err(unknown())
}

/// Returns the exact title of a task, matched ignoring case; `None` for a partial match.
pub(super) fn find_title(title: &str, world: &World) -> Option<String> {
    let lists = [List::Active, List::Backlog].map(|list| list.read(world));
    let mut titles = lists.iter().flat_map(|list| list.tasks()).map(|task| &task.title);
    titles.find(|known| known.trim().eq_ignore_ascii_case(title.trim())).cloned()
}

/// Finds the task for a number, a title, or words of a title.
fn find_task(query: &str, world: &World) -> Result<Found, Refusal> {
    let active = List::Active.read(world);
    if let Some(number) = parse_number(query)
        && active.find_titled(query).is_none()
    {
        return find_by_number(number, world);
    }
    match active.find(query).map(|task| task.title.clone()) {
        Ok(title) => Ok(Found::new(List::Active, active, title, world)),
        Err(TaskError::NotFound { query: asked, similar }) => {
            let backlog = List::Backlog.read(world);
            match backlog.find(query).map(|task| task.title.clone()) {
                Ok(title) => Ok(Found::new(List::Backlog, backlog, title, world)),
                Err(TaskError::NotFound { similar: more, .. }) => {
                    let similar = similar.into_iter().chain(more).collect();
                    Err(refuse_not_found(TaskError::NotFound { query: asked, similar }, world))
                }
                Err(error) => Err(refuse_not_found(error, world)),
            }
        }
        Err(error) => Err(refuse_not_found(error, world)),
    }
}

/// Checks and normalizes a project's name.
fn check_project_name(said: &str) -> Result<String, Refusal> {
    project_name(said).map_err(|error| Refusal::new(format!("{error}. Nothing was done.")))
}

fn touch_by_title(text: &str, title: &str, world: &World) -> Result<String, Refusal> {
    TaskList::parse(text).0.touch(title, world.local_time().date_naive()).map_err(Refusal::new)
}

/// Parses a due day, written as a date or in words.
fn parse_due_day(due: &str, world: &World) -> Result<NaiveDate, Refusal> {
    match parse_only_day(due, world.local_time()) {
        Some(Ok(day)) => Ok(day),
        Some(Err(trouble)) => Err(Refusal::new(format!("“{due}” {trouble}. Nothing was done."))),
        None => Err(Refusal::new(format!(
            "`due` is {due:?}; a day such as `friday` or `2026-11-23` was expected. Nothing was done."
        ))),
    }
}

fn check_time(at: Option<&str>, world: &World) -> Result<(), Refusal> {
    match at {
        Some(at) if task_time(at, world.clock.tz).is_none() => Err(Refusal::new(format!(
            "`at` is {at:?}; a local time such as `2026-11-23 09:00` was expected. Nothing was done."
        ))),
        _ => Ok(()),
    }
}
