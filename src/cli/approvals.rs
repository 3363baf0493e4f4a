//! `wake approvals`: the questions that wait for a person, decided at this machine.

use std::process::ExitCode;

use clap::Subcommand;

use super::{complain, failed, print, print_exactly, print_json, values};
use crate::{
    approval_text,
    config::Config,
    cycle,
    store::{Approval, ApprovalState, Store, StoreError},
};

/// Questions that `wake approvals list --all` shows.
const SHOWN_MAX: usize = 50;

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List the open questions, each action in full.
    #[command(after_help = "\
Examples:
  wake approvals list
  wake approvals list --all --json | jq '.[0].action'")]
    List {
        /// Show decided ones too
        #[arg(long)]
        all: bool,
        /// Print one JSON document: an array of questions.
        #[arg(long)]
        json: bool,
    },
    /// Print the exact bytes that a yes allows, for hashing or for a program.
    #[command(after_help = "Example: wake approvals bytes 1 | sha256sum")]
    Bytes {
        /// Number of the question, from the list.
        #[arg(value_parser = values::number)]
        id: i64,
    },
    /// Allow an action once, and run it.
    #[command(after_help = "Example: wake approvals approve 1")]
    Approve {
        /// Number of the question, from the list.
        #[arg(value_parser = values::number)]
        id: i64,
        /// Print one JSON document of what the wake did.
        #[arg(long)]
        json: bool,
    },
    /// Refuse an action, and let the work continue without it.
    #[command(after_help = "Example: wake approvals deny 1")]
    Deny {
        /// Number of the question, from the list.
        #[arg(value_parser = values::number)]
        id: i64,
        /// Print one JSON document of what the wake did.
        #[arg(long)]
        json: bool,
    },
}

impl ApprovalsCommand {
    /// Whether JSON is asked for.
    pub(super) fn json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Approve { json, .. } | Self::Deny { json, .. } => *json,
            Self::Bytes { .. } => false,
        }
    }
}

/// Carries it out. None: something was decided, and a wake is to go on.
pub(super) fn run(config: &Config, action: &ApprovalsCommand, as_json: bool) -> Option<ExitCode> {
    let mut store = match cycle::open_store(config) {
        Ok(store) => store,
        Err(error) => return Some(failed(&error)),
    };
    let done = match action {
        ApprovalsCommand::List { all, .. } => list(config, &store, *all, as_json).map(|()| Some(ExitCode::SUCCESS)),
        ApprovalsCommand::Bytes { id } => bytes(&store, *id).map(Some),
        ApprovalsCommand::Approve { id, .. } => decide(config, &mut store, *id, true),
        ApprovalsCommand::Deny { id, .. } => decide(config, &mut store, *id, false),
    };
    done.unwrap_or_else(|error| Some(failed(&error)))
}

fn decide(config: &Config, store: &mut Store, id: i64, is_approval: bool) -> Result<Option<ExitCode>, StoreError> {
    let now = config.clock().now();
    if store.decide(id, is_approval, now)? {
        return Ok(None);
    }
    let why = match store.approval(id)? {
        None => format!("There is no question {id}."),
        Some(approval) if approval.is_expired(now) => {
            format!("Question {id} has expired, so it counts as a no.")
        }
        Some(approval) => format!("Question {id} is already {}.", approval.state.as_str()),
    };
    complain(&format!("{why} Nothing was changed. `wake approvals list` shows the open questions."));
    Ok(Some(ExitCode::from(super::EXIT_FAILED)))
}

fn bytes(store: &Store, id: i64) -> Result<ExitCode, StoreError> {
    Ok(match store.approval(id)? {
        Some(approval) => {
            print_exactly(&approval.action);
            ExitCode::SUCCESS
        }
        None => {
            complain(&format!("There is no question {id}. `wake approvals list` shows the open questions."));
            ExitCode::from(super::EXIT_FAILED)
        }
    })
}

fn list(config: &Config, store: &Store, all: bool, as_json: bool) -> Result<(), StoreError> {
    let approvals =
        if all { store.last_approvals(SHOWN_MAX)? } else { store.pending_approvals(config.clock().now())? };
    if as_json {
        print_json(&approvals);
        return Ok(());
    }
    if approvals.is_empty() {
        complain("No open questions.");
    }
    for approval in &approvals {
        print(&format!("{}\n", described(config, approval)));
    }
    Ok(())
}

/// A question as it stands in the list.
fn described(config: &Config, approval: &Approval) -> String {
    let Approval { id, state, .. } = approval;
    let state = match state {
        ApprovalState::Pending => format!(
            "expires {}. To allow it: wake approvals approve {id}. To refuse: wake approvals deny {id}.",
            until(config, approval)
        ),
        state => state.as_str().to_owned(),
    };
    format!("{}{state}\n", asked(approval))
}

/// An open question for whoever can answer it in place.
pub(super) fn in_place(config: &Config, approval: &Approval) -> String {
    format!("{}expires {}\n", asked(approval), until(config, approval))
}

fn until(config: &Config, approval: &Approval) -> String {
    let until =
        approval.expires_at.map(|at| at.with_timezone(&config.timezone).format("%a %-d %b at %H:%M").to_string());
    until.unwrap_or_else(|| "?".to_owned())
}

/// What is asked: who asks, the exact action, and why.
fn asked(approval: &Approval) -> String {
    let Approval { id, tool, action, risk, reasons, origin, cycle_id, .. } = approval;
    let origin = origin
        .as_ref()
        .map(|origin| format!("before this it had read: {}\n", approval_text::visible(origin)))
        .unwrap_or_default();
    format!(
        "question {id} ({risk}), asked by the wake {cycle_id}\n{}SHA-256 of its {} bytes: {}\n{origin}why: {}\n",
        approval_text::action(tool, action),
        action.len(),
        approval_text::sha256(action),
        approval_text::visible(&reasons.join(" "))
    )
}
