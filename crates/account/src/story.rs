//! A cycle's story as a value: why it woke, what it planned, each turn with its calls, what it said, what it cost.

use chrono::{DateTime, Utc};

use reveille_base::{
    types::{ChatRef, Stop, Usage},
    words::{one_line, shortened},
};
use reveille_policy::Verdict;
use reveille_store::{Incoming, RecordedCall, Spent, WrittenText};
use reveille_tools::Plan;

/// A cycle from its beginning to its end, as far as that is kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WakeStory {
    /// Its id.
    pub wake_id: String,
    /// `running`, `waiting`, `parked`, `done`, `failed` or `abandoned`.
    pub state: &'static str,
    /// What started its wake: `cron`, `nudge`, `say`, …
    pub trigger: String,
    /// Why it was due, for people.
    pub reasons: Vec<String>,
    /// The chat that it answered.
    #[serde(rename = "chat_id")]
    pub chat: Option<ChatRef>,
    /// The model; none: a rule did all of it.
    pub model: Option<String>,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// How often it was cut off by a crash, a kill or a time-out, and continued.
    pub resumed: u32,
    /// What went wrong.
    pub error: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
    /// Whether it was undone (`true`), or is about to be (`false`).
    pub undone: Option<bool>,
    /// The messages that it took up.
    pub asked: Vec<AskedMessage>,
    /// How much of its journal is kept.
    pub journal: JournalKept,
    /// Whose words it read besides its person's and the memory's, each once.
    pub taints: Vec<String>,
    /// The last plan.
    pub plan: Option<Plan>,
    /// What of the plan has no receipt; none: it wasn't held against the receipts.
    pub not_done: Option<Vec<String>>,
    /// What happened, in order.
    pub steps: Vec<StoryStep>,
    /// What it wrote to chats.
    pub said: Vec<WrittenText>,
    /// Where the journal is gone: what is kept of it as an example.
    pub recording: Option<StoryRecording>,
    /// Tokens and money, of all its requests.
    pub spent: Spent,
    /// What of the cost is only set aside, for requests whose end isn't known, in US dollars.
    pub reserved_usd: f64,
}

/// How much of a journal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum JournalKept {
    /// All of it.
    Whole,
    /// Nothing: it was older than `KEEP_DAYS`.
    Forgotten,
    /// Some lines can't be read.
    Damaged {
        /// How many.
        lines: usize,
    },
}

/// A message that a cycle took up.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AskedMessage {
    /// Its number.
    pub id: i64,
    /// Its chat.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Who said it, as they call themselves.
    pub from: Option<String>,
    /// When it came.
    pub at: Option<DateTime<Utc>>,
    /// What it says.
    pub text: String,
    /// Whose words these are, if not its sender's own.
    pub taint: Option<String>,
}

impl AskedMessage {
    /// Of a row, its texts passed through `shown`.
    pub fn of(message: &Incoming, shown: impl Fn(&str) -> String) -> Self {
        Self {
            id: message.id,
            chat: message.chat,
            from: message.sender_name.as_deref().map(&shown),
            at: message.received_at,
            text: shown(&message.text),
            taint: message.words_of_others(),
        }
    }

    /// Its first words, at most so many characters.
    pub fn first_words(&self, max_chars: usize) -> String {
        shortened(&one_line(&self.text), max_chars)
    }
}

impl WakeStory {
    /// The models that had it, in order, the `last` one among them: `a, then b`.
    pub(super) fn all_models(&self, last: &str) -> String {
        let before = self.steps.iter().filter_map(|step| match step {
            StoryStep::Handed { from, .. } => Some(from.as_str()),
            _ => None,
        });
        before.chain([last]).collect::<Vec<_>>().join(", then ")
    }
}

/// Something that happened in a cycle.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StoryStep {
    /// More messages came while it worked.
    Heard {
        /// When.
        at: Option<DateTime<Utc>>,
        /// Their numbers.
        messages: Vec<i64>,
    },
    /// The model took a turn.
    Turn(StoryTurn),
    /// A turn was cut off: counted, and asked for anew.
    Discarded {
        /// When.
        at: Option<DateTime<Utc>>,
        /// What happened.
        why: String,
        /// What it used all the same.
        usage: Usage,
        /// What it cost, in US dollars; none: that isn't known.
        cost_usd: Option<f64>,
    },
    /// A request is under way, or its wake was cut off meanwhile.
    Asking {
        /// Since when.
        at: Option<DateTime<Utc>>,
    },
    /// A limit was reached, and a person asked whether to continue.
    Limit {
        /// When.
        at: Option<DateTime<Utc>>,
        /// Which limit.
        reasons: Vec<String>,
        /// What was decided.
        decided: Option<CallDecision>,
    },
    /// The conversation was folded into a summary.
    Folded {
        /// When.
        at: Option<DateTime<Utc>>,
        /// Messages that it had.
        messages: usize,
        /// Its tokens before.
        before: u64,
        /// Its tokens after, as estimated.
        after: u64,
    },
    /// Another model went on, in a new conversation.
    Handed {
        /// When.
        at: Option<DateTime<Utc>>,
        /// The model before.
        from: String,
        /// The model from then on.
        model: String,
    },
    /// A text of the model's was taken as the answer.
    Answered {
        /// When.
        at: Option<DateTime<Utc>>,
        /// The messages that it answered.
        messages: Vec<i64>,
    },
    /// A rule did all of it.
    ByRule {
        /// When.
        at: Option<DateTime<Utc>>,
        /// What was done.
        receipts: Vec<String>,
    },
}

/// A turn of the model.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoryTurn {
    /// Its number, from 1.
    pub number: usize,
    /// When it was asked for.
    pub asked_at: Option<DateTime<Utc>>,
    /// When it had come.
    pub at: Option<DateTime<Utc>>,
    /// How long that took, in milliseconds.
    pub took_ms: Option<i64>,
    /// Why it ended.
    pub stop: Stop,
    /// What the model said.
    pub text: String,
    /// What it called.
    pub calls: Vec<StoryCall>,
    /// Its tokens.
    pub usage: Usage,
    /// What it cost, in US dollars; none: that isn't known.
    pub cost_usd: Option<f64>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct StoryCall {
    /// Its id in the conversation.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, raw JSON.
    pub input: String,
    /// What the policy said.
    pub verdict: Option<Verdict>,
    /// The question that a person was asked: its number.
    pub question: Option<i64>,
    /// What a person decided.
    pub decided: Option<CallDecision>,
    /// When it was begun; none: it wasn't.
    pub began_at: Option<DateTime<Utc>>,
    /// What came of it; none: it has no end yet.
    pub result: Option<CallResultTold>,
    /// How long it took, in milliseconds.
    pub took_ms: Option<i64>,
}

/// A person's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CallDecision {
    /// Whether it may run, or the work continue.
    pub is_approved: bool,
    /// Who decided: a person's number, or `console`; none: nobody did in time, or that isn't known.
    pub by: Option<String>,
    /// When.
    pub at: Option<DateTime<Utc>>,
    /// What the model was told of a no.
    pub why: String,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CallResultTold {
    /// When.
    pub at: Option<DateTime<Utc>>,
    /// What the model was told.
    pub content: String,
    /// Whether it failed.
    pub is_error: bool,
    /// What happened, in the past tense.
    pub receipt: Option<String>,
    /// Whose words `content` holds, if not the person's or the memory's.
    pub taint: Option<String>,
    /// Whether the model was shown a picture besides.
    pub has_image: bool,
}

/// What is kept of a cycle whose journal is gone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoryRecording {
    /// What it did.
    pub narrative: String,
    /// The calls that worked.
    pub calls: Vec<RecordedCall>,
}

impl WakeStory {
    /// The turns of the model, in order.
    pub fn turns(&self) -> impl Iterator<Item = &StoryTurn> {
        self.steps.iter().filter_map(|step| match step {
            StoryStep::Turn(turn) => Some(turn),
            _ => None,
        })
    }

    /// How long it took from its beginning to its end, in milliseconds, waiting included.
    pub fn took_ms(&self) -> Option<i64> {
        Some(self.ended_at?.signed_duration_since(self.started_at?).num_milliseconds())
    }
}
