//! What the offline mind does and says about a message that its grammar understood.

use serde_json::{Value, json};

use super::{
    Outcomes,
    grammar::{Command, Parsed, Which},
};
use crate::schedule::When;

/// What can be said to it.
pub(crate) const HELP: &str = "I work without a mind right now (no `ANTHROPIC_API_KEY`), so I understand a few things, in plain words:\n\
- **remember that** the wifi code is 1234 · **what do you know about** the wifi?\n\
- **remind me** to call Anna **tomorrow at 9** · **list reminders** · **cancel reminder** 2\n\
- **add task** buy milk · **list tasks** · **task** buy milk **done**\n\
- **status**\n\n\
Anything else is kept, and answered when I have a mind that can.";

/// The answer to a message that was edited after it was taken up.
pub(super) const CORRECTION: &str = "You edited an earlier message. I work without a mind right now and can't tell what that changes, so \
I have changed nothing: please say it in a new message. What I did before can be taken back, as with **list reminders** and \
**cancel reminder** 2.";

/// One thing to do or to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Text that needs no tool.
    Say(String),
    /// A tool call, and how its outcome is said.
    Call {
        /// Unique in the conversation.
        id: String,
        /// The tool.
        tool: &'static str,
        /// Its arguments.
        input: Value,
        /// What stands in the plan; none for looking something up.
        step: Option<String>,
        /// What is said before its outcome.
        lead: Option<String>,
        /// Whether a message is kept when this call finds nothing.
        keep_on_failure: bool,
    },
}

/// What is to be done about a message; `None` when it has to be kept.
pub(super) fn parts_of(id: i64, parsed: Parsed) -> Option<Vec<Part>> {
    match parsed {
        Parsed::Commands(commands) => {
            let parts =
                commands.into_iter().enumerate().flat_map(|(at, command)| parts(&format!("m{id}-{at}"), command));
            Some(parts.collect())
        }
        Parsed::Question(question) => Some(vec![Part::Call {
            id: format!("m{id}-q"),
            tool: "quote",
            input: json!({"query": question}),
            step: None,
            lead: Some("From what I remember:".to_owned()),
            keep_on_failure: true,
        }]),
        Parsed::Unclear { .. } => None,
    }
}

fn parts(id: &str, command: Command) -> Vec<Part> {
    let act = |tool, input, step: String| Part::Call {
        id: id.to_owned(),
        tool,
        input,
        step: Some(step),
        lead: None,
        keep_on_failure: false,
    };
    let look = |suffix: &str, tool, input, lead: &str| Part::Call {
        id: format!("{id}{suffix}"),
        tool,
        input,
        step: None,
        lead: Some(lead.to_owned()),
        keep_on_failure: false,
    };
    let list = |backlog: bool| if backlog { "backlog" } else { "active" };
    let part = match command {
        Command::Remember { fact, topic } => {
            act("remember", json!({"fact": fact, "topic": topic}), format!("remember: {fact}"))
        }
        Command::Forget { query } => act("forget", json!({"fact": query}), format!("forget: {query}")),
        Command::Remind { what, when, missed } => act(
            "reminder_set",
            json!({"text": what, "when": time(&when), "missed": missed}),
            format!("set a reminder: {what}"),
        ),
        Command::ListReminders => look("", "reminder_list", json!({}), "Reminders:"),
        Command::CancelReminder { which } => {
            act("reminder_done", json!({"reminder": query(&which)}), format!("end the reminder {}", query(&which)))
        }
        Command::TaskAdd { title, backlog } => {
            act("task_add", json!({"title": title, "list": list(backlog)}), format!("add the task: {title}"))
        }
        Command::TaskDone { which } => {
            act("task_done", json!({"task": query(&which)}), format!("finish the task {}", query(&which)))
        }
        Command::TaskList { backlog: false } => look("", "task_list", json!({"list": "active"}), "Active tasks:"),
        Command::TaskList { backlog: true } => look("", "task_list", json!({"list": "backlog"}), "Backlog:"),
        Command::Know { topic } => Part::Call {
            id: id.to_owned(),
            tool: "recall",
            input: json!({"query": topic}),
            step: None,
            lead: None,
            keep_on_failure: false,
        },
        Command::Status => {
            return vec![
                Part::Say("I am here, working without a mind (offline).".to_owned()),
                look("-t", "task_list", json!({"list": "active"}), "Active tasks:"),
                look("-r", "reminder_list", json!({}), "Reminders:"),
            ];
        }
        Command::Help => Part::Say(HELP.to_owned()),
        Command::Greeting => Part::Say("Hello! Say `help` to see what I understand.".to_owned()),
        Command::Thanks => Part::Say("You're welcome.".to_owned()),
        Command::AskBack { question } => Part::Say(question),
    };
    vec![part]
}

/// What is said about a message after its calls; `None` when it has to be kept.
pub(super) fn spoken(parts: &[Part], outcomes: &Outcomes) -> Option<String> {
    let mut said = Vec::new();
    for part in parts {
        match part {
            Part::Say(text) => said.push(text.clone()),
            Part::Call { id, lead, keep_on_failure, .. } => match outcomes.get(id) {
                Some((_, true)) | None if *keep_on_failure => return None,
                Some((why, true)) => said.push(format!("That did not work. {}", sentence(why))),
                Some((told, false)) => {
                    said.push(lead.as_ref().map_or_else(|| told.clone(), |lead| format!("{lead}\n{told}")));
                }
                None => {}
            },
        }
    }
    Some(said.join("\n\n"))
}

/// What the person is told of messages that are kept.
pub(super) fn kept_notice(count: usize) -> String {
    let what = if count == 1 { "this".to_owned() } else { format!("{count} of these") };
    format!(
        "I can't answer {what} without a mind, so I keep it and come back to it when there is one (set `ANTHROPIC_API_KEY`). \
         Say `help` to see what I can do meanwhile."
    )
}

fn query(which: &Which) -> String {
    match which {
        Which::Number(number) => number.to_string(),
        Which::Text(text) => text.clone(),
    }
}

/// A time as `reminder_set` takes it: an instant once, a rule in words.
fn time(when: &When) -> String {
    match when {
        When::At(slot) => slot.at.to_rfc3339(),
        When::Every(rule) => rule.to_string(),
    }
}

/// What a tool told, as a sentence: some of it is the end of one.
fn sentence(told: &str) -> String {
    let mut chars = told.trim().chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    let mut text: String = first.chain(chars).collect();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
