//! The machine's next step, and its records of completed work.

use reveille_store::MessageOutcome;

use crate::decide::machine::calls::ToolRequest;

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask the model for its next turn.
    Ask,
    /// Let the policy decide on this call; then run it and record its outcome, refuse it, or ask a person.
    Call(ToolRequest),
    /// A limit is reached: ask a person whether to continue, and park the cycle. The request belongs to no tool and only stands for the
    /// question.
    Limit(ToolRequest),
    /// A person was asked about this call, or about continuing: record the decision, or park the cycle.
    Await(ToolRequest),
    /// A person has allowed this call once: run it and record its outcome.
    Allowed(ToolRequest),
    /// An interrupted wake had started this call: see [`super::find_doubt`].
    Again {
        /// The call.
        call: ToolRequest,
        /// True if a person's approval covered the call and is used up.
        was_allowed: bool,
    },
    /// Record an outcome without running anything.
    Reject {
        /// The call.
        call: ToolRequest,
        /// The result for the model.
        why: String,
    },
    /// Journal this user message, which is sent with the next request.
    Say(String),
    /// Like [`Step::Say`], with the results of the last turn's calls. New messages for this chat, or the request of
    /// [`super::Cycle::fold_ask`], may follow them.
    Tell(String),
    /// Begin a new conversation in place of this one, journalled with its opening.
    Fold(Summary),
    /// End the cycle without an answer, for this reason. Its messages stay in the queue.
    Fail(String),
    /// Send this text as the answer to the open messages. The text is sent even without any.
    Answer {
        /// The text, as Markdown.
        text: String,
        /// [`MessageOutcome::Answered`], or [`MessageOutcome::Refused`] if the model declined.
        outcome: MessageOutcome,
    },
    /// Look for more messages of this chat: journal them, or end.
    Join,
    /// The cycle is complete.
    Finish,
}

/// A completed effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The tool.
    pub tool: String,
    /// The effect, in the past tense. `None` if nothing was changed.
    pub what: Option<String>,
}

/// The summary of a folded conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The text. May be empty.
    pub text: String,
    /// Tools called beside the summary; these calls were not run.
    pub not_run: Vec<String>,
    /// True if no summary could be requested any more. The text then holds the model's earlier words.
    pub is_forced: bool,
}

/// A failed call, as the model was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// The tool.
    pub tool: String,
    /// The arguments, as raw JSON.
    pub input: String,
    /// The reason. `None` if it isn't in our own words.
    pub why: Option<String>,
}
