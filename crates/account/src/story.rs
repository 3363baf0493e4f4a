//! A cycle's story as a value: the reasons for the wake, the plan, each turn with its calls, the messages sent, the cost.

use chrono::{DateTime, Utc};

use reveille_base::{
    types::{ChatRef, Stop, Usage},
    words::{one_line, truncate_text},
};
use reveille_policy::Verdict;
use reveille_store::{Incoming, RecordedCall, Spent, WrittenText};
use reveille_tools::Plan;

/// The story of a cycle, as far as it is kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WakeStory {
    /// The id of the wake.
    pub wake_id: String,
    /// `running`, `waiting`, `parked`, `done`, `failed` or `abandoned`.
    pub state: &'static str,
    /// The trigger of the wake: `cron`, `nudge`, `say`, …
    pub trigger: String,
    /// The reasons for the wake, in words.
    pub reasons: Vec<String>,
    /// The chat that the wake answered.
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
    /// The model; `None` if a rule did all the work.
    pub model: Option<String>,
    /// The start of the cycle.
    pub started_at: Option<DateTime<Utc>>,
    /// The end of the cycle.
    pub ended_at: Option<DateTime<Utc>>,
    /// The number of times that the cycle was interrupted by a crash, a kill or a time-out, and resumed.
    pub resumed: u32,
    /// The error, if any.
    pub error: Option<String>,
    /// The commit of the wake.
    pub commit: Option<String>,
    /// `true` if the wake was undone, `false` if the undo is pending, `None` if nobody asked for one.
    pub undone: Option<bool>,
    /// The messages that the cycle handled.
    pub asked: Vec<AskedMessage>,
    /// The completeness of the journal.
    pub journal: JournalState,
    /// The distinct sources of untrusted text that the cycle read.
    pub taints: Vec<String>,
    /// The last plan.
    pub plan: Option<Plan>,
    /// Steps of the plan without a receipt; `None` if the plan wasn't verified.
    pub not_done: Option<Vec<String>>,
    /// The events in order.
    pub steps: Vec<StoryStep>,
    /// The texts written to chats.
    pub said: Vec<WrittenText>,
    /// The recording that remains as an example after the journal is gone.
    pub recording: Option<StoryRecording>,
    /// The tokens and the cost of all requests.
    pub spent: Spent,
    /// The part of the cost in US dollars that is reserved for requests with an unknown outcome.
    pub reserved_usd: f64,
}

/// The completeness of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum JournalState {
    /// Complete.
    Whole,
    /// Deleted, because it was older than `KEEP_DAYS`.
    Forgotten,
    /// Partly unreadable.
    Damaged {
        /// The number of unreadable lines.
        lines: usize,
    },
}

/// A message that a cycle handled.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AskedMessage {
    /// The number of the message.
    pub id: i64,
    /// The chat of the message.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The name that the sender has chosen.
    pub from: Option<String>,
    /// The time of receipt.
    pub at: Option<DateTime<Utc>>,
    /// The text.
    pub text: String,
    /// The origin of the text, if other than the sender.
    pub taint: Option<String>,
}

impl AskedMessage {
    /// Converts a row. `shown` prepares each text for display.
    pub fn from_incoming(message: &Incoming, shown: impl Fn(&str) -> String) -> Self {
        Self {
            id: message.id,
            chat: message.chat,
            from: message.sender_name.as_deref().map(&shown),
            at: message.received_at,
            text: shown(&message.text),
            taint: message.words_of_others(),
        }
    }

    /// The first words, at most `max_chars` characters.
    pub fn first_words(&self, max_chars: usize) -> String {
        truncate_text(&one_line(&self.text), max_chars)
    }
}

impl WakeStory {
    /// The models of the cycle in order, ending with `last`: `a, then b`.
    pub(super) fn all_models(&self, last: &str) -> String {
        let before = self.steps.iter().filter_map(|step| match step {
            StoryStep::Handed { from, .. } => Some(from.as_str()),
            _ => None,
        });
        before.chain([last]).collect::<Vec<_>>().join(", then ")
    }
}

/// An event in a cycle.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StoryStep {
    /// More messages arrived during the cycle.
    Heard {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The numbers of the messages.
        messages: Vec<i64>,
    },
    /// The model took a turn.
    Turn(StoryTurn),
    /// A turn was cut off: its cost counts, and the request was repeated.
    Discarded {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The reason.
        why: String,
        /// The tokens used nevertheless.
        usage: Usage,
        /// The cost in US dollars; `None` if unknown.
        cost_usd: Option<f64>,
    },
    /// A request is under way, or the wake was cut off during a request.
    Asking {
        /// The start of the request.
        at: Option<DateTime<Utc>>,
    },
    /// A limit was reached, and a person was asked about continuing.
    Limit {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The limits reached.
        reasons: Vec<String>,
        /// The person's decision.
        decided: Option<CallDecision>,
    },
    /// The conversation was folded into a summary.
    Folded {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The number of messages before.
        messages: usize,
        /// The number of tokens before.
        before: u64,
        /// The estimated number of tokens after.
        after: u64,
    },
    /// The cycle fell back to another model in a new conversation.
    Handed {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The previous model.
        from: String,
        /// The new model.
        model: String,
    },
    /// A text of the model was taken as the answer.
    Answered {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The answered messages.
        messages: Vec<i64>,
    },
    /// A rule did all the work.
    ByRule {
        /// The time.
        at: Option<DateTime<Utc>>,
        /// The receipts of the work.
        receipts: Vec<String>,
    },
}

/// A turn of the model.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoryTurn {
    /// The number of the turn, from 1.
    pub number: usize,
    /// The time of the request.
    pub asked_at: Option<DateTime<Utc>>,
    /// The time of the completed turn.
    pub at: Option<DateTime<Utc>>,
    /// The duration in milliseconds.
    pub took_ms: Option<i64>,
    /// The reason for the end of the turn.
    pub stop: Stop,
    /// The model's text.
    pub text: String,
    /// The model's calls.
    pub calls: Vec<StoryCall>,
    /// The tokens used.
    pub usage: Usage,
    /// The cost in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoryCall {
    /// The id in the conversation.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as raw JSON.
    pub input: String,
    /// The policy's verdict.
    pub verdict: Option<Verdict>,
    /// The number of the approval question.
    pub question: Option<i64>,
    /// The person's decision.
    pub decided: Option<CallDecision>,
    /// The start of the call; `None` if the call never ran.
    pub began_at: Option<DateTime<Utc>>,
    /// The result; `None` if the call hasn't ended.
    pub result: Option<StoryCallResult>,
    /// The duration in milliseconds.
    pub took_ms: Option<i64>,
}

/// A person's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CallDecision {
    /// True if the call may run, or the work may continue.
    pub is_approved: bool,
    /// Who decided: a person's number, or `console`; `None` if the question expired or this is unknown.
    pub by: Option<String>,
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// The reason for a refusal, as the model gets it.
    pub why: String,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoryCallResult {
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// The content for the model.
    pub content: String,
    /// True if the call failed.
    pub is_error: bool,
    /// The receipt of the effect, in the past tense.
    pub receipt: Option<String>,
    /// The origin of untrusted text in `content`.
    pub taint: Option<String>,
    /// True if the result also contained a picture.
    pub has_image: bool,
}

/// The remains of a cycle whose journal is gone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoryRecording {
    /// A summary of the work.
    pub narrative: String,
    /// The successful calls.
    pub calls: Vec<RecordedCall>,
}

impl WakeStory {
    /// The turns of the model in order.
    pub fn turns(&self) -> impl Iterator<Item = &StoryTurn> {
        self.steps.iter().filter_map(|step| match step {
            StoryStep::Turn(turn) => Some(turn),
            _ => None,
        })
    }

    /// The time from start to end in milliseconds, including waits.
    pub fn took_ms(&self) -> Option<i64> {
        Some(self.ended_at?.signed_duration_since(self.started_at?).num_milliseconds())
    }
}
