//! What the machine says is next, and what it remembers of what was done.

use reveille_store::MessageOutcome;

use super::calls::ToolRequest;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask the model for its next turn.
    Ask,
    /// Let the policy decide on this call, and do what follows: run it and record its outcome, refuse it, or ask a person.
    Call(ToolRequest),
    /// A limit is reached: ask a person whether to go on, and park the cycle. The request is no tool's, it only stands for the
    /// question.
    Limit(ToolRequest),
    /// A person is asked about this call, or whether to go on: record what they have decided, or park the cycle.
    Await(ToolRequest),
    /// A person has allowed this call, once: run it and record its outcome.
    Allowed(ToolRequest),
    /// A wake that was cut off had begun this call: what follows depends on what it does, see [`super::doubt`].
    Again {
        /// The call.
        call: ToolRequest,
        /// Whether it was begun under a person's yes, which is used then.
        was_allowed: bool,
    },
    /// Record an outcome without running anything.
    Reject {
        /// The call.
        call: ToolRequest,
        /// What the model is told.
        why: String,
    },
    /// Journal this user message; it is sent with the next request.
    Say(String),
    /// As [`Step::Say`]: the results of the last turn's calls. Behind them may stand messages that have come for this chat meanwhile,
    /// or what [`super::Cycle::fold_ask`] has to ask.
    Tell(String),
    /// Begin a new conversation, journalled with what it opens with, in place of this one.
    Fold(Summary),
    /// End the cycle without an answer, for this reason. Its messages stay in the queue.
    Fail(String),
    /// Take this text as the answer to the open messages; it is told even if there are none.
    Answer {
        /// Markdown.
        text: String,
        /// [`MessageOutcome::Answered`], or [`MessageOutcome::Refused`] when the model declined.
        outcome: MessageOutcome,
    },
    /// See whether more messages have come for this chat: journal them, or end.
    Join,
    /// Nothing more is to be done.
    Finish,
}

/// Something that really happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The tool that did it.
    pub tool: String,
    /// What, in the past tense; none when nothing was changed.
    pub what: Option<String>,
}

/// What the model leaves of a conversation that is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its words; empty if it found none.
    pub text: String,
    /// Tools that it called beside them: these calls were not run.
    pub not_run: Vec<String>,
    /// Whether it was never asked for them: the conversation had become too long to ask anything. Then they are what it said on the way.
    pub is_forced: bool,
}

/// A call that came to nothing, as its model was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, raw JSON.
    pub input: String,
    /// Why; none where these aren't our own words.
    pub why: Option<String>,
}
