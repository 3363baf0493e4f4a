//! `wake queue`: lists waiting, failed and undone messages, and carries out decisions on them.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use clap::Subcommand;

use reveille_base::{
    types::ChatRef,
    words::{format_local_time, one_line, truncate_text},
};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::{Incoming, Store, StoreError, database};

use super::{
    EXIT_FAILED, OutputFormat, complain, print, print_json, report_failure,
    values::{self, ListScope},
};

/// Maximum characters of a listed message.
const MAX_TEXT_CHARS: usize = 80;

#[derive(Debug, Subcommand)]
pub(super) enum QueueCommand {
    /// List messages that wait, are kept for an AI model that can answer them, or were given up or undone.
    #[command(after_help = "\
Examples:
  wake queue list
  wake queue list --all --json | jq -r .text")]
    List {
        /// Include dropped messages, and those closed because their time had passed.
        #[arg(long)]
        all: bool,
        /// Print one JSON object per line: id, received_at, state, chat_id, text.
        #[arg(long)]
        json: bool,
    },
    /// Try a message again at the next wake.
    #[command(after_help = "Example: wake queue retry 12")]
    Retry {
        /// Its number, from the list.
        #[arg(value_parser = values::parse_number)]
        id: i64,
    },
    /// Take a message out of the queue. Its text stays in the database.
    #[command(after_help = "Example: wake queue drop 12")]
    Drop {
        /// Its number, from the list.
        #[arg(value_parser = values::parse_number)]
        id: i64,
    },
}

impl QueueCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::List { json: true, .. })
    }
}

/// The state of a message, as JSON and for people.
#[derive(serde::Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State {
    Waits,
    Kept {
        by: String,
    },
    /// Its cycle waits for an answer from a person.
    Asked {
        question: i64,
    },
    /// The row was inserted by hand and can't be read.
    Unreadable {
        column: &'static str,
        why: String,
    },
    GivenUp {
        attempts: i64,
    },
    Undone,
    Stale,
    Dropped,
}

impl State {
    fn describe(&self) -> String {
        match self {
            Self::Waits => "waits".to_owned(),
            Self::Kept { by } => format!("kept: {by} can't answer it"),
            Self::Asked { question } => format!("waits for your answer to question {question} (wake approvals list)"),
            Self::Unreadable { why, .. } => why.clone(),
            Self::GivenUp { attempts } => format!("given up after {attempts} tries"),
            Self::Undone => "undone".to_owned(),
            Self::Stale => "closed: its time is over".to_owned(),
            Self::Dropped => "dropped".to_owned(),
        }
    }
}

/// A message as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct Line {
    id: i64,
    received_at: Option<DateTime<Utc>>,
    #[serde(flatten)]
    state: State,
    #[serde(rename = "chat_id")]
    chat: ChatRef,
    text: String,
}

impl Line {
    fn from_message(message: Incoming, state: State) -> Self {
        let Incoming { id, received_at, chat, text, .. } = message;
        Self { id, received_at, state, chat, text }
    }

    fn render(&self, config: &Config) -> String {
        let at = self.received_at.map(|at| format_local_time(at, config.timezone));
        let text = truncate_text(&one_line(&self.text), MAX_TEXT_CHARS);
        let (at, state) = (at.unwrap_or_default(), self.state.describe());
        let chat = match self.chat {
            ChatRef::TERMINAL => "terminal".to_owned(),
            id => format!("chat {id}"),
        };
        format!("{}  {at}  {state}  {chat}  {text}\n", self.id)
    }
}

pub(super) fn run(config: &Config, action: &QueueCommand, format: OutputFormat) -> ExitCode {
    if let Err(error) = workspace::check_database(config) {
        return report_failure(&error);
    }
    let store = match database::open_existing(config) {
        Ok(Some(store)) => Ok(store),
        Ok(None) => {
            let place = database::name(config);
            complain(&format!("There is no queue at {place} yet. `wake --once` creates it."));
            return ExitCode::from(EXIT_FAILED);
        }
        Err(error) => Err(error),
    };
    let result = store.and_then(|mut store| match action {
        QueueCommand::List { all, .. } => {
            for line in list_messages(&store, ListScope::from_flag(*all))? {
                if format.is_json() {
                    print_json(&line);
                } else {
                    print(&line.render(config));
                }
            }
            Ok(true)
        }
        QueueCommand::Retry { id } => store.inbox_mut().retry_message(*id),
        QueueCommand::Drop { id } => store.inbox_mut().discard_message(*id, config.clock().now()),
    });
    match (result, action) {
        (Ok(true), QueueCommand::List { .. }) => ExitCode::SUCCESS,
        (Ok(true), QueueCommand::Retry { id }) => {
            complain(&format!("Message {id} will be tried again at the next wake."));
            ExitCode::SUCCESS
        }
        (Ok(true), QueueCommand::Drop { id }) => {
            complain(&format!("Message {id} is out of the queue; `wake queue retry {id}` brings it back."));
            ExitCode::SUCCESS
        }
        (Ok(false), _) => {
            complain("There is no waiting, given-up or undone message with that number. `wake queue list` shows them.");
            ExitCode::from(EXIT_FAILED)
        }
        (Err(error), _) => report_failure(&error),
    }
}

/// Lists waiting messages first, then those that need a decision.
fn list_messages(store: &Store, scope: ListScope) -> Result<Vec<Line>, StoreError> {
    let parked = store.cycles().parked_cycles()?;
    let question_of = |message: &Incoming| {
        let cycle = parked.iter().find(|cycle| message.cycle_id.as_ref() == Some(&cycle.cycle_id))?;
        cycle.question.as_ref().map(|question| question.id)
    };
    let waiting = store.inbox().list_queued_messages()?.into_iter().map(|message| {
        let state = match (question_of(&message), message.held_for.clone()) {
            (Some(question), _) => State::Asked { question },
            (None, Some(by)) => State::Kept { by },
            (None, None) => State::Waits,
        };
        Line::from_message(message, state)
    });
    let odd = store.odd_rows()?.into_iter().filter(|row| row.table == "incoming_messages").map(|row| {
        let state = State::Unreadable { column: row.column, why: row.describe() };
        Line::from_message(Incoming { id: row.id, ..Incoming::default() }, state)
    });
    let given_up = store.inbox().dead_letters()?.into_iter().map(|message| {
        let attempts = message.attempts;
        Line::from_message(message, State::GivenUp { attempts })
    });
    let undone = store.inbox().undone_letters()?.into_iter().map(|message| Line::from_message(message, State::Undone));
    let (stale, dropped) = match scope {
        ListScope::All => (store.inbox().stale_letters()?, store.inbox().dropped_letters()?),
        ListScope::Open => (Vec::new(), Vec::new()),
    };
    let stale = stale.into_iter().map(|message| Line::from_message(message, State::Stale));
    let dropped = dropped.into_iter().map(|message| Line::from_message(message, State::Dropped));
    Ok(waiting.chain(odd).chain(given_up).chain(undone).chain(stale).chain(dropped).collect())
}
