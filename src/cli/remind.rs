//! `wake remind` and `wake today`: reminders and the day's overview, at once and without a model.

use std::process::ExitCode;

use clap::Subcommand;

use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_memory::outside;

use super::{EXIT_USAGE, OutputFormat, complain, print_json, report_failure, show, task::report_refusal};
use crate::orders::{
    reminders::{self, ReminderOrder},
    today,
};
use crate::overview::{Overview, Viewer};

#[derive(Debug, clap::Args)]
pub(super) struct RemindArguments {
    #[command(subcommand)]
    action: Option<RemindCommand>,
    /// What to remind you of; without --at, also when, in one sentence.
    text: Vec<String>,
    /// When: 'tomorrow 9', 'friday 14:30', '2026-11-23 09:00', 'every weekday at 8', 20min, …
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
}

#[derive(Debug, Subcommand)]
enum RemindCommand {
    /// List the reminders, the next one first.
    List {
        /// Print one JSON object per line: id, text, next_at, local, every, chat_id.
        #[arg(long)]
        json: bool,
    },
    /// End a reminder: it won't be sent again.
    Done {
        /// Its number from the list, or words that only this one has.
        #[arg(required = true)]
        reminder: Vec<String>,
    },
    /// After a change of time zone: move reminders that keep the old zone's time to the same hour here.
    Here,
    /// The same as done.
    Cancel {
        /// Its number from the list, or words that only this one has.
        #[arg(required = true)]
        reminder: Vec<String>,
    },
    /// Put a reminder off; one that has just come is set again.
    #[command(after_help = "\
Examples:
  wake remind snooze 3 20min
  wake remind snooze 3 tomorrow at 9")]
    Snooze {
        /// Its number.
        reminder: String,
        /// Until when, or how long: 20min, 'tomorrow 9', …
        #[arg(required = true)]
        until: Vec<String>,
    },
}

impl RemindArguments {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.action, Some(RemindCommand::List { json: true }))
    }
}

/// Carries out the command. Without an action and a text, lists the reminders.
pub(super) fn run(config: &Config, arguments: &RemindArguments, format: OutputFormat) -> ExitCode {
    let mut store = match cycle::open_store(config) {
        Ok(store) => store,
        Err(error) => return report_failure(&error),
    };
    let now = config.clock().now();
    let (text, until);
    let order = match &arguments.action {
        None if arguments.text.is_empty() && arguments.at.is_some() => {
            complain("Say what to remind you of: wake remind \"call Anna\" --at \"tomorrow 9\"");
            return ExitCode::from(EXIT_USAGE);
        }
        None if !arguments.text.is_empty() => {
            text = arguments.text.join(" ");
            ReminderOrder::Set { text: &text, at: arguments.at.as_deref() }
        }
        None | Some(RemindCommand::List { .. }) if format.is_json() => {
            return match reminders::list_active(&store, config.timezone) {
                Ok(listed) => {
                    listed.iter().for_each(print_json);
                    ExitCode::SUCCESS
                }
                Err(error) => report_failure(&error),
            };
        }
        None | Some(RemindCommand::List { .. }) => {
            return match reminders::render_list(&store, config, now) {
                Ok(list) => {
                    show::print_page(config, &list);
                    ExitCode::SUCCESS
                }
                Err(error) => report_refusal(&error),
            };
        }
        Some(RemindCommand::Done { reminder } | RemindCommand::Cancel { reminder }) => {
            text = reminder.join(" ");
            ReminderOrder::End { which: &text }
        }
        Some(RemindCommand::Here) => ReminderOrder::Here,
        Some(RemindCommand::Snooze { reminder, until: words }) => {
            until = words.join(" ");
            ReminderOrder::Snooze { which: reminder, until: &until }
        }
    };
    match reminders::carry_out(&mut store, config, &super::build_redactor(config), now, order) {
        Ok(told) => {
            complain(&told);
            if store.chats().find_stop_order().ok().flatten().is_some() {
                complain("All work is stopped: nothing will be sent before `wake resume`.");
            }
            ExitCode::SUCCESS
        }
        Err(error) => report_refusal(&error),
    }
}

/// Prints the overview for `wake today`.
pub(super) fn show_today(config: &Config, format: OutputFormat) -> ExitCode {
    if let Err(code) = super::history::open_or_create(config) {
        return code;
    }
    let (now, redactor) = (config.clock().now(), super::build_redactor(config));
    let shown = |text: &str| redactor.redact(&outside::strip_marks(text));
    let today = cycle::open_store(config).map_err(|error| error.to_string()).and_then(|store| {
        let today = store.with_snapshot(|| {
            let overview = Overview::read(&store, config, now, Viewer::Console)?;
            today::build_day(&overview, &store, config, now, shown)
        });
        today.map_err(|error| error.to_string())
    });
    match today {
        Ok(today) if format.is_json() => print_json(&today),
        Ok(today) => show::print_page(config, &today.render(now, config.timezone)),
        Err(error) => return report_failure(&error),
    }
    ExitCode::SUCCESS
}
