//! The status lines about open questions: their times, and how to decide them.

use chrono::{DateTime, Utc};

use reveille_base::{approval_text, types::ChatRef, words::format_relative_time};
use reveille_policy::Risk;
use reveille_store::Approval;

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenQuestion {
    /// The number, for `wake approvals`.
    pub id: i64,
    /// The tool that wants to run; `wake approvals list` shows the full action.
    pub tool: String,
    /// The action in one sentence.
    pub what: String,
    /// `safe`, `caution`, `dangerous` or `destructive`.
    pub risk: String,
    /// The chat where it was asked; 0 is the terminal.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// The cycle that waits for the answer.
    pub cycle_id: String,
    /// Time at which it was asked.
    pub asked_at: Option<DateTime<Utc>>,
    /// Time after which it counts as refused.
    pub expires_at: Option<DateTime<Utc>>,
}

impl From<Approval> for OpenQuestion {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            what: approval_text::describe_action(&approval.tool, &approval.action).plain_sentence(),
            tool: approval.tool,
            risk: approval.risk,
            chat: approval.chat,
            cycle_id: approval.cycle_id,
            asked_at: approval.asked_at,
            expires_at: approval.expires_at,
        }
    }
}

/// Renders a question for a person.
pub(super) fn render_line(question: &OpenQuestion, now: DateTime<Utc>) -> String {
    let OpenQuestion { id, what, risk, .. } = question;
    let risk = Risk::from_name(risk).describe();
    let asked = question.asked_at.map_or_else(String::new, |at| format!(", asked {}", format_relative_time(at, now)));
    let until =
        question.expires_at.map_or_else(String::new, |at| format!(", expires {}", format_relative_time(at, now)));
    format!(
        "{id}: {what} Risk: {risk}{asked}{until}; see wake approvals list. To allow: wake approvals approve {id}. \
         To refuse: wake approvals deny {id}"
    )
}
