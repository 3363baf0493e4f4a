//! `wake approvals`: lists and decides the open questions on this machine.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _},
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use clap::Subcommand;

use reveille_base::{approval_text, types::ApprovalAnswer};
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::standing;
use reveille_policy::amend::TIME;
use reveille_store::{Approval, ApprovalState, Store, StoreError};

use super::{
    OutputFormat, complain,
    out::prompt,
    print, print_exactly, print_json, report_failure,
    values::{self, ListScope},
};

/// Maximum questions of `wake approvals list --all`.
const SHOWN_MAX: usize = 50;
/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 1024;

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
    /// Print the exact bytes that an approval allows, for hashing or for a program.
    #[command(after_help = "Example: wake approvals bytes 1 | sha256sum")]
    Bytes {
        /// Number of the question, from the list.
        #[arg(value_parser = values::parse_number)]
        id: i64,
    },
    /// Allow actions by their numbers, once or for good, and run them.
    #[command(after_help = "\
Examples:
  wake approvals approve 1
  wake approvals approve 1 2 3
  wake approvals approve 1 --always")]
    Approve {
        /// Numbers of the questions, from the list.
        #[arg(value_parser = values::parse_number, required = true)]
        ids: Vec<i64>,
        /// Show the rule for exactly this action, and add it to policy.toml once you confirm it in the terminal.
        #[arg(long)]
        always: bool,
        /// Print one JSON document of what the wake did.
        #[arg(long)]
        json: bool,
    },
    /// Refuse actions by their numbers, and let the work continue without them.
    #[command(after_help = "Example: wake approvals deny 1")]
    Deny {
        /// Numbers of the questions, from the list.
        #[arg(value_parser = values::parse_number, required = true)]
        ids: Vec<i64>,
        /// Print one JSON document of what the wake did.
        #[arg(long)]
        json: bool,
    },
}

impl ApprovalsCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Approve { json, .. } | Self::Deny { json, .. } => *json,
            Self::Bytes { .. } => false,
        }
    }
}

/// Carries out the command. `None` if a question was decided and a wake should resume the work.
pub(super) fn run(config: &Config, command: &ApprovalsCommand, format: OutputFormat) -> Option<ExitCode> {
    let mut store = match cycle::open_store(config) {
        Ok(store) => store,
        Err(error) => return Some(report_failure(&error)),
    };
    let done = match command {
        ApprovalsCommand::List { all, .. } => {
            list_questions(config, &store, ListScope::from_flag(*all), format).map(|()| Some(ExitCode::SUCCESS))
        }
        ApprovalsCommand::Bytes { id } => print_action_bytes(&store, *id).map(Some),
        ApprovalsCommand::Approve { ids, always: true, .. } => match ids.as_slice() {
            [id] => allow_always(config, &mut store, *id),
            _ => {
                complain("`--always` takes one question at a time. Nothing was changed.");
                Ok(Some(ExitCode::from(super::EXIT_USAGE)))
            }
        },
        ApprovalsCommand::Approve { ids, .. } => decide_questions(config, &mut store, ids, ApprovalAnswer::Yes),
        ApprovalsCommand::Deny { ids, .. } => decide_questions(config, &mut store, ids, ApprovalAnswer::No),
    };
    done.unwrap_or_else(|error| Some(report_failure(&error)))
}

/// Decides these questions. Reports those that aren't open and still decides the others.
fn decide_questions(
    config: &Config,
    store: &mut Store,
    ids: &[i64],
    answer: ApprovalAnswer,
) -> Result<Option<ExitCode>, StoreError> {
    let (mut has_decided, mut refused) = (false, None);
    for id in ids {
        if store.approvals_mut().decide_approval(*id, answer, config.clock().now())? {
            has_decided = true;
        } else {
            refused = Some(report_not_open(config, store, *id)?);
        }
    }
    Ok(if has_decided { None } else { refused })
}

/// Reports why a question can't be decided.
fn report_not_open(config: &Config, store: &Store, id: i64) -> Result<ExitCode, StoreError> {
    let now = config.clock().now();
    let why = match store.approvals().find_approval(id)? {
        None => format!("There is no question {id}."),
        Some(approval) if approval.is_expired(now) => {
            format!("Question {id} has expired without an answer, so I won't do it.")
        }
        Some(approval) => format!("Question {id} is already {}.", approval.state.as_str()),
    };
    complain(&format!("{why} Nothing was changed. `wake approvals list` shows the open questions."));
    Ok(ExitCode::from(super::EXIT_FAILED))
}

/// Allows an action permanently: shows the rule, and adds it after a yes.
fn allow_always(config: &Config, store: &mut Store, id: i64) -> Result<Option<ExitCode>, StoreError> {
    let now = config.clock().now();
    let Some(approval) = store.approvals().find_approval(id)?.filter(|asked| is_open(asked, now)) else {
        return report_not_open(config, store, id).map(Some);
    };
    let Some(rule) = render_rule(config, &approval) else {
        complain(&format!(
            "No permanent rule can allow the action of question {id}, so nothing was changed. `wake approvals approve {id}` allows it once."
        ));
        return Ok(Some(ExitCode::from(super::EXIT_FAILED)));
    };
    if !std::io::stdin().is_terminal() {
        complain("`--always` asks for your yes in a terminal, so nothing was changed.");
        return Ok(Some(ExitCode::from(super::EXIT_USAGE)));
    }
    complain(&rule);
    prompt(ADD_RULE_PROMPT);
    let mut answer = String::new();
    std::io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut answer).ok();
    if !is_yes(&answer) {
        complain(&format!("Nothing was changed; question {id} is still open."));
        return Ok(Some(ExitCode::SUCCESS));
    }
    match add_rule(config, store, &approval)? {
        Ok(true) => Ok(None),
        Ok(false) => report_not_open(config, store, id).map(Some),
        Err(why) => {
            complain(&why);
            Ok(Some(ExitCode::from(super::EXIT_FAILED)))
        }
    }
}

fn is_open(asked: &Approval, now: DateTime<Utc>) -> bool {
    asked.state == ApprovalState::Pending && !asked.is_expired(now)
}

/// The prompt that asks whether to add a rule.
pub(super) const ADD_RULE_PROMPT: &str = "Add this rule, and allow it now? y or n: ";

/// Returns `true` for a yes.
pub(super) fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Renders the rule that would allow the action permanently, with an explanation. `None` if no rule is offered.
pub(super) fn render_rule(config: &Config, approval: &Approval) -> Option<String> {
    let rule = approval.rule.and_then(|_| standing::derive_rule(&approval.tool, &approval.action))?;
    Some(format!(
        "This rule would be added to {}:\n\n{rule}\nFrom then on exactly this runs unasked, unless I've read text by others. `wake \
         policy rules` lists it and can remove it.",
        config.policy_path().display()
    ))
}

/// Adds the rule of a question and allows its action. `Ok(false)` if someone else has decided it; then nothing is
/// added. The inner error is a message for the person.
pub(super) fn add_rule(
    config: &Config,
    store: &mut Store,
    approval: &Approval,
) -> Result<Result<bool, String>, StoreError> {
    let now = config.clock().now();
    // Time has passed while the person read the rule.
    if !store.approvals().find_approval(approval.id)?.is_some_and(|asked| is_open(&asked, now)) {
        return Ok(Ok(false));
    }
    let from = format!("in the terminal on {}", now.with_timezone(&config.timezone).format(TIME));
    match standing::add_rule(config, approval, &from) {
        Ok(_) if store.rules_mut().decide_for_good(approval.id, now)? => Ok(Ok(true)),
        Ok(_) => Ok(Err(format!(
            "The rule was added, but question {} was answered elsewhere just before. `wake policy rules` can remove the rule.",
            approval.id
        ))),
        Err(error) => Ok(Err(format!(
            "The rule wasn't added: {error}. Nothing was changed; question {} is still open.",
            approval.id
        ))),
    }
}

fn print_action_bytes(store: &Store, id: i64) -> Result<ExitCode, StoreError> {
    Ok(match store.approvals().find_approval(id)? {
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

fn list_questions(config: &Config, store: &Store, scope: ListScope, format: OutputFormat) -> Result<(), StoreError> {
    let approvals = match scope {
        ListScope::All => store.approvals().last_approvals(SHOWN_MAX)?,
        ListScope::Open => store.approvals().pending_approvals(config.clock().now())?,
    };
    if format.is_json() {
        print_json(&approvals);
        return Ok(());
    }
    if approvals.is_empty() {
        complain("No open questions.");
    }
    for approval in &approvals {
        print(&format!("{}\n", render_list_entry(config, approval)));
    }
    Ok(())
}

/// Renders a question for the list.
fn render_list_entry(config: &Config, approval: &Approval) -> String {
    let Approval { id, state, .. } = approval;
    let state = match state {
        ApprovalState::Pending => format!(
            "Expires {}. To allow it: wake approvals approve {id}. To refuse: wake approvals deny {id}.{}",
            format_expiry(config, approval),
            if approval.rule.is_some() {
                format!(" Always: wake approvals approve {id} --always.")
            } else {
                String::new()
            }
        ),
        state => format!("It is {}.", state.as_str()),
    };
    format!("{}{state}\n", render_question(approval))
}

/// Renders an open question for the person at the prompt.
pub(super) fn render_for_prompt(config: &Config, approval: &Approval) -> String {
    format!("{}Expires {}.\n", render_question(approval), format_expiry(config, approval))
}

fn format_expiry(config: &Config, approval: &Approval) -> String {
    let until =
        approval.expires_at.map(|at| at.with_timezone(&config.timezone).format("%a %-d %b at %H:%M").to_string());
    until.unwrap_or_else(|| "?".to_owned())
}

/// Renders the question: one sentence, the rest of the action in full, and the reasons.
fn render_question(approval: &Approval) -> String {
    let Approval { id, tool, action, reasons, origin, named, .. } = approval;
    let described = approval_text::describe_action(tool, action);
    let origin = origin
        .as_ref()
        .map(|origin| {
            let origin = approval_text::escape_hidden(origin);
            format!("I had read untrusted text before this ({origin}), so it may be somebody else's wish, not yours.\n")
        })
        .unwrap_or_default();
    format!(
        "Question {id}: {} Risk: {}.\n{}{}Why I ask: {}\n{origin}",
        described.plain_sentence(),
        approval.risk().describe(),
        described.render_plain(),
        approval_text::render_files_plain(named),
        approval_text::escape_hidden(&reasons.join(" "))
    )
}
