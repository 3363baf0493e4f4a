//! The stories of a question: the model wants an action that has to ask, with a countable effect outside our stores. The wake parks,
//! the person answers or doesn't, and another wake continues. In every trial the action happens at most once, under a row that allows
//! it, and the person learns the known result.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::{Value, json};

use reveille_base::types::ApprovalAnswer;

use super::{Program, Story, World};
use crate::support::{
    claude::{Block, ClaudeRequest, Reply},
    env::{CHAT, TestEnv},
    telegram::SentMessage,
};

/// The message to the model.
const SAID: &str = "remember that the wifi code is 1234, and write down in the file trace.txt that I was here";
/// The same, for a question longer than a message.
pub(super) const SAID_AT_LENGTH: &str =
    "remember that the wifi code is 1234, and write down in the file trace.txt that I was here, at length";
/// The model's command. Each run adds a line.
const COMMAND: &str = "echo was here >> trace.txt";
/// The rule that makes it ask.
const RULE: &str = "[[rule]]\ncommand = \"echo\"\ndecision = \"ask\"\nmatch = [\"echo x\"]\n";
const TRACE: (&str, &str) = ("work/trace.txt", "was here");
/// The calls of the model's first turn.
const KEEP: &str = "toolu_1";
pub(super) const RUN: &str = "toolu_2";
/// The time after which no answer means no, with a margin, and the clock then, counted from the stories' start.
pub(super) const A_DAY_MIN: u32 = 24 * 60 + 5;
pub(super) const NEXT_DAY: &str = "2026-11-22T14:15:00Z";

/// The person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Yes,
    No,
    /// No answer within the time limit.
    Silence,
}

/// The result of the call as the model was told, and as it tells its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Done,
    MaybeDone,
    Refused,
    TooLate,
    /// The command couldn't be started, and nothing was done.
    NotBegun,
}

impl Told {
    /// Reads the result of the call.
    fn by(content: &str, is_error: bool) -> Self {
        match content {
            _ if !is_error => Self::Done,
            _ if content.contains("uncertain") => Self::MaybeDone,
            _ if content.contains("said no") => Self::Refused,
            _ if content.contains("didn't answer in time") => Self::TooLate,
            _ => Self::NotBegun,
        }
    }

    fn answer(self) -> &'static str {
        match self {
            Self::Done => "The code is noted, and the line is written.",
            Self::MaybeDone => "The code is noted. The line may be written: I don't know.",
            Self::Refused => "The code is noted. The line is not written: you said no.",
            Self::TooLate => "The code is noted. The line is not written: you didn't say.",
            Self::NotBegun => "The code is noted. The line is not written: it couldn't be done.",
        }
    }
}

/// Notes the code and asks for the command in one turn, then reports the result.
pub(super) fn mind(request: &ClaudeRequest) -> Reply {
    reply_with(request, SAID, action(request.messages[0].contains(SAID_AT_LENGTH)))
}

/// The same for another message, with another action.
pub(super) fn reply_with(request: &ClaudeRequest, said: &str, action: Value) -> Reply {
    if !request.messages[0].contains(said) {
        return Reply::text("Seen.");
    }
    if request.messages.len() == 1 {
        let fact = json!({"fact": "the wifi code is 1234"});
        return Reply::tools(vec![Block::tool(KEEP, "remember", fact), Block::tool(RUN, "bash", action)]);
    }
    let messages = request.json["messages"].as_array().into_iter().flatten();
    let mut blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let result = blocks.find(|block| block["tool_use_id"] == RUN).unwrap_or(&Value::Null);
    let told = Told::by(result["content"].as_str().unwrap_or_default(), result["is_error"] == true);
    Reply::text(told.answer())
}

/// The call in question.
fn action(is_long: bool) -> Value {
    let length = if is_long { format!(" # {}", "at length ".repeat(300).trim_end()) } else { String::new() };
    json!({ "command": format!("{COMMAND}{length}") })
}

/// Queues the message.
pub(super) fn say(env: &TestEnv) {
    hold_back(env);
    env.receive(CHAT, SAID);
}

/// Makes the command ask.
pub(super) fn hold_back(env: &TestEnv) {
    let policy = env.workspace().join("policy.toml");
    fs::write(&policy, RULE).unwrap();
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A text without the lines about the time of the question and about the machine.
pub(super) fn timeless(text: &str) -> String {
    let varies = |line: &&str| !line.starts_with("Expires ") && !line.starts_with("Why I ask: ");
    text.lines().filter(varies).collect::<Vec<_>>().join("\n")
}

impl Story {
    /// The expected texts and log lines for this world. If the command may have been done, couldn't start, or was never visibly asked,
    /// the text differs from the undisturbed run and the log line is missing.
    pub(super) fn of_question(&self, world: &World) -> (Vec<String>, Vec<String>) {
        let (mut texts, mut log) = (self.texts.clone(), self.log.clone());
        if let Some(told @ (Told::MaybeDone | Told::NotBegun | Told::TooLate)) = world.told() {
            for text in texts.iter_mut().filter(|text| text.starts_with(Told::Done.answer())) {
                told.answer().clone_into(text);
            }
            log.retain(|line| !line.starts_with("Ran “"));
        }
        (texts, log)
    }
}

/// Tells whether a message asks for a yes or no. Reminders and unprompted messages have buttons too.
pub(crate) fn is_question(message: &SentMessage) -> bool {
    message.buttons.iter().any(|button| button.starts_with("yes:"))
}

impl World {
    /// The last message with the question's buttons.
    pub(crate) fn question(&self) -> Option<SentMessage> {
        self.telegram.sent().into_iter().rfind(is_question)
    }

    /// Tells whether a question exists that never reached its person, in a world where that is possible.
    pub(super) fn is_asked_in_vain(&self) -> bool {
        let asked = "SELECT count(*) FROM approvals";
        self.program == Program::Bot && self.question().is_none() && self.env.query::<i64>(asked) > 0
    }

    /// Answers a question the person has seen and nobody has answered: by `wake approvals`, as on the terminal, or by letting a
    /// day pass.
    pub(super) fn person_answers(&mut self) -> Result<(), String> {
        let Some((word, id)) = self.word.zip(self.seen_question()) else { return Ok(()) };
        if word == Word::Silence {
            self.pass(A_DAY_MIN);
            return Ok(());
        }
        let ran = self.env.wake(&word.arguments(&id.to_string()));
        if ran.code == 0 { Ok(()) } else { Err(format!("the answer was not taken: {ran:#?}")) }
    }

    /// The same without a wake: only the row.
    pub(crate) fn decide(&self) {
        if let Some((word @ (Word::Yes | Word::No), id)) = self.word.zip(self.seen_question()) {
            let mut store = self.env.store();
            let asked_at = store.approvals().find_approval(id).unwrap().and_then(|approval| approval.asked_at).unwrap();
            let answer = if word == Word::Yes { ApprovalAnswer::Yes } else { ApprovalAnswer::No };
            store.approvals_mut().decide_approval(id, answer, asked_at).unwrap();
        }
    }

    /// The command's output file, if the command ran.
    pub(crate) fn trace(&self) -> Option<PathBuf> {
        let folders = fs::read_dir(self.env.workspace().join("scratch")).into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join(TRACE.0)).find(|trace| trace.exists())
    }

    /// The pending question, if it has reached its person.
    pub(super) fn seen_question(&self) -> Option<i64> {
        let pending = "SELECT max(id) FROM approvals WHERE state = 'pending'";
        self.question().and_then(|_| self.env.query::<Option<i64>>(pending))
    }

    /// The result the model was told; `None` before.
    fn told(&self) -> Option<Told> {
        let outcome = format!(
            "SELECT max(body) FROM cycle_journal WHERE kind = 'outcome' AND json_extract(body, '$.call') = '{RUN}'"
        );
        let body: Value = serde_json::from_str(&self.env.query::<Option<String>>(&outcome)?).ok()?;
        Some(Told::by(body["content"].as_str()?, body["is_error"] == true))
    }

    /// Checks that only the approved action was done, as shown and at most once, and that the report is true.
    pub(super) fn check_asked(&self, word: Word) -> Result<(), String> {
        let trace = self.trace().and_then(|trace| fs::read_to_string(trace).ok()).unwrap_or_default();
        let lines: Vec<&str> = trace.lines().collect();
        let row: String = self.env.query(
            "SELECT count(*) || ' ' || max(state) || ' ' || (max(used_at) IS NOT NULL) || ' ' || max(action) FROM approvals",
        );
        let called: i64 = self.env.query(
            "SELECT count(*) FROM cycle_journal WHERE kind = 'called' AND json_extract(body, '$.name') = 'bash'",
        );
        let told = self.told();
        let context =
            |why: &str| format!("{why}: the trace is {lines:?}, the row {row:?}, {called} calls, told {told:?}");
        if lines.len() > 1 || called > 1 {
            return Err(context("it was done again"));
        }
        if lines.iter().any(|line| *line != TRACE.1) {
            return Err(context("something else was done"));
        }
        let action = action(self.program == Program::Bot);
        // An unseen question has no answer.
        let word = if self.is_asked_in_vain() { Word::Silence } else { word };
        let refused = "SELECT count(*) FROM outgoing_parts JOIN approvals USING (outgoing_id) WHERE outgoing_parts.state = 'failed'";
        let is_refused = self.env.query::<i64>(refused) > 0;
        let (is_used, state) = match word {
            Word::Yes => (true, "approved"),
            Word::No => (false, "denied"),
            Word::Silence if is_refused => (false, "withdrawn"),
            Word::Silence => (false, "expired"),
        };
        if row != format!("1 {state} {} {action}", i32::from(is_used)) {
            return Err(context("the question isn't what it was, or was used otherwise"));
        }
        let is_true = match told {
            Some(Told::Done) => word == Word::Yes && lines.len() == 1,
            Some(Told::MaybeDone) => word == Word::Yes && called == 1,
            Some(Told::NotBegun) => (word == Word::Yes || is_refused) && lines.is_empty(),
            Some(Told::Refused) => word == Word::No && lines.is_empty(),
            Some(Told::TooLate) => word == Word::Silence && lines.is_empty(),
            None => false,
        };
        if is_true { Ok(()) } else { Err(context("what was told isn't true")) }
    }
}

impl Word {
    /// The arguments of `wake` for this answer.
    pub(super) fn arguments(self, id: &str) -> [&str; 3] {
        ["approvals", if self == Self::Yes { "approve" } else { "deny" }, id]
    }
}
