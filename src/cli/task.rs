//! `wake task`: lists and changes tasks at once, without a model.

use std::process::ExitCode;

use clap::Subcommand;

use reveille_account::provenance::hand::{PersonSession, PersonSessionTools};
use reveille_base::types::ChatRef;
use reveille_base::words::capitalize;
use reveille_config::Config;
use reveille_cycle::is_step_held;
use reveille_memory::{
    ACTIVE,
    steps::{TaskSteps, steps_path},
    tasks::Task,
};
use reveille_store::database;
use reveille_tools::{Documents, NamedList};

use super::{EXIT_FAILED, OutputFormat, complain, print_json, provenance, report_failure, show};
use crate::orders::{
    OrderError,
    lists::{self, ListOptions},
    tasks::{self, NewTask, TaskOrder, TaskOutcome},
};

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// List the tasks in hand and those that wait. The other commands take the numbers of this list.
    List {
        /// Print one JSON object per line: number, list, title, status, touched, quiet_days, next, at, due, priority, project, chat_id.
        #[arg(long)]
        json: bool,
    },
    /// Add a task. At most seven are in hand; --backlog puts it into the backlog.
    #[command(after_help = "\
Examples:
  wake task add 'Write the report' --due friday --next 'an outline'
  wake task add 'Learn the cello' --backlog")]
    Add {
        /// A short title.
        #[arg(required = true)]
        title: Vec<String>,
        /// Add it to the backlog.
        #[arg(long)]
        backlog: bool,
        /// When it is due: friday, 2026-11-23, …
        #[arg(long, value_name = "WHEN")]
        due: Option<String>,
        /// Its priority: high, low, …
        #[arg(long, value_name = "WORD")]
        priority: Option<String>,
        /// The next step.
        #[arg(long, value_name = "TEXT")]
        next: Option<String>,
        /// When the assistant should take the next step by itself: 'tomorrow 9:00', …
        #[arg(long, value_name = "WHEN")]
        at: Option<String>,
        /// Why it matters.
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// The project it belongs to.
        #[arg(long, value_name = "NAME")]
        project: Option<String>,
    },
    /// Finish a task: it leaves its list.
    #[command(after_help = "Example: wake task done 2")]
    Done {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Give a task up: it leaves its list.
    Drop {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Pause a long task: it takes no further step.
    Pause {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Resume a long task at the step where it stopped.
    #[command(after_help = "\
Examples:
  wake task resume 'the photos'
  wake task resume 2 --advice 'the blue disk'
  wake task resume 2 --skip")]
    Resume {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
        /// Skip that step.
        #[arg(long)]
        skip: bool,
        /// Advice for it.
        #[arg(long, value_name = "TEXT")]
        advice: Option<String>,
    },
    /// Show a task in full, with its steps.
    Show {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Move a task to the backlog.
    Wait {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Move a waiting task to the tasks in hand.
    Start {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Note that you worked on a task today.
    Touch {
        /// Its number in the list, its title, or words that only this one has.
        #[arg(required = true)]
        task: Vec<String>,
    },
    /// Set a line of a task, or remove it: next, at, due, priority, status, why, project, title, or one of your own.
    #[command(after_help = "\
Examples:
  wake task set 2 due 'next friday'
  wake task set 'the report' title 'Write the annual report'
  wake task set 2 priority           removes it")]
    Set {
        /// Its number in the list, its title, or words that only this one has.
        task: String,
        /// Which line.
        key: String,
        /// The line's new text; without it, the line is removed.
        value: Option<String>,
    },
}

impl TaskCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::List { json: true })
    }

    /// Returns the order to carry out. `None` for commands that only read.
    fn to_order(&self) -> Option<TaskOrder> {
        let joined = |words: &[String]| words.join(" ");
        Some(match self {
            Self::List { .. } | Self::Show { .. } => return None,
            Self::Add { title, backlog, due, priority, next, at, why, project } => TaskOrder::Add(NewTask {
                title: joined(title),
                in_backlog: *backlog,
                next: next.clone(),
                at: at.clone(),
                due: due.clone(),
                priority: priority.clone(),
                why: why.clone(),
                project: project.clone(),
            }),
            Self::Done { task } => TaskOrder::Done { task: joined(task) },
            Self::Drop { task } => TaskOrder::Drop { task: joined(task) },
            Self::Pause { task } => TaskOrder::Pause { task: joined(task) },
            Self::Resume { task, skip, advice } => {
                TaskOrder::Resume { task: joined(task), skip: *skip, advice: advice.clone() }
            }
            Self::Touch { task } => TaskOrder::Touch { task: joined(task) },
            Self::Wait { task } => TaskOrder::Move { task: joined(task), to_backlog: true },
            Self::Start { task } => TaskOrder::Move { task: joined(task), to_backlog: false },
            Self::Set { task, key, value } => {
                TaskOrder::Set { task: task.clone(), key: key.clone(), value: value.clone() }
            }
        })
    }
}

/// Carries out the command.
pub(super) fn run(config: &Config, command: &TaskCommand, format: OutputFormat) -> ExitCode {
    if let Err(code) = super::history::open_or_create(config) {
        return code;
    }
    match (command.to_order(), command) {
        (Some(order), _) => match carry_out_order(config, &order) {
            Ok(ordered) => report_result(&ordered),
            Err(error) => report_refusal(&error),
        },
        (None, TaskCommand::Show { task }) => match find_task(config, &task.join(" ")) {
            Ok(text) => {
                show::print_page(config, &text);
                ExitCode::SUCCESS
            }
            Err(error) => report_refusal(&error),
        },
        (None, _) => list_tasks(config, format),
    }
}

fn carry_out_order(config: &Config, order: &TaskOrder) -> Result<TaskOutcome, OrderError> {
    let (clock, redactor) = (config.clock(), super::build_redactor(config));
    let tools = PersonSessionTools { config, clock: clock.as_ref(), redactor: &redactor };
    let mut hand = PersonSession::take(tools)?;
    let done = tasks::carry_out(&mut hand, tools, order);
    let ended = hand.release();
    let done = done?;
    Ok(ended.map(|()| done)?)
}

fn report_result(ordered: &TaskOutcome) -> ExitCode {
    complain(&ordered.told);
    for left in &ordered.left_alone {
        complain(&format!("{} has changes that weren't committed: it {}.", left.path, left.why));
    }
    ExitCode::SUCCESS
}

/// Reports why an order was refused.
pub(super) fn report_refusal(error: &OrderError) -> ExitCode {
    match error {
        OrderError::Refused(_) | OrderError::Unknown { .. } => {
            complain(&error.to_string());
            ExitCode::from(EXIT_FAILED)
        }
        OrderError::Memory(error) => provenance::report_refusal(error),
        OrderError::Store(error) => report_failure(error),
    }
}

fn list_tasks(config: &Config, format: OutputFormat) -> ExitCode {
    let [active, backlog] = tasks::read_lists(&Documents::new(&config.repo_dir(), Vec::new()));
    let today = config.clock().now().with_timezone(&config.timezone).date_naive();
    let looks = ListOptions { most: usize::MAX, none: "No tasks. `wake task add 'Write the report'` adds one." };
    let (text, shown) = lists::render_lists(&active, &backlog, today, looks);
    // The listed numbers are valid from now on, for further commands and in messages at the terminal.
    let noted = reveille_cycle::open_store(config).map_err(|error| error.to_string()).and_then(|mut store| {
        store.outbox_mut().show_tasks(ChatRef::TERMINAL, &shown).map_err(|error| error.to_string())
    });
    if let Err(error) = noted {
        complain(&format!("I can't save the numbers of this list ({error}). Name a task by its title."));
    }
    if format.is_json() {
        lists::list_tasks(&active, &backlog, today).iter().for_each(print_json);
    } else {
        show::print_page(config, &text);
    }
    ExitCode::SUCCESS
}

/// Finds a single task and renders it.
fn find_task(config: &Config, query: &str) -> Result<String, OrderError> {
    let shown = match database::open_read_only(config)? {
        Some(store) => store.outbox().shown_tasks(ChatRef::TERMINAL)?,
        None => Vec::new(),
    };
    let number = query.trim_start_matches('#').parse::<usize>().ok();
    let numbered = number.and_then(|number| shown.get(number.checked_sub(1)?));
    let query = numbered.map_or_else(|| query.to_owned(), |task| format!("“{}”", task.title));
    let documents = Documents::new(&config.repo_dir(), Vec::new());
    let [active, backlog] = tasks::read_lists(&documents);
    let first = active.find(&query).cloned();
    let task = match first {
        Ok(task) => Ok((ACTIVE, task)),
        Err(error) => backlog.find(&query).cloned().map(|task| ("", task)).map_err(|_| error),
    };
    let (list, task) =
        task.map_err(|error| OrderError::Unknown { why: capitalize(&error.to_string()), list: NamedList::Tasks })?;
    let text = render_task(&task, if list == ACTIVE { "in hand" } else { "waiting" });
    let Some(path) = task.steps_name().and_then(steps_path) else { return Ok(text) };
    let listed = TaskSteps::parse(&documents.text(&path)).0.render_list();
    let held = match database::open_read_only(config)? {
        Some(store) if is_step_held(&store, &task, |path| Ok(documents.get(path)))? => {
            "\n\nIts next step was started, but then given up or undone. `wake task resume` starts it again."
        }
        _ => "",
    };
    Ok(format!("{text}\n\n{listed}{held}"))
}

fn render_task(task: &Task, list: &str) -> String {
    let keys: Vec<String> = task.keys.iter().map(|key| format!("- {}: {}", key.name, key.value)).collect();
    let parts = [format!("**{}** ({list})", task.title), keys.join("\n"), task.body.clone()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
